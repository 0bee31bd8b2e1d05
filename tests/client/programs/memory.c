/* Memory, copies, fills, and what a pointer is. */
#include "check.h"

static unsigned char host[1 << 16], back[1 << 16];

static void fills(CUdeviceptr p)
{
    uint16_t *h16 = (uint16_t *)back;
    uint32_t *h32 = (uint32_t *)back;

    OK(cuMemsetD8(p, 0xAB, 100));
    OK(cuMemsetD16(p + 2, 0x1234, 10));
    OK(cuMemsetD32(p + 40, 0xDEADBEEF, 3));
    OK(cuMemcpyDtoH(back, p, 100));
    TRUE(back[0] == 0xAB && back[1] == 0xAB && h16[1] == 0x1234 && h16[10] == 0x1234 && back[22] == 0xAB);
    TRUE(h32[10] == 0xDEADBEEF && h32[12] == 0xDEADBEEF && back[52] == 0xAB);
    EXPECT(cuMemsetD16(p + 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD32(p + 2, 0, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD8(p, 0, 1 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD32(p, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemsetD8(p, 1, 0));
    /* Two dimensions: 3 rows of 4 bytes, 16 apart. */
    OK(cuMemsetD8(p, 0, 64));
    OK(cuMemsetD2D8(p, 16, 7, 4, 3));
    OK(cuMemsetD2D32Async(p + 8, 16, 0x01010101, 1, 2, NULL));
    OK(cuMemcpyDtoH(back, p, 64));
    for (int i = 0; i < 64; i++)
        TRUE(back[i] == (i / 16 < 3 && i % 16 < 4 ? 7 : i / 16 < 2 && i % 16 >= 8 && i % 16 < 12 ? 1 : 0));
    EXPECT(cuMemsetD2D8(p, 2, 7, 4, 3), CUDA_ERROR_INVALID_VALUE);
}

static void copies(CUdeviceptr p, CUdeviceptr q)
{
    unsigned char *pinned;
    CUDA_MEMCPY2D c = {0};

    OK(cuMemcpyHtoD(p, host, sizeof host));
    OK(cuMemcpyDtoD(q, p, sizeof host));
    OK(cuMemcpyDtoH(back, q, sizeof back));
    TRUE(!memcmp(host, back, sizeof host));
    OK(cuMemcpyHtoD(p + 100, host, 0));
    EXPECT(cuMemcpyHtoD(p, host, (size_t)1 << 40), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoD(p + 1, host, sizeof host), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoD(p, NULL, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoH(back, 0x1234, 4), CUDA_ERROR_INVALID_VALUE);

    /* Either side by address alone; also host to host. */
    memset(back, 0, sizeof back);
    OK(cuMemcpy(q, (CUdeviceptr)(uintptr_t)host, 1000));
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, q, 500));
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)(back + 500), (CUdeviceptr)(uintptr_t)(host + 500), 500));
    TRUE(!memcmp(host, back, 1000));

    /* Asynchronous: ordinary memory small and large, pinned memory. */
    OK(cuMemHostAlloc((void **)&pinned, sizeof host, CU_MEMHOSTALLOC_PORTABLE));
    OK(cuMemsetD8Async(p, 0, sizeof host, NULL));
    OK(cuMemcpyHtoDAsync(p, host, 300, NULL));
    memset(back, 0, sizeof back);
    OK(cuMemcpyDtoHAsync(back, p, 301, NULL));
    OK(cuStreamSynchronize(NULL));
    TRUE(!memcmp(host, back, 300) && back[300] == 0);
    memcpy(pinned, host, sizeof host);
    OK(cuMemcpyHtoDAsync(p, pinned, sizeof host, NULL));
    OK(cuMemcpyDtoDAsync(q, p, sizeof host, NULL));
    OK(cuMemsetD8Async(p, 9, sizeof host, NULL));
    OK(cuMemcpyDtoHAsync(pinned, p, 16, NULL));
    OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)(pinned + 16), q + 16, 16, NULL));
    OK(cuCtxSynchronize());
    TRUE(pinned[0] == 9 && pinned[15] == 9 && !memcmp(pinned + 16, host + 16, 16));
    EXPECT(cuMemFree((CUdeviceptr)(uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(pinned));
    EXPECT(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);

    /* Two dimensions: 5 columns and 3 rows from (2, 1) of a host image 100 wide to (4, 2) of a device one 64 wide. */
    OK(cuMemsetD8(q, 0, 64 * 8));
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = host;
    c.srcPitch = 100;
    c.srcXInBytes = 2;
    c.srcY = 1;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = q;
    c.dstPitch = 64;
    c.dstXInBytes = 4;
    c.dstY = 2;
    c.WidthInBytes = 5;
    c.Height = 3;
    OK(cuMemcpy2D(&c));
    OK(cuMemcpyDtoH(back, q, 64 * 8));
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 64; x++) {
            int inside = x >= 4 && x < 9 && y >= 2 && y < 5;
            TRUE(back[y * 64 + x] == (inside ? host[(y - 1) * 100 + x - 2] : 0));
        }
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = q;
    c.srcPitch = 64;
    c.srcXInBytes = 4;
    c.srcY = 2;
    c.dstDevice = p;
    c.dstXInBytes = c.dstY = 0;
    OK(cuMemcpy2DAsync(&c, NULL));
    OK(cuMemcpyDtoH(back, p, 64 * 3));
    for (int y = 0; y < 3; y++)
        TRUE(!memcmp(back + y * 64, host + (y + 1) * 100 + 2, 5));
    c.dstPitch = 4;
    EXPECT(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    c.dstPitch = 64;
    c.Height = 1 << 20;
    EXPECT(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
    c.Height = 0;
    OK(cuMemcpy2D(&c));
    EXPECT(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void pointers(CUcontext context, CUdeviceptr p)
{
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    CUdeviceptr base, device;
    CUcontext owner;
    size_t size;
    void *pinned;
    unsigned type = 0, flags;
    int ordinal = 5;
    void *data[] = {&type, &ordinal};
    unsigned char managed = 1;

    OK(cuMemGetAddressRange(&base, &size, p + 77));
    TRUE(base == p && size == sizeof host);
    OK(cuMemGetAddressRange(NULL, NULL, p));
    EXPECT(cuMemGetAddressRange(&base, &size, 4096), CUDA_ERROR_NOT_FOUND);
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p + 1));
    TRUE(owner == context);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    TRUE(type == CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 9));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 9));
    TRUE(base == p && size == sizeof host);
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    TRUE(!managed);
    EXPECT(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_HOST_POINTER, p), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuPointerGetAttribute(&type, (CUpointer_attribute)99, p), CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttributes(2, attributes, data, p));
    TRUE(type == CU_MEMORYTYPE_DEVICE && ordinal == 0);
    OK(cuPointerGetAttributes(2, attributes, data, (CUdeviceptr)(uintptr_t)host));
    TRUE(type == 0 && ordinal == CU_DEVICE_INVALID);

    OK(cuMemAllocHost(&pinned, 4096));
    OK(cuMemHostGetDevicePointer(&device, (char *)pinned + 8, 0));
    TRUE(device == (CUdeviceptr)(uintptr_t)pinned + 8);
    OK(cuMemHostGetFlags(&flags, pinned));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    TRUE(type == CU_MEMORYTYPE_HOST);
    EXPECT(cuMemHostGetDevicePointer(&device, host, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemHostAlloc(&pinned, 16, 0x80), CUDA_ERROR_INVALID_VALUE);
    strcpy(pinned, "pinned memory is memory");
    OK(cuMemFreeHost(pinned));
}

int main(void)
{
    CUcontext context = start();
    CUdeviceptr p, q, big;
    size_t before, after, total, pitch;
    char *large;

    for (size_t i = 0; i < sizeof host; i++)
        host[i] = (unsigned char)(i * 7 + i / 251);
    OK(cuMemGetInfo(&before, &total));
    TRUE(total == 1u << 30 && before <= total);
    OK(cuMemAlloc(&p, sizeof host));
    OK(cuMemAlloc(&q, sizeof host));
    TRUE(p % 256 == 0 && q % 256 == 0 && p != q);
    OK(cuMemGetInfo(&after, &total));
    TRUE(before - after >= 2 * sizeof host);
    EXPECT(cuMemAlloc(&big, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAlloc(NULL, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemAlloc(&big, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
    fills(p);
    copies(p, q);
    pointers(context, p);

    OK(cuMemAllocPitch(&big, &pitch, 100, 10, 4));
    TRUE(pitch >= 100 && pitch % 256 == 0);
    OK(cuMemFree(big));
    EXPECT(cuMemAllocPitch(&big, &pitch, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);

    OK(cuMemFree(0));
    EXPECT(cuMemFree(p + 16), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    EXPECT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoH(back, p, 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(q));

    large = malloc(64 << 20);
    memset(large, 'x', 64 << 20);
    OK(cuMemAlloc(&big, 64 << 20));
    OK(cuMemcpyHtoD(big, large, 64 << 20));
    memset(large, 0, 64 << 20);
    OK(cuMemcpyDtoH(large, big, 64 << 20));
    for (int i = 0; i < 64 << 20; i += 4096)
        TRUE(large[i] == 'x');
    OK(cuMemFree(big));
    OK(cuMemGetInfo(&after, &total));
    TRUE(after == before);
    return 0;
}
