/* The entry points of 2D and 3D copies, and those of one-dimensional arrays. */
#include "client.h"

static uint64_t base_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
}

/* --- two dimensions --- */

static CUresult copy_2d(zl_context *context, const CUDA_MEMCPY2D *c, CUstream stream, enum zl_copy_mode mode)
{
    zl_operand to, from;

    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    to = (zl_operand){.type = c->dstMemoryType, .base = base_of(c->dstMemoryType, c->dstHost, c->dstDevice), .array = c->dstArray,
                      .x = c->dstXInBytes, .y = c->dstY, .pitch = c->dstPitch};
    from = (zl_operand){.type = c->srcMemoryType, .base = base_of(c->srcMemoryType, c->srcHost, c->srcDevice),
                        .array = c->srcArray, .x = c->srcXInBytes, .y = c->srcY, .pitch = c->srcPitch};
    return zl_box_copy_all(context, &to, &from, (zl_box){c->WidthInBytes, c->Height, 1}, stream, mode);
}

CUresult zl_cuMemcpy2D_v2(zl_context *context, const CUDA_MEMCPY2D *pCopy, CUstream default_stream)
{
    return copy_2d(context, pCopy, default_stream, ZL_COPY_NOW);
}

CUresult zl_cuMemcpy2DUnaligned_v2(zl_context *context, const CUDA_MEMCPY2D *pCopy, CUstream default_stream)
{
    return copy_2d(context, pCopy, default_stream, ZL_COPY_NOW);
}

CUresult zl_cuMemcpy2DAsync_v2(zl_context *context, const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d(context, pCopy, hStream, ZL_COPY_ASYNC);
}

/* --- three dimensions --- */

CUresult zl_copy_operands(const CUDA_MEMCPY3D *c, zl_operand *to, zl_operand *from)
{
    if (c->srcLOD || c->dstLOD || c->reserved0 || c->reserved1)
        return CUDA_ERROR_INVALID_VALUE;
    *to = (zl_operand){.type = c->dstMemoryType, .base = base_of(c->dstMemoryType, c->dstHost, c->dstDevice), .array = c->dstArray,
                      .x = c->dstXInBytes, .y = c->dstY, .z = c->dstZ, .pitch = c->dstPitch, .rows = c->dstHeight};
    *from = (zl_operand){.type = c->srcMemoryType, .base = base_of(c->srcMemoryType, c->srcHost, c->srcDevice),
                         .array = c->srcArray, .x = c->srcXInBytes, .y = c->srcY, .z = c->srcZ, .pitch = c->srcPitch, .rows = c->srcHeight};
    return CUDA_SUCCESS;
}

static CUresult copy_3d(zl_context *context, const CUDA_MEMCPY3D *c, CUstream stream, enum zl_copy_mode mode)
{
    zl_operand to, from;
    CUresult result = c ? zl_copy_operands(c, &to, &from) : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    return zl_box_copy_all(context, &to, &from, (zl_box){c->WidthInBytes, c->Height, c->Depth}, stream, mode);
}

CUresult zl_cuMemcpy3D_v2(zl_context *context, const CUDA_MEMCPY3D *pCopy, CUstream default_stream)
{
    return copy_3d(context, pCopy, default_stream, ZL_COPY_NOW);
}

CUresult zl_cuMemcpy3DAsync_v2(zl_context *context, const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_3d(context, pCopy, hStream, ZL_COPY_ASYNC);
}

/* --- one-dimensional arrays --- */

/* The manual has these copies for 1D arrays alone. */
static bool one_dimensional(CUarray handle)
{
    const zl_array *array = zl_handle_get(ZL_ARRAY, (uint64_t)handle);
    return array && array->descriptor.Height <= 1 && !array->descriptor.Depth;
}

static zl_operand in_array(CUarray array, size_t offset)
{
    return (zl_operand){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset};
}

static zl_operand in_device(CUdeviceptr base)
{
    return (zl_operand){.type = CU_MEMORYTYPE_DEVICE, .base = base};
}

static zl_operand in_host(const void *base)
{
    return (zl_operand){.type = CU_MEMORYTYPE_HOST, .base = (uint64_t)(uintptr_t)base};
}

static CUresult copy_row(zl_context *context, zl_operand to, zl_operand from, size_t bytes, CUstream stream,
                         enum zl_copy_mode mode)
{
    if ((to.type == CU_MEMORYTYPE_ARRAY && !one_dimensional(to.array)) ||
        (from.type == CU_MEMORYTYPE_ARRAY && !one_dimensional(from.array)))
        return CUDA_ERROR_INVALID_VALUE;
    return zl_box_copy_all(context, &to, &from, (zl_box){bytes, 1, 1}, stream, mode);
}

CUresult zl_cuMemcpyDtoA_v2(zl_context *context, CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount,
                            CUstream default_stream)
{
    return copy_row(context, in_array(dstArray, dstOffset), in_device(srcDevice), ByteCount, default_stream,
                    ZL_COPY_NOW);
}

CUresult zl_cuMemcpyAtoD_v2(zl_context *context, CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                            CUstream default_stream)
{
    const zl_array *array = zl_handle_get(ZL_ARRAY, (uint64_t)srcArray);

    if (array && array->element && dstDevice % array->element) /* "must be naturally aligned with the array elements" */
        return CUDA_ERROR_INVALID_VALUE;
    return copy_row(context, in_device(dstDevice), in_array(srcArray, srcOffset), ByteCount, default_stream,
                    ZL_COPY_NOW);
}

static CUresult host_to_array(zl_context *context, CUarray array, size_t offset, const void *host, size_t bytes, CUstream stream,
                              enum zl_copy_mode mode)
{
    return copy_row(context, in_array(array, offset), in_host(host), bytes, stream, mode);
}

static CUresult array_to_host(zl_context *context, const void *host, CUarray array, size_t offset, size_t bytes, CUstream stream,
                              enum zl_copy_mode mode)
{
    return copy_row(context, in_host(host), in_array(array, offset), bytes, stream, mode);
}

CUresult zl_cuMemcpyHtoA_v2(zl_context *context, CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
                            CUstream default_stream)
{
    return host_to_array(context, dstArray, dstOffset, srcHost, ByteCount, default_stream, ZL_COPY_NOW);
}

CUresult zl_cuMemcpyAtoH_v2(zl_context *context, void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                            CUstream default_stream)
{
    return array_to_host(context, dstHost, srcArray, srcOffset, ByteCount, default_stream, ZL_COPY_NOW);
}

CUresult zl_cuMemcpyHtoAAsync_v2(zl_context *context, CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
                                 CUstream hStream)
{
    return host_to_array(context, dstArray, dstOffset, srcHost, ByteCount, hStream, ZL_COPY_ASYNC);
}

CUresult zl_cuMemcpyAtoHAsync_v2(zl_context *context, void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                                 CUstream hStream)
{
    return array_to_host(context, dstHost, srcArray, srcOffset, ByteCount, hStream, ZL_COPY_ASYNC);
}

CUresult zl_cuMemcpyAtoA_v2(zl_context *context, CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                            size_t ByteCount, CUstream default_stream)
{
    const zl_array *to = zl_handle_get(ZL_ARRAY, (uint64_t)dstArray);
    const zl_array *from = zl_handle_get(ZL_ARRAY, (uint64_t)srcArray);

    if (to && from && to->element != from->element)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_row(context, in_array(dstArray, dstOffset), in_array(srcArray, srcOffset), ByteCount, default_stream,
                    ZL_COPY_NOW);
}
