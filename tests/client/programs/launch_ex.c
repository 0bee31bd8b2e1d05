/* Launch attributes, cooperative launches, function attributes, and occupancy of clusters. */
#include "check.h"

static CUfunction scale, shape, nap;

static CUresult launch(CUfunction function, CUstream stream, void **arguments, CUlaunchAttribute *attributes, unsigned count)
{
    CUlaunchConfig config = {2, 3, 4, 5, 6, 7, 0, stream, attributes, count};
    return cuLaunchKernelEx(&config, function, arguments, NULL);
}

static CUlaunchAttribute attribute(CUlaunchAttributeID id)
{
    CUlaunchAttribute made;
    memset(&made, 0, sizeof made);
    made.id = id;
    return made;
}

static void one_after_another(void **arguments)
{
    CUlaunchAttribute a;
    const CUlaunchAttributeID any[] = {CU_LAUNCH_ATTRIBUTE_IGNORE, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                       CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                       CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
                                       CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                                       CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                       CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
                                       CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE, CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE,
                                       CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW};

    for (unsigned i = 0; i < sizeof any / sizeof *any; i++) { /* nothing asked for */
        a = attribute(any[i]);
        OK(launch(shape, NULL, arguments, &a, 1));
    }
    a = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    a.value.clusterDim.x = a.value.clusterDim.y = a.value.clusterDim.z = 1;
    OK(launch(shape, NULL, arguments, &a, 1));
    a.value.clusterDim.z = 2;
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_NOT_SUPPORTED);
    a.value.clusterDim.z = 3; /* does not divide 4 */
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a.value.clusterDim.z = 0;
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a = attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
    a.value.preferredClusterDim.x = 2;
    a.value.preferredClusterDim.y = a.value.preferredClusterDim.z = 1;
    OK(launch(shape, NULL, arguments, &a, 1));
    a.value.preferredClusterDim.x = 5;
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a = attribute(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY);
    a.value.syncPolicy = CU_SYNC_POLICY_SPIN;
    OK(launch(shape, NULL, arguments, &a, 1));
    a.value.syncPolicy = 9;
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a = attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    a.value.sharedMemCarveout = 101;
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a = attribute(CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE);
    a.value.portableClusterSizeMode = 3;
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a = attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
    a.value.memSyncDomainMap.remote = 1;
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a = attribute(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE); /* for graphs only */
    a.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a = attribute(CU_LAUNCH_ATTRIBUTE_MAX);
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    a = attribute(15); /* there is none of that number */
    EXPECT(launch(shape, NULL, arguments, &a, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch(shape, NULL, arguments, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch((CUfunction)arguments, NULL, arguments, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
}

/* Events that a launch records. */
static void events(CUcontext context)
{
    CUlaunchAttribute a[2] = {attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT),
                              attribute(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)};
    CUlaunchConfig config = {1, 1, 1, 8, 4, 1, 0, NULL, a, 2};
    uint32_t milliseconds = 150;
    void *arguments[] = {&milliseconds};
    CUevent first, second, timed, foreign;
    CUcontext other;
    CUstream stream;

    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&timed, CU_EVENT_DEFAULT));
    config.hStream = stream;
    a[0].value.programmaticEvent.event = first;
    a[0].value.programmaticEvent.triggerAtBlockStart = 1;
    a[1].value.launchCompletionEvent.event = second;
    OK(cuLaunchKernelEx(&config, nap, arguments, NULL));
    EXPECT(cuEventQuery(first), CUDA_ERROR_NOT_READY);
    OK(cuEventSynchronize(first));
    OK(cuEventSynchronize(second));
    OK(cuStreamSynchronize(stream));
    a[0].value.programmaticEvent.event = timed;
    EXPECT(cuLaunchKernelEx(&config, nap, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    a[0].value.programmaticEvent.event = first;
    a[0].value.programmaticEvent.flags = CU_EVENT_RECORD_EXTERNAL;
    EXPECT(cuLaunchKernelEx(&config, nap, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    a[0].value.programmaticEvent.flags = 0;
    a[1].value.launchCompletionEvent.event = NULL;
    EXPECT(cuLaunchKernelEx(&config, nap, arguments, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxCreate(&other, NULL, 0, 1));
    OK(cuEventCreate(&foreign, CU_EVENT_DISABLE_TIMING));
    OK(cuCtxSetCurrent(context));
    a[1].value.launchCompletionEvent.event = foreign;
    EXPECT(cuLaunchKernelEx(&config, nap, arguments, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamQuery(stream)); /* what was refused is not launched */
    OK(cuCtxDestroy(other));
}

static void shared_memory(void **arguments)
{
    CUlaunchAttribute a = attribute(CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE);
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 49152 - 16, NULL, &a, 1}; /* 48 KiB less 16 static bytes */
    int value;

    a.value.sharedMemoryMode = CU_SHARED_MEMORY_MODE_REQUIRE_PORTABLE;
    OK(cuLaunchKernelEx(&config, shape, arguments, NULL));
    config.sharedMemBytes++;
    EXPECT(cuLaunchKernelEx(&config, shape, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    a.value.sharedMemoryMode = CU_SHARED_MEMORY_MODE_DEFAULT;
    EXPECT(cuLaunchKernelEx(&config, shape, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    a.value.sharedMemoryMode = CU_SHARED_MEMORY_MODE_ALLOW_NON_PORTABLE;
    config.sharedMemBytes = 65536 - 16;
    OK(cuLaunchKernelEx(&config, shape, arguments, NULL));
    config.sharedMemBytes++;
    EXPECT(cuLaunchKernelEx(&config, shape, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shape));
    TRUE(value == 49152 - 16);
    a.value.sharedMemoryMode = 5;
    config.sharedMemBytes = 0;
    EXPECT(cuLaunchKernelEx(&config, shape, arguments, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}

/* Device 0 cannot, device 1 can: 4 multiprocessors. */
static void cooperative(CUcontext context, CUdeviceptr data)
{
    uint32_t factor = 2, shift = 1, word = 3;
    void *arguments[] = {&data, &factor, &shift};
    CUlaunchAttribute a = attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    CUlaunchConfig config = {1, 1, 1, 512, 1, 1, 0, NULL, &a, 1};
    CUDA_LAUNCH_PARAMS list[2];
    CUcontext other;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    int can, blocks;

    a.value.cooperative = 1;
    OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    TRUE(can == 0);
    EXPECT(cuLaunchCooperativeKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, arguments), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuLaunchKernelEx(&config, scale, arguments, NULL), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuStreamCreate(&stream, 0));
    memset(list, 0, sizeof list);
    EXPECT(cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchCooperativeKernelMultiDevice(list, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchCooperativeKernelMultiDevice(list, 3, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchCooperativeKernelMultiDevice(list, 1, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchCooperativeKernelMultiDevice(list, 1, 0), CUDA_ERROR_INVALID_HANDLE); /* no default streams */
    list[0].hStream = stream;
    EXPECT(cuLaunchCooperativeKernelMultiDevice(list, 1, 0), CUDA_ERROR_INVALID_HANDLE);
    list[0].function = scale;
    EXPECT(cuLaunchCooperativeKernelMultiDevice(list, 1, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 0));
    TRUE(can == 0);

    OK(cuCtxCreate(&other, NULL, 0, 1));
    OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1));
    TRUE(can == 1);
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, "scale"));
    OK(cuMemAlloc(&data, 4));
    OK(cuMemcpyHtoD(data, &word, 4));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 512, 0));
    TRUE(blocks == 4);
    OK(cuLaunchCooperativeKernel(function, 4, 2, 2, 512, 1, 1, 0, NULL, arguments));
    OK(cuLaunchKernelEx(&config, function, arguments, NULL));
    OK(cuMemcpyDtoH(&word, data, 4));
    TRUE(word == 15);
    EXPECT(cuLaunchCooperativeKernel(function, 17, 1, 1, 512, 1, 1, 0, NULL, arguments), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    EXPECT(cuLaunchCooperativeKernel(function, 2147483647, 65535, 65535, 512, 1, 1, 0, NULL, arguments),
           CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    EXPECT(cuLaunchCooperativeKernel(function, 0, 1, 1, 512, 1, 1, 0, NULL, arguments), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchCooperativeKernel(function, 1, 1, 1, 0, 1, 1, 0, NULL, arguments), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchCooperativeKernel(function, 1, 1, 1, 1024, 1, 1, 0, NULL, arguments), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT(cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchCooperativeKernel(scale, 1, 1, 1, 1, 1, 1, 0, NULL, arguments), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxDestroy(other));
    OK(cuCtxSetCurrent(context));
}

static void clusters(void)
{
    CUlaunchAttribute a = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    CUlaunchConfig config = {8, 1, 1, 32, 4, 4, 0, NULL, &a, 1};
    int size, count, blocks;

    OK(cuOccupancyMaxPotentialClusterSize(&size, scale, &config));
    TRUE(size == 1);
    a.value.clusterDim.x = a.value.clusterDim.y = a.value.clusterDim.z = 1;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, scale, 512, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
    OK(cuOccupancyMaxActiveClusters(&count, scale, &config));
    TRUE(count == 4 * blocks && count == 16);
    a.value.clusterDim.x = 2;
    EXPECT(cuOccupancyMaxActiveClusters(&count, scale, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    config.numAttrs = 0;
    EXPECT(cuOccupancyMaxActiveClusters(&count, scale, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    config.blockDimY = 0;
    EXPECT(cuOccupancyMaxPotentialClusterSize(&size, scale, &config), CUDA_ERROR_INVALID_VALUE);
    config.blockDimY = config.blockDimZ = 0xFFFFFFFF;
    EXPECT(cuOccupancyMaxPotentialClusterSize(&size, scale, &config), CUDA_ERROR_INVALID_VALUE);
    config.blockDimY = config.blockDimZ = 8;
    OK(cuOccupancyMaxPotentialClusterSize(&size, scale, &config)); /* 2048 threads: no such block runs */
    TRUE(size == 0);
    EXPECT(cuOccupancyMaxPotentialClusterSize(&size, scale, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuOccupancyMaxPotentialClusterSize(NULL, scale, &config), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuOccupancyMaxPotentialClusterSize(&size, (CUfunction)&config, &config), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuOccupancyMaxActiveClusters(&count, NULL, &config), CUDA_ERROR_INVALID_HANDLE);
    config.hStream = (CUstream)&config;
    EXPECT(cuOccupancyMaxPotentialClusterSize(&size, scale, &config), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, scale, 512, 0, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuOccupancyMaxPotentialBlockSizeWithFlags(&size, &blocks, scale, NULL, 0, 0, 2), CUDA_ERROR_INVALID_VALUE);
}

static void function_attributes(void)
{
    static const struct {
        CUfunction_attribute attribute;
        int good, bad;
        CUresult refusal;
    } settable[] = {{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000, -1, CUDA_ERROR_INVALID_VALUE},
                    {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100, 101, CUDA_ERROR_INVALID_VALUE},
                    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 1, 2, CUDA_ERROR_NOT_SUPPORTED},
                    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1, -1, CUDA_ERROR_INVALID_VALUE},
                    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1, 8, CUDA_ERROR_NOT_SUPPORTED},
                    {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, 2, CUDA_ERROR_INVALID_VALUE},
                    {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 2, 3, CUDA_ERROR_INVALID_VALUE}};
    int value;

    for (unsigned i = 0; i < sizeof settable / sizeof *settable; i++) {
        OK(cuFuncSetAttribute(scale, settable[i].attribute, settable[i].good));
        EXPECT(cuFuncSetAttribute(scale, settable[i].attribute, settable[i].bad), settable[i].refusal);
        OK(cuFuncGetAttribute(&value, settable[i].attribute, scale));
        TRUE(value == settable[i].good);
    }
    for (int number = 0; number <= CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE; number++)
        OK(cuFuncGetAttribute(&value, number, scale));
    EXPECT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE + 1, scale), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncGetAttribute(&value, -1, scale), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncGetAttribute(NULL, 0, scale), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute(scale, CU_FUNC_ATTRIBUTE_PTX_VERSION, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute((CUfunction)&value, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
           CUDA_ERROR_INVALID_HANDLE);
    OK(cuFuncSetAttribute(scale, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152));
}

int main(void)
{
    CUcontext context = start();
    CUdeviceptr data;
    void *arguments[] = {&data};

    scale = kernel("scale");
    shape = kernel("shape");
    nap = kernel("nap");
    OK(cuMemAlloc(&data, 64));
    one_after_another(arguments);
    OK(cuCtxSynchronize());
    events(context);
    shared_memory(arguments);
    clusters();
    function_attributes();
    cooperative(context, data);
    return 0;
}
