/* The launches of CUDA 1 to 3: what is set one by one goes into every launch until it is set anew. */
#include "check.h"

int main(void)
{
    CUcontext context = start();
    CUfunction shape = kernel("shape"), mixed = kernel("mixed"), scale = kernel("scale"), nap = kernel("nap");
    CUdeviceptr out;
    CUstream stream, gone;
    CUmodule module;
    CUfunction unloaded;
    uint32_t extents[6], word = 3;
    uint64_t values[3], wide = 0x123456789ABCDEF0;
    uint16_t half = 50000;
    uint8_t small = 200;
    float number = 1.5f;
    char block[8192] = {0};

    OK(cuMemAlloc(&out, 64));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
    OK(cuStreamDestroy(gone));

    /* Shape: one block, a grid, and a grid in a stream. */
    OK(cuParamSetSize(shape, 8));
    OK(cuParamSetv(shape, 0, &out, 8));
    OK(cuLaunch(shape)); /* of one thread until told otherwise */
    OK(cuMemcpyDtoH(extents, out, sizeof extents));
    for (int i = 0; i < 6; i++)
        TRUE(extents[i] == 1);
    OK(cuFuncSetBlockShape(shape, 4, 3, 2));
    OK(cuFuncSetSharedSize(shape, 1024));
    OK(cuLaunchGrid(shape, 7, 6));
    OK(cuMemcpyDtoH(extents, out, sizeof extents));
    TRUE(extents[0] == 7 && extents[1] == 6 && extents[2] == 1 && extents[3] == 4 && extents[4] == 3 && extents[5] == 2);
    OK(cuLaunchGridAsync(shape, 2, 1, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(extents, out, sizeof extents));
    TRUE(extents[0] == 2 && extents[1] == 1 && extents[2] == 1 && extents[3] == 4);

    /* Parameters of each kind, at their offsets; later launches keep what is not set again. */
    OK(cuParamSetSize(mixed, 32));
    OK(cuParamSetv(mixed, 0, &small, 1));
    OK(cuParamSetv(mixed, 8, &out, 8));
    OK(cuParamSetv(mixed, 16, &half, 2));
    OK(cuParamSetv(mixed, 24, &wide, 8));
    OK(cuLaunch(mixed));
    OK(cuMemcpyDtoH(values, out, sizeof values));
    TRUE(values[0] == 200 && values[1] == 50000 && values[2] == wide);
    OK(cuParamSeti(mixed, 24, 0x80000001));
    OK(cuParamSetf(mixed, 28, number));
    OK(cuLaunch(mixed));
    OK(cuMemcpyDtoH(values, out, sizeof values));
    TRUE(values[0] == 200 && values[2] == 0x3FC0000080000001); /* 1.5f is 0x3FC00000 */
    OK(cuMemcpyHtoD(out, &word, 4));
    OK(cuParamSetSize(scale, 16));
    OK(cuParamSetv(scale, 0, &out, 8));
    OK(cuParamSeti(scale, 8, 10));
    OK(cuParamSeti(scale, 12, 4));
    OK(cuLaunch(scale));
    OK(cuLaunch(scale));
    OK(cuMemcpyDtoH(&word, out, 4));
    TRUE(word == 344); /* (3 * 10 + 4) * 10 + 4 */

    /* What is refused; what was set stays. */
    EXPECT(cuFuncSetBlockShape(shape, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetBlockShape(shape, 1, -1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetBlockShape(shape, 1, 1, 65), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetBlockShape(shape, 1024, 2, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetSharedSize(shape, 1 << 20), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSetSize(shape, 4097), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSeti(shape, -4, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSeti(shape, 4093, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSetf(shape, 1 << 30, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSetv(shape, 0, NULL, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSetv(shape, 0, block, sizeof block), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSetv(shape, 16, block, 0xFFFFFFFF), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchGrid(shape, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchGrid(shape, 1, -1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchGrid(shape, 1, 65536), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchGridAsync(shape, 1, 1, gone), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLaunch(nap), CUDA_ERROR_INVALID_VALUE); /* it has a parameter, and requires blocks of 8 by 4 */
    OK(cuParamSetSize(shape, 4));
    EXPECT(cuLaunch(shape), CUDA_ERROR_INVALID_VALUE); /* it takes 8 bytes */
    OK(cuParamSetSize(shape, 8));
    OK(cuLaunchGrid(shape, 3, 2));
    OK(cuMemcpyDtoH(extents, out, sizeof extents));
    TRUE(extents[0] == 3 && extents[1] == 2 && extents[3] == 4 && extents[4] == 3 && extents[5] == 2);

    OK(cuFuncSetSharedMemConfig(shape, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    EXPECT(cuFuncSetSharedMemConfig(shape, 3), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetSharedMemConfig((CUfunction)context, 0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuFuncSetBlockShape(NULL, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuFuncSetSharedSize((CUfunction)context, 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuParamSetSize((CUfunction)context, 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuParamSeti((CUfunction)context, 0, 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLaunch((CUfunction)8), CUDA_ERROR_INVALID_HANDLE);

    /* A module that goes takes along what was set for its functions. */
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&unloaded, module, "shape"));
    OK(cuParamSetSize(unloaded, 8));
    OK(cuModuleUnload(module));
    EXPECT(cuParamSetSize(unloaded, 8), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxSetCurrent(NULL));
    EXPECT(cuLaunch(shape), CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}
