/* death NAME: the driver process ends while it works: the calls that wait return, and every later one fails alike. */
#include "check.h"
#include <signal.h>

static void *wait_elsewhere(void *argument)
{
    CUcontext context = argument;
    OK(cuCtxSetCurrent(context));
    return (void *)(intptr_t)cuStreamSynchronize(NULL);
}

int main(int argc, char **argv)
{
    CUcontext context = start();
    CUfunction nap = kernel("nap"), crash = kernel("crash"), leave = kernel("leave"), fail = kernel("fail");
    CUdeviceptr memory;
    CUmodule module;
    uint32_t number, value;
    void *arguments[] = {&number}, *elsewhere;
    CUresult expected = CUDA_ERROR_LAUNCH_FAILED;
    pthread_t thread;
    int count;
    double started;

    TRUE(argc == 2);
    OK(cuMemAlloc(&memory, 4));
    OK(launch_nap(nap, NULL, 300));
    if (!strcmp(argv[1], "segv")) {
        number = SIGSEGV;
        expected = CUDA_ERROR_ILLEGAL_ADDRESS;
        OK(cuLaunchKernel(crash, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    } else if (!strcmp(argv[1], "abort")) {
        number = SIGABRT;
        OK(cuLaunchKernel(crash, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    } else if (!strcmp(argv[1], "exit")) {
        OK(cuLaunchKernel(leave, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    } else if (!strcmp(argv[1], "fail")) {
        OK(cuLaunchKernel(fail, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)); /* no death: the context is ruined */
    } else {
        OK(launch_nap(nap, NULL, 60000)); /* killed from outside */
        puts("waiting");
        fflush(stdout);
    }
    pthread_create(&thread, NULL, wait_elsewhere, context);
    EXPECT(cuCtxSynchronize(), expected);
    started = seconds();
    pthread_join(thread, &elsewhere);
    TRUE((CUresult)(intptr_t)elsewhere == expected);
    EXPECT(cuMemAlloc(&memory, 4), expected);
    EXPECT(cuMemcpyDtoH(&value, memory, 4), expected);
    EXPECT(launch_nap(nap, NULL, 1), expected);
    EXPECT(cuStreamQuery(NULL), expected);
    OK(cuDeviceGetCount(&count));
    TRUE(count == 2 && seconds() - started < 2);

    /* Resetting the primary context makes a fresh start, of the driver process too where it is gone. */
    OK(cuDevicePrimaryCtxReset(0));
    EXPECT(launch_nap(nap, NULL, 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&memory, 4));
    OK(cuMemsetD32(memory, 77, 1));
    OK(cuMemcpyDtoH(&value, memory, 4));
    TRUE(value == 77);
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&nap, module, "nap"));
    OK(launch_nap(nap, NULL, 1));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease(0));
    EXPECT(cuMemAlloc(&memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return 0;
}
