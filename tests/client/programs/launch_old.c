/* Launches as before CUDA 4: everything is set on the function. */
#include "check.h"

int main(void)
{
    CUfunction scale, shape, naps;
    CUdeviceptr word, extents;
    CUstream stream;
    uint32_t value = 5, got[6];
    uint64_t address;
    CUmodule module;

    start();
    scale = kernel("scale");
    shape = kernel("shape");
    naps = kernel("nap");
    OK(cuMemAlloc(&word, 4));
    OK(cuMemAlloc(&extents, sizeof got));
    OK(cuMemcpyHtoD(word, &value, 4));

    EXPECT(cuLaunch(shape), CUDA_ERROR_INVALID_VALUE); /* no block shape yet */
    OK(cuFuncSetBlockShape(scale, 1, 1, 1));
    address = word;
    OK(cuParamSetv(scale, 0, &address, sizeof address));
    OK(cuParamSeti(scale, 8, 3));
    OK(cuParamSeti(scale, 12, 4));
    EXPECT(cuLaunch(scale), CUDA_ERROR_INVALID_VALUE); /* no size yet: as if there were no parameters */
    OK(cuParamSetSize(scale, 16));
    OK(cuLaunch(scale));
    OK(cuLaunch(scale));                 /* settings stay */
    OK(cuMemcpyDtoH(&value, word, 4));
    TRUE(value == (5 * 3 + 4) * 3 + 4);

    OK(cuFuncSetBlockShape(shape, 4, 2, 3));
    OK(cuFuncSetSharedSize(shape, 64));
    address = extents;
    OK(cuParamSetv(shape, 0, &address, sizeof address));
    OK(cuParamSetSize(shape, 8));
    OK(cuLaunchGrid(shape, 6, 7));
    OK(cuMemcpyDtoH(got, extents, sizeof got));
    TRUE(got[0] == 6 && got[1] == 7 && got[2] == 1 && got[3] == 4 && got[4] == 2 && got[5] == 3);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuFuncSetBlockShape(naps, 8, 4, 1)); /* as it requires */
    OK(cuParamSeti(naps, 0, 300));
    OK(cuParamSetSize(naps, 4));
    OK(cuLaunchGridAsync(naps, 1, 1, stream));
    EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cuLaunchGridAsync(shape, 8, 9, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(got, extents, sizeof got));
    TRUE(got[0] == 8 && got[1] == 9);

    /* A float travels by its bits: 1.0f is 0x3F800000. */
    OK(cuParamSeti(scale, 8, 0));
    OK(cuParamSetf(scale, 12, 1.0f));
    OK(cuLaunch(scale));
    OK(cuMemcpyDtoH(&value, word, 4));
    TRUE(value == 0x3F800000);

    EXPECT(cuFuncSetBlockShape(shape, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetBlockShape(shape, 1, -1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetBlockShape(shape, 1 << 30, 1 << 30, 1 << 30), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetBlockShape(NULL, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuParamSetSize(shape, 4097), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSeti(shape, -4, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSeti(shape, 4094, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSeti(shape, 0x7FFFFFFF, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSetv(shape, 0, NULL, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSetv(shape, 8, &address, 0xFFFFFFFF), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuParamSetf((CUfunction)stream, 0, 1.0f), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuFuncSetSharedSize(NULL, 8), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLaunchGrid(shape, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchGrid(shape, 1, -1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunch(NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLaunchGridAsync(shape, 1, 1, (CUstream)shape), CUDA_ERROR_INVALID_HANDLE);
    OK(cuFuncSetSharedSize(shape, 0x7FFFFFFF));
    EXPECT(cuLaunch(shape), CUDA_ERROR_INVALID_VALUE);
    OK(cuParamSetSize(shape, 64));       /* more than the kernel takes */
    OK(cuFuncSetSharedSize(shape, 0));
    EXPECT(cuLaunch(shape), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);

    OK(cuModuleLoadData(&module, ptx));  /* unloading forgets what was set */
    OK(cuModuleGetFunction(&shape, module, "shape"));
    OK(cuFuncSetBlockShape(shape, 1, 1, 1));
    OK(cuModuleUnload(module));
    EXPECT(cuLaunch(shape), CUDA_ERROR_INVALID_HANDLE);
    return 0;
}
