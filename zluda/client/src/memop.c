/* Stream memory operations: values that are written, or waited for, in a stream's order. */
#include "client.h"

#include <string.h>

enum { MOST = 256 };                     /* "must be less than 256" */

static bool supported(const zl_context *context, CUdevice_attribute attribute)
{
    return zl_device_attribute(context->device, attribute) != 0;
}

static CUresult check_wait(const zl_context *context, unsigned flags)
{
    if (flags & ~(unsigned)(CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH))
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) && !supported(context, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES))
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

/* Without the barrier that the flag gives up a write would be no other: it keeps it. The newer form has no such flag. */
static CUresult check_write(unsigned flags, bool newer)
{
    return flags & ~(newer ? 0u : (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult check_address(CUdeviceptr address, unsigned width)
{
    return address % width || !zl_range_holds(address, width) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Checks one operation; `wire` is what is left to be done for it, with kind 0 if nothing is. */
static CUresult translate(const zl_context *context, const CUstreamBatchMemOpParams *operation, bool newer,
                          struct zl_memory_operation *wire)
{
    unsigned width = 4;
    CUresult result;

    *wire = (struct zl_memory_operation){0};
    switch (operation->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        width = 8;                       /* fall through */
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        result = check_wait(context, operation->waitValue.flags);
        *wire = (struct zl_memory_operation){operation->waitValue.address, operation->waitValue.value64, operation->operation,
                                             operation->waitValue.flags & CU_STREAM_WAIT_VALUE_NOR};
        break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        width = 8;                       /* fall through */
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        result = check_write(operation->writeValue.flags, newer);
        *wire = (struct zl_memory_operation){operation->writeValue.address, operation->writeValue.value64,
                                             operation->operation, 0};
        break;
    case CU_STREAM_MEM_OP_BARRIER:       /* each command of a stream sees all of those before it as it is */
        if (!newer || operation->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU)
            return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        if (operation->flushRemoteWrites.flags)
            return CUDA_ERROR_INVALID_VALUE;
        return supported(context, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    case CU_STREAM_MEM_OP_ATOMIC_REDUCTION:
        if (operation->atomicReduction.flags)
            return CUDA_ERROR_INVALID_VALUE;
        return CUDA_ERROR_NOT_SUPPORTED; /* CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED says so */
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS)
        return result;
    if (width == 4)
        wire->value &= 0xFFFFFFFF;
    return check_address(wire->address, width);
}

/* All of them, or none. */
static CUresult enqueue(zl_context *context, CUstream stream, unsigned count, const CUstreamBatchMemOpParams *operations,
                        bool newer)
{
    struct zl_memory_operation wires[MOST];
    struct zl_cmd_memory_operations *command;
    unsigned kept = 0;
    uint64_t wire;
    CUresult result = zl_use_stream(stream, &context, &wire);

    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++) {
        result = translate(context, &operations[i], newer, &wires[kept]);
        kept += wires[kept].kind != 0;
    }
    if (result != CUDA_SUCCESS || !kept)
        return result;
    command = zl_begin(ZL_OP_memory_operations, context, ZL_TAIL_memory_operations + kept * sizeof *wires, false);
    if (!command)
        return zl_gone();
    command->stream = wire;
    command->count = kept;
    memcpy((uint8_t *)command + ZL_TAIL_memory_operations, wires, kept * sizeof *wires);
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

static CUresult batch(zl_context *context, CUstream stream, unsigned count, const CUstreamBatchMemOpParams *operations,
                      unsigned flags, bool newer)
{
    if (count >= MOST || (count && !operations) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(context, stream, count, operations, newer);
}

static CUresult one(zl_context *context, CUstream stream, CUstreamBatchMemOpType kind, CUdeviceptr address, uint64_t value,
                    unsigned flags, bool newer)
{
    CUstreamBatchMemOpParams operation = {.waitValue = {.operation = kind, .address = address, .flags = flags}};

    operation.waitValue.value64 = value; /* where that of a write is */
    return enqueue(context, stream, 1, &operation, newer);
}

CUresult zl_cuStreamWriteValue32(zl_context *context, CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return one(context, stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags, false);
}

CUresult zl_cuStreamWriteValue32_v2(zl_context *context, CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return one(context, stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags, true);
}

CUresult zl_cuStreamWriteValue64(zl_context *context, CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return one(context, stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags, false);
}

CUresult zl_cuStreamWriteValue64_v2(zl_context *context, CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return one(context, stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags, true);
}

CUresult zl_cuStreamWaitValue32(zl_context *context, CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return one(context, stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags, false);
}

CUresult zl_cuStreamWaitValue32_v2(zl_context *context, CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return one(context, stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags, true);
}

CUresult zl_cuStreamWaitValue64(zl_context *context, CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return one(context, stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags, false);
}

CUresult zl_cuStreamWaitValue64_v2(zl_context *context, CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return one(context, stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags, true);
}

CUresult zl_cuStreamBatchMemOp(zl_context *context, CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
                               unsigned int flags)
{
    return batch(context, stream, count, paramArray, flags, false);
}

CUresult zl_cuStreamBatchMemOp_v2(zl_context *context, CUstream stream, unsigned int count,
                                  CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    return batch(context, stream, count, paramArray, flags, true);
}
