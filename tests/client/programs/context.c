/* Contexts and the stack of them. */
#include "check.h"

static void *other_thread(void *argument)
{
    CUcontext context = argument, current = argument;
    CUdeviceptr memory;

    OK(cuCtxGetCurrent(&current)); /* the stack is the thread's own */
    TRUE(!current);
    EXPECT(cuMemAlloc(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxPushCurrent(context));
    OK(cuMemAlloc(&memory, 16));
    OK(cuMemFree(memory));
    return NULL;
}

int main(void)
{
    CUcontext primary, same, a, b, popped, current;
    CUdevice device;
    CUdeviceptr memory;
    unsigned flags, version;
    int active, least, greatest;
    unsigned long long id_a, id_b;
    size_t limit;
    pthread_t thread;
    CUfunc_cache cache;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    TRUE(!active && !flags);
    EXPECT(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
    EXPECT(cuDevicePrimaryCtxSetFlags(0, 0x1000), CUDA_ERROR_INVALID_VALUE);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuDevicePrimaryCtxRetain(&same, 0));
    TRUE(primary == same);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    TRUE(active && flags == CU_CTX_SCHED_YIELD);
    EXPECT(cuDevicePrimaryCtxRetain(&same, 5), CUDA_ERROR_INVALID_DEVICE);

    EXPECT(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxSetCurrent((CUcontext)0x1234), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxPushCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(primary));
    OK(cuCtxGetFlags(&flags));
    TRUE(flags == CU_CTX_SCHED_YIELD);

    OK(cuCtxCreate(&a, NULL, CU_CTX_SCHED_SPIN, 1));
    OK(cuCtxGetDevice(&device));
    TRUE(device == 1);
    OK(cuCtxGetDevice_v2(&device, primary));
    TRUE(device == 0);
    OK(cuCtxCreate_v2(&b, 0, 0));
    OK(cuCtxGetCurrent(&current));
    TRUE(current == b);
    OK(cuCtxGetId(a, &id_a));
    OK(cuCtxGetId(NULL, &id_b));
    TRUE(id_a != id_b);
    OK(cuCtxPopCurrent(&popped));
    TRUE(popped == b);
    OK(cuCtxPopCurrent(NULL));
    OK(cuCtxGetCurrent(&current));
    TRUE(current == primary);
    OK(cuCtxGetApiVersion(a, &version));
    TRUE(version >= 3010);
    EXPECT(cuCtxGetApiVersion((CUcontext)4, &version), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxCreate(&popped, NULL, 0x4000, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxCreate(&popped, NULL, 0, 9), CUDA_ERROR_INVALID_DEVICE);

    OK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    TRUE(limit == 1024);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    OK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    TRUE(limit == 4096);
    EXPECT(cuCtxGetLimit(&limit, CU_LIMIT_CIG_ENABLED), CUDA_ERROR_UNSUPPORTED_LIMIT);
    EXPECT(cuCtxGetLimit(&limit, (CUlimit)-1), CUDA_ERROR_UNSUPPORTED_LIMIT);
    EXPECT(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    OK(cuCtxGetCacheConfig(&cache));
    TRUE(cache == CU_FUNC_CACHE_PREFER_L1);
    EXPECT(cuCtxSetCacheConfig((CUfunc_cache)9), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    TRUE(least == 0 && greatest <= 0);
    OK(cuCtxGetStreamPriorityRange(NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuCtxSynchronize_v2(a));

    pthread_create(&thread, NULL, other_thread, primary);
    pthread_join(thread, NULL);

    /* A destroyed context is told from any other. */
    OK(cuCtxPushCurrent(a));
    OK(cuMemAlloc(&memory, 64));
    OK(cuCtxPushCurrent(a));
    OK(cuCtxDestroy(a));
    OK(cuCtxGetCurrent(&current));
    TRUE(current == a); /* it was pushed twice */
    EXPECT(cuMemAlloc(&memory, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT(cuCtxDestroy(a), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxPushCurrent(a), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxPopCurrent(NULL));
    EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE); /* its memory went with it */
    EXPECT(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxDestroy(b));

    /* The primary context goes with its last retain, and comes back empty under the same handle. */
    OK(cuMemAlloc(&memory, 64));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    TRUE(!active);
    EXPECT(cuMemAlloc(&memory, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuDevicePrimaryCtxRetain(&same, 0));
    TRUE(same == primary);
    EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&memory, 16));
    OK(cuDevicePrimaryCtxReset(0));
    EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&memory, 16));
    OK(cuMemFree(memory));
    return 0;
}
