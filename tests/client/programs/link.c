/* Linking: what is given back, and the errors. That linked code runs is shown on a real device. */
#include "check.h"

#define HEAD ".version 7.8\n.target sm_75\n.address_size 64\n"

static const char caller[] = HEAD ".extern .func helper();\n.extern .global .u32 shared_word;\n"
                                  ".global .u32 own = 1;\n"
                                  ".visible .entry scale(.param .u64 a, .param .u32 f, .param .u32 s) {\n"
                                  ".reg .b32 %r<2>; ld.global.u32 %r0, [shared_word]; call helper; ret; }\n";
static char callee[] = HEAD ".visible .global .u32 shared_word = 77;\n.global .u32 own = 2;\n"
                            ".visible .func helper() { ret; }\n"
                            ".visible .entry shape(.param .u64 a) { ret; }\n";
static const char broken[] = HEAD ".visible .entry scale( { ret; }\n";
static const char newer[] = ".version 12.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";

static char error[2048], info[256];
static CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                                 CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME, CU_JIT_LOG_VERBOSE};
static void *values[6];

static CUlinkState create(void)
{
    CUlinkState state;
    void *fresh[] = {error, (void *)sizeof error, info, (void *)sizeof info, NULL, (void *)1};
    memcpy(values, fresh, sizeof fresh);
    memset(error, 'x', sizeof error);
    OK(cuLinkCreate(6, options, values, &state));
    return state;
}

static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t size, const char *name)
{
    return cuLinkAddData(state, type, (void *)data, size, name, 0, NULL, NULL);
}

static size_t filled(void)
{
    return (size_t)values[1] & 0xFFFFFFFF;
}

/* PTX with PTX, as data and as a file; the image is loaded and holds both. */
static void link_two(void)
{
    CUlinkState state = create();
    CUmodule module;
    CUfunction function;
    CUdeviceptr address;
    void *image = NULL, *again = NULL;
    size_t size = 0, bytes;
    uint32_t word = 0;
    unsigned count;
    float milliseconds;
    FILE *file = fopen("callee.ptx", "w");

    fputs(callee, file);
    fclose(file);
    OK(add(state, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller"));
    OK(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "callee.ptx", 0, NULL, NULL));
    unlink("callee.ptx");
    OK(cuLinkComplete(state, &image, &size));
    TRUE(image && size);
    TRUE(filled() == 0 && error[0] == 0);
    memcpy(&milliseconds, &values[4], sizeof milliseconds);
    TRUE(milliseconds > 0 && milliseconds < 60000);
    OK(cuLinkComplete(state, &again, NULL));
    TRUE(again == image);
    EXPECT(add(state, CU_JIT_INPUT_PTX, caller, sizeof caller, "late"), CUDA_ERROR_INVALID_HANDLE);
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state));
    OK(cuModuleGetFunctionCount(&count, module));
    TRUE(count == 2);
    OK(cuModuleGetFunction(&function, module, "scale"));
    OK(cuModuleGetFunction(&function, module, "shape"));
    OK(cuModuleGetGlobal(&address, &bytes, module, "shared_word"));
    TRUE(bytes == 4);
    OK(cuMemcpyDtoH(&word, address, 4));
    TRUE(word == 77);
    OK(cuModuleUnload(module));
}

/* One input, whose size leaves the NUL out; the result can be an input again, as the cubin it stands for. */
static void link_one(void)
{
    CUlinkState state, second;
    CUmodule module;
    CUfunction function;
    void *image;
    size_t size;
    char *padded = malloc((1 << 20) + sizeof callee);

    OK(cuLinkCreate(0, NULL, NULL, &state));
    OK(add(state, CU_JIT_INPUT_PTX, callee, sizeof callee - 1, NULL));
    OK(cuLinkComplete(state, &image, &size));
    TRUE(size == sizeof callee && !memcmp(image, callee, sizeof callee));
    OK(cuLinkCreate(0, NULL, NULL, &second));
    OK(add(second, CU_JIT_INPUT_CUBIN, image, size, "linked before"));
    OK(cuLinkDestroy(state));
    OK(cuLinkComplete(second, &image, &size));
    OK(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    OK(cuModuleGetFunction(&function, module, "shape"));
    OK(cuModuleUnload(module));
    OK(cuLinkDestroy(second));

    /* An input too large for the ring. */
    strcpy(padded, callee);
    memset(padded + strlen(callee), '\n', 1 << 20);
    padded[strlen(callee) + (1 << 20)] = 0;
    OK(cuLinkCreate(0, NULL, NULL, &state));
    OK(add(state, CU_JIT_INPUT_PTX, padded, strlen(padded) + 1, "large"));
    OK(add(state, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller"));
    OK(cuLinkComplete(state, &image, &size));
    OK(cuModuleLoadData(&module, image));
    OK(cuModuleUnload(module));
    OK(cuLinkDestroy(state));
    free(padded);
}

/* A wrong input leaves the state as it was; logs add up. */
static void errors(void)
{
    CUlinkState state = create(), stale = state;
    CUjit_option option = CU_JIT_ERROR_LOG_BUFFER, level = CU_JIT_OPTIMIZATION_LEVEL, fallback = CU_JIT_FALLBACK_STRATEGY;
    CUjit_option unknown = (CUjit_option)1000;
    void *value = error, *nine = (void *)9, *two = (void *)2;
    void *image = (void *)1;
    size_t size, before;
    char head[128] = "\177ELF\2\1\1";

    EXPECT(cuLinkCreate(0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkCreate(1, NULL, NULL, &stale), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkCreate(1, &unknown, &value, &stale), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkCreate(1, &fallback, &two, &stale), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkCreate(1, &level, &nine, &stale), CUDA_ERROR_INVALID_VALUE);

    EXPECT(add(NULL, CU_JIT_INPUT_PTX, callee, sizeof callee, "x"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(add((CUlinkState)values, CU_JIT_INPUT_PTX, callee, sizeof callee, "x"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(add(state, CU_JIT_INPUT_PTX, NULL, 5, "x"), CUDA_ERROR_INVALID_VALUE);
    EXPECT(add(state, CU_JIT_INPUT_PTX, callee, 0, "x"), CUDA_ERROR_INVALID_VALUE);
    EXPECT(add(state, (CUjitInputType)6, callee, sizeof callee, "x"), CUDA_ERROR_INVALID_VALUE);
    EXPECT(add(state, (CUjitInputType)-1, callee, sizeof callee, "x"), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkAddData(state, CU_JIT_INPUT_PTX, callee, sizeof callee, "x", 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkAddData(state, CU_JIT_INPUT_PTX, callee, sizeof callee, "x", 1, &option, &value), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkAddData(state, CU_JIT_INPUT_PTX, callee, SIZE_MAX - 1, "x", 0, NULL, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
    EXPECT(cuLinkAddFile(state, CU_JIT_INPUT_PTX, NULL, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkAddFile(NULL, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);

    EXPECT(add(state, CU_JIT_INPUT_PTX, broken, sizeof broken, "broken one"), CUDA_ERROR_INVALID_PTX);
    TRUE(strstr(error, "broken one:4:") && filled() == strlen(error) + 1);
    before = filled();
    EXPECT(add(state, CU_JIT_INPUT_PTX, newer, sizeof newer, "newer"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    TRUE(strstr(error, "broken one:4:") && strstr(error, "12.0") && filled() == strlen(error) + 1 && filled() > before);
    EXPECT(add(state, CU_JIT_INPUT_PTX, "no ptx", 7, "text"), CUDA_ERROR_INVALID_PTX);
    EXPECT(add(state, CU_JIT_INPUT_PTX, "\xff\xfe\xfd", 4, "bytes"), CUDA_ERROR_INVALID_PTX);
    EXPECT(add(state, CU_JIT_INPUT_CUBIN, "no cubin", 9, "text"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(add(state, CU_JIT_INPUT_FATBINARY, "\x50\xED\x55\xBA", 4, "cut"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(add(state, CU_JIT_INPUT_OBJECT, "no object", 10, "text"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(add(state, CU_JIT_INPUT_OBJECT, head, sizeof head, "host code alone"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(add(state, CU_JIT_INPUT_LIBRARY, "no archive", 11, "text"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(add(state, CU_JIT_INPUT_LIBRARY, "!<arch>\n", 8, "empty archive"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(add(state, CU_JIT_INPUT_NVVM, "BC\xC0\xDE", 4, "bitcode"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    TRUE(strstr(error, "without -dlto"));
    /* A cubin: an ELF file of EM_CUDA with one section, which names them. */
    head[18] = (char)190, head[40] = 64, head[58] = 64, head[60] = 1, head[61] = head[62] = 0;
    EXPECT(add(state, CU_JIT_INPUT_CUBIN, head, sizeof head, "sass"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT(add(state, CU_JIT_INPUT_OBJECT, head, sizeof head, "sass"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    TRUE(strstr(error, "rebuild with PTX"));

    /* Undefined, then defined: a failed link may be completed later. */
    EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_VALUE);
    OK(add(state, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller"));
    EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_UNKNOWN);
    TRUE(image == (void *)1);
    TRUE(strstr(error, "Undefined reference to 'helper' in 'caller'"));
    EXPECT(cuLinkComplete(state, NULL, &size), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLinkComplete(NULL, &image, &size), CUDA_ERROR_INVALID_HANDLE);
    OK(add(state, CU_JIT_INPUT_PTX, callee, sizeof callee, "callee"));
    OK(cuLinkComplete(state, &image, &size));
    OK(cuLinkDestroy(state));
    EXPECT(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLinkDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(add(state, CU_JIT_INPUT_PTX, callee, sizeof callee, "x"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_HANDLE);

    state = create();
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, callee, sizeof callee, "a", 1, &level, &two));
    OK(add(state, CU_JIT_INPUT_PTX, callee, sizeof callee, "b"));
    EXPECT(cuLinkComplete(state, &image, &size), CUDA_ERROR_UNKNOWN);
    TRUE(strstr(error, "Multiple definition of 'helper' in 'a' and 'b'"));
    OK(cuLinkDestroy(state));
}

/* A log stops where its buffer ends. */
static void small_buffer(void)
{
    CUlinkState state;
    char small[20];
    CUjit_option two[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *with[] = {small, (void *)10};

    memset(small, 'x', sizeof small);
    OK(cuLinkCreate(2, two, with, &state));
    EXPECT(add(state, CU_JIT_INPUT_PTX, broken, sizeof broken, "broken one"), CUDA_ERROR_INVALID_PTX);
    EXPECT(add(state, CU_JIT_INPUT_PTX, broken, sizeof broken, "broken one"), CUDA_ERROR_INVALID_PTX);
    TRUE(!strcmp(small, "broken on") && small[10] == 'x' && (size_t)with[1] == 10);
    OK(cuLinkDestroy(state));
}

int main(void)
{
    CUlinkState state;
    CUcontext context;

    EXPECT(cuLinkCreate(0, NULL, NULL, &state), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    EXPECT(cuLinkCreate(0, NULL, NULL, &state), CUDA_ERROR_INVALID_CONTEXT);
    context = start();
    link_two();
    link_one();
    errors();
    small_buffer();
    /* A state outlives its context. */
    state = create();
    OK(add(state, CU_JIT_INPUT_PTX, callee, sizeof callee, "callee"));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuLinkDestroy(state));
    (void)context;
    return 0;
}
