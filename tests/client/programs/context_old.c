/* Older and deprecated calls on contexts, streams and events, and profiler control. */
#include "check.h"

#include <cudaProfiler.h>

#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuStreamDestroy
#undef cuEventDestroy

int main(void)
{
    CUcontext primary = start(), first, second, found;
    CUstream stream;
    CUevent event;
    CUdeviceptr memory;
    CUsharedconfig config;
    CUexecAffinityParam affinity;
    CUctxCreateParams params;
    CUctxCigParam graphics;
    CUdevice device;
    unsigned flags, version;
    int active, supported;

    /* Create, push, pop, destroy. */
    OK(cuCtxCreate(&first, CU_CTX_SCHED_SPIN, 0));
    OK(cuCtxGetCurrent(&found));
    TRUE(found == first);
    OK(cuCtxGetFlags(&flags));
    TRUE(flags == CU_CTX_SCHED_SPIN);
    OK(cuCtxGetApiVersion(first, &version));
    TRUE(version == 3020);
    OK(cuCtxGetApiVersion(NULL, &version));
    EXPECT(cuCtxGetApiVersion((CUcontext)&version, &version), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxGetApiVersion(first, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxPopCurrent(&found));
    TRUE(found == first);
    OK(cuCtxPushCurrent(first));
    OK(cuCtxPopCurrent(NULL));
    OK(cuCtxGetCurrent(&found));
    TRUE(found == primary);
    EXPECT(cuCtxPushCurrent((CUcontext)&found), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxCreate(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxCreate(&second, 0x1000, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxCreate(&second, 0, 2), CUDA_ERROR_INVALID_DEVICE);
    OK(cuCtxDestroy(first));
    EXPECT(cuCtxDestroy(first), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxDestroy(NULL), CUDA_ERROR_INVALID_CONTEXT);

    /* Forms that ask for what no device here has. */
    memset(&affinity, 0, sizeof affinity);
    memset(&params, 0, sizeof params);
    memset(&graphics, 0, sizeof graphics);
    OK(cuCtxCreate_v3(&second, NULL, 0, CU_CTX_SCHED_YIELD, 1));
    OK(cuCtxGetDevice(&device));
    OK(cuCtxGetFlags(&flags));
    TRUE(device == 1 && flags == CU_CTX_SCHED_YIELD);
    OK(cuCtxDestroy(second));
    OK(cuCtxCreate_v4(&second, &params, 0, 1));
    OK(cuCtxGetDevice(&device));
    TRUE(device == 1);
    OK(cuCtxDestroy(second));
    affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    affinity.param.smCount.val = 2;
    EXPECT(cuCtxCreate_v3(&second, &affinity, 1, 0, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    EXPECT(cuCtxCreate_v3(&second, &affinity, -1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxCreate_v3(&second, NULL, 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxCreate_v3(NULL, NULL, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxCreate_v3(&second, &affinity, 1, 0, 2), CUDA_ERROR_INVALID_DEVICE);
    params.execAffinityParams = &affinity;
    params.numExecAffinityParams = 1;
    EXPECT(cuCtxCreate_v4(&second, &params, 0, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    params.cigParams = &graphics;
    EXPECT(cuCtxCreate_v4(&second, &params, 0, 0), CUDA_ERROR_INVALID_VALUE);
    params.execAffinityParams = NULL;
    params.numExecAffinityParams = 0;
    EXPECT(cuCtxCreate_v4(&second, &params, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuCtxCreate_v4(&second, &params, 0, -1), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED, 0));
    TRUE(supported == 0);
    affinity.type = CU_EXEC_AFFINITY_TYPE_MAX;
    EXPECT(cuCtxCreate_v3(&second, &affinity, 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxGetCurrent(&found));
    TRUE(found == primary);

    /* Usage counts. */
    OK(cuCtxCreate(&second, 0, 1));
    EXPECT(cuCtxAttach(&found, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxAttach(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxAttach(&found, 0));
    TRUE(found == second);
    OK(cuCtxAttach(&found, 0));
    OK(cuMemAlloc(&memory, 16));
    OK(cuCtxDetach(second));
    OK(cuCtxDetach(second));
    OK(cuMemFree(memory)); /* it is still there */
    OK(cuCtxPopCurrent(&found));
    EXPECT(cuCtxDetach(second), CUDA_ERROR_INVALID_CONTEXT); /* not current */
    OK(cuCtxPushCurrent(second));
    OK(cuCtxDetach(second));
    EXPECT(cuCtxPushCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxDetach(second), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxDetach(NULL), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxGetCurrent(&found));
    TRUE(found == primary);
    EXPECT(cuCtxAttach(&found, 0), CUDA_ERROR_INVALID_CONTEXT); /* the primary one is retained */
    EXPECT(cuCtxDetach(primary), CUDA_ERROR_INVALID_CONTEXT);

    /* Settings without a choice. */
    OK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    OK(cuCtxGetSharedMemConfig(&config));
    TRUE(config == CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
    EXPECT(cuCtxSetSharedMemConfig(3), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxGetSharedMemConfig(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 1));
    TRUE(supported == 0);
    EXPECT(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 2), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    EXPECT(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_MAX), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0));
    TRUE(supported == 0);
    EXPECT(cuCtxResetPersistingL2Cache(), CUDA_ERROR_NOT_SUPPORTED);

    /* Streams and events. */
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, stream));
    OK(cuEventDestroy(event));
    EXPECT(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuEventDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy(stream));
    EXPECT(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);

    /* Profiler control: there is no tool to be controlled. */
    OK(cuProfilerStart());
    OK(cuProfilerStart());
    OK(cuProfilerStop());
    EXPECT(cuProfilerInitialize("settings", "output", CU_OUT_CSV), CUDA_ERROR_PROFILER_DISABLED);
    EXPECT(cuProfilerInitialize(NULL, "output", CU_OUT_CSV), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuProfilerInitialize("settings", "output", 2), CUDA_ERROR_INVALID_VALUE);

    /* The primary context. */
    EXPECT(cuDevicePrimaryCtxSetFlags(0, 0x1000), CUDA_ERROR_INVALID_VALUE);
    OK(cuDevicePrimaryCtxSetFlags(1, CU_CTX_SCHED_YIELD));
    OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    TRUE(flags == CU_CTX_SCHED_YIELD && !active);
    OK(cuMemAlloc(&memory, 16));
    OK(cuDevicePrimaryCtxReset(0));
    EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuDevicePrimaryCtxRelease(0));
    EXPECT(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuDevicePrimaryCtxRelease(2), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDevicePrimaryCtxReset(-1), CUDA_ERROR_INVALID_DEVICE);
    OK(cuCtxSetCurrent(NULL));
    EXPECT(cuProfilerStart(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuProfilerStop(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxAttach(&found, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxResetPersistingL2Cache(), CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}
