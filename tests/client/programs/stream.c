/* Streams and events: order, waiting, and what is refused. */
#include "check.h"

static CUfunction nap, scale;

static void run_scale(CUdeviceptr data, uint32_t factor, uint32_t shift, CUstream stream)
{
    void *arguments[] = {&data, &factor, &shift};
    OK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static uint32_t value(CUdeviceptr data)
{
    uint32_t result;
    OK(cuMemcpyDtoH(&result, data, 4));
    return result;
}

static void *per_thread(void *argument)
{
    unsigned long long *id = argument;
    CUcontext context;

    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, id));
    OK(launch_nap(nap, CU_STREAM_PER_THREAD, 1));
    OK(cuStreamSynchronize_ptsz(NULL));
    OK(cuDevicePrimaryCtxRelease(0));
    return NULL;
}

int main(void)
{
    CUcontext context = start(), found, other;
    CUstream a, b, free_running, gone;
    CUevent before, after, untimed, foreign, gone_event;
    CUdeviceptr data;
    unsigned flags;
    int priority, least, greatest;
    float milliseconds;
    unsigned long long id_a, id_b, id_thread, id_other;
    double started;
    pthread_t thread;
    CUdevice device;

    nap = kernel("nap");
    scale = kernel("scale");
    OK(cuMemAlloc(&data, 4));
    OK(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    OK(cuStreamCreateWithPriority(&b, CU_STREAM_DEFAULT, greatest - 10));
    OK(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
    EXPECT(cuStreamCreate(&gone, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamGetPriority(b, &priority));
    TRUE(priority == greatest);
    OK(cuStreamGetFlags(free_running, &flags));
    TRUE(flags == CU_STREAM_NON_BLOCKING);
    OK(cuStreamGetFlags(NULL, &flags));
    TRUE(flags == CU_STREAM_DEFAULT);
    OK(cuStreamGetCtx(a, &found));
    TRUE(found == context);
    OK(cuStreamGetDevice(a, &device));
    TRUE(device == 0);
    OK(cuStreamGetId(a, &id_a));
    OK(cuStreamGetId(b, &id_b));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &id_thread));
    TRUE(id_a != id_b && id_b != id_thread);

    /* Garbage and stale handles. */
    EXPECT(cuStreamQuery((CUstream)0x1234560), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamSynchronize((CUstream)context), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamCreate(&gone, 0));
    OK(cuStreamDestroy(gone));
    EXPECT(cuStreamDestroy(gone), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamSynchronize(gone), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(launch_nap(nap, gone, 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuEventRecord((CUevent)8, a), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuEventCreate(&gone_event, 0x40), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuEventCreate(&gone_event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuEventCreate(&gone_event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_ERROR_NOT_SUPPORTED);

    OK(cuEventCreate(&before, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&after, CU_EVENT_BLOCKING_SYNC));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(cuEventQuery(before)); /* never recorded: nothing to wait for */
    OK(cuEventSynchronize(before));
    EXPECT(cuEventElapsedTime(&milliseconds, before, after), CUDA_ERROR_INVALID_HANDLE);

    /* A launch is posted: the call returns long before the kernel does. */
    started = seconds();
    OK(cuEventRecord(before, a));
    OK(launch_nap(nap, a, 500));
    OK(cuEventRecordWithFlags(after, a, CU_EVENT_RECORD_DEFAULT));
    TRUE(seconds() - started < 0.45);
    EXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    EXPECT(cuEventQuery(after), CUDA_ERROR_NOT_READY);
    EXPECT(cuEventElapsedTime(&milliseconds, before, after), CUDA_ERROR_NOT_READY);
    OK(cuStreamQuery(b)); /* nothing of another stream's */
    OK(cuEventSynchronize(after));
    TRUE(seconds() - started >= 0.5);
    OK(cuStreamQuery(a));
    OK(cuEventElapsedTime(&milliseconds, before, after));
    TRUE(milliseconds >= 499 && milliseconds < 3000);
    EXPECT(cuEventRecordWithFlags(after, a, 7), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventRecord(untimed, a));
    OK(cuEventSynchronize(untimed));
    EXPECT(cuEventElapsedTime(&milliseconds, before, untimed), CUDA_ERROR_INVALID_HANDLE);

    /* One stream waits for another: ((1 * 2 + 1) * 10 + 4). */
    OK(cuMemsetD32(data, 1, 1));
    OK(cuStreamSynchronize(NULL));
    OK(launch_nap(nap, a, 50));
    run_scale(data, 2, 1, a);
    OK(cuEventRecord(after, a));
    OK(cuStreamWaitEvent(free_running, after, 0));
    EXPECT(cuStreamWaitEvent(free_running, after, 9), CUDA_ERROR_INVALID_VALUE);
    run_scale(data, 10, 4, free_running);
    OK(cuStreamSynchronize(free_running));
    TRUE(value(data) == 34);

    /* The default stream waits for the others and they for it, but not for a non-blocking one. */
    OK(cuMemsetD32(data, 1, 1));
    OK(launch_nap(nap, a, 50));
    run_scale(data, 2, 1, a);
    run_scale(data, 10, 4, NULL);
    run_scale(data, 3, 5, b);
    OK(cuStreamSynchronize(b));
    TRUE(value(data) == ((1 * 2 + 1) * 10 + 4) * 3 + 5);
    started = seconds();
    OK(launch_nap(nap, free_running, 700));
    OK(launch_nap(nap, NULL, 1));
    TRUE(value(data) == 107);
    TRUE(seconds() - started < 0.6);
    OK(cuCtxSynchronize());
    TRUE(seconds() - started >= 0.7);

    /* A synchronous copy comes after what the default stream must wait for. */
    OK(launch_nap(nap, b, 50));
    run_scale(data, 0, 77, b);
    TRUE(value(data) == 77);

    /* Each thread's own default stream. */
    pthread_create(&thread, NULL, per_thread, &id_other);
    pthread_join(thread, NULL);
    TRUE(id_other != id_thread);
    run_scale(data, 0, 5, CU_STREAM_PER_THREAD);
    OK(cuMemcpyDtoH_v2_ptds(&flags, data, 4));
    TRUE(flags == 5);
    OK(cuStreamQuery_ptsz(NULL));
    OK(launch_nap(nap, NULL, 50)); /* it waits for the legacy default stream */
    run_scale(data, 0, 88, NULL);
    OK(cuMemcpyDtoH_v2_ptds(&flags, data, 4));
    TRUE(flags == 88);

    /* A stale handle stays invalid when its place is used again. */
    for (int i = 0; i < 5000; i++) {
        OK(cuEventCreate(&gone_event, CU_EVENT_DISABLE_TIMING));
        if (i == 100)
            foreign = gone_event;
        if (i > 100)
            EXPECT(cuEventQuery(foreign), CUDA_ERROR_INVALID_HANDLE);
        OK(cuEventDestroy(gone_event));
    }

    /* Across contexts. */
    OK(cuCtxCreate(&other, NULL, 0, 1));
    OK(cuEventCreate(&foreign, 0));
    EXPECT(cuEventRecord(foreign, a), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(launch_nap(nap, NULL, 1), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamSynchronize(a)); /* a stream knows its context */
    OK(cuCtxDestroy(other));
    EXPECT(cuEventQuery(foreign), CUDA_ERROR_INVALID_HANDLE);

    /* Destroying does not end the work. */
    OK(cuMemsetD32(data, 1, 1));
    OK(launch_nap(nap, a, 30));
    run_scale(data, 6, 0, a);
    OK(cuEventRecord(before, a));
    OK(cuEventDestroy(before));
    EXPECT(cuEventDestroy(before), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy(a));
    OK(cuCtxSynchronize());
    TRUE(value(data) == 6);
    return 0;
}
