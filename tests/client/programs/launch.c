/* Launches: arguments in both forms, and what is refused at once. */
#include "check.h"

static size_t twice(int block)
{
    return (size_t)block * 2;
}

int main(void)
{
    CUcontext context = start();
    CUfunction shape = kernel("shape"), mixed = kernel("mixed"), nap = kernel("nap"), scale = kernel("scale");
    CUdeviceptr out;
    uint32_t extents[6];
    uint64_t values[3];
    void *arguments[4] = {&out};
    uint8_t small = 200;
    uint16_t half = 50000;
    uint64_t wide = 0x123456789ABCDEF0;
    struct {
        uint8_t small;
        CUdeviceptr out;
        uint16_t half;
        uint64_t wide;
    } packed = {0};
    size_t size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {2, 3, 4, 5, 6, 7, 0, NULL, NULL, 0};
    int blocks, grid, block;
    size_t shared;

    OK(cuMemAlloc(&out, 64));
    OK(cuLaunchKernel(shape, 7, 6, 5, 4, 3, 2, 0, NULL, arguments, NULL));
    OK(cuMemcpyDtoH(extents, out, sizeof extents));
    for (int i = 0; i < 6; i++)
        TRUE(extents[i] == (uint32_t)(7 - i));

    arguments[0] = &small;
    arguments[1] = &out;
    arguments[2] = &half;
    arguments[3] = &wide;
    OK(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    OK(cuMemcpyDtoH(values, out, sizeof values));
    TRUE(values[0] == 200 && values[1] == 50000 && values[2] == wide);
    packed.small = 1;
    packed.out = out;
    packed.half = 2;
    packed.wide = 3;
    OK(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    OK(cuMemcpyDtoH(values, out, sizeof values));
    TRUE(values[0] == 1 && values[1] == 2 && values[2] == 3);

    /* Arguments. */
    size = 8;
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    size = 100;
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    size = sizeof packed;
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    extra[0] = (void *)77;
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;

    /* Shapes: the device's limits, the kernel's, and its required block. */
    EXPECT(cuLaunchKernel(mixed, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(mixed, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 1, 0, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 32, 32, 2, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel(mixed, 1, 1, 1, 257, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE); /* .maxntid 256 */
    arguments[0] = &out;
    EXPECT(cuLaunchKernel(shape, 1, 1, 1, 1024, 1, 1, 0, NULL, arguments, NULL), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    arguments[0] = &small;
    EXPECT(cuLaunchKernel(nap, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL), CUDA_ERROR_INVALID_VALUE); /* .reqntid 8, 4 */

    /* Shared memory: 48 KiB less the static part, unless the kernel is told to take more. */
    arguments[0] = &out;
    OK(cuLaunchKernel(shape, 1, 1, 1, 1, 1, 1, 49152 - 16, NULL, arguments, NULL));
    EXPECT(cuLaunchKernel(shape, 1, 1, 1, 1, 1, 1, 49152 - 15, NULL, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(shape, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    OK(cuLaunchKernel(shape, 1, 1, 1, 1, 1, 1, 60000, NULL, arguments, NULL));
    EXPECT(cuFuncSetAttribute(shape, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65530), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute(shape, CU_FUNC_ATTRIBUTE_NUM_REGS, 3), CUDA_ERROR_INVALID_VALUE);

    /* Handles. */
    EXPECT(cuLaunchKernel((CUfunction)0x77, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuLaunchKernel((CUfunction)context, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), CUDA_ERROR_INVALID_HANDLE);

    /* The extensible form: attributes that change nothing pass, others are refused. */
    OK(cuLaunchKernelEx(&config, shape, arguments, NULL));
    OK(cuMemcpyDtoH(extents, out, sizeof extents));
    TRUE(extents[0] == 2 && extents[5] == 7);
    memset(attributes, 0, sizeof attributes);
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[1].value.clusterDim.x = attributes[1].value.clusterDim.y = attributes[1].value.clusterDim.z = 1;
    config.attrs = attributes;
    config.numAttrs = 2;
    OK(cuLaunchKernelEx(&config, shape, arguments, NULL));
    attributes[1].value.clusterDim.x = 2;
    EXPECT(cuLaunchKernelEx(&config, shape, arguments, NULL), CUDA_ERROR_NOT_SUPPORTED);
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[1].value.cooperative = 1;
    EXPECT(cuLaunchKernelEx(&config, shape, arguments, NULL), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuLaunchKernelEx(NULL, shape, arguments, NULL), CUDA_ERROR_INVALID_VALUE);

    /* Occupancy of a kernel that may have 512 threads, on multiprocessors of the device's attributes. */
    OK(cuDeviceGetAttribute(&grid, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 512, 0));
    TRUE(blocks == grid / 512);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 513, 0));
    TRUE(blocks == 0);
    EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, scale, NULL, 0, 0));
    TRUE(block > 0 && block % 32 == 0 && grid % 4 == 0 && grid > 0);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, scale, twice, 0, 100));
    TRUE(block <= 100);
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, scale, 1, 32));
    TRUE(shared > 0);

    /* Many, with backpressure, in order: x = x * 3 + 1, 100000 times, modulo 2^32. */
    {
        uint32_t factor = 3, shift = 1, expected = 1, got;
        void *scaling[] = {&out, &factor, &shift};
        OK(cuMemsetD32(out, 1, 1));
        for (int i = 0; i < 100000; i++) {
            OK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, scaling, NULL));
            expected = expected * 3 + 1;
        }
        OK(cuMemcpyDtoH(&got, out, 4));
        TRUE(got == expected);
    }
    return 0;
}
