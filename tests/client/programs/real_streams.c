/* Streams on a device that compiles: host functions, values in memory and events between kernels. */
#include "check.h"

static const char code[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    /* p[i] = p[i] * a + b, for every thread of the grid. */
    ".visible .entry affine(.param .u64 p, .param .u32 a, .param .u32 b)\n"
    "{\n"
    "  .reg .b32 %r<7>; .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b];\n"
    "  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
    "  mad.lo.s32 %r3, %r3, %r4, %r5;\n"
    "  mul.wide.u32 %rd2, %r3, 4;\n"
    "  add.s64 %rd3, %rd1, %rd2;\n"
    "  ld.global.u32 %r6, [%rd3];\n"
    "  mad.lo.s32 %r6, %r6, %r1, %r2;\n"
    "  st.global.u32 [%rd3], %r6;\n"
    "  ret;\n"
    "}\n";

enum { COUNT = 1000 };

static CUfunction affine;
static int calls;

static void run(CUdeviceptr data, uint32_t a, uint32_t b, CUstream stream)
{
    void *arguments[] = {&data, &a, &b};
    OK(cuLaunchKernel(affine, COUNT / 100, 1, 1, 100, 1, 1, 0, stream, arguments, NULL));
}

/* Each value is what the first kernel leaves; the second finds it doubled. */
static void double_all(void *memory)
{
    uint32_t *values = memory;
    for (int i = 0; i < COUNT; i++) {
        TRUE(values[i] == 3 * (uint32_t)i + 1);
        values[i] *= 2;
    }
    calls++;
}

static void CUDA_CB told(CUstream stream, CUresult status, void *argument)
{
    (void)stream;
    TRUE(status == CUDA_SUCCESS);
    ++*(int *)argument;
}

static void never(void *unused)
{
    (void)unused;
    exit(1);
}

static void *release(void *word)
{
    usleep(50000);
    *(volatile uint32_t *)word = 1;
    return NULL;
}

int main(int count, char **arguments)
{
    CUcontext context = start(), other;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT};
    CUlaunchConfig config = {COUNT / 100, 1, 1, 100, 1, 1, 0, NULL, &attribute, 1};
    uint32_t *host, *flag, a = 5, b = 6;
    CUdeviceptr data, shared;
    void *parameters[] = {&data, &a, &b};
    static uint32_t values[COUNT];
    CUstream stream, second;
    CUevent event;
    CUmodule module;
    pthread_t thread;

    OK(cuModuleLoadData(&module, code));
    OK(cuModuleGetFunction(&affine, module, "affine"));
    OK(cuMemHostAlloc((void **)&host, sizeof values, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostAlloc((void **)&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&shared, host, 0));
    OK(cuMemAlloc(&data, sizeof values));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));

    for (uint32_t i = 0; i < COUNT; i++)
        host[i] = i;
    run(shared, 3, 1, stream);
    OK(cuLaunchHostFunc(stream, double_all, host));
    run(shared, 10, 7, stream);
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 1);
    for (uint32_t i = 0; i < COUNT; i++)
        TRUE(host[i] == (3 * i + 1) * 20 + 7);
    calls = 0;
    for (int i = 0; i < 500; i++) {
        run(shared, 1, 1, stream);
        OK(cuStreamAddCallback(i % 2 ? stream : second, told, &calls, 0));
    }
    OK(cuCtxSynchronize());
    TRUE(calls == 500 && host[3] == 707);

    /* A kernel behind a value that another thread writes, and one behind what that kernel's stream writes. */
    flag[0] = 0;
    OK(cuMemsetD32(data, 1, COUNT));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    run(data, 2, 3, stream);
    OK(cuStreamWriteValue64(stream, (CUdeviceptr)(uintptr_t)&flag[2], 1ull << 40, 0));
    OK(cuStreamWaitValue64(second, (CUdeviceptr)(uintptr_t)&flag[2], 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ));
    run(data, 10, 1, second);
    OK(cuCtxRecordEvent(context, event));
    usleep(20000);
    EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    pthread_create(&thread, NULL, release, flag);
    OK(cuEventSynchronize(event));
    pthread_join(thread, NULL);
    OK(cuStreamQuery(stream));
    OK(cuStreamQuery(second));
    OK(cuMemcpyDtoH(values, data, sizeof values));
    for (int i = 0; i < COUNT; i++)
        TRUE(values[i] == 51);

    /* An event of a launch, and launches as in CUDA 1. */
    attribute.value.programmaticEvent.event = event;
    config.hStream = stream;
    OK(cuLaunchKernelEx(&config, affine, parameters, NULL));
    OK(cuStreamWaitEvent(second, event, 0));
    run(data, 1, 100, second);
    OK(cuStreamSynchronize(second));
    OK(cuFuncSetBlockShape(affine, 50, 1, 1));
    OK(cuParamSetSize(affine, 16));
    OK(cuParamSetv(affine, 0, &data, 8));
    OK(cuParamSeti(affine, 8, 2));
    OK(cuParamSeti(affine, 12, 9));
    OK(cuLaunchGrid(affine, COUNT / 50, 1));
    OK(cuMemcpyDtoH(values, data, sizeof values));
    for (int i = 0; i < COUNT; i++)
        TRUE(values[i] == (51 * 5 + 6 + 100) * 2 + 9);

    /* What is never due does not hold up the end of a context, nor that of the process. */
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32(second, (CUdeviceptr)(uintptr_t)&flag[8], 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuLaunchHostFunc(second, never, NULL));
    OK(cuCtxDestroy(other));
    OK(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)&flag[8], 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuLaunchHostFunc(stream, never, NULL));
    if (count > 1 && !strcmp(arguments[1], "reset")) {
        OK(cuDevicePrimaryCtxReset(0));
        OK(cuMemAlloc(&data, sizeof values));
        OK(cuStreamWriteValue32(NULL, data, 9, 0));
        OK(cuMemcpyDtoH(values, data, 4));
        TRUE(values[0] == 9);
    }
    return 0;
}
