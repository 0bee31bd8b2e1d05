/* Copies and fills of graphs: checked when a node gets its parameters, and again when it is packed, as memory may have
   been freed in between. */
#include "graph.h"

CUresult zl_copy_resolve(const CUDA_MEMCPY_NODE_PARAMS *params, zl_box_copy *copy)
{
    const CUDA_MEMCPY3D *c = &params->copyParams;
    zl_context *context = zl_handle_get(ZL_CONTEXT, (uint64_t)params->copyCtx);
    zl_operand to, from;
    CUresult result;

    if (!context || !c->WidthInBytes || !c->Height || !c->Depth) /* graphs have no empty copies */
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_copy_operands(c, &to, &from);
    return result == CUDA_SUCCESS ? zl_box_check(context, &to, &from, (zl_box){c->WidthInBytes, c->Height, c->Depth}, copy) : result;
}

CUresult zl_fill_check(const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
    size_t row, extent, pitch = p->pitch;

    if ((p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) || !p->width || !p->height)
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(p->width, (size_t)p->elementSize, &row) || p->dst % p->elementSize)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->height == 1)
        pitch = row;                     /* "unused if height is 1" */
    if (pitch % p->elementSize || pitch < row || __builtin_mul_overflow(p->height - 1, pitch, &extent) ||
        __builtin_add_overflow(extent, row, &extent) || !zl_range_holds(p->dst, extent))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
