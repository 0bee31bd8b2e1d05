/* Vector addition on the CUDA driver API with the kernel as PTX text. Builds with a C compiler alone:
   cc vector_add.c -I<folder of cuda.h> -l:libcuda.so.1 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static const char ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry vector_add(.param .u64 p_a, .param .u64 p_b, .param .u64 p_c, .param .u32 p_n)\n"
    "{\n"
    "  .reg .pred %p<2>;\n"
    "  .reg .b32 %r<6>;\n"
    "  .reg .f32 %f<4>;\n"
    "  .reg .b64 %rd<11>;\n"
    "  ld.param.u64 %rd1, [p_a];\n"
    "  ld.param.u64 %rd2, [p_b];\n"
    "  ld.param.u64 %rd3, [p_c];\n"
    "  ld.param.u32 %r1, [p_n];\n"
    "  mov.u32 %r2, %ctaid.x;\n"
    "  mov.u32 %r3, %ntid.x;\n"
    "  mov.u32 %r4, %tid.x;\n"
    "  mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.s32 %p1, %r5, %r1;\n"
    "  @%p1 bra DONE;\n"
    "  cvta.to.global.u64 %rd4, %rd1;\n"
    "  cvta.to.global.u64 %rd5, %rd2;\n"
    "  cvta.to.global.u64 %rd6, %rd3;\n"
    "  mul.wide.s32 %rd7, %r5, 4;\n"
    "  add.s64 %rd8, %rd4, %rd7;\n"
    "  add.s64 %rd9, %rd5, %rd7;\n"
    "  add.s64 %rd10, %rd6, %rd7;\n"
    "  ld.global.f32 %f1, [%rd8];\n"
    "  ld.global.f32 %f2, [%rd9];\n"
    "  add.f32 %f3, %f1, %f2;\n"
    "  st.global.f32 [%rd10], %f3;\n"
    "DONE:\n"
    "  ret;\n"
    "}\n";

static void check(CUresult result, const char *call)
{
    const char *name = NULL, *text = NULL;
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    cuGetErrorString(result, &text);
    fprintf(stderr, "%s: %s (%s)\n", call, name ? name : "unknown error", text ? text : "");
    exit(1);
}
#define CHECK(call) check(call, #call)

int main(void)
{
    enum { N = 1 << 16, BLOCK = 256 };
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr d_a, d_b, d_c;
    char name[128];
    int n = N;
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *c = malloc(N * sizeof *c);

    if (!a || !b || !c)
        return 1;
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)i;
        c[i] = -1.0f;
    }
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&kernel, module, "vector_add"));
    CHECK(cuMemAlloc(&d_a, N * sizeof *a));
    CHECK(cuMemAlloc(&d_b, N * sizeof *b));
    CHECK(cuMemAlloc(&d_c, N * sizeof *c));
    CHECK(cuMemcpyHtoD(d_a, a, N * sizeof *a));
    CHECK(cuMemcpyHtoD(d_b, b, N * sizeof *b));
    void *parameters[] = {&d_a, &d_b, &d_c, &n};
    CHECK(cuLaunchKernel(kernel, (N + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuMemcpyDtoH(c, d_c, N * sizeof *c));
    for (int i = 0; i < N; i++)
        if (c[i] != a[i] + b[i]) {
            fprintf(stderr, "wrong at %d: %g instead of %g\n", i, c[i], a[i] + b[i]);
            return 1;
        }
    CHECK(cuMemFree(d_a));
    CHECK(cuMemFree(d_b));
    CHECK(cuMemFree(d_c));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    printf("vector_add over %d elements: all right on %s\n", N, name);
    free(a);
    free(b);
    free(c);
    return 0;
}
