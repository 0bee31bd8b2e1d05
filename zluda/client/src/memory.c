/* Device memory and pinned host memory: both lie in the window, so host and device see one address. */
#include "client.h"

static CUresult allocate(zl_context *context, size_t size, enum zl_range_kind kind, unsigned flags, uint64_t *address)
{
    struct zl_memory_allocate_reply reply;
    CUresult result;

    if (!size)
        return CUDA_ERROR_INVALID_VALUE;
    if (kind == ZL_RANGE_DEVICE) {
        struct zl_cmd_memory_allocate *command = zl_begin(ZL_OP_memory_allocate, context, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->size = size;
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
    } else {
        struct zl_cmd_host_allocate *command = zl_begin(ZL_OP_host_allocate, context, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->size = size;
        command->flags = flags;
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
    }
    if (result == CUDA_SUCCESS) {
        zl_range_add((zl_range){.base = reply.address, .size = size, .kind = kind, .flags = flags, .context = context->handle});
        *address = reply.address;
    }
    return result;
}

CUresult zl_cuMemAlloc_v2(zl_context *context, CUdeviceptr *dptr, size_t bytesize)
{
    uint64_t address = 0;
    CUresult result = allocate(context, bytesize, ZL_RANGE_DEVICE, 0, &address);
    if (result == CUDA_SUCCESS)
        *dptr = address;
    return result;
}

CUresult zl_cuMemAllocPitch_v2(zl_context *context, CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                               unsigned int ElementSizeBytes)
{
    enum { PITCH = 512 };
    size_t pitch, size;
    CUresult result;

    if ((ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) || !WidthInBytes || !Height)
        return CUDA_ERROR_INVALID_VALUE;
    if (WidthInBytes > (size_t)zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MAX_PITCH))
        return CUDA_ERROR_INVALID_VALUE;
    pitch = (WidthInBytes + PITCH - 1) / PITCH * PITCH;
    if (__builtin_mul_overflow(pitch, Height, &size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = zl_cuMemAlloc_v2(context, dptr, size);
    if (result == CUDA_SUCCESS)
        *pPitch = pitch;
    return result;
}

/* Freeing waits for the work in flight, which may still use the memory. */
static CUresult release(zl_context *context, uint64_t address, enum zl_range_kind kind)
{
    bool device = kind == ZL_RANGE_DEVICE;
    zl_range range;
    zl_context *owner;
    CUresult result;

    if (device ? !zl_range_remove_allocation(address, true, &range) : !zl_range_remove(address, kind, &range))
        return CUDA_ERROR_INVALID_VALUE;
    owner = zl_handle_get(ZL_CONTEXT, range.context);
    if (device) {
        struct zl_cmd_memory_free *command = zl_begin(ZL_OP_memory_free, owner ? owner : context, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->address = address;
        result = zl_call(&command->header, NULL, 0, NULL);
    } else {
        struct zl_cmd_host_free *command = zl_begin(ZL_OP_host_free, owner ? owner : context, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->address = address;
        result = zl_call(&command->header, NULL, 0, NULL);
    }
    return result;
}

CUresult zl_cuMemFree_v2(zl_context *context, CUdeviceptr dptr)
{
    return dptr ? release(context, dptr, ZL_RANGE_DEVICE) : CUDA_SUCCESS;
}

CUresult zl_cuMemGetAddressRange_v2(zl_context *context, CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    zl_range range;

    (void)context;
    if (!zl_range_find(dptr, &range) || range.kind == ZL_RANGE_REGISTERED)
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = range.base;
    if (psize)
        *psize = range.size;
    return CUDA_SUCCESS;
}

CUresult zl_cuMemHostAlloc(zl_context *context, void **pp, size_t bytesize, unsigned int Flags)
{
    const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    uint64_t address = 0;
    CUresult result;

    if (Flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    result = allocate(context, bytesize, ZL_RANGE_HOST, Flags, &address);
    if (result == CUDA_SUCCESS)
        *pp = (void *)(uintptr_t)address;
    return result;
}

CUresult zl_cuMemAllocHost_v2(zl_context *context, void **pp, size_t bytesize)
{
    return zl_cuMemHostAlloc(context, pp, bytesize, 0);
}

CUresult zl_cuMemFreeHost(zl_context *context, void *p)
{
    return release(context, (uint64_t)(uintptr_t)p, ZL_RANGE_HOST);
}

CUresult zl_cuMemHostGetDevicePointer_v2(zl_context *context, CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    zl_range range;

    (void)context;
    if (Flags || !zl_range_find((uint64_t)(uintptr_t)p, &range))
        return CUDA_ERROR_INVALID_VALUE;
    if (range.kind == ZL_RANGE_REGISTERED) /* it was promised that a request for mapping fails here, if at all */
        zl_log("cuMemHostGetDevicePointer: registered memory is the host process's alone, kernels cannot reach it; use "
               "cuMemHostAlloc");
    if (range.kind != ZL_RANGE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *pdptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult zl_cuMemHostGetFlags(zl_context *context, unsigned int *pFlags, void *p)
{
    zl_range range;

    (void)context;
    if (!zl_range_find((uint64_t)(uintptr_t)p, &range) || range.kind != ZL_RANGE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = range.flags;
    return CUDA_SUCCESS;
}
