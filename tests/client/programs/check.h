/* What the test programs share: an expectation that fails says where, and ends the program. */
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(call, result)                                                                                       \
    do {                                                                                                           \
        CUresult got_ = (call);                                                                                    \
        if (got_ != (result)) {                                                                                    \
            fprintf(stderr, "%s:%d: %s gives %d, not %s\n", __FILE__, __LINE__, #call, (int)got_, #result);        \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)
#define OK(call) EXPECT(call, CUDA_SUCCESS)
#define TRUE(condition)                                                                                            \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

static const char ptx[] __attribute__((unused)) =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 42;\n"
    ".visible .entry add_one(.param .u64 a, .param .u32 n) { ret; }\n"
    ".visible .entry scale(.param .u64 a, .param .u32 f, .param .u32 s) { ret; }\n"
    ".visible .entry shape(.param .u64 a) { ret; }\n"
    ".visible .entry mixed(.param .u8 a, .param .u64 b, .param .u16 c, .param .u64 d) { ret; }\n"
    ".visible .entry nap(.param .u32 n) { ret; }\n"
    ".visible .entry fail() { ret; }\n"
    ".visible .entry crash(.param .u32 n) { ret; }\n"
    ".visible .entry leave() { ret; }\n"
    ".visible .entry unlowered() { ret; }\n";

static inline CUcontext start(void)
{
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

static inline CUfunction kernel(const char *name)
{
    static CUmodule module;
    CUfunction function;
    if (!module)
        OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline CUresult launch_nap(CUfunction nap, CUstream stream, uint32_t milliseconds)
{
    void *arguments[] = {&milliseconds};
    return cuLaunchKernel(nap, 1, 1, 1, 8, 4, 1, 0, stream, arguments, NULL);
}
