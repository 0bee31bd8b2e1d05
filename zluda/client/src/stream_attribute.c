/* Attributes of streams. All are hints but the priority: the devices here have no caches to reserve and no memory domains to
   choose from, and how a thread waits is the library's own business. So they are checked and kept. */
#include "client.h"

#include <string.h>

/* Where a stream's attributes are, its priority and its context. */
static CUresult find(CUstream stream, zl_stream_settings **settings, int **priority, zl_context **context)
{
    zl_stream *found;

    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
        *context = zl_current();
        if (!*context)
            return CUDA_ERROR_INVALID_CONTEXT;
        *settings = stream == CU_STREAM_PER_THREAD ? &zl_thread_self()->settings : &(*context)->settings;
        *priority = &(*settings)->priority;
        return zl_context_check(*context);
    }
    found = zl_handle_get(ZL_STREAM, (uint64_t)stream);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *context = found->context;
    *settings = &found->settings;
    *priority = &found->priority;
    return zl_context_check(found->context);
}

static CUresult set_priority(zl_context *context, CUstream stream, int *priority, int value)
{
    const struct zl_device *device = &zl_state.devices[context->device];
    struct zl_cmd_stream_priority *command;
    uint64_t wire;
    CUresult result;

    if (value > device->least_priority)
        value = device->least_priority;
    if (value < device->greatest_priority)
        value = device->greatest_priority;
    result = zl_use_stream(stream, &context, &wire);
    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_stream_priority, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->stream = wire;
    command->priority = value;
    zl_post(&command->header, NULL);
    *priority = value;
    return CUDA_SUCCESS;
}

static CUresult set_window(zl_context *context, zl_stream_settings *settings, CUaccessPolicyWindow window)
{
    const size_t largest = (size_t)zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);

    if (!(window.hitRatio >= 0 && window.hitRatio <= 1) || (unsigned)window.hitProp > CU_ACCESS_PROPERTY_PERSISTING ||
        (window.missProp != CU_ACCESS_PROPERTY_NORMAL && window.missProp != CU_ACCESS_PROPERTY_STREAMING))
        return CUDA_ERROR_INVALID_VALUE;
    if (window.num_bytes > largest)      /* "the driver may restrict the maximum size" */
        window.num_bytes = largest;
    settings->window = window;
    return CUDA_SUCCESS;
}

CUresult zl_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
    zl_stream_settings *settings;
    zl_context *context;
    int *priority, domains;
    CUresult result = find(hStream, &settings, &priority, &context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return set_window(context, settings, value->accessPolicyWindow);
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
            return CUDA_ERROR_INVALID_VALUE;
        settings->policy = value->syncPolicy;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_PRIORITY:
        return set_priority(context, hStream, priority, value->priority);
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        domains = zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
        if (value->memSyncDomainMap.default_ >= domains || value->memSyncDomainMap.remote >= domains)
            return CUDA_ERROR_INVALID_VALUE;
        settings->map = value->memSyncDomainMap;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
        if ((unsigned)value->memSyncDomain > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE)
            return CUDA_ERROR_INVALID_VALUE;
        settings->domain = value->memSyncDomain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult zl_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out)
{
    zl_stream_settings *settings;
    zl_context *context;
    int *priority;
    CUresult result = find(hStream, &settings, &priority, &context);

    if (result != CUDA_SUCCESS)
        return result;
    switch (attr) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value_out->accessPolicyWindow = settings->window;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value_out->syncPolicy = settings->policy ? settings->policy : CU_SYNC_POLICY_AUTO;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_PRIORITY:
        value_out->priority = *priority;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value_out->memSyncDomainMap = settings->map;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value_out->memSyncDomain = settings->domain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult zl_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
    zl_stream_settings *to, *from;
    zl_context *to_context, *from_context;
    int *to_priority, *from_priority;
    CUresult result = find(dst, &to, &to_priority, &to_context);

    if (result == CUDA_SUCCESS)
        result = find(src, &from, &from_priority, &from_context);
    if (result != CUDA_SUCCESS)
        return result;
    if (to_context != from_context)
        return CUDA_ERROR_INVALID_VALUE;
    result = set_priority(to_context, dst, to_priority, *from_priority);
    if (result == CUDA_SUCCESS) {
        int priority = to->priority;     /* a created stream's is elsewhere, a default stream's has just been set */
        *to = *from;
        to->priority = priority;
    }
    return result;
}
