/* Registered host memory; attributes of its pointers, and of others that can be set. */
#include "check.h"

#include <sys/mman.h>

enum { SIZE = 1 << 16 };

int main(void)
{
    CUcontext context = start(), owner;
    char *memory = malloc(SIZE), *gone;
    CUdeviceptr p, q, device;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type = 0, flags, on = 1, off = 0;
    int ordinal, value;
    void *data[] = {&type, &ordinal}, *host, *pinned;
    unsigned char truth;
    uint32_t word;

    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0));
    TRUE(value == 1);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0));
    TRUE(value == 0);
    OK(cuMemHostRegister(memory, SIZE, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    EXPECT(cuMemHostRegister(memory, SIZE, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT(cuMemHostRegister(memory + 100, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT(cuMemHostRegister(memory + SIZE - 1, 2, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);

    /* Copies work as ever. */
    for (int i = 0; i < SIZE; i++)
        memory[i] = (char)(i * 5);
    OK(cuMemAlloc(&p, SIZE));
    OK(cuMemcpyHtoDAsync(p, memory, SIZE, NULL));
    memset(memory, 0, SIZE);
    OK(cuMemcpyDtoHAsync(memory, p, SIZE, NULL));
    OK(cuStreamSynchronize(NULL));
    for (int i = 0; i < SIZE; i++)
        TRUE(memory[i] == (char)(i * 5));

    /* What it is, and that kernels and fills do not reach it. */
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)(memory + 5)));
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)(uintptr_t)memory));
    OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)(uintptr_t)(memory + 5)));
    OK(cuPointerGetAttribute(&truth, CU_POINTER_ATTRIBUTE_MAPPED, (CUdeviceptr)(uintptr_t)memory));
    TRUE(type == CU_MEMORYTYPE_HOST && owner == context && host == memory + 5 && !truth);
    OK(cuPointerGetAttributes(2, which, data, (CUdeviceptr)(uintptr_t)memory));
    TRUE(type == CU_MEMORYTYPE_HOST && ordinal == 0);
    EXPECT(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)(uintptr_t)memory), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemHostGetDevicePointer(&device, memory, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemHostGetFlags(&flags, memory), CUDA_ERROR_INVALID_VALUE); /* only of what cuMemHostAlloc gave */
    EXPECT(cuMemGetAddressRange(&device, NULL, (CUdeviceptr)(uintptr_t)memory), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuMemsetD8((CUdeviceptr)(uintptr_t)memory, 0, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);

    EXPECT(cuMemHostUnregister(memory + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostUnregister(memory));
    EXPECT(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT(cuMemHostUnregister(NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostRegister(memory, 100, 0));
    OK(cuMemHostRegister(memory + 100, 100, 0)); /* a neighbour */
    OK(cuMemHostUnregister(memory + 100));
    OK(cuMemHostUnregister(memory));

    EXPECT(cuMemHostRegister(NULL, 16, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemHostRegister(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemHostRegister(memory, SIZE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemHostRegister(memory, 16, 0x80), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemHostRegister(memory, 16, CU_MEMHOSTREGISTER_IOMEMORY), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuMemHostRegister(memory, 16, CU_MEMHOSTREGISTER_READ_ONLY), CUDA_ERROR_NOT_SUPPORTED);
    gone = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone + SIZE / 2, SIZE / 2);
    EXPECT(cuMemHostRegister(gone, SIZE, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostAlloc(&pinned, 64, 0));
    EXPECT(cuMemHostRegister(pinned, 16, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT(cuMemHostUnregister(pinned), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemFreeHost(pinned));

    /* Synchronous operations that always synchronize. */
    OK(cuMemAlloc(&q, 64));
    OK(cuPointerGetAttribute(&truth, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q));
    TRUE(!truth);
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q + 3));
    OK(cuPointerGetAttribute(&truth, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q));
    TRUE(truth);
    {
        CUstream stream;
        OK(cuStreamCreate(&stream, 0));
        OK(launch_nap(kernel("nap"), stream, 100));
        OK(cuMemsetD32(q, 17, 1));       /* behind the nap; done when it returns */
        OK(cuStreamQuery(stream));
        OK(cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q));
        OK(launch_nap(kernel("nap"), stream, 100));
        OK(cuMemsetD32(q, 18, 1));
        EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q)); /* waits for the fill */
        OK(cuStreamQuery(stream));
    }
    OK(cuMemcpyDtoH(&word, q, 4));
    TRUE(word == 18);
    EXPECT(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_IS_MANAGED, q), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4096), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuPointerSetAttribute(&(unsigned){2}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q), CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL, q));
    OK(cuPointerGetAttribute(&truth, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, q));
    TRUE(value == -1 && !truth);

    /* No dma_buf: refused after its arguments are checked. */
    EXPECT(cuMemGetHandleForAddressRange(&value, q, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(q));
    OK(cuMemAlloc(&q, 32 << 20));        /* as large as this it starts at a page */
    EXPECT(cuMemGetHandleForAddressRange(&value, q, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuMemGetHandleForAddressRange(&value, q, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetHandleForAddressRange(&value, q, 4096, (CUmemRangeHandleType)5, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetHandleForAddressRange(&value, q, 0, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetHandleForAddressRange(&value, q, 64 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemGetHandleForAddressRange(NULL, q, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(q));
    OK(cuMemFree(p));
    OK(cuCtxSetCurrent(NULL));
    EXPECT(cuMemHostRegister(memory, 16, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p), CUDA_ERROR_INVALID_VALUE);
    free(memory);
    return 0;
}
