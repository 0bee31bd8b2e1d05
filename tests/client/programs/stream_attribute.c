/* Attributes of streams, and events of whole contexts. */
#include "check.h"

static CUfunction nap;

static CUstreamAttrValue get(CUstream stream, CUstreamAttrID attribute)
{
    CUstreamAttrValue value;
    memset(&value, 0x55, sizeof value);
    OK(cuStreamGetAttribute(stream, attribute, &value));
    return value;
}

static void attributes(CUcontext context)
{
    CUstream a, b, gone, foreign;
    CUcontext other, found;
    CUgreenCtx green = (CUgreenCtx)1;
    CUstreamAttrValue value = {0};
    int least, greatest, priority;

    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&gone, CU_STREAM_DEFAULT));
    OK(cuStreamDestroy(gone));
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));

    /* What a new stream has. */
    TRUE(get(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy == CU_SYNC_POLICY_AUTO);
    TRUE(get(a, CU_STREAM_ATTRIBUTE_PRIORITY).priority == 0);
    TRUE(get(a, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    TRUE(get(a, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP).memSyncDomainMap.default_ == 0);
    TRUE(get(a, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow.num_bytes == 0);

    /* What is set is there, in that stream alone. */
    value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
    OK(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    OK(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
    value.priority = greatest;
    OK(launch_nap(nap, a, 100)); /* it has work already */
    OK(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    OK(cuStreamGetPriority(a, &priority));
    TRUE(priority == greatest);
    EXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(launch_nap(nap, a, 1));
    OK(cuStreamSynchronize(a));
    TRUE(get(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy == CU_SYNC_POLICY_BLOCKING_SYNC);
    TRUE(get(b, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy == CU_SYNC_POLICY_AUTO);
    TRUE(get(NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy == CU_SYNC_POLICY_AUTO);
    value.priority = greatest - 7; /* beyond the range */
    OK(cuStreamSetAttribute(b, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    TRUE(get(b, CU_STREAM_ATTRIBUTE_PRIORITY).priority == greatest);
    value.priority = least + 7;
    OK(cuStreamSetAttribute(b, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    TRUE(get(b, CU_STREAM_ATTRIBUTE_PRIORITY).priority == least);
    memset(&value, 0, sizeof value);
    value.accessPolicyWindow.num_bytes = 1 << 20; /* CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE is 0 */
    value.accessPolicyWindow.hitRatio = 0.5f;
    value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
    value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
    OK(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    value = get(a, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW);
    TRUE(value.accessPolicyWindow.num_bytes == 0 && value.accessPolicyWindow.hitRatio == 0.5f);
    TRUE(value.accessPolicyWindow.hitProp == CU_ACCESS_PROPERTY_PERSISTING);

    /* Default streams have them too. */
    value.syncPolicy = CU_SYNC_POLICY_SPIN;
    OK(cuStreamSetAttribute(NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    OK(cuStreamSetAttribute_ptsz(NULL, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    TRUE(get(CU_STREAM_LEGACY, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy == CU_SYNC_POLICY_SPIN);
    TRUE(get(CU_STREAM_PER_THREAD, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy == CU_SYNC_POLICY_YIELD);

    /* Copies. */
    OK(cuStreamCopyAttributes(b, a));
    TRUE(get(b, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY).syncPolicy == CU_SYNC_POLICY_BLOCKING_SYNC);
    TRUE(get(b, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    TRUE(get(b, CU_STREAM_ATTRIBUTE_PRIORITY).priority == greatest);
    EXPECT(cuStreamCopyAttributes(b, gone), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamCopyAttributes(gone, b), CUDA_ERROR_INVALID_HANDLE);

    /* What is refused. */
    value.syncPolicy = 5;
    EXPECT(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), CUDA_ERROR_INVALID_VALUE);
    value.syncPolicy = 0;
    EXPECT(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), CUDA_ERROR_INVALID_VALUE);
    value.memSyncDomain = 2;
    EXPECT(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &value), CUDA_ERROR_INVALID_VALUE);
    value.memSyncDomainMap.default_ = 0;
    value.memSyncDomainMap.remote = 1; /* there is one domain */
    EXPECT(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value), CUDA_ERROR_INVALID_VALUE);
    value.memSyncDomainMap.remote = 0;
    OK(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
    memset(&value, 0, sizeof value);
    value.accessPolicyWindow.hitRatio = 1.5f;
    EXPECT(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value), CUDA_ERROR_INVALID_VALUE);
    value.accessPolicyWindow.hitRatio = 1;
    value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_PERSISTING;
    EXPECT(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamGetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamGetAttribute(gone, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamSetAttribute((CUstream)context, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_ERROR_INVALID_HANDLE);

    OK(cuStreamGetCtx_v2(a, &found, &green));
    TRUE(found == context && green == NULL);
    green = (CUgreenCtx)1;
    OK(cuStreamGetGreenCtx(NULL, &green));
    TRUE(green == NULL);
    EXPECT(cuStreamGetCtx_v2(gone, &found, &green), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamGetCtx_v2(a, &found, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamGetGreenCtx(gone, &green), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamGetGreenCtx(a, NULL), CUDA_ERROR_INVALID_VALUE);

    OK(cuCtxCreate(&other, NULL, 0, 1));
    OK(cuStreamCreate(&foreign, 0));
    EXPECT(cuStreamCopyAttributes(foreign, a), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxDestroy(other));
    EXPECT(cuStreamCopyAttributes(foreign, a), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxSetCurrent(NULL));
    EXPECT(cuStreamGetAttribute(NULL, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuStreamGetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, &value)); /* a stream knows its context */
    OK(cuCtxSetCurrent(context));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

static void context_events(CUcontext context)
{
    CUstream a, b, later;
    CUevent all, gone, foreign;
    CUcontext other;
    CUmodule module;
    CUfunction other_nap;
    double started;

    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&all, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&gone, CU_EVENT_DEFAULT));
    OK(cuEventDestroy(gone));

    /* The event holds what is in every stream at the call, and nothing that comes later. */
    OK(cuCtxRecordEvent(context, all));
    OK(cuEventSynchronize(all));
    started = seconds();
    OK(launch_nap(nap, a, 300));
    OK(launch_nap(nap, b, 500));
    OK(launch_nap(nap, CU_STREAM_PER_THREAD, 100));
    OK(cuCtxRecordEvent(context, all));
    OK(launch_nap(nap, a, 1500));
    TRUE(seconds() - started < 0.3);
    EXPECT(cuEventQuery(all), CUDA_ERROR_NOT_READY);
    OK(cuEventSynchronize(all));
    TRUE(seconds() - started >= 0.5 && seconds() - started < 1.7);
    OK(cuStreamQuery(b));
    EXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);

    /* Another context waits for it, in streams that are and in those to come. */
    OK(cuEventRecord(all, a));
    OK(cuCtxCreate(&other, NULL, 0, 1));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&other_nap, module, "nap"));
    OK(cuEventCreate(&foreign, CU_EVENT_DEFAULT));
    OK(launch_nap(other_nap, NULL, 1));
    OK(cuCtxSynchronize());
    OK(cuCtxWaitEvent(other, all));
    OK(launch_nap(other_nap, NULL, 1));
    OK(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
    OK(launch_nap(other_nap, later, 1));
    TRUE(seconds() - started < 1.75);
    EXPECT(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(later));
    TRUE(seconds() - started >= 1.8);
    OK(cuEventQuery(all));
    OK(cuCtxSynchronize());
    OK(cuCtxWaitEvent(other, foreign)); /* never recorded: nothing to wait for */

    EXPECT(cuCtxRecordEvent(context, foreign), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuCtxRecordEvent(context, gone), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuCtxRecordEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuCtxRecordEvent(NULL, all), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxRecordEvent((CUcontext)a, all), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxWaitEvent(context, gone), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuCtxWaitEvent((CUcontext)all, all), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxDestroy(other));
    EXPECT(cuCtxWaitEvent(other, all), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxWaitEvent(context, foreign), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxRecordEvent(context, all));
    OK(cuEventSynchronize(all));
}

int main(void)
{
    CUcontext context = start();

    nap = kernel("nap");
    attributes(context);
    context_events(context);
    return 0;
}
