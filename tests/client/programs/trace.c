/* Calls that are known one by one: trace [calls | threads N CALLS | version CALLS | fork | killed | cost CALLS] */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>

static void calls(void)
{
    CUcontext context = start();
    CUfunction add_one = kernel("add_one"), missing = NULL;
    CUdeviceptr data;
    CUstream stream;
    CUmodule module;
    uint32_t words[4] = {1, 2, 3, 4}, count = 4;
    CUlaunchConfig config = {.gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 8, .blockDimY = 1, .blockDimZ = 1};

    OK(cuModuleLoadData(&module, ptx));
    EXPECT(cuModuleGetFunction(&missing, module, "nothing"), CUDA_ERROR_NOT_FOUND);
    OK(cuMemAlloc(&data, 16));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyHtoD(data, words, sizeof words));
    void *arguments[] = {&data, &count};
    OK(cuLaunchKernel(add_one, 1, 1, 1, 4, 1, 1, 0, stream, arguments, NULL));
    config.hStream = stream;
    OK(cuLaunchKernelEx(&config, add_one, arguments, NULL));
    OK(cuMemsetD32Async(data, 5, 4, stream));
    OK(cuStreamSynchronize(stream));
    EXPECT(cuMemFree(1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAlloc(NULL, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuModuleGetFunction(&missing, module, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(data));
    printf("%p %p %llx %p\n", (void *)context, (void *)stream, data, (void *)add_one);
}

static void *count(void *argument)
{
    int device;
    for (long i = 0; i < (long)argument; i++)
        OK(cuDeviceGetCount(&device));
    return NULL;
}

static void version(long n)
{
    int version;
    for (long i = 0; i < n; i++)
        OK(cuDriverGetVersion(&version));
}

static void threads(long n, long calls)
{
    pthread_t thread[64];
    OK(cuInit(0));
    for (long i = 0; i < n; i++)
        TRUE(pthread_create(&thread[i], NULL, count, (void *)calls) == 0);
    for (long i = 0; i < n; i++)
        TRUE(pthread_join(thread[i], NULL) == 0);
}

static void forked(void)
{
    int status, version;
    OK(cuInit(0));
    pid_t child = fork();
    if (!child) {
        EXPECT(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
        OK(cuDriverGetVersion(&version));
        _exit(0);
    }
    TRUE(waitpid(child, &status, 0) == child && status == 0);
    OK(cuDriverGetVersion(&version));
    printf("%d\n", (int)child);
}

static void *die(void *argument)
{
    usleep(200000);
    kill(getpid(), (int)(intptr_t)argument);
    return NULL;
}

static void killed(void)
{
    pthread_t thread;
    start();
    OK(launch_nap(kernel("nap"), NULL, 2000));
    TRUE(pthread_create(&thread, NULL, die, (void *)(intptr_t)SIGKILL) == 0);
    cuCtxSynchronize();
}

/* What a call costs: the least of many rounds. */
static void cost(long n)
{
    double best = 1;
    int device;
    OK(cuInit(0));
    for (int round = 0; round < 20; round++) {
        double begin = seconds();
        for (long i = 0; i < n; i++)
            OK(cuDeviceGetCount(&device));
        if ((seconds() - begin) / (double)n < best)
            best = (seconds() - begin) / (double)n;
    }
    printf("%.9f\n", best);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "calls";
    long n = argc > 2 ? atol(argv[2]) : 0;

    if (!strcmp(mode, "calls"))
        calls();
    else if (!strcmp(mode, "threads"))
        threads(n, atol(argv[3]));
    else if (!strcmp(mode, "version"))
        version(n);
    else if (!strcmp(mode, "fork"))
        forked();
    else if (!strcmp(mode, "killed"))
        killed();
    else if (!strcmp(mode, "cost"))
        cost(n);
    else
        return 2;
    return 0;
}
