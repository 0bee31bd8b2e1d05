/* Stream-ordered allocation: the address comes from the driver process, where the pools are; freeing is posted. */
#include "client.h"

/* A patient command may wait for what is being freed. */
static CUresult call(zl_context *context, uint64_t stream, const zl_pool *pool, size_t size, bool patient, uint64_t *address)
{
    struct zl_pool_allocate_reply reply;
    CUresult result;

    if (patient) {
        struct zl_cmd_pool_allocate_patiently *command =
            zl_begin(ZL_OP_pool_allocate_patiently, context, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->stream = stream;
        command->pool = pool->wire;
        command->size = size;
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
    } else {
        struct zl_cmd_pool_allocate *command = zl_begin(ZL_OP_pool_allocate, context, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->stream = stream;
        command->pool = pool->wire;
        command->size = size;
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
    }
    if (result == CUDA_SUCCESS)
        *address = reply.address;
    return result;
}

static CUresult allocate(CUdeviceptr *dptr, size_t size, CUmemoryPool handle, zl_context *context, uint64_t stream)
{
    const zl_pool *pool = zl_handle_get(ZL_POOL, (uint64_t)handle);
    uint64_t address = 0;
    zl_range range;
    CUresult result;

    if (!size || !pool)
        return CUDA_ERROR_INVALID_VALUE;
    range = (zl_range){.size = size, .kind = pool->range_kind, .pool = (uint64_t)handle,
                       .device = pool->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? pool->location.id : context->device};
    result = call(context, stream, pool, size, false, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        result = call(context, stream, pool, size, true, &address);
    if (result == CUDA_SUCCESS) {
        range.base = address;
        zl_range_add(range);
        *dptr = address;
    }
    return result;
}

CUresult zl_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    zl_context *context;
    uint64_t wire;
    CUresult result = zl_use_any_stream(hStream, &context, &wire);
    return result == CUDA_SUCCESS ? allocate(dptr, bytesize, pool, context, wire) : result;
}

CUresult zl_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    zl_context *context;
    CUmemoryPool pool;
    uint64_t wire;
    CUresult result = zl_use_any_stream(hStream, &context, &wire);

    if (result == CUDA_SUCCESS)
        result = zl_cuDeviceGetMemPool(&pool, context->device);
    return result == CUDA_SUCCESS ? allocate(dptr, bytesize, pool, context, wire) : result;
}

CUresult zl_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct zl_cmd_pool_free *command;
    zl_context *context;
    zl_range range;
    uint64_t wire;
    CUresult result = zl_use_any_stream(hStream, &context, &wire);

    if (result != CUDA_SUCCESS)
        return result;
    if (!zl_range_remove_allocation(dptr, true, &range))
        return CUDA_ERROR_INVALID_VALUE;
    command = zl_begin(ZL_OP_pool_free, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->stream = wire;
    command->address = dptr;
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}
