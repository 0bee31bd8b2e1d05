/* garbage WHAT: bad input to the entry points; the next valid calls work. */
#include "check.h"
#include <sys/mman.h>

static CUmodule module;
static CUfunction add_one, mixed;
static CUdeviceptr memory;
static CUstream stream;
static CUlibrary library;

static void still_works(void)
{
    uint32_t count = 4, values[4];
    void *arguments[] = {&memory, &count};

    OK(cuMemsetD32(memory, 5, 4));
    OK(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(values, memory, sizeof values));
    TRUE(values[0] == 6 && values[3] == 6);
}

/* Names longer than the ring. */
static void names(void)
{
    size_t length = 9 << 20, size;
    char *name = malloc(length);
    CUfunction function;
    CUdeviceptr address;
    CUkernel kern;

    memset(name, 'a', length - 1);
    name[length - 1] = 0;
    EXPECT(cuModuleGetFunction(&function, module, name), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetGlobal(&address, &size, module, name), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuLibraryGetKernel(&kern, library, name), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuLibraryGetGlobal(&address, &size, library, name), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleLoad(&module, name), CUDA_ERROR_FILE_NOT_FOUND);
    free(name);
}

static void sizes(void)
{
    char here[64], there[64];
    CUDA_MEMCPY2D c = {0};
    int blocks;

    EXPECT(cuMemcpy((CUdeviceptr)here, (CUdeviceptr)there, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy((CUdeviceptr)here, (CUdeviceptr)there, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoH(here, memory, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoDAsync(memory, here, SIZE_MAX - 4096, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D8(memory, 1ull << 32, 1, 4, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D8(memory, SIZE_MAX, 1, 4, 3), CUDA_ERROR_INVALID_VALUE);
    /* Rows whose start comes round to before the image. */
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = here;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = memory;
    c.srcPitch = c.dstPitch = c.WidthInBytes = 8;
    c.Height = 2;
    OK(cuMemcpy2D(&c));
    c.srcY = SIZE_MAX / 8;
    EXPECT(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    c.srcY = 0;
    c.srcXInBytes = SIZE_MAX - 7;
    EXPECT(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    c.srcXInBytes = 0;
    c.srcHost = NULL;
    EXPECT(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add_one, INT32_MAX, SIZE_MAX));
    TRUE(blocks == 0);
}

static void launches(void)
{
    uint32_t count = 4;
    void *arguments[] = {&memory, NULL}, *good[] = {&memory, &count};
    size_t size = SIZE_MAX;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &count, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};

    EXPECT(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    extra[1] = NULL;
    EXPECT(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(add_one, 1, 1, 1, 65536, 65536, 65536, 0, stream, good, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(add_one, -1, -1, -1, 1, 1, 1, 0, stream, good, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, -1, stream, good, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* A copy that ends where memory ends. */
static uint8_t *at_the_end(const void *data, size_t size)
{
    size_t pages = (size + 4095) / 4096 * 4096;
    uint8_t *at = mmap(NULL, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(at + pages, 4096, PROT_NONE);
    return memcpy(at + pages - size, data, size);
}

static void refused(const void *image, size_t size)
{
    CUmodule loaded;
    CUlibrary from;
    FILE *file;

    EXPECT(cuModuleLoadData(&loaded, at_the_end(image, size)), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(cuLibraryLoadData(&from, at_the_end(image, size), NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
    file = fopen("garbage.bin", "w");
    fwrite(image, 1, size, file);
    fclose(file);
    EXPECT(cuLibraryLoadFromFile(&from, "garbage.bin", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
    unlink("garbage.bin");
}

static void put(uint8_t *at, uint64_t value, size_t size)
{
    memcpy(at, &value, size);
}

static void images(void)
{
    uint8_t elf[64] = {0x7F, 'E', 'L', 'F', 2, 1, 1}, fatbin[16] = {0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0};
    uint8_t wrapper[24] = {0xB1, 0x43, 0x62, 0x46, 1};
    uint64_t places[] = {64, 1ull << 36, UINT64_MAX - 63, UINT64_MAX};
    uint64_t lengths[] = {1ull << 33, UINT64_MAX, UINT64_MAX - 15, 100000};
    CUmodule loaded;

    refused(elf, 16);
    for (unsigned i = 0; i < 4; i++) {
        put(elf + 0x28, places[i], 8);   /* ten section headers */
        put(elf + 0x3A, 64, 2);
        put(elf + 0x3C, 10, 2);
        refused(elf, 64);
        put(elf + 0x3C, 0, 2);
        put(elf + 0x20, places[i], 8);   /* one program header */
        put(elf + 0x36, 56, 2);
        put(elf + 0x38, 1, 2);
        refused(elf, 64);
        put(elf + 0x38, 0, 2);
        put(fatbin + 8, lengths[i], 8);
        refused(fatbin, 16);
    }
    refused(fatbin, 8);
    put(wrapper + 8, 0x1000, 8);
    refused(wrapper, 24);
    refused(wrapper, 6);
    put(wrapper + 8, 0, 8);
    refused(wrapper, 24);
    put(wrapper + 4, 9, 4);
    refused(wrapper, 24);
    EXPECT(cuModuleLoad(&loaded, "/dev/null"), CUDA_ERROR_INVALID_IMAGE);
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUmodule loaded;

    /* Nothing works before cuInit, whether it is built or not. */
    EXPECT(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuModuleLoadData(&loaded, ptx), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuDeviceGetLuid(NULL, NULL, 0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    EXPECT(cuModuleLoadData(&loaded, ptx), CUDA_ERROR_INVALID_CONTEXT);
    start();
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&add_one, module, "add_one"));
    OK(cuModuleGetFunction(&mixed, module, "mixed"));
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuMemAlloc(&memory, 4096));
    OK(cuStreamCreate(&stream, 0));
    TRUE(argc == 2);
    if (!strcmp(argv[1], "names"))
        names();
    else if (!strcmp(argv[1], "sizes"))
        sizes();
    else if (!strcmp(argv[1], "launches"))
        launches();
    else
        images();
    still_works();
    return 0;
}
