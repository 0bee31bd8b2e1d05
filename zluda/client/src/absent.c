/* What no device here has: multicast objects, logical endpoints, fabrics, NvSciSync, memory budgets. Arguments are checked
   as the manual says, then the call is refused by the code it names; handles of what cannot be made are never valid. */
#include "client.h"

/* --- multicast objects (driver API, "Multicast Object Management") --- */

static CUresult check_multicast(const CUmulticastObjectProp *prop)
{
    if (!prop || !prop->numDevices || !prop->size || prop->flags)
        return CUDA_ERROR_INVALID_VALUE;
    return prop->numDevices > zl_state.device_count ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult zl_cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop)
{
    (void)mcHandle;
    return check_multicast(prop);
}

CUresult zl_cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
                                      CUmulticastGranularity_flags option)
{
    (void)granularity;
    if ((unsigned)option > CU_MULTICAST_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    return check_multicast(prop);
}

CUresult zl_cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev)
{
    (void)mcHandle;
    return zl_device_valid(dev) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUmemGenericAllocationHandle memHandle,
                               size_t memOffset, size_t size, unsigned long long flags)
{
    (void)mcHandle, (void)mcOffset, (void)memHandle, (void)memOffset, (void)size, (void)flags;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMulticastBindMem_v2(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                                  CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                                  unsigned long long flags)
{
    (void)mcHandle, (void)mcOffset, (void)memHandle, (void)memOffset, (void)size, (void)flags;
    return zl_device_valid(dev) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr, size_t size,
                                unsigned long long flags)
{
    (void)mcHandle, (void)mcOffset, (void)memptr, (void)size, (void)flags;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMulticastBindAddr_v2(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset, CUdeviceptr memptr,
                                   size_t size, unsigned long long flags)
{
    (void)mcHandle, (void)mcOffset, (void)memptr, (void)size, (void)flags;
    return zl_device_valid(dev) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset, size_t size)
{
    (void)mcHandle, (void)mcOffset, (void)size;
    return zl_device_valid(dev) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
}

/* --- fabrics (driver API, "Device Management") --- */

CUresult zl_cuDeviceGetCliqueCount(size_t *count, CUdevice dev)
{
    (void)count;
    return zl_device_valid(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuDeviceGetCliqueInfo(CUcliqueInfo *cliqueInfo, size_t *count, CUdevice dev)
{
    (void)cliqueInfo, (void)count;
    return zl_device_valid(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuDeviceGetFabricClusterUuid(CUuuid *uuid, CUdevice dev)
{
    (void)uuid;
    return zl_device_valid(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/* --- others --- */

CUresult zl_cuDeviceGetNvSciSyncAttributes(void *nvSciSyncAttrList, CUdevice dev, int flags)
{
    const int both = CUDA_NVSCISYNC_ATTR_SIGNAL | CUDA_NVSCISYNC_ATTR_WAIT;

    if (!nvSciSyncAttrList || !(flags & both) || (flags & ~both))
        return CUDA_ERROR_INVALID_VALUE;
    return zl_device_valid(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc, void *userData,
                                              CUasyncCallbackHandle *callback)
{
    (void)userData, (void)callback;
    if (!callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    return zl_device_valid(device) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback)
{
    (void)callback;
    return zl_device_valid(device) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
}
