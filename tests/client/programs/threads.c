/* Many threads at once: each with its stream and its memory, and all with one. */
#include "check.h"

enum { THREADS = 8, ROUNDS = 300 };
static CUcontext context;
static CUfunction add_one;
static CUdeviceptr shared;

static void *work(void *argument)
{
    uint32_t one = 1, value;
    CUdeviceptr own;
    CUstream stream;
    CUevent event;
    void *arguments[] = {&own, &one};

    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc(&own, 4));
    OK(cuMemsetD32(own, (unsigned)(uintptr_t)argument, 1));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamSynchronize(NULL));
    for (int i = 0; i < ROUNDS; i++) {
        arguments[0] = &own;
        OK(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
        arguments[0] = &shared;
        OK(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        if (i % 50 == 0) {
            OK(cuEventCreate(&event, 0));
            OK(cuEventRecord(event, stream));
            OK(cuEventSynchronize(event));
            OK(cuEventDestroy(event));
            OK(cuMemcpyDtoH(&value, own, 4));
            TRUE(value == (uint32_t)(uintptr_t)argument + (uint32_t)i + 1);
        }
    }
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(&value, own, 4));
    TRUE(value == (uint32_t)(uintptr_t)argument + ROUNDS);
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(own));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    uint32_t value;

    context = start();
    add_one = kernel("add_one");
    OK(cuMemAlloc(&shared, 4));
    OK(cuMemsetD32(shared, 0, 1));
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i * 1000));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(cuMemcpyDtoH(&value, shared, 4));
    TRUE(value == THREADS * ROUNDS);
    return 0;
}
