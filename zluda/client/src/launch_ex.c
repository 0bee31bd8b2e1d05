/* The extensible launch and the cooperative one. An attribute is honoured, or a hint that the manual lets a driver pass
   over, or refused. */
#include "client.h"

enum { EVENTS = 2 };                     /* attributes that record one */

/* What the attributes of a launch ask for. */
struct wish {
    bool cooperative, clusters;
    CUevent events[EVENTS];
    unsigned event_count;
    CUsharedMemoryMode shared;
};

/* "The event must disable timing", and may be no other context's; it is checked before anything is launched. */
static CUresult add_event(const zl_context *context, struct wish *wish, CUevent event, int flags)
{
    const zl_event *found = zl_handle_get(ZL_EVENT, (uint64_t)event);

    if (!found || found->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags != CU_EVENT_RECORD_DEFAULT || !(found->flags & CU_EVENT_DISABLE_TIMING) ||
        (found->flags & CU_EVENT_INTERPROCESS) || wish->event_count == EVENTS)
        return CUDA_ERROR_INVALID_VALUE;
    wish->events[wish->event_count++] = event;
    return CUDA_SUCCESS;
}

static bool divides(unsigned x, unsigned y, unsigned z, const CUlaunchConfig *config)
{
    return x && y && z && config->gridDimX % x == 0 && config->gridDimY % y == 0 && config->gridDimZ % z == 0;
}

static CUresult valid(bool condition)
{
    return condition ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult read_attribute(const zl_context *context, const CUlaunchConfig *config, const CUlaunchAttribute *attribute,
                               struct wish *wish)
{
    const CUlaunchAttributeValue *value = &attribute->value;
    int domains;

    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:   /* hints, whatever their values */
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* allows overlap; none is always right */
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return valid(value->accessPolicyWindow.hitRatio >= 0 && value->accessPolicyWindow.hitRatio <= 1 &&
                     (unsigned)value->accessPolicyWindow.hitProp <= CU_ACCESS_PROPERTY_PERSISTING &&
                     (value->accessPolicyWindow.missProp == CU_ACCESS_PROPERTY_NORMAL ||
                      value->accessPolicyWindow.missProp == CU_ACCESS_PROPERTY_STREAMING));
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        wish->cooperative = value->cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return valid(value->syncPolicy >= CU_SYNC_POLICY_AUTO && value->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (!divides(value->clusterDim.x, value->clusterDim.y, value->clusterDim.z, config))
            return CUDA_ERROR_INVALID_VALUE;
        wish->clusters = value->clusterDim.x > 1 || value->clusterDim.y > 1 || value->clusterDim.z > 1;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: /* "on a best-effort basis", beside the regular dimension */
        return valid(divides(value->preferredClusterDim.x, value->preferredClusterDim.y, value->preferredClusterDim.z, config));
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return valid((unsigned)value->clusterSchedulingPolicyPreference <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    case CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE:
        return valid((unsigned)value->portableClusterSizeMode <= CU_LAUNCH_PORTABLE_CLUSTER_MODE_ALLOW_NON_PORTABLE);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: /* a kernel that does not trigger it does so at its end */
        return add_event(context, wish, value->programmaticEvent.event, value->programmaticEvent.flags);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: /* "best effort": its end is when all blocks have begun for certain */
        return add_event(context, wish, value->launchCompletionEvent.event, value->launchCompletionEvent.flags);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        domains = zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
        return valid(value->memSyncDomainMap.default_ < domains && value->memSyncDomainMap.remote < domains);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return valid((unsigned)value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return valid(value->sharedMemCarveout <= 100 || value->sharedMemCarveout == (unsigned)CU_SHAREDMEM_CARVEOUT_DEFAULT);
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return valid(value->nvlinkUtilCentricScheduling <= 1);
    case CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE:
        wish->shared = value->sharedMemoryMode;
        return valid((unsigned)wish->shared <= CU_SHARED_MEMORY_MODE_PREFER_OVERSIZED_SHARED_MEMORY);
    default:                             /* CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE too: it is for graphs only */
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* All blocks of a cooperative launch run at the same time, or it is refused. */
static CUresult check_cooperative(const zl_function_entry *function, const CUlaunchConfig *config)
{
    const int32_t *limits = zl_state.devices[function->context->device].attributes;
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    uint64_t room;

    if (!limits[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH])
        return zl_not_supported("cuLaunchCooperativeKernel", "blocks of a grid do not run at the same time on this device");
    if (!threads || threads > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
        return CUDA_ERROR_INVALID_VALUE;
    if (config->gridDimX > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] ||
        config->gridDimY > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] ||
        config->gridDimZ > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z])
        return CUDA_ERROR_INVALID_VALUE; /* before they are multiplied */
    room = (uint64_t)zl_active_blocks(function, (int)threads, config->sharedMemBytes) *
           (uint64_t)limits[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    if (room && ((uint64_t)config->gridDimY * config->gridDimZ > room ||
                 (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ > room))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;                 /* a block that cannot run is refused by the launch itself */
}

static CUresult launch(zl_context *context, CUfunction f, const CUlaunchConfig *config, CUstream stream, void **parameters,
                       void **extra)
{
    return zl_cuLaunchKernel(context, f, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                             config->blockDimY, config->blockDimZ, config->sharedMemBytes, stream, parameters, extra);
}

/* With more dynamic shared memory than the function's attribute allows, where the mode does. */
static CUresult launch_with_more(zl_context *context, zl_function_entry *function, CUfunction f, const CUlaunchConfig *config,
                                 CUstream stream, void **parameters, void **extra)
{
    int before = function->info.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    CUresult result, restored;

    if (config->sharedMemBytes > INT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_function_set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)config->sharedMemBytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = launch(context, f, config, stream, parameters, extra);
    restored = zl_function_set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, before);
    return result != CUDA_SUCCESS ? result : restored;
}

static CUresult launch_as_wished(zl_context *context, CUfunction f, const CUlaunchConfig *config, CUstream stream,
                                 void **parameters, void **extra, const struct wish *wish)
{
    const int32_t *limits = zl_state.devices[context->device].attributes;
    zl_function_entry *function;
    CUresult result = zl_function_use(context, f, &function);

    if (result != CUDA_SUCCESS)
        return result;
    if (wish->clusters)
        return zl_not_supported("cuLaunchKernelEx", "thread block clusters");
    if (wish->cooperative) {
        result = function->context == context ? check_cooperative(function, config) : CUDA_ERROR_INVALID_HANDLE;
        if (result != CUDA_SUCCESS)
            return result;
    }
    if (wish->shared == CU_SHARED_MEMORY_MODE_REQUIRE_PORTABLE &&
        (uint64_t)config->sharedMemBytes + (unsigned)function->info.attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] >
            (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK])
        return CUDA_ERROR_INVALID_VALUE;
    if (wish->shared >= CU_SHARED_MEMORY_MODE_ALLOW_NON_PORTABLE && function->context == context &&
        config->sharedMemBytes > (unsigned)function->info.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
        return launch_with_more(context, function, f, config, stream, parameters, extra);
    return launch(context, f, config, stream, parameters, extra);
}

CUresult zl_cuLaunchKernelEx(zl_context *context, const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                             void **extra, CUstream default_stream)
{
    struct wish wish = {0};
    CUstream stream;
    uint64_t wire;
    CUresult result;

    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    stream = config->hStream ? config->hStream : default_stream;
    result = zl_use_stream(stream, &context, &wire);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < config->numAttrs; i++)
        result = read_attribute(context, config, &config->attrs[i], &wish);
    if (result == CUDA_SUCCESS)
        result = launch_as_wished(context, f, config, stream, kernelParams, extra, &wish);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < wish.event_count; i++)
        result = zl_cuEventRecord(context, wish.events[i], stream);
    return result;
}

CUresult zl_cuLaunchCooperativeKernel(zl_context *context, CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                      unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                      unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                      void **kernelParams)
{
    const CUlaunchConfig config = {.gridDimX = gridDimX, .gridDimY = gridDimY, .gridDimZ = gridDimZ, .blockDimX = blockDimX,
                                   .blockDimY = blockDimY, .blockDimZ = blockDimZ, .sharedMemBytes = sharedMemBytes};
    const struct wish wish = {.cooperative = true};
    uint64_t wire;
    CUresult result = zl_use_stream(hStream, &context, &wire);

    return result == CUDA_SUCCESS ? launch_as_wished(context, f, &config, hStream, kernelParams, NULL, &wish) : result;
}

/* "All devices must have CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH": none here has. */
CUresult zl_cuLaunchCooperativeKernelMultiDevice(zl_context *context, CUDA_LAUNCH_PARAMS *launchParamsList,
                                                 unsigned int numDevices, unsigned int flags)
{
    const unsigned known = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
                           CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
    zl_function_entry *function;

    if (!launchParamsList || !numDevices || numDevices > zl_state.device_count || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numDevices; i++) {
        const CUDA_LAUNCH_PARAMS *launch = &launchParamsList[i];
        zl_context *own = context;
        uint64_t wire;
        CUresult result;
        if (!launch->hStream || launch->hStream == CU_STREAM_LEGACY || launch->hStream == CU_STREAM_PER_THREAD)
            return CUDA_ERROR_INVALID_HANDLE;
        result = zl_use_stream(launch->hStream, &own, &wire);
        if (result == CUDA_SUCCESS)
            result = zl_function_use(own, launch->function, &function);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}
