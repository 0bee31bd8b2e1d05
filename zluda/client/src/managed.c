/* Managed memory lies in the window, where the host and all devices that have it reach it: nothing has to move. Advice and
   prefetches are checked here, and remembered by the driver process. */
#include "client.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

CUresult zl_cuMemAllocManaged(zl_context *context, CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct zl_cmd_managed_allocate *command;
    struct zl_managed_allocate_reply reply;
    CUresult result;

    if (!bytesize || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    if (!zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
        return CUDA_ERROR_NOT_SUPPORTED;
    command = zl_begin(ZL_OP_managed_allocate, context, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->size = bytesize;
    command->flags = flags;
    result = zl_call(&command->header, &reply, sizeof reply, NULL);
    if (result == CUDA_SUCCESS) {
        zl_range_add((zl_range){.base = reply.address, .size = bytesize, .kind = ZL_RANGE_MANAGED, .flags = flags,
                                .context = context->handle});
        *dptr = reply.address;
    }
    return result;
}

static bool managed(CUdeviceptr address, size_t size)
{
    zl_range range;
    return size && zl_range_find(address, &range) && range.kind == ZL_RANGE_MANAGED && zl_range_holds(address, size);
}

static bool node_exists(int node)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
    return node == 0 || (node > 0 && access(path, F_OK) == 0);
}

/* Checks a location; `nodes` if it may be a NUMA node of the host's. */
static CUresult resolve(CUmemLocation *location, bool nodes)
{
    unsigned processor, node = 0;

    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (!zl_device_valid(location->id) ||
            !zl_device_attribute(location->id, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
            return CUDA_ERROR_INVALID_DEVICE;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
        location->id = CU_DEVICE_CPU;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        if (!nodes)
            return CUDA_ERROR_INVALID_VALUE;
        syscall(SYS_getcpu, &processor, &node, NULL);
        *location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = (int)node};
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return nodes && node_exists(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The older forms name the host by a device number. */
static CUmemLocation location_of(CUdevice device)
{
    return (CUmemLocation){.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

CUresult zl_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
    struct zl_cmd_managed_advise *command;
    CUresult result = CUDA_SUCCESS;

    if (!managed(devPtr, count))
        return CUDA_ERROR_INVALID_VALUE;
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        result = resolve(&location, true);
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        result = resolve(&location, false);
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_managed_advise, NULL, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->address = devPtr;
    command->size = count;
    command->advice = advice;
    command->kind = location.type;
    command->number = location.id;
    return zl_call(&command->header, NULL, 0, NULL);
}

CUresult zl_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return zl_cuMemAdvise_v2(devPtr, count, advice, location_of(device));
}

CUresult zl_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream)
{
    struct zl_cmd_managed_prefetch *command;
    zl_context *context = NULL;
    uint64_t wire;
    CUresult result = zl_use_any_stream(hStream, &context, &wire);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags || !managed(devPtr, count))
        return CUDA_ERROR_INVALID_VALUE;
    result = resolve(&location, true);
    if (result != CUDA_SUCCESS)
        return result;
    if (!zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
        return CUDA_ERROR_INVALID_DEVICE;
    command = zl_begin(ZL_OP_managed_prefetch, context, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->address = devPtr;
    command->size = count;
    command->kind = location.type;
    command->number = location.id;
    return zl_call(&command->header, NULL, 0, NULL);
}

CUresult zl_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
    return zl_cuMemPrefetchAsync_v2(devPtr, count, location_of(dstDevice), 0, hStream);
}

/* --- attributes of a range --- */

static CUdevice device_of(CUmemLocationType type, int id)
{
    if (type == CU_MEM_LOCATION_TYPE_DEVICE)
        return id;
    return type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : CU_DEVICE_CPU;
}

static void list_devices(const struct zl_managed_usage_reply *usage, CUdevice *devices, size_t room)
{
    size_t filled = 0;

    for (uint32_t i = 0; i < zl_state.device_count && filled < room; i++)
        if (usage->accessed_by >> i & 1)
            devices[filled++] = (CUdevice)i;
    if (usage->accessed_by >> 63 && filled < room)
        devices[filled++] = CU_DEVICE_CPU;
    while (filled < room)
        devices[filled++] = CU_DEVICE_INVALID;
}

static bool size_fits(CUmem_range_attribute attribute, size_t size)
{
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
        return size && size % sizeof(CUdevice) == 0;
    return attribute >= CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY && attribute <= CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID &&
           size == sizeof(int);
}

static void tell(const struct zl_managed_usage_reply *usage, CUmem_range_attribute attribute, int *data, size_t size)
{
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *data = (int)usage->read_mostly;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *data = device_of((CUmemLocationType)usage->preferred_type, usage->preferred_id);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        list_devices(usage, data, size / sizeof(CUdevice));
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *data = device_of((CUmemLocationType)usage->prefetched_type, usage->prefetched_id);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *data = usage->preferred_type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *data = usage->preferred_id;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *data = usage->prefetched_type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *data = usage->prefetched_id;
        break;
    }
}

CUresult zl_cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes, size_t numAttributes,
                                    CUdeviceptr devPtr, size_t count)
{
    struct zl_cmd_managed_usage *command;
    struct zl_managed_usage_reply usage;
    CUresult result;

    if (!dataSizes || !attributes || !numAttributes || !managed(devPtr, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numAttributes; i++)
        if (!data[i] || !size_fits(attributes[i], dataSizes[i]))
            return CUDA_ERROR_INVALID_VALUE;
    command = zl_begin(ZL_OP_managed_usage, NULL, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->address = devPtr;
    command->size = count;
    result = zl_call(&command->header, &usage, sizeof usage, NULL);
    for (size_t i = 0; result == CUDA_SUCCESS && i < numAttributes; i++)
        tell(&usage, attributes[i], data[i], dataSizes[i]);
    return result;
}

CUresult zl_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)
{
    return zl_cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

/* Devices here that have managed memory have CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS as well: they and the host may use
   it at any time, whatever stream it is attached to. So an association has nothing to change. */
CUresult zl_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
    zl_context *context = NULL;
    zl_range range;
    uint64_t wire;
    CUresult result = zl_use_any_stream(hStream, &context, &wire);

    if (result != CUDA_SUCCESS)
        return result;
    if (!zl_range_find(dptr, &range) || range.kind != ZL_RANGE_MANAGED || range.pool || dptr != range.base ||
        (length && length != range.size))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_MEM_ATTACH_SINGLE && wire == ZL_STREAM_LEGACY) /* the NULL stream is no stream of its own */
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}
