/* What works before cuInit, and cuInit itself. */
#include "check.h"

int main(void)
{
    const char *text = "x";
    int version = 0, count;
    void *pointer, *legacy;
    CUdriverProcAddressQueryResult status;
    CUdeviceptr memory;
    CUdevice device;
    CUuuid id = {{0}};
    const void *table;

    OK(cuDriverGetVersion(&version));
    TRUE(version == CUDA_VERSION && version == 13050);
    EXPECT(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
    TRUE(!strcmp(text, "CUDA_ERROR_INVALID_VALUE"));
    OK(cuGetErrorString(CUDA_ERROR_NO_DEVICE, &text));
    TRUE(!strcmp(text, "no CUDA-capable device is detected"));
    EXPECT(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    TRUE(!text);

    EXPECT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuMemAlloc(&memory, 16), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuStreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuInit(1), CUDA_ERROR_INVALID_VALUE);

    /* Entry points by name and version. */
    OK(cuGetProcAddress("cuMemAlloc", &pointer, 13050, 0, &status));
    TRUE(pointer == (void *)cuMemAlloc_v2 && status == CU_GET_PROC_ADDRESS_SUCCESS);
    OK(cuGetProcAddress("cuMemAllocAsync", &pointer, 11010, 0, &status));
    TRUE(!pointer && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    OK(cuGetProcAddress("cuNonsense", &pointer, 13050, 0, &status));
    TRUE(!pointer && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    OK(cuGetProcAddress("cuCtxCreate", &pointer, 12040, 0, NULL));
    TRUE(pointer == (void *)cuCtxCreate_v3);
    OK(cuGetProcAddress("cuCtxCreate", &pointer, 12050, 0, NULL));
    TRUE(pointer == (void *)cuCtxCreate_v4);
    OK(cuGetProcAddress("cuLaunchKernel", &legacy, 7000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL));
    OK(cuGetProcAddress("cuLaunchKernel", &pointer, 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    TRUE(legacy == (void *)cuLaunchKernel && pointer == (void *)cuLaunchKernel_ptsz && pointer != legacy);
    OK(cuGetProcAddress("cuCtxSynchronize", &pointer, 13050, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    TRUE(pointer == (void *)cuCtxSynchronize_v2);
    EXPECT(cuGetProcAddress("", &pointer, 13050, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGetProcAddress("cuInit", &pointer, 99000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGetProcAddress("cuInit", &pointer, 13050, 3, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGetProcAddress("cuInit", NULL, 13050, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    TRUE(!table);

    OK(cuInit(0));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    TRUE(count == 2);
    EXPECT(cuMemAlloc(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}
