/* Older names and forms of calls on contexts, which programs of old still make. */
#include "client.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of usage counts */

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

CUresult zl_cuCtxAttach(zl_context *context, CUcontext *pctx, unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    context->attached++;
    pthread_mutex_unlock(&lock);
    *pctx = (CUcontext)context->handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxDetach(CUcontext ctx)
{
    zl_context *context = zl_current();
    bool last;

    if (!context || context->handle != (uint64_t)ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    last = !context->attached;
    if (!last)
        context->attached--;
    pthread_mutex_unlock(&lock);
    /* A primary context was neither created nor attached by the program. */
    return last ? zl_cuCtxDestroy_v2(ctx) : CUDA_SUCCESS;
}
