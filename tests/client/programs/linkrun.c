/* Linked code runs: functions, variables and constants of other modules, statics of the same name, weak ones. */
#include "check.h"

#define HEAD ".version 7.8\n.target sm_75\n.address_size 64\n"

/* out[i] = mix(i) + static + weak(): twice(i) + base + table[i & 3] + 100 + 5 */
static const char main_ptx[] =
    HEAD ".extern .func (.param .b32 r) mix(.param .b32 x);\n"
         ".weak .func (.param .b32 r) weak() { .reg .b32 %r<2>; mov.u32 %r1, 4; st.param.b32 [r], %r1; ret; }\n"
         ".global .align 4 .u32 state = 100;\n"
         ".visible .entry run(.param .u64 out) {\n"
         ".reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
         "mov.u32 %r1, %tid.x;\n"
         "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), mix, (a); ld.param.b32 %r2, [b]; }\n"
         "{ .param .b32 c; call.uni (c), weak; ld.param.b32 %r3, [c]; }\n"
         "ld.global.u32 %r4, [state];\n"
         "add.u32 %r5, %r2, %r3; add.u32 %r5, %r5, %r4;\n"
         "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n"
         "st.global.u32 [%rd1], %r5; ret; }\n";
static const char mix_ptx[] =
    HEAD ".extern .global .align 4 .u32 base;\n.extern .const .align 4 .u32 table[4];\n"
         ".global .align 4 .u32 state = 2;\n"
         ".func (.param .b32 r) helper(.param .b32 x) {\n"
         ".reg .b32 %r<4>; ld.param.u32 %r1, [x]; ld.global.u32 %r2, [state]; mul.lo.u32 %r3, %r1, %r2;\n"
         "st.param.b32 [r], %r3; ret; }\n"
         ".visible .func (.param .b32 r) mix(.param .b32 x) {\n"
         ".reg .b32 %r<8>; .reg .b64 %rd<4>; ld.param.u32 %r1, [x];\n"
         "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), helper, (a); ld.param.b32 %r2, [b]; }\n"
         "ld.global.u32 %r3, [base]; add.u32 %r2, %r2, %r3;\n"
         "and.b32 %r4, %r1, 3; mul.wide.u32 %rd1, %r4, 4; mov.u64 %rd2, table; add.s64 %rd2, %rd2, %rd1;\n"
         "ld.const.u32 %r5, [%rd2]; add.u32 %r2, %r2, %r5; st.param.b32 [r], %r2; ret; }\n";
static const char data_ptx[] =
    HEAD ".visible .global .align 4 .u32 base = 1000;\n.visible .const .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
         ".func (.param .b32 r) helper(.param .b32 x) { .reg .b32 %r<2>; mov.u32 %r1, 7; st.param.b32 [r], %r1; ret; }\n"
         ".visible .func (.param .b32 r) weak() { .reg .b32 %r<2>; mov.u32 %r1, 5; st.param.b32 [r], %r1; ret; }\n";

enum { COUNT = 64 };

static void run(CUmodule module, uint32_t base)
{
    static const uint32_t table[] = {10, 20, 30, 40};
    CUfunction function;
    CUdeviceptr out;
    uint32_t got[COUNT];
    void *arguments[] = {&out};

    OK(cuMemAlloc(&out, sizeof got));
    OK(cuModuleGetFunction(&function, module, "run"));
    OK(cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, NULL, arguments, NULL));
    OK(cuMemcpyDtoH(got, out, sizeof got));
    OK(cuMemFree(out));
    for (uint32_t i = 0; i < COUNT; i++)
        TRUE(got[i] == 2 * i + base + table[i & 3] + 100 + 5);
}

int main(void)
{
    const char *parts[] = {main_ptx, mix_ptx, data_ptx};
    size_t sizes[] = {sizeof main_ptx, sizeof mix_ptx, sizeof data_ptx}, size;
    CUdeviceptr base;
    uint32_t value = 2000;

    start();
    for (int first = 0; first < 3; first++) { /* in every order that starts elsewhere */
        CUlinkState state;
        CUmodule module;
        void *image;
        OK(cuLinkCreate(0, NULL, NULL, &state));
        for (int i = 0; i < 3; i++) {
            int at = (first + i) % 3;
            OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)parts[at], sizes[at], NULL, 0, NULL, NULL));
        }
        OK(cuLinkComplete(state, &image, &size));
        OK(cuModuleLoadData(&module, image));
        OK(cuLinkDestroy(state));
        run(module, 1000);
        OK(cuModuleGetGlobal(&base, &size, module, "base"));
        OK(cuMemcpyHtoD(base, &value, 4));
        run(module, 2000);
        OK(cuModuleUnload(module));
    }
    return 0;
}
