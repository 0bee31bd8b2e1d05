/* Devices: what the driver process wrote into the table when it started. */
#include "client.h"

#include <stdio.h>
#include <string.h>

CUresult zl_cuDeviceGetCount(int *count)
{
    *count = (int)zl_state.device_count;
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!zl_device_valid(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceGetName(char *name, int len, CUdevice dev)
{
    if (len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)len, "%s", zl_state.devices[dev].name);
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, zl_state.devices[dev].uuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    return zl_cuDeviceGetUuid_v2(uuid, dev);
}

CUresult zl_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = zl_state.devices[dev].total_memory;
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if ((unsigned)attrib >= ZL_ATTRIBUTE_SLOTS || !(zl_state.devices[dev].known[attrib / 32] >> attrib % 32 & 1))
        return CUDA_ERROR_INVALID_VALUE;
    *pi = zl_device_attribute(dev, attrib);
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = zl_state.devices[dev].major;
    *minor = zl_state.devices[dev].minor;
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (len <= 0 || strlen(zl_state.devices[dev].pci_bus_id) >= (size_t)len)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(pciBusId, zl_state.devices[dev].pci_bus_id, strlen(zl_state.devices[dev].pci_bus_id) + 1);
    return CUDA_SUCCESS;
}

/* [domain]:[bus]:[device].[function], [domain]:[bus]:[device] or [bus]:[device].[function], hexadecimal. */
static bool parse_pci(const char *text, unsigned parts[4])
{
    char end;
    if (sscanf(text, "%x:%x:%x.%x%c", &parts[0], &parts[1], &parts[2], &parts[3], &end) == 4)
        return true;
    parts[3] = 0;
    if (sscanf(text, "%x:%x:%x%c", &parts[0], &parts[1], &parts[2], &end) == 3)
        return true;
    parts[0] = 0;
    return sscanf(text, "%x:%x.%x%c", &parts[1], &parts[2], &parts[3], &end) == 3;
}

CUresult zl_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    unsigned wanted[4], found[4];

    if (!pciBusId || !parse_pci(pciBusId, wanted))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < zl_state.device_count; i++)
        if (parse_pci(zl_state.devices[i].pci_bus_id, found) && !memcmp(found, wanted, sizeof found)) {
            *dev = (CUdevice)i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    if (!zl_device_valid(dev) || !zl_device_valid(peerDev))
        return CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = 0;                  /* no device reads another's memory; copies between devices go another way */
    return CUDA_SUCCESS;
}
