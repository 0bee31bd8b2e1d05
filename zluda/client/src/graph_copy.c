/* Copies and fills of graphs: checked when a node gets its parameters, and again when it is packed, as memory may have
   been freed in between. */
#include "graph.h"

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* One side: where it starts, and how far it reaches. A pitch or height of 0 stands for packed rows or slices. */
static CUresult find_side(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t z, size_t *pitch,
                          size_t rows, const CUDA_MEMCPY3D *c, size_t *slice, uint64_t *start, bool *local)
{
    size_t offset, part, extent;
    uint64_t last;

    if (type == CU_MEMORYTYPE_ARRAY)
        return zl_not_supported("cuGraphAddMemcpyNode", "CUDA arrays");
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    *start = type == CU_MEMORYTYPE_HOST ? address_of(host) : device;
    if (!*start || (type == CU_MEMORYTYPE_DEVICE && !zl_in_window(*start)))
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_add_overflow(x, c->WidthInBytes, &part))
        return CUDA_ERROR_INVALID_VALUE;
    if (!*pitch)
        *pitch = part;
    if (!rows)
        rows = y + c->Height;
    if (*pitch < part || (c->Depth > 1 && (rows < c->Height || rows - c->Height < y)) ||
        __builtin_mul_overflow(*pitch, rows, slice) || __builtin_mul_overflow(z, *slice, &offset) ||
        __builtin_mul_overflow(y, *pitch, &part) || __builtin_add_overflow(offset, part, &offset) ||
        __builtin_add_overflow(offset, x, &offset) || __builtin_add_overflow(*start, offset, start) ||
        __builtin_mul_overflow(c->Depth - 1, *slice, &extent) || __builtin_mul_overflow(c->Height - 1, *pitch, &part) ||
        __builtin_add_overflow(extent, part, &extent) || __builtin_add_overflow(extent, c->WidthInBytes, &extent))
        return CUDA_ERROR_INVALID_VALUE;
    if (zl_in_window(*start))
        return zl_range_holds(*start, extent) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    *local = true;
    if (extent >> 56 || __builtin_add_overflow(*start, extent - 1, &last) ||
        (*start < zl_state.window_base && last >= zl_state.window_base))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult zl_copy_resolve(const CUDA_MEMCPY3D *c, struct zl_copy *copy)
{
    CUresult result;

    *copy = (struct zl_copy){.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth,
                             .destination_pitch = c->dstPitch, .source_pitch = c->srcPitch};
    if (!c->WidthInBytes || !c->Height || !c->Depth) /* graphs have no empty copies */
        return CUDA_ERROR_INVALID_VALUE;
    result = find_side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstZ, &copy->destination_pitch,
                       c->dstHeight, c, &copy->destination_slice, &copy->destination, &copy->local);
    if (result == CUDA_SUCCESS)
        result = find_side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcZ, &copy->source_pitch,
                           c->srcHeight, c, &copy->source_slice, &copy->source, &copy->local);
    return result;
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
