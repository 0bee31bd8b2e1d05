/* Older and deprecated calls on contexts, streams and events: most are the newer ones under another name. */
#include "client.h"

CUresult zl_cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return zl_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult zl_cuCtxDestroy(CUcontext ctx)
{
    return zl_cuCtxDestroy_v2(ctx);
}

CUresult zl_cuCtxPushCurrent(CUcontext ctx)
{
    return zl_cuCtxPushCurrent_v2(ctx);
}

CUresult zl_cuCtxPopCurrent(CUcontext *pctx)
{
    return zl_cuCtxPopCurrent_v2(pctx);
}

CUresult zl_cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return zl_cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult zl_cuDevicePrimaryCtxReset(CUdevice dev)
{
    return zl_cuDevicePrimaryCtxReset_v2(dev);
}

CUresult zl_cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return zl_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult zl_cuStreamDestroy(CUstream hStream)
{
    return zl_cuStreamDestroy_v2(hStream);
}

CUresult zl_cuEventDestroy(CUevent hEvent)
{
    return zl_cuEventDestroy_v2(hEvent);
}

/* --- usage counts: a context is created with one --- */

CUresult zl_cuCtxAttach(zl_context *context, CUcontext *pctx, unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (context->primary)
        return CUDA_ERROR_INVALID_CONTEXT; /* it is retained and released */
    atomic_fetch_add(&context->attached, 1);
    *pctx = (CUcontext)context->handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxDetach(CUcontext ctx)
{
    zl_context *context = zl_handle_get(ZL_CONTEXT, (uint64_t)ctx);
    unsigned attached;

    if (!context || context->primary || context != zl_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    attached = atomic_load(&context->attached);
    while (attached && !atomic_compare_exchange_weak(&context->attached, &attached, attached - 1))
        ;
    return attached ? CUDA_SUCCESS : zl_cuCtxDestroy_v2(ctx);
}

/* --- settings that devices here have no choice in --- */

CUresult zl_cuCtxGetSharedMemConfig(zl_context *context, CUsharedconfig *pConfig)
{
    (void)context;
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE; /* "the fixed bank size" */
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxSetSharedMemConfig(zl_context *context, CUsharedconfig config)
{
    (void)context;                       /* "does nothing on devices with fixed shared memory bank size" */
    return (unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
    if ((unsigned)type >= CU_EXEC_AFFINITY_TYPE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pi = 0;                             /* no backend limits a context to some of the multiprocessors */
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxGetExecAffinity(zl_context *context, CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    (void)context;
    (void)pExecAffinity;
    return (unsigned)type < CU_EXEC_AFFINITY_TYPE_MAX ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuCtxResetPersistingL2Cache(zl_context *context)
{
    /* No lines persist where CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE is 0. */
    return zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE) ? CUDA_SUCCESS
                                                                                                  : CUDA_ERROR_NOT_SUPPORTED;
}
