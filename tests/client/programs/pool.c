/* Memory pools and stream-ordered allocation: results, order, attributes, errors. */
#include "check.h"

static uint64_t wide(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    uint64_t value = 77;
    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static int narrow(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    int value[2] = {77, 78};             /* the second must stay */
    OK(cuMemPoolGetAttribute(pool, attribute, value));
    TRUE(value[1] == 78);
    return value[0];
}

static CUmemPoolProps device_pool(int device, size_t most)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .maxSize = most};
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = device;
    return props;
}

static void check_value(CUdeviceptr p, CUstream stream, uint32_t expected)
{
    uint32_t value = 0;
    OK(cuMemcpyDtoHAsync(&value, p, 4, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(value == expected);
}

static void default_pool(CUstream stream)
{
    CUmemoryPool pool, other, of;
    CUdeviceptr p, q, base;
    CUcontext owner;
    CUmemorytype type;
    size_t size;
    int ordinal;
    uint64_t keep = UINT64_MAX, zero = 0, one = 1;
    void *arguments[] = {&p, &(uint32_t){4}};

    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuDeviceGetMemPool(&other, 0));
    TRUE(pool && pool == other);
    OK(cuDeviceGetDefaultMemPool(&other, 1));
    TRUE(other != pool);
    EXPECT(cuDeviceGetDefaultMemPool(&other, 7), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetDefaultMemPool(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetMemPool(&other, -1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);

    TRUE(wide(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 0);
    TRUE(wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0 && wide(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
    TRUE(narrow(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC) == 1);
    TRUE(narrow(pool, CU_MEMPOOL_ATTR_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_DEVICE);
    TRUE(narrow(pool, CU_MEMPOOL_ATTR_LOCATION_ID) == 0);
    TRUE(narrow(pool, CU_MEMPOOL_ATTR_ALLOCATION_TYPE) == CU_MEM_ALLOCATION_TYPE_PINNED);
    TRUE(narrow(pool, CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES) == CU_MEM_HANDLE_TYPE_NONE);
    TRUE(narrow(pool, CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID) == -1);

    OK(cuMemAllocAsync(&p, 1000, stream));
    OK(cuMemsetD32Async(p, 41, 4, stream));
    OK(cuLaunchKernel(kernel("add_one"), 1, 1, 1, 4, 1, 1, 0, stream, arguments, NULL));
    check_value(p, stream, 42);
    OK(cuMemGetAddressRange(&base, &size, p + 999));
    TRUE(base == p && size == 1000);
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    TRUE(of == pool && type == CU_MEMORYTYPE_DEVICE && ordinal == 0);
    EXPECT(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p), CUDA_ERROR_INVALID_VALUE);
    TRUE(wide(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 1000);
    TRUE(wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 1000);

    /* Freed in the stream's order: behind the fill that is enqueued before. The address is gone at once. */
    OK(cuMemsetD8Async(p, 1, 1000, stream));
    OK(cuMemFreeAsync(p, stream));
    EXPECT(cuMemFreeAsync(p, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD8(p, 0, 4), CUDA_ERROR_INVALID_VALUE);
    TRUE(wide(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0 && wide(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 1000);
    OK(cuStreamSynchronize(stream));     /* beyond the release threshold of 0, all goes */
    TRUE(wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0 && wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 1000);

    /* With a threshold, memory is kept, and the same stream gets it again without waiting. */
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    TRUE(wide(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == UINT64_MAX);
    OK(cuMemAllocAsync(&p, 4096, stream));
    OK(cuMemFreeAsync(p, stream));
    OK(cuMemAllocAsync(&q, 4096, stream));
    TRUE(p == q);
    OK(cuMemFreeAsync(q, stream));
    OK(cuCtxSynchronize());
    TRUE(wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 4096);
    OK(cuMemPoolTrimTo(pool, SIZE_MAX));
    TRUE(wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 4096);
    OK(cuMemPoolTrimTo(pool, 0));
    TRUE(wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
    EXPECT(cuMemPoolTrimTo(NULL, 0), CUDA_ERROR_INVALID_VALUE);

    /* Attributes that only tell, and marks that are only reset. */
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    TRUE(wide(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0 && wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 0);
    EXPECT(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_LOCATION_ID, &zero), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolSetAttribute(pool, (CUmemPool_attribute)99, &zero), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolSetAttribute((CUmemoryPool)0x1234, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)99, &one), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolGetAttribute((CUmemoryPool)stream, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &one), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &(int){0}));
    TRUE(narrow(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) == 0);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &(int){1}));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero));
}

static void allocation_errors(CUstream stream)
{
    CUdeviceptr p = 5;

    EXPECT(cuMemAllocAsync(NULL, 16, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocAsync(&p, 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocAsync(&p, (size_t)1 << 50, stream), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuMemAllocAsync(&p, SIZE_MAX, stream), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuMemAllocAsync(&p, 16, (CUstream)0xdead0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemAllocFromPoolAsync(&p, 16, NULL, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocFromPoolAsync(&p, 16, (CUmemoryPool)stream, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFreeAsync(0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFreeAsync(12345, stream), CUDA_ERROR_INVALID_VALUE);
    TRUE(p == 5);
    OK(cuMemAllocAsync(&p, 512, stream));
    EXPECT(cuMemFreeAsync(p + 256, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFreeAsync(p, (CUstream)0xdead0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemFreeHost((void *)(uintptr_t)p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));                    /* cuMemFree takes it as well */
    EXPECT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

static void no_context(CUstream stream)
{
    CUcontext context;
    CUdeviceptr p;

    OK(cuCtxGetCurrent(&context));
    OK(cuCtxSetCurrent(NULL));
    EXPECT(cuMemAllocAsync(&p, 16, NULL), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuMemAllocAsync(&p, 16, stream)); /* a created stream says which */
    EXPECT(cuMemFreeAsync(p, CU_STREAM_LEGACY), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuMemFreeAsync(p, stream));
    OK(cuCtxSetCurrent(context));
}

static void created_pool(CUstream stream, CUstream other)
{
    CUmemPoolProps props = device_pool(0, 1 << 20);
    CUmemoryPool pool, gone, of, standard;
    CUdeviceptr p, q, r;
    CUfunction nap = kernel("nap");
    int no = 0;

    OK(cuMemPoolCreate(&pool, &props));
    TRUE(wide(pool, CU_MEMPOOL_ATTR_MAX_POOL_SIZE) >= 1 << 20);
    OK(cuMemAllocFromPoolAsync(&p, 1 << 19, pool, stream));
    OK(cuMemAllocFromPoolAsync(&q, 1 << 19, pool, stream));
    EXPECT(cuMemAllocFromPoolAsync(&r, 512, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q + 4));
    TRUE(of == pool);

    /* What `stream` frees behind a long kernel, `other` gets by waiting for it: the fill comes after the nap's end. */
    OK(launch_nap(nap, stream, 200));
    OK(cuMemsetD32Async(q, 1, 1, stream));
    OK(cuMemFreeAsync(q, stream));
    OK(cuMemAllocFromPoolAsync(&r, 1 << 19, pool, other));
    TRUE(r == q);
    EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cuMemsetD32Async(r, 7, 1, other));
    check_value(r, other, 7);
    OK(cuStreamQuery(stream));
    check_value(r, other, 7);

    /* Without that permission, the call waits for the memory itself. */
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
    OK(launch_nap(nap, other, 100));
    OK(cuMemFreeAsync(r, other));
    OK(cuMemAllocFromPoolAsync(&q, 1 << 19, pool, stream));
    OK(cuStreamQuery(other));
    OK(cuMemFreeAsync(q, stream));

    /* Destroyed with an allocation left: that goes on, and is freed as ever. */
    OK(cuDeviceGetDefaultMemPool(&standard, 0));
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuDeviceGetMemPool(&of, 0));
    TRUE(of == pool);
    OK(cuMemAllocAsync(&q, 512, stream));
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
    TRUE(of == pool);
    gone = pool;
    OK(cuMemPoolDestroy(pool));
    OK(cuDeviceGetMemPool(&of, 0));
    TRUE(of == standard);
    EXPECT(cuMemPoolDestroy(gone), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceSetMemPool(0, gone), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocFromPoolAsync(&r, 16, gone, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemsetD32Async(q, 9, 1, stream));
    check_value(q, stream, 9);
    OK(cuMemFreeAsync(q, stream));
    OK(cuMemFreeAsync(p, stream));
    OK(cuStreamSynchronize(stream));

    /* A pool of another device, used by a stream of this one. */
    props = device_pool(1, 0);
    OK(cuMemPoolCreate(&pool, &props));
    EXPECT(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocFromPoolAsync(&p, 64, pool, stream));
    OK(cuPointerGetAttribute(&no, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    TRUE(no == 1);
    OK(cuMemsetD32Async(p, 3, 1, stream));
    check_value(p, stream, 3);
    OK(cuMemFreeAsync(p, stream));
    OK(cuMemPoolDestroy(pool));
}

static void properties(void)
{
    CUmemPoolProps props = device_pool(0, 0);
    CUmemoryPool pool;

    EXPECT(cuMemPoolCreate(NULL, &props), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolCreate(&pool, NULL), CUDA_ERROR_INVALID_VALUE);
    props.location.id = 9;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = device_pool(0, 0);
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = device_pool(0, 0);
    props.reserved[3] = 1;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = device_pool(0, 0);
    props.win32SecurityAttributes = &props;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = device_pool(0, SIZE_MAX);
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = device_pool(0, 0);
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = device_pool(0, 0);
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
    props.location.type = CU_MEM_LOCATION_TYPE_NONE;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    props.maxSize = 4096;
    EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
}

static void access_rights(void)
{
    CUmemPoolProps props = device_pool(0, 0);
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, there = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemAccessDesc map = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags;
    CUmemoryPool pool;

    there.id = 1;
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemPoolGetAccess(&flags, pool, &here));
    TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemPoolGetAccess(&flags, pool, &there));
    TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    map.location = there;
    OK(cuMemPoolSetAccess(pool, &map, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &there));
    TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    map.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(cuMemPoolSetAccess(pool, &map, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &there));
    TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    map.location = here;                 /* a device's own access cannot be taken away */
    EXPECT(cuMemPoolSetAccess(pool, &map, 1), CUDA_ERROR_INVALID_VALUE);
    map.flags = (CUmemAccess_flags)2;
    EXPECT(cuMemPoolSetAccess(pool, &map, 1), CUDA_ERROR_INVALID_VALUE);
    map.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    map.location.id = 5;
    EXPECT(cuMemPoolSetAccess(pool, &map, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolSetAccess(pool, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolGetAccess(&flags, pool, &map.location), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolGetAccess(NULL, pool, &here), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolGetAccess(&flags, NULL, &here), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolDestroy(pool));
    EXPECT(cuMemPoolGetAccess(&flags, pool, &here), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolSetAccess(pool, &map, 1), CUDA_ERROR_INVALID_VALUE);
}

/* Pinned host memory and managed memory from pools: the host reads and writes it at the same address. */
static void host_reaches(CUstream stream, CUmemAllocationType kind, CUmemLocationType where, CUmemorytype expected)
{
    CUmemPoolProps props = {.allocType = kind};
    CUmemLocation location = {.type = where};
    CUmemoryPool pool, again;
    CUmemorytype type;
    CUdeviceptr p;
    unsigned char managed;
    void *host;
    volatile uint32_t *words;

    props.location = location;
    OK(cuMemGetDefaultMemPool(&pool, &location, kind));
    OK(cuMemGetMemPool(&again, &location, kind));
    TRUE(pool == again);
    OK(cuMemPoolCreate(&pool, &props));
    TRUE(narrow(pool, CU_MEMPOOL_ATTR_LOCATION_TYPE) == (int)where && narrow(pool, CU_MEMPOOL_ATTR_ALLOCATION_TYPE) == (int)kind);
    OK(cuMemSetMemPool(&location, kind, pool));
    OK(cuMemGetMemPool(&again, &location, kind));
    TRUE(pool == again);
    OK(cuMemAllocFromPoolAsync(&p, 4096, pool, stream));
    OK(cuMemsetD32Async(p, 99, 4, stream));
    OK(cuStreamSynchronize(stream));
    words = (volatile uint32_t *)(uintptr_t)p;
    TRUE(words[0] == 99 && words[3] == 99);
    words[0] = 1234;
    check_value(p, stream, 1234);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
    TRUE(type == expected && managed == (kind == CU_MEM_ALLOCATION_TYPE_MANAGED) && host == (void *)(uintptr_t)p);
    EXPECT(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(p, stream));
    OK(cuMemPoolDestroy(pool));
    OK(cuMemGetMemPool(&again, &location, kind));
    TRUE(again != pool);
    EXPECT(cuMemSetMemPool(&location, kind, pool), CUDA_ERROR_INVALID_VALUE);
}

static void locations(void)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemoryPool pool, standard;

    OK(cuDeviceGetDefaultMemPool(&standard, 0));
    OK(cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    TRUE(pool == standard);
    OK(cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_MANAGED));
    TRUE(pool != standard);
    EXPECT(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, standard));
    EXPECT(cuMemGetMemPool(&pool, NULL, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_INVALID), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetMemPool(NULL, &location, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_VALUE);
    location.id = 4;
    EXPECT(cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_VALUE);
    location.type = CU_MEM_LOCATION_TYPE_NONE;
    EXPECT(cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_VALUE);
    location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    EXPECT(cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_NOT_SUPPORTED);
}

static void sharing(CUstream stream)
{
    CUmemPoolPtrExportData data = {{0}};
    CUmemoryPool pool;
    CUdeviceptr p, q;
    int descriptor = -1;

    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&p, 64, stream));
    EXPECT(cuMemPoolExportToShareableHandle(&descriptor, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolExportPointer(&data, p), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPoolImportPointer(&q, pool, &data), CUDA_ERROR_INVALID_VALUE);
    TRUE(descriptor == -1);
    OK(cuMemFreeAsync(p, stream));
}

/* Memory of no pool is freed in a stream's order, too. */
static void ordinary_memory(CUstream stream)
{
    size_t before, after, total;
    CUdeviceptr p;
    void *host;

    OK(cuCtxSynchronize());
    OK(cuMemGetInfo(&before, &total));
    OK(cuMemAlloc(&p, 1 << 20));
    OK(launch_nap(kernel("nap"), stream, 50));
    OK(cuMemsetD8Async(p, 1, 1 << 20, stream));
    OK(cuMemFreeAsync(p, stream));
    EXPECT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamSynchronize(stream));
    OK(cuMemGetInfo(&after, &total));
    TRUE(before == after);
    OK(cuMemHostAlloc(&host, 64, 0));
    EXPECT(cuMemFreeAsync((CUdeviceptr)(uintptr_t)host, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(host));
}

/* What a pool keeps is there for others when memory is short. */
static void kept_memory_is_given_back(CUstream stream)
{
    uint64_t keep = UINT64_MAX, zero = 0;
    CUmemoryPool pool;
    CUdeviceptr p;

    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    OK(cuMemAllocAsync(&p, 700 << 20, stream));
    OK(launch_nap(kernel("nap"), stream, 50));
    OK(cuMemFreeAsync(p, stream));
    OK(cuMemAlloc(&p, 800 << 20));
    TRUE(wide(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
    OK(cuMemFree(p));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero));
}

int main(void)
{
    CUstream stream, other;
    CUdeviceptr p;
    int value;

    EXPECT(cuMemAllocAsync(&p, 16, NULL), CUDA_ERROR_NOT_INITIALIZED);
    start();
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    TRUE(value == 1);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
    TRUE(value == 0);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    default_pool(stream);
    default_pool(NULL);
    default_pool(CU_STREAM_PER_THREAD);
    allocation_errors(stream);
    no_context(stream);
    properties();
    created_pool(stream, other);
    access_rights();
    host_reaches(stream, CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST, CU_MEMORYTYPE_HOST);
    host_reaches(stream, CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_NONE, CU_MEMORYTYPE_DEVICE);
    host_reaches(stream, CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_HOST, CU_MEMORYTYPE_DEVICE);
    locations();
    sharing(stream);
    ordinary_memory(stream);
    kept_memory_is_given_back(stream);
    OK(cuStreamDestroy(stream));
    OK(cuStreamDestroy(other));
    return 0;
}
