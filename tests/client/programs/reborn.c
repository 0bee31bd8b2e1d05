/* The driver process ends with pools, managed and virtual memory in use: after a reset all of it is gone, and new works. */
#include "check.h"

int main(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAllocationProp physical = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUmemoryPool pool, standard, again;
    CUdeviceptr from_pool, managed, reserved;
    uint32_t word;
    char registered[64];

    start();
    kernel("leave");
    props.location.type = physical.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    OK(cuDeviceGetDefaultMemPool(&standard, 0));
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuMemAllocAsync(&from_pool, 1000, NULL));
    OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAddressReserve(&reserved, 2 << 20, 0, 0, 0));
    OK(cuMemCreate(&handle, 2 << 20, &physical, 0));
    OK(cuMemMap(reserved, 2 << 20, 0, handle, 0));
    OK(cuMemSetAccess(reserved, 2 << 20, &access, 1));
    OK(cuMemHostRegister(registered, sizeof registered, 0));
    OK(cuLaunchKernel(kernel("leave"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT(cuMemAllocAsync(&from_pool, 16, NULL), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT(cuMemAddressReserve(&reserved, 2 << 20, 0, 0, 0), CUDA_ERROR_LAUNCH_FAILED);

    OK(cuDevicePrimaryCtxReset(0));
    EXPECT(cuMemFreeAsync(from_pool, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(managed), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemUnmap(reserved, 2 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAddressFree(reserved, 2 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemHostUnregister(registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetMemPool(&again, 0));
    TRUE(again == standard);
    OK(cuMemAllocAsync(&from_pool, 1000, NULL));
    OK(cuMemsetD32Async(from_pool, 8, 4, NULL));
    OK(cuMemcpyDtoH(&word, from_pool, 4));
    TRUE(word == 8);
    OK(cuMemFreeAsync(from_pool, NULL));
    OK(cuMemAddressReserve(&reserved, 2 << 20, 0, 0, 0));
    OK(cuMemCreate(&handle, 2 << 20, &physical, 0));
    OK(cuMemMap(reserved, 2 << 20, 0, handle, 0));
    OK(cuMemSetAccess(reserved, 2 << 20, &access, 1));
    OK(cuMemsetD32(reserved, 9, 4));
    OK(cuMemcpyDtoH(&word, reserved, 4));
    TRUE(word == 9);
    OK(cuMemUnmap(reserved, 2 << 20));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(reserved, 2 << 20));
    return 0;
}
