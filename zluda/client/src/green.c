/* Green contexts: no backend partitions a device, so there are no resources to make one of, and no handle is ever one.
   Refusals are those of the driver API's "Green Contexts". */
#include "client.h"

static bool known_type(CUdevResourceType type)
{
    return type == CU_DEV_RESOURCE_TYPE_SM || type == CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG ||
           type == CU_DEV_RESOURCE_TYPE_WORKQUEUE;
}

CUresult zl_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    (void)resource, (void)type;
    return zl_device_valid(device) ? CUDA_ERROR_INVALID_RESOURCE_TYPE : CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    (void)resource, (void)type;
    return zl_handle_get(ZL_CONTEXT, (uint64_t)hCtx) ? CUDA_ERROR_INVALID_RESOURCE_TYPE : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_cuStreamGetDevResource(zl_context *context, CUstream hStream, CUdevResource *resource, CUdevResourceType type)
{
    uint64_t wire;
    CUresult result = zl_use_stream(hStream, &context, &wire);

    (void)resource, (void)type;
    return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_RESOURCE_TYPE : result;
}

CUresult zl_cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
    (void)hCtx, (void)resource;
    return known_type(type) ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

CUresult zl_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups, const CUdevResource *input,
                                        CUdevResource *remainder, unsigned int flags, unsigned int minCount)
{
    const unsigned known = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;

    (void)result, (void)nbGroups, (void)remainder, (void)minCount;
    if (!input || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_INVALID_RESOURCE_TYPE; /* no query has given out one of type SM */
}

CUresult zl_cuDevSmResourceSplit(CUdevResource *result, unsigned int nbGroups, const CUdevResource *input,
                                 CUdevResource *remainder, unsigned int flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS *groupParams)
{
    (void)result, (void)remainder;
    if (!input || !groupParams || !nbGroups || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

CUresult zl_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
    (void)phDesc;
    return resources && nbResources ? CUDA_ERROR_INVALID_RESOURCE_TYPE : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
    (void)phCtx;
    if (!desc || (flags & ~(unsigned)CU_GREEN_CTX_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    return zl_device_valid(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    (void)hCtx;
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    (void)pContext, (void)hCtx;
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    (void)greenCtx, (void)greenCtxId;
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    (void)hCtx, (void)hEvent;
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    (void)hCtx, (void)hEvent;
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
    (void)phStream, (void)greenCtx, (void)priority;
    return flags == CU_STREAM_NON_BLOCKING ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
}
