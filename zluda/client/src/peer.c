/* Peers: copies between contexts, and access to another device's memory, which no device here has. */
#include "client.h"

/* --- copies between contexts --- */

/* A context by its handle, usable. */
static CUresult peer_context(CUcontext handle, zl_context **context)
{
    *context = zl_handle_get(ZL_CONTEXT, (uint64_t)handle);
    return *context ? zl_context_check(*context) : CUDA_ERROR_INVALID_CONTEXT;
}

/* In the implicit NULL stream a copy between devices starts when everything before it in either has finished, and runs to
   its end before anything after it starts (CUDA programming guide, peer-to-peer memory copy). */
static CUresult settle(zl_context *here, zl_context *other)
{
    return other && other != here ? zl_cuCtxSynchronize(other) : CUDA_SUCCESS;
}

static CUresult copy_between(zl_context *here, zl_context *to_context, const zl_operand *to, zl_context *from_context,
                             const zl_operand *from, zl_box box, CUstream stream, enum zl_copy_mode mode)
{
    bool null_stream = !stream || stream == CU_STREAM_LEGACY;
    bool foreign = (to_context && to_context != here) || (from_context && from_context != here);
    zl_box_copy copy;
    CUresult result;

    if (!box.width || !box.height || !box.depth)
        return CUDA_SUCCESS;
    result = zl_box_check(here, to, from, box, &copy);
    if (result == CUDA_SUCCESS && null_stream)
        result = settle(here, to_context);
    if (result == CUDA_SUCCESS && null_stream)
        result = settle(here, from_context);
    if (result == CUDA_SUCCESS)
        result = zl_box_run(here, &copy, stream, mode);
    return result == CUDA_SUCCESS && null_stream && foreign ? zl_turn(here, stream) : result;
}

static CUresult copy_bytes(zl_context *here, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                           size_t size, CUstream stream, enum zl_copy_mode mode)
{
    zl_operand to = {.type = CU_MEMORYTYPE_DEVICE, .base = dst}, from = {.type = CU_MEMORYTYPE_DEVICE, .base = src};
    zl_context *to_context, *from_context;
    CUresult result;

    if ((result = peer_context(dst_context, &to_context)) != CUDA_SUCCESS ||
        (result = peer_context(src_context, &from_context)) != CUDA_SUCCESS)
        return result;
    return copy_between(here, to_context, &to, from_context, &from, (zl_box){size, 1, 1}, stream, mode);
}

CUresult zl_cuMemcpyPeer(zl_context *context, CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                         CUcontext srcContext, size_t ByteCount, CUstream default_stream)
{
    return copy_bytes(context, dstDevice, dstContext, srcDevice, srcContext, ByteCount, default_stream, ZL_COPY_NOW);
}

CUresult zl_cuMemcpyPeerAsync(zl_context *context, CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                              CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    return copy_bytes(context, dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream, ZL_COPY_ASYNC);
}

/* The context of a side: an array's own, else the one that is named. */
static CUresult side_context(CUmemorytype type, CUarray array, CUcontext named, zl_context **context)
{
    const zl_array *found;

    if (type != CU_MEMORYTYPE_ARRAY)
        return peer_context(named, context);
    found = zl_handle_get(ZL_ARRAY, (uint64_t)array);
    *context = found ? found->context : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static uint64_t base_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
}

static CUresult copy_3d(zl_context *here, const CUDA_MEMCPY3D_PEER *c, CUstream stream, enum zl_copy_mode mode)
{
    zl_context *to_context, *from_context;
    zl_operand to, from;
    CUresult result;

    if (!c || c->srcLOD || c->dstLOD)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = side_context(c->dstMemoryType, c->dstArray, c->dstContext, &to_context)) != CUDA_SUCCESS ||
        (result = side_context(c->srcMemoryType, c->srcArray, c->srcContext, &from_context)) != CUDA_SUCCESS)
        return result;
    to = (zl_operand){.type = c->dstMemoryType, .base = base_of(c->dstMemoryType, c->dstHost, c->dstDevice), .array = c->dstArray,
                      .x = c->dstXInBytes, .y = c->dstY, .z = c->dstZ, .pitch = c->dstPitch, .rows = c->dstHeight};
    from = (zl_operand){.type = c->srcMemoryType, .base = base_of(c->srcMemoryType, c->srcHost, c->srcDevice),
                        .array = c->srcArray, .x = c->srcXInBytes, .y = c->srcY, .z = c->srcZ, .pitch = c->srcPitch, .rows = c->srcHeight};
    return copy_between(here, to_context, &to, from_context, &from, (zl_box){c->WidthInBytes, c->Height, c->Depth}, stream, mode);
}

CUresult zl_cuMemcpy3DPeer(zl_context *context, const CUDA_MEMCPY3D_PEER *pCopy, CUstream default_stream)
{
    return copy_3d(context, pCopy, default_stream, ZL_COPY_NOW);
}

CUresult zl_cuMemcpy3DPeerAsync(zl_context *context, const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    return copy_3d(context, pCopy, hStream, ZL_COPY_ASYNC);
}

/* --- access --- */

CUresult zl_cuCtxEnablePeerAccess(zl_context *context, CUcontext peerContext, unsigned int Flags)
{
    zl_context *peer = zl_handle_get(ZL_CONTEXT, (uint64_t)peerContext);

    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!peer || !atomic_load(&peer->active) || peer == context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED; /* as cuDeviceCanAccessPeer says */
}

CUresult zl_cuCtxDisablePeerAccess(zl_context *context, CUcontext peerContext)
{
    zl_context *peer = zl_handle_get(ZL_CONTEXT, (uint64_t)peerContext);

    (void)context;
    if (!peer || !atomic_load(&peer->active))
        return CUDA_ERROR_INVALID_CONTEXT;
    return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

static bool linked(CUdevice source, CUdevice destination)
{
    return zl_device_valid(source) && zl_device_valid(destination) && source != destination;
}

CUresult zl_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
    if (attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!linked(srcDevice, dstDevice))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = 0;                          /* there is no link */
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count,
                                             CUdevice srcDevice, CUdevice dstDevice)
{
    if (!operations || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    if (!linked(srcDevice, dstDevice))
        return CUDA_ERROR_INVALID_DEVICE;
    for (unsigned i = 0; i < count; i++)
        capabilities[i] = 0;
    return CUDA_SUCCESS;
}
