/* Copies with attributes, alone and in batches. All of a batch is checked before any of it is enqueued. */
#include "client.h"

#include <stdlib.h>

/* A copy and its attributes. */
typedef struct item {
    zl_box_copy copy;
    CUmemcpySrcAccessOrder order;
    bool empty;
} item;

static bool attributes_valid(CUmemcpySrcAccessOrder order, unsigned flags)
{
    return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
           !(flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
}

static CUresult check_linear(zl_context *context, CUdeviceptr dst, CUdeviceptr src, size_t size,
                             const CUmemcpyAttributes *attributes, item *item)
{
    zl_operand to = {.type = CU_MEMORYTYPE_UNIFIED, .base = dst}, from = {.type = CU_MEMORYTYPE_UNIFIED, .base = src};

    if (!attributes_valid(attributes->srcAccessOrder, attributes->flags))
        return CUDA_ERROR_INVALID_VALUE;
    item->order = attributes->srcAccessOrder;
    item->empty = !size;
    return size ? zl_box_check(context, &to, &from, (zl_box){size, 1, 1}, &item->copy) : CUDA_SUCCESS;
}

/* The array of an operand, or NULL. */
static const zl_array *array_of(const CUmemcpy3DOperand *operand)
{
    return operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? zl_handle_get(ZL_ARRAY, (uint64_t)operand->op.array.array) : NULL;
}

/* An operand in bytes. Lengths are in elements of `element` bytes. */
static CUresult convert(const CUmemcpy3DOperand *operand, CUextent3D extent, size_t element, zl_operand *converted)
{
    size_t row;

    if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        CUoffset3D at = operand->op.array.offset;
        *converted = (zl_operand){.type = CU_MEMORYTYPE_ARRAY, .array = operand->op.array.array, .y = at.y, .z = at.z};
        return __builtin_mul_overflow(at.x, element, &converted->x) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    row = operand->op.ptr.rowLength;
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER || (row && row < extent.width))
        return CUDA_ERROR_INVALID_VALUE;
    *converted = (zl_operand){.type = CU_MEMORYTYPE_UNIFIED, .base = operand->op.ptr.ptr, .rows = operand->op.ptr.layerHeight};
    return __builtin_mul_overflow(row, element, &converted->pitch) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult check_3d(zl_context *context, const CUDA_MEMCPY3D_BATCH_OP *op, item *item)
{
    const zl_array *to_array = array_of(&op->dst), *from_array = array_of(&op->src);
    size_t element = to_array ? to_array->element : from_array ? from_array->element : 1;
    zl_operand to, from;
    zl_box box = {0, op->extent.height, op->extent.depth};

    if (!attributes_valid(op->srcAccessOrder, op->flags) || !op->extent.width || !op->extent.height || !op->extent.depth)
        return CUDA_ERROR_INVALID_VALUE;
    if ((to_array && from_array && to_array->element != from_array->element) ||
        __builtin_mul_overflow(op->extent.width, element, &box.width) ||
        convert(&op->dst, op->extent, element, &to) != CUDA_SUCCESS ||
        convert(&op->src, op->extent, element, &from) != CUDA_SUCCESS || !box.width)
        return CUDA_ERROR_INVALID_VALUE;
    item->order = op->srcAccessOrder;
    item->empty = false;
    return zl_box_check(context, &to, &from, box, &item->copy);
}

/* Enqueues what has been checked. */
static CUresult run(zl_context *context, const item *items, size_t count, CUstream stream)
{
    bool now = false;
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (items[i].empty)
            continue;
        now |= items[i].order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && items[i].copy.from.device;
        result = zl_box_run(context, &items[i].copy, stream,
                            items[i].order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ? ZL_COPY_IN_ORDER : ZL_COPY_ASYNC);
    }
    /* "All accesses must be complete before the API call returns": the driver process reads the window later. */
    return now && result == CUDA_SUCCESS ? zl_turn(context, stream) : result;
}

/* A stream that exists, and "must not be legacy NULL stream". */
static CUresult check_stream(zl_context *context, CUstream stream)
{
    uint64_t wire;

    if (!stream || stream == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    return zl_use_stream(stream, &context, &wire);
}

/* --- from pointer to pointer --- */

static CUresult batch(zl_context *context, const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes, size_t count,
                      const CUmemcpyAttributes *attrs, const size_t *attrsIdxs, size_t numAttrs, size_t *failed, CUstream stream)
{
    CUresult result = check_stream(context, stream);
    item *items;

    if (result != CUDA_SUCCESS)
        return result;
    if (!dsts || !srcs || !sizes || !attrs || !attrsIdxs || !numAttrs || numAttrs > count || attrsIdxs[0])
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 1; i < numAttrs; i++)
        if (attrsIdxs[i] <= attrsIdxs[i - 1] || attrsIdxs[i] >= count)
            return CUDA_ERROR_INVALID_VALUE;
    items = calloc(count, sizeof *items);
    if (!items)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0, set = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (set + 1 < numAttrs && attrsIdxs[set + 1] == i)
            set++;
        result = check_linear(context, dsts[i], srcs[i], sizes[i], &attrs[set], &items[i]);
        if (result != CUDA_SUCCESS)
            *failed = i;
    }
    if (result == CUDA_SUCCESS)
        result = run(context, items, count, stream);
    free(items);
    return result;
}

CUresult zl_cuMemcpyBatchAsync_v2(zl_context *context, CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                  CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
    size_t failed;
    return batch(context, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed, hStream);
}

CUresult zl_cuMemcpyBatchAsync(zl_context *context, CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
    size_t failed = SIZE_MAX;            /* of no copy in particular */
    CUresult result = batch(context, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed, hStream);

    if (failIdx && result != CUDA_SUCCESS)
        *failIdx = failed;
    return result;
}

CUresult zl_cuMemcpyWithAttributesAsync(zl_context *context, CUdeviceptr dst, CUdeviceptr src, size_t size,
                                        CUmemcpyAttributes *attr, CUstream hStream)
{
    item item;
    CUresult result = attr ? check_linear(context, dst, src, size, attr, &item) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? run(context, &item, 1, hStream) : result;
}

/* --- three dimensions --- */

static CUresult batch_3d(zl_context *context, size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
                         unsigned long long flags, CUstream stream)
{
    CUresult result = check_stream(context, stream);
    item *items;

    if (result != CUDA_SUCCESS)
        return result;
    if (flags || !count || !ops)
        return CUDA_ERROR_INVALID_VALUE;
    items = calloc(count, sizeof *items);
    if (!items)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = check_3d(context, &ops[i], &items[i]);
        if (result != CUDA_SUCCESS)
            *failed = i;
    }
    if (result == CUDA_SUCCESS)
        result = run(context, items, count, stream);
    free(items);
    return result;
}

CUresult zl_cuMemcpy3DBatchAsync_v2(zl_context *context, size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
                                    CUstream hStream)
{
    size_t failed;
    return batch_3d(context, numOps, opList, &failed, flags, hStream);
}

CUresult zl_cuMemcpy3DBatchAsync(zl_context *context, size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                 unsigned long long flags, CUstream hStream)
{
    size_t failed = SIZE_MAX;            /* of no copy in particular */
    CUresult result = batch_3d(context, numOps, opList, &failed, flags, hStream);

    if (failIdx && result != CUDA_SUCCESS)
        *failIdx = failed;
    return result;
}

CUresult zl_cuMemcpy3DWithAttributesAsync(zl_context *context, CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags,
                                          CUstream hStream)
{
    item item;
    CUresult result = op && !flags ? check_3d(context, op, &item) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? run(context, &item, 1, hStream) : result;
}
