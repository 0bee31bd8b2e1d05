/* Properties, settings without a choice, coredump attributes, and the old names of calls on contexts. */
#include "check.h"

#include <stdbool.h>

/* The forms that cuda.h names no longer. */
CUresult cuCtxCreate_old(CUcontext *, unsigned, CUdevice) __asm__("cuCtxCreate");
CUresult cuCtxDestroy_old(CUcontext) __asm__("cuCtxDestroy");
CUresult cuCtxPushCurrent_old(CUcontext) __asm__("cuCtxPushCurrent");
CUresult cuCtxPopCurrent_old(CUcontext *) __asm__("cuCtxPopCurrent");
CUresult cuDevicePrimaryCtxRelease_old(CUdevice) __asm__("cuDevicePrimaryCtxRelease");
CUresult cuDevicePrimaryCtxReset_old(CUdevice) __asm__("cuDevicePrimaryCtxReset");
CUresult cuDevicePrimaryCtxSetFlags_old(CUdevice, unsigned) __asm__("cuDevicePrimaryCtxSetFlags");

static int attribute(CUdevice_attribute which)
{
    int value;
    OK(cuDeviceGetAttribute(&value, which, 0));
    return value;
}

static void properties(void)
{
    CUdevprop prop;
    size_t width = 1;
    int supported = 7;

    OK(cuDeviceGetProperties(&prop, 0));
    TRUE(prop.maxThreadsPerBlock == attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    TRUE(prop.maxThreadsDim[0] == attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X));
    TRUE(prop.maxThreadsDim[2] == attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
    TRUE(prop.maxGridSize[0] == attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
    TRUE(prop.maxGridSize[1] == attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y));
    TRUE(prop.sharedMemPerBlock == attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    TRUE(prop.SIMDWidth == 32);
    TRUE(prop.memPitch == attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH));
    TRUE(prop.regsPerBlock == attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
    TRUE(prop.clockRate == attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
    TRUE(prop.textureAlign == attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
    TRUE(prop.totalConstantMemory == attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY));
    EXPECT(cuDeviceGetProperties(&prop, 99), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetProperties(NULL, 0), CUDA_ERROR_INVALID_VALUE);

    OK(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0));
    TRUE(width == (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
    EXPECT(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetTexture1DLinearMaxWidth(&width, (CUarray_format)0x99, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_HALF, 1, -1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetTexture1DLinearMaxWidth(NULL, CU_AD_FORMAT_HALF, 1, 0), CUDA_ERROR_INVALID_VALUE);

    OK(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    TRUE(supported == 0);
    EXPECT(cuDeviceGetExecAffinitySupport(&supported, (CUexecAffinityType)1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 99), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Every number that the header names has a value. */
static void attributes(void)
{
    enum { MAX = 162 };                  /* CU_DEVICE_ATTRIBUTE_MAX of CUDA 13.5 */
    int value;

    for (int number = 1; number < MAX; number++)
        OK(cuDeviceGetAttribute(&value, (CUdevice_attribute)number, 0));
    EXPECT(cuDeviceGetAttribute(&value, (CUdevice_attribute)MAX, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
}

static void context_settings(void)
{
    CUexecAffinityParam affinity;
    CUsharedconfig config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    CUfunction function = kernel("shape");

    EXPECT(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    EXPECT(cuCtxGetExecAffinity(&affinity, (CUexecAffinityType)3), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxResetPersistingL2Cache(), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    OK(cuCtxGetSharedMemConfig(&config));
    TRUE(config == CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE); /* "the fixed bank size of the hardware" */
    EXPECT(cuCtxSetSharedMemConfig((CUsharedconfig)3), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxGetSharedMemConfig(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetSharedMemConfig(function, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
    EXPECT(cuFuncSetSharedMemConfig(function, (CUsharedconfig)3), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetSharedMemConfig((CUfunction)&config, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE), CUDA_ERROR_INVALID_HANDLE);
}

static void usage_counts(void)
{
    CUcontext before, context, other = NULL, primary;
    unsigned flags;

    OK(cuCtxGetCurrent(&primary));
    OK(cuCtxCreate_old(&context, CU_CTX_SCHED_YIELD, 0));
    OK(cuCtxGetFlags(&flags));
    TRUE(flags == CU_CTX_SCHED_YIELD);
    OK(cuCtxAttach(&other, 0));
    TRUE(other == context);
    EXPECT(cuCtxAttach(&other, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxAttach(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxDetach(context));
    OK(cuCtxSynchronize());              /* still there: it was created and attached */
    OK(cuCtxPopCurrent_old(&before));
    TRUE(before == context);
    EXPECT(cuCtxDetach(context), CUDA_ERROR_INVALID_CONTEXT); /* not current */
    OK(cuCtxPushCurrent_old(context));
    OK(cuCtxDetach(context));
    EXPECT(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(primary));
    EXPECT(cuCtxDetach(primary), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxCreate_old(&context, 0, 0));
    OK(cuCtxDestroy_old(context));
    EXPECT(cuCtxDestroy_old(context), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxCreate_old(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxCreate_old(&context, 0, 99), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuCtxPushCurrent_old(NULL), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(primary));
}

static void CUDA_CB dumped(void *data, int pid, CUdevice dev)
{
    (void)data, (void)pid, (void)dev;
}

static void coredumps(void)
{
    CUcoredumpCallbackHandle start, complete;
    char text[1024], host[256] = "", expected[1024];
    unsigned flags = 99, set = CU_COREDUMP_SKIP_ABORT | CU_COREDUMP_LIGHTWEIGHT_FLAGS, wrong = 1u << 20;
    bool on = true, yes = true, no = false;
    size_t size, one = sizeof(bool), four = 4;

    gethostname(host, sizeof host - 1);
    snprintf(expected, sizeof expected, "core.cuda.%s.%d", host, (int)getpid());
    OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, NULL, &size));
    TRUE(size == 1024);
    OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, &size));
    TRUE(!strcmp(text, expected));
    size = 5;
    EXPECT(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, &size), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCoredumpGetAttributeGlobal(CU_COREDUMP_MAX, text, &size), CUDA_ERROR_INVALID_VALUE);
    OK(cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &one));
    TRUE(!on);
    OK(cuCoredumpGetAttribute(CU_COREDUMP_TRIGGER_HOST, &on, &one));
    TRUE(on);
    OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_ENABLE_USER_TRIGGER, &on, &one));
    TRUE(!on);
    OK(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &four));
    TRUE(flags == CU_COREDUMP_DEFAULT_FLAGS);

    /* The program's settings are those of a context until it has its own. */
    strcpy(text, "elsewhere");
    size = 10;
    OK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, text, &size));
    OK(cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &set, &four));
    size = sizeof text;
    OK(cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size));
    TRUE(!strcmp(text, "elsewhere"));
    OK(cuCoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &on, &one));
    TRUE(on);
    OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &on, &one));
    TRUE(!on);
    OK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, NULL, &size));
    TRUE(size == sizeof(bool));
    OK(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &no, &one));
    EXPECT(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, &one), CUDA_ERROR_NOT_PERMITTED);
    EXPECT(cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_USER_TRIGGER, &yes, &one), CUDA_ERROR_NOT_PERMITTED);
    EXPECT(cuCoredumpSetAttribute(CU_COREDUMP_PIPE, text, &size), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &wrong, &four), CUDA_ERROR_INVALID_VALUE);

    OK(cuCoredumpRegisterStartCallback(dumped, NULL, &start));
    OK(cuCoredumpRegisterCompleteCallback(dumped, NULL, &complete));
    OK(cuCoredumpRegisterCompleteCallback(dumped, NULL, NULL));
    EXPECT(cuCoredumpRegisterStartCallback(NULL, NULL, &start), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCoredumpDeregisterCompleteCallback(start), CUDA_ERROR_INVALID_VALUE);
    OK(cuCoredumpDeregisterStartCallback(start));
    EXPECT(cuCoredumpDeregisterStartCallback(start), CUDA_ERROR_INVALID_VALUE);
    OK(cuCoredumpDeregisterCompleteCallback(complete));
    EXPECT(cuCoredumpDeregisterCompleteCallback(NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    CUcontext context;
    unsigned flags;
    int active;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxSetFlags_old(0, CU_CTX_SCHED_SPIN));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    TRUE(flags == CU_CTX_SCHED_SPIN && !active);
    EXPECT(cuDevicePrimaryCtxSetFlags_old(99, 0), CUDA_ERROR_INVALID_DEVICE);
    start();
    properties();
    attributes();
    context_settings();
    usage_counts();
    coredumps();
    OK(cuDevicePrimaryCtxRelease_old(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    TRUE(!active);
    EXPECT(cuDevicePrimaryCtxRelease_old(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuDevicePrimaryCtxRelease_old(99), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuDevicePrimaryCtxReset_old(0));
    EXPECT(cuDevicePrimaryCtxReset_old(99), CUDA_ERROR_INVALID_DEVICE);
    return 0;
}
