/* Modules and libraries beyond loading one text: relocatable device code, no context, managed variables, references,
   unloading under work in flight. */
#include "check.h"

#define HEAD ".version 7.8\n.target sm_75\n.address_size 64\n"

static const char first[] = HEAD ".extern .func helper();\n.visible .entry scale(.param .u64 a, .param .u32 f, .param .u32 s) "
                                 "{ call helper; ret; }\n";
static const char second[] = HEAD ".visible .global .u32 word = 5;\n.visible .func helper() { ret; }\n"
                                  ".visible .entry shape(.param .u64 a) { ret; }\n";
static const char special[] =
    HEAD ".visible .global .attribute(.managed) .align 8 .u64 managed = 9;\n.visible .global .u32 plain = 1;\n"
         ".global .texref tex;\n.global .surfref surf;\n.visible .entry shape(.param .u64 a) { ret; }\n";
static const char broken[] = HEAD ".visible .entry scale( { ret; }\n";

/* A fat binary with one PTX text: as nvcc lays it out. */
struct fatbin {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
    uint16_t kind, unknown;
    uint32_t entry_header;
    uint64_t payload;
    uint32_t compressed, options;
    uint16_t minor, major;
    uint32_t sm, name_at, name_size;
    uint64_t flags, unused[2];
    char text[1024];
};

static void fill(struct fatbin *fatbin, const char *text)
{
    size_t stored = (strlen(text) + 8) / 8 * 8;
    *fatbin = (struct fatbin){.magic = 0xBA55ED50, .version = 1, .header_size = 16, .size = 64 + stored, .kind = 1,
                              .unknown = 1, .entry_header = 64, .payload = stored, .major = 8, .sm = 75};
    strcpy(fatbin->text, text);
}

struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *fatbins;
};

static void relocatable(void)
{
    static struct fatbin one, two;
    const void *list[] = {&one, &two, NULL}, *alone[] = {&one, NULL}, *none[] = {NULL}, *wild[] = {&one, (void *)8, NULL};
    struct wrapper wrapper = {0x466243B1, 2, &one, list};
    CUmodule module;
    CUlibrary library;
    CUdeviceptr address;
    size_t size;
    unsigned count;

    fill(&one, first);
    fill(&two, second);
    OK(cuModuleLoadFatBinary(&module, &wrapper));
    OK(cuModuleGetFunctionCount(&count, module));
    TRUE(count == 2);
    OK(cuModuleGetGlobal(&address, &size, module, "word"));
    OK(cuModuleUnload(module));
    OK(cuLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernelCount(&count, library));
    TRUE(count == 2);
    OK(cuLibraryUnload(library));

    wrapper.fatbins = alone;             /* the other half is missing */
    OK(cuModuleLoadData(&module, &wrapper));
    OK(cuModuleUnload(module));
    list[1] = &one;
    wrapper.fatbins = list;              /* scale twice, and no helper */
    EXPECT(cuModuleLoadData(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
    wrapper.fatbins = none;
    EXPECT(cuModuleLoadData(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
    wrapper.fatbins = wild;
    EXPECT(cuModuleLoadData(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
    wrapper.fatbins = NULL;
    EXPECT(cuModuleLoadData(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
    wrapper.fatbins = (const void *const *)16;
    EXPECT(cuLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
    wrapper.version = 3;
    EXPECT(cuModuleLoadData(&module, &wrapper), CUDA_ERROR_INVALID_IMAGE);
    wrapper = (struct wrapper){0x466243B1, 1, &two, NULL};
    OK(cuModuleLoadFatBinary(&module, &wrapper));
    OK(cuModuleUnload(module));
}

/* Libraries know their kernels before there is a context. */
static void without_context(void)
{
    CUlibrary library, bad;
    CUkernel kernels[8], found;
    const char *name;
    unsigned count;
    char error[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {error, (void *)sizeof error};

    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernelCount(&count, library));
    TRUE(count == 9);
    memset(kernels, 0, sizeof kernels);
    OK(cuLibraryEnumerateKernels(kernels, 2, library));
    TRUE(kernels[0] && kernels[1] && !kernels[2]);
    OK(cuKernelGetName(&name, kernels[1]));
    TRUE(!strcmp(name, "scale"));
    OK(cuLibraryGetKernel(&found, library, "add_one"));
    TRUE(found == kernels[0]);
    EXPECT(cuLibraryGetKernel(&found, library, "nobody"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuLibraryGetKernel(&found, library, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLibraryEnumerateKernels(NULL, 2, library), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLibraryGetKernelCount(&count, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLibraryLoadData(&bad, broken, options, values, 2, NULL, NULL, 0), CUDA_ERROR_INVALID_PTX);
    TRUE(strstr(error, ":4:") && (size_t)values[1] == strlen(error) + 1);
    EXPECT(cuLibraryLoadData(&bad, "no image", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(cuLibraryLoadData(&bad, NULL, NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLibraryLoadFromFile(&bad, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_FILE_NOT_FOUND);
    OK(cuLibraryUnload(library));
    EXPECT(cuKernelGetName(&name, found), CUDA_ERROR_INVALID_HANDLE);
}

static void names(void)
{
    CUlibrary library;
    CUmodule module;
    CUdeviceptr address = 0, global;
    CUtexref texture;
    CUsurfref surface;
    void *function;
    size_t size = 0;
    uint64_t value = 0;

    OK(cuLibraryLoadData(&library, special, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetManaged(&address, &size, library, "managed"));
    TRUE(size == 8);
    OK(cuMemcpyDtoH(&value, address, 8));
    TRUE(value == 9);
    OK(cuLibraryGetGlobal(&global, NULL, library, "managed"));
    TRUE(global == address);
    TRUE(*(volatile uint64_t *)address == 9); /* the host reads it as well */
    OK(cuLibraryGetManaged(NULL, &size, library, "managed"));
    EXPECT(cuLibraryGetManaged(&address, &size, library, "plain"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuLibraryGetManaged(&address, &size, library, "nothing"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuLibraryGetManaged(NULL, NULL, library, "managed"), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLibraryGetManaged(&address, &size, library, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLibraryGetManaged(&address, &size, NULL, "managed"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLibraryGetUnifiedFunction(&function, library, "shape"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuLibraryGetUnifiedFunction(&function, NULL, "shape"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLibraryGetUnifiedFunction(&function, library, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLibraryGetUnifiedFunction(NULL, library, "shape"), CUDA_ERROR_INVALID_VALUE);

    OK(cuLibraryGetModule(&module, library));
    EXPECT(cuModuleGetTexRef(&texture, module, "plain"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetTexRef(&texture, module, "surf"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetTexRef(&texture, module, "tex"), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuModuleGetTexRef(&texture, module, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuModuleGetTexRef(NULL, module, "tex"), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuModuleGetTexRef(&texture, NULL, "tex"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuModuleGetSurfRef(&surface, module, "tex"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetSurfRef(&surface, module, "surf"), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuModuleGetSurfRef(&surface, module, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryUnload(library));
}

/* What runs goes on; what is asked of the module afterwards is refused. */
static void in_flight(void)
{
    CUmodule module;
    CUlibrary library;
    CUfunction nap, shape;
    CUkernel kern;
    CUstream stream;
    CUdeviceptr out;
    uint32_t extents[6] = {0};
    void *arguments[] = {&out};

    OK(cuMemAlloc(&out, 64));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&nap, module, "nap"));
    OK(cuModuleGetFunction(&shape, module, "shape"));
    OK(launch_nap(nap, stream, 100));
    OK(cuLaunchKernel(shape, 7, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
    OK(cuModuleUnload(module));
    EXPECT(cuLaunchKernel(shape, 8, 1, 1, 1, 1, 1, 0, stream, arguments, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(extents, out, sizeof extents));
    TRUE(extents[0] == 7);

    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kern, library, "nap"));
    OK(launch_nap((CUfunction)kern, stream, 100));
    OK(cuLibraryGetKernel(&kern, library, "shape"));
    OK(cuLaunchKernel((CUfunction)kern, 9, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
    OK(cuLibraryUnload(library));
    EXPECT(cuLaunchKernel((CUfunction)kern, 8, 1, 1, 1, 1, 1, 0, stream, arguments, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(extents, out, sizeof extents));
    TRUE(extents[0] == 9);
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(out));
}

int main(void)
{
    OK(cuInit(0));
    without_context();
    start();
    relocatable();
    names();
    in_flight();
    return 0;
}
