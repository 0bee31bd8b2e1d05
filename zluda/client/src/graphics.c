/* Graphics interoperability: there is nothing that registers a resource here, so no handle is ever one (driver API,
   "Graphics Interoperability"). */
#include "client.h"

CUresult zl_cuGraphicsUnregisterResource(zl_context *context, CUgraphicsResource resource)
{
    (void)context, (void)resource;
    return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult all_invalid(zl_context *context, unsigned count, const CUgraphicsResource *resources, CUstream stream)
{
    uint64_t wire;

    if (!count || !resources)
        return CUDA_ERROR_INVALID_VALUE;
    (void)zl_use_stream(stream, &context, &wire);
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsMapResources(zl_context *context, unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
    return all_invalid(context, count, resources, hStream);
}

CUresult zl_cuGraphicsUnmapResources(zl_context *context, unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
    return all_invalid(context, count, resources, hStream);
}

CUresult zl_cuGraphicsResourceSetMapFlags_v2(zl_context *context, CUgraphicsResource resource, unsigned int flags)
{
    (void)context, (void)resource;
    return flags > CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsResourceSetMapFlags(zl_context *context, CUgraphicsResource resource, unsigned int flags)
{
    return zl_cuGraphicsResourceSetMapFlags_v2(context, resource, flags);
}

CUresult zl_cuGraphicsResourceGetMappedPointer_v2(zl_context *context, CUdeviceptr *pDevPtr, size_t *pSize,
                                                  CUgraphicsResource resource)
{
    (void)context, (void)pDevPtr, (void)pSize, (void)resource;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsSubResourceGetMappedArray(zl_context *context, CUarray *pArray, CUgraphicsResource resource,
                                                unsigned int arrayIndex, unsigned int mipLevel)
{
    (void)context, (void)pArray, (void)resource, (void)arrayIndex, (void)mipLevel;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsResourceGetMappedMipmappedArray(zl_context *context, CUmipmappedArray *pMipmappedArray,
                                                      CUgraphicsResource resource)
{
    (void)context, (void)pMipmappedArray, (void)resource;
    return CUDA_ERROR_INVALID_HANDLE;
}
