/* Virtual memory management: addresses, memory, mappings, access. */
#include "check.h"

enum { MIB = 1 << 20, PIECE = 2 * MIB };

static CUmemAllocationProp properties(CUmemLocationType where, int id)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    prop.location.type = where;
    prop.location.id = id;
    return prop;
}

static CUmemAccessDesc access_of(CUmemLocationType where, int id, CUmemAccess_flags flags)
{
    CUmemAccessDesc desc = {.flags = flags};
    desc.location.type = where;
    desc.location.id = id;
    return desc;
}

static void addresses(void)
{
    CUdeviceptr p, q, start;
    unsigned char mapped = 1;
    size_t size;

    OK(cuMemAddressReserve(&p, 4 * PIECE, 0, 0, 0));
    OK(cuMemAddressReserve(&q, 4096, 8 * MIB, 0, 0));
    TRUE(p % PIECE == 0 && q % (8 * MIB) == 0 && (q < p || q >= p + 4 * PIECE));
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p + 5));
    OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + PIECE));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + PIECE));
    TRUE(!mapped && start == p && size == 4 * PIECE);
    EXPECT(cuMemsetD8(p, 1, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressFree(p, PIECE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressFree(p + PIECE, 3 * PIECE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(p, 4 * PIECE));
    EXPECT(cuMemAddressFree(p, 4 * PIECE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(q, 4096));

    EXPECT(cuMemAddressReserve(NULL, PIECE, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressReserve(&p, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressReserve(&p, 1000, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressReserve(&p, PIECE, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressReserve(&p, PIECE, 0, 5, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressReserve(&p, PIECE, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressReserve(&p, (size_t)1 << 50, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void memory(void)
{
    CUmemAllocationProp prop = properties(CU_MEM_LOCATION_TYPE_DEVICE, 0), got;
    CUmemGenericAllocationHandle handle, other;
    size_t granularity = 0, before, after, total;
    int descriptor = -1;

    OK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    TRUE(granularity && PIECE % granularity == 0);
    OK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    EXPECT(cuMemGetAllocationGranularity(NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetAllocationGranularity(&granularity, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetAllocationGranularity(&granularity, &prop, (CUmemAllocationGranularity_flags)2), CUDA_ERROR_INVALID_VALUE);

    OK(cuMemGetInfo(&before, &total));
    prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC; /* a wish, and the answer says that it is not granted */
    OK(cuMemCreate(&handle, PIECE, &prop, 0));
    OK(cuMemGetInfo(&after, &total));
    TRUE(before - after == PIECE);
    OK(cuMemGetAllocationPropertiesFromHandle(&got, handle));
    TRUE(got.type == CU_MEM_ALLOCATION_TYPE_PINNED && got.location.type == CU_MEM_LOCATION_TYPE_DEVICE && got.location.id == 0);
    TRUE(got.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_NONE);
    EXPECT(cuMemGetAllocationPropertiesFromHandle(NULL, handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetAllocationPropertiesFromHandle(&got, 1234), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemImportFromShareableHandle(&other, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuMemImportFromShareableHandle(&other, NULL, CU_MEM_HANDLE_TYPE_NONE), CUDA_ERROR_INVALID_VALUE);
    TRUE(descriptor == -1);
    OK(cuMemRelease(handle));
    EXPECT(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetAllocationPropertiesFromHandle(&got, handle), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetInfo(&after, &total));
    TRUE(before == after);

    prop = properties(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    EXPECT(cuMemCreate(NULL, PIECE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemCreate(&handle, PIECE, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemCreate(&handle, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemCreate(&handle, PIECE, &prop, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemCreate(&handle, (size_t)1 << 50, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    prop.location.id = 5;
    EXPECT(cuMemCreate(&handle, PIECE, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_ERROR_INVALID_VALUE);
    prop = properties(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0);
    EXPECT(cuMemCreate(&handle, PIECE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop = properties(CU_MEM_LOCATION_TYPE_HOST, 0);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT(cuMemCreate(&handle, PIECE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop = properties(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT(cuMemCreate(&handle, PIECE, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
    prop.requestedHandleTypes = 0;
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    EXPECT(cuMemCreate(&handle, PIECE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Two pieces of memory, one behind the other, used as one; then the second one moved elsewhere with what is in it. */
static void mapping(void)
{
    CUmemAllocationProp prop = properties(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemAccessDesc own = access_of(CU_MEM_LOCATION_TYPE_DEVICE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemAccessDesc both[] = {own, access_of(CU_MEM_LOCATION_TYPE_DEVICE, 1, CU_MEM_ACCESS_FLAGS_PROT_READ)};
    CUmemGenericAllocationHandle first, second, kept;
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUdeviceptr p, q, start, middle;
    unsigned long long flags;
    CUstream stream;
    uint32_t words[8];
    size_t size, before, after, total;
    int ordinal;
    void *arguments[] = {&middle, &(uint32_t){8}};

    kernel("nap");                       /* its module has memory as well */
    OK(cuMemGetInfo(&before, &total));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAddressReserve(&p, 4 * PIECE, 0, 0, 0));
    OK(cuMemAddressReserve(&q, PIECE, 0, 0, 0));
    OK(cuMemCreate(&first, PIECE, &prop, 0));
    OK(cuMemCreate(&second, PIECE, &prop, 0));
    OK(cuMemMap(p, PIECE, 0, first, 0));
    EXPECT(cuMemMap(p, PIECE, 0, second, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemMap(p + 1, PIECE, 0, second, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemMap(p + PIECE, 2 * PIECE, 0, second, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemMap(p + PIECE, 0, 0, second, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemMap(p + PIECE, PIECE, PIECE, second, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemMap(p + PIECE, PIECE, 0, second, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemMap(p + PIECE, PIECE, 0, 4321, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemMap(q > p ? q + PIECE : p + 4 * PIECE, PIECE, 0, second, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(p + PIECE, PIECE, 0, second, 0));

    /* Mapped is not yet accessible. */
    OK(cuMemGetAccess(&flags, &device, p));
    TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    EXPECT(cuMemsetD8(p, 1, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemSetAccess(p, 3 * PIECE, &own, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemSetAccess(p, PIECE / 2, &own, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemSetAccess(p, PIECE, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemSetAccess(p, PIECE, &own, 0), CUDA_ERROR_INVALID_VALUE);
    both[1].location.id = 8;
    EXPECT(cuMemSetAccess(p, PIECE, both, 2), CUDA_ERROR_INVALID_DEVICE);
    both[1].location.type = CU_MEM_LOCATION_TYPE_HOST;
    EXPECT(cuMemSetAccess(p, PIECE, both, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetAccess(&flags, &device, p));
    TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE); /* all or nothing */
    both[1] = access_of(CU_MEM_LOCATION_TYPE_DEVICE, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
    OK(cuMemSetAccess(p, 2 * PIECE, both, 2));
    OK(cuMemGetAccess(&flags, &device, p + PIECE + 7));
    TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    device.id = 1;
    OK(cuMemGetAccess(&flags, &device, p));
    TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
    EXPECT(cuMemGetAccess(&flags, &device, p + 2 * PIECE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetAccess(&flags, NULL, p), CUDA_ERROR_INVALID_VALUE);
    device.id = 7;
    EXPECT(cuMemGetAccess(&flags, &device, p), CUDA_ERROR_INVALID_DEVICE);

    /* Fills, kernels and copies go across the seam. */
    middle = p + PIECE - 16;
    OK(cuMemsetD32Async(middle, 50, 8, stream));
    OK(cuLaunchKernel(kernel("add_one"), 1, 1, 1, 8, 1, 1, 0, stream, arguments, NULL));
    OK(cuMemcpyDtoHAsync(words, middle, 32, stream));
    OK(cuStreamSynchronize(stream));
    for (int i = 0; i < 8; i++)
        TRUE(words[i] == 51);
    words[7] = 77;
    OK(cuMemcpyHtoD(middle, words, 32));
    EXPECT(cuMemsetD8(p, 0, 2 * PIECE + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFreeAsync(p, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetAddressRange(&start, &size, p + PIECE + 9));
    TRUE(start == p + PIECE && size == PIECE);
    OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + PIECE + 9));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + PIECE + 9));
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    TRUE(start == p && size == 4 * PIECE && ordinal == 0);

    /* A released handle's memory stays while it is mapped, and its handle can be had again. */
    OK(cuMemRelease(first));
    OK(cuMemRelease(second));
    EXPECT(cuMemRelease(second), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRetainAllocationHandle(&kept, (void *)(uintptr_t)q), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRetainAllocationHandle(NULL, (void *)(uintptr_t)p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRetainAllocationHandle(&kept, (void *)(uintptr_t)(p + PIECE + 100)));
    TRUE(kept == second);

    EXPECT(cuMemAddressFree(p, 4 * PIECE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemUnmap(p + 4096, PIECE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemUnmap(p, PIECE / 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemUnmap(p, 3 * PIECE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemUnmap(p, 0), CUDA_ERROR_INVALID_VALUE);
    OK(launch_nap(kernel("nap"), stream, 50));
    OK(cuMemsetD32Async(p + 2 * PIECE - 4, 99, 1, stream));
    OK(cuMemUnmap(p, 2 * PIECE));        /* waits for the fill */
    EXPECT(cuMemUnmap(p, 2 * PIECE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoH(words, p, 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(q, PIECE, 0, kept, 0));
    OK(cuMemSetAccess(q, PIECE, &own, 1));
    OK(cuMemcpyDtoH(words, q, 16));
    TRUE(words[0] == 51 && words[3] == 77);
    OK(cuMemcpyDtoH(words, q + PIECE - 4, 4));
    TRUE(words[0] == 99);

    /* The same memory at two addresses. */
    OK(cuMemMap(p, PIECE, 0, kept, 0));
    OK(cuMemSetAccess(p, PIECE, &own, 1));
    OK(cuMemsetD32(p + 64, 4711, 1));
    OK(cuMemcpyDtoH(words, q + 64, 4));
    TRUE(words[0] == 4711);
    own.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(cuMemSetAccess(p, PIECE, &own, 1));
    EXPECT(cuMemsetD32(p + 64, 1, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(kept));
    OK(cuMemUnmap(p, PIECE));
    OK(cuMemUnmap(q, PIECE));
    OK(cuMemAddressFree(p, 4 * PIECE));
    OK(cuMemAddressFree(q, PIECE));
    OK(cuStreamDestroy(stream));
    OK(cuMemGetInfo(&after, &total));
    TRUE(before == after);

    /* Where addresses were reserved there is ordinary memory again. */
    OK(cuMemAlloc(&p, 64 * MIB));
    OK(cuMemsetD8(p, 3, 64 * MIB));
    OK(cuMemcpyDtoH(words, p + 64 * MIB - 4, 4));
    TRUE(words[0] == 0x03030303);
    OK(cuMemFree(p));
}

static void host_memory(void)
{
    CUmemAllocationProp prop = properties(CU_MEM_LOCATION_TYPE_HOST, 0);
    CUmemAccessDesc both[] = {access_of(CU_MEM_LOCATION_TYPE_DEVICE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                              access_of(CU_MEM_LOCATION_TYPE_HOST, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    volatile uint32_t *words;
    unsigned type;
    void *arguments[] = {&p, &(uint32_t){2}};

    OK(cuMemAddressReserve(&p, PIECE, 0, 0, 0));
    OK(cuMemCreate(&handle, PIECE, &prop, 0));
    OK(cuMemMap(p, PIECE, 0, handle, 0));
    OK(cuMemSetAccess(p, PIECE, both, 2));
    words = (volatile uint32_t *)(uintptr_t)p;
    words[0] = 5;
    words[1] = 6;
    OK(cuLaunchKernel(kernel("add_one"), 1, 1, 1, 2, 1, 1, 0, NULL, arguments, NULL));
    OK(cuCtxSynchronize());
    TRUE(words[0] == 6 && words[1] == 7);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    TRUE(type == CU_MEMORYTYPE_HOST);
    OK(cuMemUnmap(p, PIECE));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(p, PIECE));
}

int main(void)
{
    CUdeviceptr p;
    int value;

    EXPECT(cuMemAddressReserve(&p, PIECE, 0, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
    start();
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    TRUE(value == 1);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
    TRUE(value == 0);
    addresses();
    memory();
    mapping();
    host_memory();
    return 0;
}
