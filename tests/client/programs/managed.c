/* Managed memory: host and device share it; advice, prefetches and their attributes; attaching. */
#include "check.h"

#undef cuMemAdvise                       /* both forms are tried */
#undef cuMemPrefetchAsync

enum { PAGE = 4096 };

static int attribute(CUdeviceptr p, size_t size, CUmem_range_attribute which)
{
    int value[2] = {77, 78};
    OK(cuMemRangeGetAttribute(value, sizeof(int), which, p, size));
    TRUE(value[1] == 78);
    return value[0];
}

static CUmemLocation at(CUmemLocationType type, int id)
{
    CUmemLocation location = {.type = type};
    location.id = id;
    return location;
}

static void sharing(CUstream stream)
{
    CUdeviceptr p, plain, base;
    CUcontext owner, current;
    unsigned char managed = 0;
    unsigned type;
    void *host;
    size_t size;
    void *arguments[] = {&p, &(uint32_t){4}};
    volatile uint32_t *words;
    uint32_t copied[4];

    OK(cuMemAllocManaged(&p, 3 * PAGE + 100, CU_MEM_ATTACH_GLOBAL));
    words = (volatile uint32_t *)(uintptr_t)p;
    for (uint32_t i = 0; i < 4; i++)
        words[i] = 10 * i;
    OK(cuLaunchKernel(kernel("add_one"), 1, 1, 1, 4, 1, 1, 0, stream, arguments, NULL));
    OK(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < 4; i++)
        TRUE(words[i] == 10 * i + 1);

    /* Copies with it on one side are done when a synchronous call returns. */
    OK(cuMemAlloc(&plain, 64));
    OK(cuMemsetD32(plain, 5, 4));
    OK(cuMemcpy(p, plain, 16));
    TRUE(words[0] == 5 && words[3] == 5);
    OK(cuMemsetD32(p, 6, 4));
    TRUE(words[3] == 6);
    OK(cuMemcpyDtoH(copied, p, 16));
    TRUE(copied[2] == 6);
    OK(cuMemFree(plain));

    OK(cuCtxGetCurrent(&current));
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p + 5));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 8));
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    TRUE(managed && type == CU_MEMORYTYPE_DEVICE && host == (void *)(uintptr_t)(p + 8) && owner == current);
    OK(cuMemGetAddressRange(&base, &size, p + 100));
    TRUE(base == p && size == 3 * PAGE + 100);
    EXPECT(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    EXPECT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_HOST));
    OK(cuMemFreeAsync(p, stream));

    EXPECT(cuMemAllocManaged(NULL, 16, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocManaged(&p, 16, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocManaged(&p, 16, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocManaged(&p, 16, CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAllocManaged(&p, (size_t)1 << 50, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
}

static void advice(CUdeviceptr p)
{
    CUmemLocation device = at(CU_MEM_LOCATION_TYPE_DEVICE, 1), host = at(CU_MEM_LOCATION_TYPE_HOST, 123);
    CUmemLocation nowhere = at(CU_MEM_LOCATION_TYPE_NONE, 0);
    int list[3];

    TRUE(attribute(p, 8 * PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    TRUE(attribute(p, 8 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
    TRUE(attribute(p, 1, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_INVALID);

    /* Some pages, then all but one of them again. */
    OK(cuMemAdvise_v2(p + 2 * PAGE, 3 * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, nowhere));
    TRUE(attribute(p + 2 * PAGE, 3 * PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
    TRUE(attribute(p, 3 * PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    TRUE(attribute(p + 4 * PAGE, 2 * PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    OK(cuMemAdvise(p + 3 * PAGE + 8, 1, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 55)); /* the device is not looked at */
    TRUE(attribute(p + 2 * PAGE, 3 * PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    TRUE(attribute(p + 2 * PAGE, PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
    TRUE(attribute(p + 3 * PAGE, PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    TRUE(attribute(p + 4 * PAGE, PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);

    OK(cuMemAdvise_v2(p, 8 * PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    TRUE(attribute(p, 8 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == 1);
    TRUE(attribute(p, 8 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_DEVICE);
    TRUE(attribute(p, 8 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID) == 1);
    OK(cuMemAdvise(p, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    TRUE(attribute(p, PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_CPU);
    TRUE(attribute(p, PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_HOST);
    TRUE(attribute(p, 8 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
    OK(cuMemAdvise_v2(p, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0)));
    TRUE(attribute(p, PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_HOST_NUMA);
    TRUE(attribute(p, PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID) == 0);
    OK(cuMemAdvise_v2(p, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0)));
    TRUE(attribute(p, PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_HOST_NUMA);
    OK(cuMemAdvise_v2(p, 8 * PAGE, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, nowhere));
    TRUE(attribute(p, PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);

    /* Those that use the whole range; what is left of the list is CU_DEVICE_INVALID. */
    OK(cuMemAdvise_v2(p, 8 * PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    OK(cuMemAdvise_v2(p, 4 * PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
    OK(cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 8 * PAGE));
    TRUE(list[0] == 1 && list[1] == CU_DEVICE_INVALID && list[2] == CU_DEVICE_INVALID);
    OK(cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4 * PAGE));
    TRUE(list[0] + list[1] == 1 + CU_DEVICE_CPU && list[2] == CU_DEVICE_INVALID);
    list[1] = 9;
    OK(cuMemRangeGetAttribute(list, sizeof(int), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4 * PAGE));
    TRUE((list[0] == 1 || list[0] == CU_DEVICE_CPU) && list[1] == 9);
    OK(cuMemAdvise(p, PAGE, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 1));
    OK(cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 8 * PAGE));
    TRUE(list[0] == CU_DEVICE_INVALID);

    EXPECT(cuMemAdvise(p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAdvise(p, 9 * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAdvise(p, SIZE_MAX, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAdvise(4096, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAdvise(p, PAGE, (CUmem_advise)9, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAdvise(p, PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, 6), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuMemAdvise(p, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, -5), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuMemAdvise_v2(p, PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0)), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAdvise_v2(p, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 4000)),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAdvise_v2(p, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere), CUDA_ERROR_INVALID_VALUE);
}

static void prefetching(CUdeviceptr p, CUstream stream)
{
    CUmemLocation device = at(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    int type, id, last;
    void *data[] = {&type, &id, &last};
    size_t sizes[] = {4, 4, 4};
    CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE,
                                     CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID,
                                     CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION};
    CUdeviceptr plain;
    CUcontext context;

    TRUE(attribute(p, PAGE, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_INVALID);
    OK(cuMemPrefetchAsync_v2(p, 8 * PAGE, device, 0, stream));
    OK(cuMemRangeGetAttributes(data, sizes, which, 3, p, 8 * PAGE));
    TRUE(type == CU_MEM_LOCATION_TYPE_DEVICE && id == 0 && last == 0);
    OK(cuMemPrefetchAsync(p + PAGE, PAGE, CU_DEVICE_CPU, NULL));
    OK(cuMemRangeGetAttributes(data, sizes, which, 3, p + PAGE, 10));
    TRUE(type == CU_MEM_LOCATION_TYPE_HOST && last == CU_DEVICE_CPU);
    OK(cuMemRangeGetAttributes(data, sizes, which, 3, p, 2 * PAGE));
    TRUE(type == CU_MEM_LOCATION_TYPE_INVALID && last == CU_DEVICE_INVALID);

    EXPECT(cuMemPrefetchAsync(p, 9 * PAGE, 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPrefetchAsync(p, 0, 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPrefetchAsync(p, PAGE, 3, stream), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuMemPrefetchAsync_v2(p, PAGE, device, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPrefetchAsync_v2(p, PAGE, at(CU_MEM_LOCATION_TYPE_INVISIBLE, 0), 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemPrefetchAsync(p, PAGE, 0, (CUstream)0xdead0), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMemAlloc(&plain, PAGE));
    EXPECT(cuMemPrefetchAsync(plain, PAGE, 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRangeGetAttribute(&id, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, plain, PAGE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(plain));
    OK(cuCtxGetCurrent(&context));
    OK(cuCtxSetCurrent(NULL));
    EXPECT(cuMemPrefetchAsync(p, PAGE, 0, NULL), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuMemPrefetchAsync(p, PAGE, 0, stream));
    OK(cuCtxSetCurrent(context));

    EXPECT(cuMemRangeGetAttribute(NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, PAGE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRangeGetAttribute(&id, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, PAGE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRangeGetAttribute(&id, 3, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, PAGE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRangeGetAttribute(&id, 0, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, PAGE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRangeGetAttribute(&id, 4, (CUmem_range_attribute)9, p, PAGE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRangeGetAttributes(data, sizes, which, 0, p, PAGE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRangeGetAttributes(data, NULL, which, 3, p, PAGE), CUDA_ERROR_INVALID_VALUE);
    data[1] = NULL;
    EXPECT(cuMemRangeGetAttributes(data, sizes, which, 3, p, PAGE), CUDA_ERROR_INVALID_VALUE);
}

static void attaching(CUdeviceptr p, CUstream stream)
{
    CUdeviceptr plain;

    OK(cuStreamAttachMemAsync(stream, p, 0, CU_MEM_ATTACH_SINGLE));
    OK(cuStreamAttachMemAsync(stream, p, 8 * PAGE, CU_MEM_ATTACH_HOST));
    OK(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_GLOBAL));
    EXPECT(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamAttachMemAsync(stream, p, PAGE, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamAttachMemAsync(stream, p, 0, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamAttachMemAsync(stream, 4096, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamAttachMemAsync((CUstream)0xdead0, p, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMemAlloc(&plain, PAGE));
    EXPECT(cuStreamAttachMemAsync(stream, plain, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(plain));
}

int main(void)
{
    CUstream stream;
    CUdeviceptr p;
    int value;

    EXPECT(cuMemAllocManaged(&p, 16, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    EXPECT(cuMemAllocManaged(&p, 16, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_CONTEXT);
    start();
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
    TRUE(value == 1);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    TRUE(value == 1);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0));
    TRUE(value == 0);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    sharing(stream);
    OK(cuMemAllocManaged(&p, 8 * PAGE, CU_MEM_ATTACH_GLOBAL));
    TRUE(p % PAGE == 0);
    advice(p);
    prefetching(p, stream);
    attaching(p, stream);
    OK(cuMemFree(p));
    return 0;
}
