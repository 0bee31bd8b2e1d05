/* Threads that do random things, each checked against a model of its own: stress THREADS OPERATIONS SEED SECONDS.
   Ends after that many operations a thread, or seconds if they are not 0. The kernels are real PTX here, and the test
   device has its own of the same names. */
#include "check.h"

static const char kernels[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".visible .entry add_one(.param .u64 a, .param .u32 n)\n{\n"
    " .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<3>;\n"
    " ld.param.u64 %d0, [a]; ld.param.u32 %r0, [n]; mov.u32 %r1, 0;\n"
    "AGAIN: setp.ge.u32 %p, %r1, %r0; @%p bra DONE;\n"
    " mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d0, %d1;\n"
    " ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2;\n"
    " add.u32 %r1, %r1, 1; bra AGAIN;\nDONE: ret;\n}\n"
    ".visible .entry scale(.param .u64 a, .param .u32 f, .param .u32 s)\n{\n"
    " .reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    " ld.param.u64 %d0, [a]; ld.param.u32 %r0, [f]; ld.param.u32 %r1, [s];\n"
    " ld.global.u32 %r2, [%d0]; mad.lo.u32 %r2, %r2, %r0, %r1; st.global.u32 [%d0], %r2; ret;\n}\n";

enum { WORDS = 64, MOST_THREADS = 64 };

static CUcontext context;
static CUfunction add_one, scale;
static unsigned long operations;
static double until;
static uint64_t seed;
static _Atomic unsigned long done;

struct worker {
    uint64_t random;
    uint32_t model[WORDS];
    CUdeviceptr data;
    CUstream stream;
    CUevent first, last;
};

static uint32_t below(struct worker *w, uint32_t bound)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 33) % bound;
}

static void launch(struct worker *w)
{
    uint32_t at = below(w, WORDS), factor = below(w, 7), shift = below(w, 1000), count = 1 + below(w, WORDS - at);
    CUdeviceptr place = w->data + 4 * at;
    void *scaling[] = {&place, &factor, &shift}, *adding[] = {&place, &count};

    if (below(w, 2)) {
        OK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, w->stream, scaling, NULL));
        w->model[at] = w->model[at] * factor + shift;
    } else {
        OK(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, w->stream, adding, NULL));
        for (uint32_t i = 0; i < count; i++)
            w->model[at + i]++;
    }
}

static void fill(struct worker *w)
{
    uint32_t at = below(w, WORDS), count = 1 + below(w, WORDS - at), value = below(w, 1u << 30);
    OK(cuMemsetD32Async(w->data + 4 * at, value, count, w->stream));
    for (uint32_t i = 0; i < count; i++)
        w->model[at + i] = value;
}

static void write_some(struct worker *w)
{
    uint32_t values[WORDS], at = below(w, WORDS), count = 1 + below(w, WORDS - at);
    for (uint32_t i = 0; i < count; i++)
        w->model[at + i] = values[i] = below(w, 1u << 30);
    OK(cuMemcpyHtoDAsync(w->data + 4 * at, values, 4 * count, w->stream));
}

static void move(struct worker *w)
{
    uint32_t half = WORDS / 2, from = below(w, half), to = half + below(w, half), count = 1 + below(w, half - from);
    if (to + count > WORDS)
        count = WORDS - to;
    OK(cuMemcpyDtoDAsync(w->data + 4 * to, w->data + 4 * from, 4 * count, w->stream));
    memmove(w->model + to, w->model + from, 4 * count);
}

static void check(struct worker *w)
{
    uint32_t values[WORDS];
    if (below(w, 2)) {
        OK(cuStreamSynchronize(w->stream));
        OK(cuMemcpyDtoH(values, w->data, sizeof values));
    } else {
        OK(cuMemcpyDtoHAsync(values, w->data, sizeof values, w->stream));
        OK(cuStreamSynchronize(w->stream));
    }
    TRUE(!memcmp(values, w->model, sizeof values));
}

static void swap_memory(struct worker *w)
{
    CUdeviceptr other, base;
    size_t size;
    OK(cuMemAlloc(&other, sizeof w->model + 4 * below(w, 1000)));
    OK(cuMemGetAddressRange(&base, &size, other + 8));
    TRUE(base == other && size >= sizeof w->model);
    OK(cuMemcpyDtoDAsync(other, w->data, sizeof w->model, w->stream));
    OK(cuStreamSynchronize(w->stream));
    OK(cuMemFree(w->data));
    EXPECT(cuMemFree(w->data + 1), CUDA_ERROR_INVALID_VALUE);
    w->data = other;
}

static void swap_stream(struct worker *w)
{
    CUstream other;
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventRecord(w->last, w->stream));
    OK(cuStreamWaitEvent(other, w->last, 0));
    OK(cuStreamDestroy(w->stream));
    w->stream = other;
}

static void time_it(struct worker *w)
{
    float milliseconds = -1;
    OK(cuEventRecord(w->first, w->stream));
    OK(cuEventRecord(w->last, w->stream));
    OK(cuEventSynchronize(w->last));
    OK(cuEventQuery(w->first));
    OK(cuEventElapsedTime(&milliseconds, w->first, w->last));
    TRUE(milliseconds >= 0);
}

static void err(struct worker *w)
{
    CUfunction function;
    CUmodule module;
    CUcontext now;
    void *none[] = {NULL, NULL, NULL};

    EXPECT(cuLaunchKernel(scale, 0, 1, 1, 1, 1, 1, 0, w->stream, none, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoD(w->data, w->model, (size_t)1 << 40), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuModuleLoadData(&module, "nonsense"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(cuModuleGetFunction(&function, (CUmodule)(uintptr_t)below(w, 1u << 30), "scale"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamSynchronize((CUstream)(uintptr_t)(0x1000 + below(w, 1u << 20))), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxPushCurrent(context));
    OK(cuCtxPopCurrent(&now));
    TRUE(now == context);
}

static void load(struct worker *w)
{
    CUmodule module;
    CUfunction function;
    uint32_t factor = 3, shift = 1;
    void *arguments[] = {&w->data, &factor, &shift};

    OK(cuModuleLoadData(&module, kernels));
    OK(cuModuleGetFunction(&function, module, "scale"));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, w->stream, arguments, NULL));
    w->model[0] = w->model[0] * factor + shift;
    OK(cuStreamSynchronize(w->stream));
    OK(cuModuleUnload(module));
}

static void *work(void *argument)
{
    struct worker *w = argument;

    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc(&w->data, sizeof w->model));
    OK(cuMemsetD8(w->data, 0, sizeof w->model));
    OK(cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&w->first, 0));
    OK(cuEventCreate(&w->last, 0));
    OK(cuCtxSynchronize());
    for (unsigned long i = 0; until ? seconds() < until : i < operations; i++) {
        uint32_t what = below(w, 1000);
        if (what < 450)
            launch(w);
        else if (what < 600)
            fill(w);
        else if (what < 750)
            write_some(w);
        else if (what < 850)
            move(w);
        else if (what < 930)
            check(w);
        else if (what < 950)
            swap_memory(w);
        else if (what < 965)
            swap_stream(w);
        else if (what < 980)
            time_it(w);
        else if (what < 998)
            err(w);
        else
            load(w);
        done++;
    }
    check(w);
    OK(cuEventDestroy(w->first));
    OK(cuEventDestroy(w->last));
    OK(cuStreamDestroy(w->stream));
    OK(cuMemFree(w->data));
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker workers[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    int count = argc > 1 ? atoi(argv[1]) : 4;
    CUmodule module;

    TRUE(count > 0 && count <= MOST_THREADS);
    operations = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
    if (argc > 4 && atof(argv[4]) > 0)
        until = seconds() + atof(argv[4]);
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    context = start();
    OK(cuModuleLoadData(&module, kernels));
    OK(cuModuleGetFunction(&add_one, module, "add_one"));
    OK(cuModuleGetFunction(&scale, module, "scale"));
    for (int i = 0; i < count; i++) {
        workers[i].random = (seed + (uint64_t)i) * 0x9E3779B97F4A7C15ull + 1;
        TRUE(!pthread_create(&threads[i], NULL, work, &workers[i]));
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease(0));
    printf("%lu operations\n", done);
    return 0;
}
