/* Functions of the host in streams: their order, their thread, and what becomes of them after an error. */
#include "check.h"

#include <signal.h>
#include <stdatomic.h>

static CUfunction nap, scale, crash;
static CUdeviceptr data;
static uint32_t *host;
static pthread_t main_thread;
static _Atomic int calls, last_status;
static char order[64];

static void run_scale(uint32_t factor, uint32_t shift, CUstream stream)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)host;
    void *arguments[] = {&at, &factor, &shift};
    OK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static void add_seven(void *argument)
{
    TRUE(!pthread_equal(pthread_self(), main_thread));
    *(uint32_t *)argument += 7;
    calls++;
}

static void letter(void *argument)
{
    order[strlen(order)] = (char)(intptr_t)argument;
}

static void slow(void *argument)
{
    usleep(200000);
    *(_Atomic int *)argument = 1;
}

static void calls_cuda(void *unused)
{
    CUstream stream;
    CUcontext context;
    CUdeviceptr memory;
    int version;

    (void)unused;
    EXPECT(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_PERMITTED);
    EXPECT(cuMemAlloc(&memory, 4), CUDA_ERROR_NOT_PERMITTED);
    EXPECT(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_PERMITTED);
    EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_PERMITTED);
    EXPECT(cuLaunchHostFunc(NULL, letter, NULL), CUDA_ERROR_NOT_PERMITTED);
    OK(cuDriverGetVersion(&version)); /* asks nothing of the device */
    calls++;
}

static void looks_at_signals(void *unused)
{
    sigset_t blocked;
    (void)unused;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    TRUE(sigismember(&blocked, SIGUSR1) == 1);
    calls++;
}

static void CUDA_CB told(CUstream stream, CUresult status, void *argument)
{
    TRUE(stream == *(CUstream *)argument);
    last_status = (int)status;
    calls++;
}

static void never(void *unused)
{
    (void)unused;
    fprintf(stderr, "a host function is called after an error\n");
    exit(1);
}

static void *from_a_thread(void *unused)
{
    CUstream stream;
    OK(cuDevicePrimaryCtxRetain((CUcontext[1]){0}, 0));
    OK(cuCtxSetCurrent((CUcontext)unused));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 200; i++)
        OK(cuLaunchHostFunc(stream, add_seven, host + 4));
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy(stream));
    OK(cuDevicePrimaryCtxRelease(0));
    return NULL;
}

static void wait_for(int count)
{
    for (double until = seconds() + 5; calls < count && seconds() < until;)
        usleep(1000);
    TRUE(calls == count);
}

int main(int count, char **arguments)
{
    CUcontext context = start(), other;
    CUstream a, b, gone, per_thread = CU_STREAM_PER_THREAD, legacy = NULL;
    _Atomic int finished = 0;
    pthread_t threads[4];
    uint32_t signal = 11;
    void *crash_arguments[] = {&signal};
    double started;

    main_thread = pthread_self();
    nap = kernel("nap");
    scale = kernel("scale");
    crash = kernel("crash");
    OK(cuMemHostAlloc((void **)&host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(host, 0, 64);
    OK(cuMemAlloc(&data, 4));
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
    OK(cuStreamDestroy(gone));

    /* What is refused. */
    EXPECT(cuLaunchHostFunc(a, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchHostFunc(gone, never, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLaunchHostFunc((CUstream)context, never, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLaunchHostFunc_v2(a, never, NULL, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamAddCallback(a, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamAddCallback(a, told, &a, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamAddCallback(gone, told, &gone, 0), CUDA_ERROR_INVALID_HANDLE);

    /* In the stream's order: ((0 * 1 + 1) + 7) * 10 + 2. The call returns before the function runs. */
    started = seconds();
    OK(launch_nap(nap, a, 300));
    run_scale(1, 1, a);
    OK(cuLaunchHostFunc(a, add_seven, host));
    run_scale(10, 2, a);
    TRUE(seconds() - started < 0.25 && calls == 0);
    EXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(cuStreamQuery(b));
    OK(cuStreamSynchronize(a));
    TRUE(calls == 1 && host[0] == 82);

    /* Later work of the stream waits for it, other streams do not. */
    OK(cuLaunchHostFunc_v2(a, slow, &finished, CU_HOST_TASK_SPINWAIT));
    run_scale(0, 5, b);
    OK(cuStreamSynchronize(b));
    TRUE(!finished && host[0] == 5);
    OK(cuStreamSynchronize(a));
    TRUE(finished);
    for (char c = 'a'; c <= 'z'; c++)
        OK(cuLaunchHostFunc_v2(a, letter, (void *)(intptr_t)c, CU_HOST_TASK_BLOCKING));
    OK(cuStreamSynchronize(a));
    TRUE(!strcmp(order, "abcdefghijklmnopqrstuvwxyz"));

    /* Events, default streams. */
    calls = 0;
    OK(cuStreamAddCallback(NULL, told, &legacy, 0));
    OK(cuStreamSynchronize(NULL));
    TRUE(calls == 1 && last_status == CUDA_SUCCESS);
    OK(cuStreamAddCallback_ptsz(NULL, told, &per_thread, 0));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    TRUE(calls == 2);
    OK(cuStreamAddCallback(a, told, &a, 0));
    OK(cuLaunchHostFunc(a, calls_cuda, NULL));
    OK(cuLaunchHostFunc(a, looks_at_signals, NULL));
    OK(cuCtxSynchronize());
    TRUE(calls == 5);

    /* From several threads at once. */
    calls = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, from_a_thread, context);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    TRUE(calls == 800 && host[4] == 5600);

    /* Destroying the stream or the context does not lose one. */
    calls = 0;
    OK(launch_nap(nap, b, 50));
    OK(cuLaunchHostFunc(b, add_seven, host));
    OK(cuStreamDestroy(b));
    wait_for(1);
    OK(cuCtxCreate(&other, NULL, 0, 1));
    OK(cuLaunchHostFunc(NULL, add_seven, host));
    OK(cuCtxDestroy(other));
    TRUE(calls == 2);
    EXPECT(cuLaunchHostFunc((CUstream)other, never, NULL), CUDA_ERROR_INVALID_HANDLE);

    if (count > 1 && !strcmp(arguments[1], "exit")) {
        OK(launch_nap(nap, a, 10000));
        OK(cuLaunchHostFunc(a, never, NULL));
        return 0;
    }
    /* The device fails: host functions behind that are not called, callbacks are told. */
    calls = 0;
    last_status = 0;
    OK(launch_nap(nap, a, 100));
    OK(cuLaunchKernel(kernel("fail"), 1, 1, 1, 1, 1, 1, 0, a, NULL, NULL));
    OK(cuLaunchHostFunc(a, never, NULL));
    OK(cuStreamAddCallback(a, told, &a, 0));
    OK(cuStreamAddCallback(a, told, &a, 0));
    wait_for(2);
    TRUE(last_status == CUDA_ERROR_LAUNCH_FAILED);
    EXPECT(cuLaunchHostFunc(a, never, NULL), CUDA_ERROR_LAUNCH_FAILED);
    OK(cuDevicePrimaryCtxReset(0));

    /* So it is when the driver process ends; and with another one all is well again. */
    for (int round = 0; round < 2; round++) {
        CUmodule module;
        OK(cuModuleLoadData(&module, ptx));
        OK(cuModuleGetFunction(&nap, module, "nap"));
        OK(cuModuleGetFunction(&crash, module, "crash"));
        OK(cuMemHostAlloc((void **)&host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
        OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
        calls = 0;
        OK(launch_nap(nap, a, 20));
        OK(cuLaunchHostFunc(a, add_seven, host));
        OK(cuStreamSynchronize(a));
        TRUE(calls == 1);
        OK(launch_nap(nap, a, 100));
        OK(cuLaunchKernel(crash, 1, 1, 1, 1, 1, 1, 0, a, crash_arguments, NULL));
        OK(cuLaunchHostFunc(a, never, NULL));
        OK(cuStreamAddCallback(a, told, &a, 0));
        wait_for(2);
        TRUE(last_status == CUDA_ERROR_ILLEGAL_ADDRESS);
        EXPECT(cuStreamAddCallback(a, told, &a, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
        OK(cuDevicePrimaryCtxReset(0));
    }
    return 0;
}
