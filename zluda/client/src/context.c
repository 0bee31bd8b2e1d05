/* Contexts, and the stack of them that each thread has. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static zl_context *primaries[ZL_MAX_DEVICES];
static unsigned primary_flags[ZL_MAX_DEVICES];
static uint64_t last_id;

static const size_t default_limits[ZL_LIMITS] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
    [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
    [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0,
};

static bool flags_valid(unsigned flags)
{
    unsigned scheduling = flags & CU_CTX_SCHED_MASK;
    return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) &&
           (scheduling == CU_CTX_SCHED_AUTO || scheduling == CU_CTX_SCHED_SPIN || scheduling == CU_CTX_SCHED_YIELD ||
            scheduling == CU_CTX_SCHED_BLOCKING_SYNC);
}

static zl_context *new_context(CUdevice device, unsigned flags, bool primary)
{
    zl_context *context = calloc(1, sizeof *context);

    if (!context)
        return NULL;
    context->device = device;
    context->flags = flags;
    context->primary = primary;
    context->api_version = 3020;
    context->id = ++last_id;
    memcpy(context->limits, default_limits, sizeof default_limits);
    context->handle = zl_handle_new(ZL_CONTEXT, context);
    if (!context->handle) {
        free(context);
        return NULL;
    }
    return context;
}

/* --- primary contexts --- */

zl_context *zl_primary(CUdevice device)
{
    zl_context *context = primaries[device];
    return context && atomic_load(&context->active) ? context : NULL;
}

CUresult zl_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct zl_primary_retain_reply reply;
    struct zl_cmd_primary_retain *command;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    zl_context *context;

    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    context = primaries[dev];
    if (!context)
        context = primaries[dev] = new_context(dev, primary_flags[dev], true);
    if (context) {
        command = zl_begin(ZL_OP_primary_retain, context, sizeof *command, true);
        if (command) {
            command->device = dev;
            command->flags = primary_flags[dev];
            result = zl_call(&command->header, &reply, sizeof reply, NULL);
        } else {
            result = zl_gone();
        }
    }
    if (result == CUDA_SUCCESS) {
        if (!context->retained++) {
            context->slot = reply.slot;
            context->flags = primary_flags[dev];
            atomic_store(&context->active, true);
        }
        *pctx = (CUcontext)context->handle;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool lose(uint64_t handle, void *object, void *argument)
{
    (void)handle;
    (void)argument;
    atomic_store(&((zl_context *)object)->active, false);
    return !((zl_context *)object)->primary;
}

static bool forget_contents(uint64_t handle, void *object, void *argument)
{
    zl_context **list = argument;
    (void)handle;
    ((zl_context *)object)->lost = *list;
    *list = object;
    return false;
}

/* Resetting a device whose driver process has ended: another one is started, where its primary context is retained as
   often as before. Every other context is gone. */
static CUresult revive(CUdevice device)
{
    struct zl_cmd_primary_retain *command;
    struct zl_primary_retain_reply reply;
    zl_context *all = NULL, *context = primaries[device];
    unsigned retained = context ? context->retained : 0;
    CUresult result;

    zl_handle_each(ZL_CONTEXT, forget_contents, &all);
    zl_handle_each(ZL_CONTEXT, lose, NULL);
    for (; all; all = all->lost) {
        zl_context_forget(all);
        all->retained = 0;
    }
    zl_range_clear();
    zl_pools_forget();
    zl_virtual_forget();
    result = zl_restart();
    for (unsigned i = 0; result == CUDA_SUCCESS && i < retained; i++) {
        command = zl_begin(ZL_OP_primary_retain, context, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->device = device;
        command->flags = primary_flags[device];
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
        if (result == CUDA_SUCCESS) {
            context->slot = reply.slot;
            context->retained++;
            atomic_store(&context->active, true);
        }
    }
    return result;
}

static CUresult release_primary(CUdevice device, bool reset)
{
    struct zl_cmd_primary_release *command;
    CUresult result;
    zl_context *context;

    if (!zl_device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if (reset && (atomic_load(&zl_state.dead) || zl_driver_ended())) {
        result = revive(device);
        pthread_mutex_unlock(&lock);
        return result;
    }
    context = primaries[device];
    if (!context || !context->retained) {
        pthread_mutex_unlock(&lock);
        return reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    }
    command = zl_begin(ZL_OP_primary_release, context, sizeof *command, true);
    if (command) {
        command->device = device;
        command->reset = reset;
        result = zl_call(&command->header, NULL, 0, NULL);
    } else {
        result = zl_gone();
    }
    if (result == CUDA_SUCCESS) {
        if (!reset && !--context->retained)
            atomic_store(&context->active, false);
        if (reset || !context->retained)
            zl_context_forget(context);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult zl_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return release_primary(dev, false);
}

CUresult zl_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return release_primary(dev, true);
}

CUresult zl_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    primary_flags[dev] = flags;
    if (primaries[dev])
        primaries[dev]->flags = flags;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult zl_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    *flags = primary_flags[dev];
    *active = zl_primary(dev) != NULL;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* --- the stack --- */

static CUresult push(uint64_t handle)
{
    zl_thread *thread = zl_thread_self();

    if (thread->depth == thread->capacity) {
        uint32_t larger = thread->capacity ? thread->capacity * 2 : 8;
        uint64_t *grown = realloc(thread->stack, larger * sizeof *grown);
        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        thread->stack = grown;
        thread->capacity = larger;
    }
    thread->stack[thread->depth++] = handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxPushCurrent_v2(CUcontext ctx)
{
    return zl_handle_get(ZL_CONTEXT, (uint64_t)ctx) ? push((uint64_t)ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_cuCtxPopCurrent_v2(CUcontext *pctx)
{
    zl_thread *thread = zl_thread_self();

    if (!thread->depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    thread->depth--;
    if (pctx)
        *pctx = (CUcontext)thread->stack[thread->depth];
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxSetCurrent(CUcontext ctx)
{
    zl_thread *thread = zl_thread_self();

    if (ctx && !zl_handle_get(ZL_CONTEXT, (uint64_t)ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (thread->depth)
        thread->depth--;
    return ctx ? push((uint64_t)ctx) : CUDA_SUCCESS;
}

CUresult zl_cuCtxGetCurrent(CUcontext *pctx)
{
    zl_thread *thread = zl_thread_self();
    *pctx = thread->depth ? (CUcontext)thread->stack[thread->depth - 1] : NULL;
    return CUDA_SUCCESS;
}

/* --- creating and destroying --- */

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice device)
{
    struct zl_context_create_reply reply;
    struct zl_cmd_context_create *command;
    CUresult result;
    zl_context *context;

    if (!zl_device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    context = new_context(device, flags, false);
    pthread_mutex_unlock(&lock);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    command = zl_begin(ZL_OP_context_create, context, sizeof *command, true);
    if (command) {
        command->device = device;
        command->flags = flags;
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
    } else {
        result = zl_gone();
    }
    if (result == CUDA_SUCCESS) {
        context->slot = reply.slot;
        atomic_store(&context->active, true);
        result = push(context->handle);
        *pctx = (CUcontext)context->handle;
    } else {
        zl_handle_remove(ZL_CONTEXT, context->handle);
        free(context);
    }
    return result;
}

CUresult zl_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return create(pctx, flags, dev);
}

CUresult zl_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev)
{
    if (numParams < 0 || (numParams && !paramsArray))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < numParams; i++)
        if ((unsigned)paramsArray[i].type >= CU_EXEC_AFFINITY_TYPE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return numParams ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(pctx, flags, dev);
}

CUresult zl_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
    if (ctxCreateParams && ctxCreateParams->cigParams) { /* CU_DEVICE_ATTRIBUTE_*_CIG_SUPPORTED are 0 */
        if (ctxCreateParams->execAffinityParams || ctxCreateParams->numExecAffinityParams)
            return CUDA_ERROR_INVALID_VALUE;
        return zl_device_valid(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
    }
    return zl_cuCtxCreate_v3(pctx, ctxCreateParams ? ctxCreateParams->execAffinityParams : NULL,
                             ctxCreateParams ? ctxCreateParams->numExecAffinityParams : 0, flags, dev);
}

CUresult zl_cuCtxDestroy_v2(CUcontext ctx)
{
    zl_context *context = zl_handle_get(ZL_CONTEXT, (uint64_t)ctx);
    zl_thread *thread = zl_thread_self();
    struct zl_cmd_context_destroy *command;
    CUresult result;

    if (!context || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    command = zl_begin(ZL_OP_context_destroy, context, sizeof *command, true);
    result = command ? zl_call(&command->header, NULL, 0, NULL) : zl_gone();
    if (thread->depth && thread->stack[thread->depth - 1] == context->handle)
        thread->depth--;
    atomic_store(&context->active, false);
    zl_context_forget(context);
    zl_handle_remove(ZL_CONTEXT, context->handle);
    /* The object stays: another thread may be looking at it, and a context is 200 bytes. */
    return result;
}

/* --- what a context says --- */

static zl_context *named(CUcontext ctx)
{
    return ctx ? zl_handle_get(ZL_CONTEXT, (uint64_t)ctx) : zl_current();
}

CUresult zl_cuCtxGetDevice(zl_context *context, CUdevice *device)
{
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    zl_context *context = named(ctx);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxGetFlags(zl_context *context, unsigned int *flags)
{
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxSetFlags(zl_context *context, unsigned int flags)
{
    if (!flags_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    zl_context *context = named(ctx);
    if (!context)
        return ctx ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
    *ctxId = context->id;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    zl_context *context = named(ctx);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = context->api_version;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxSynchronize(zl_context *context)
{
    struct zl_cmd_context_synchronize *command;
    uint64_t posted = atomic_load(&context->posted);
    CUresult result = zl_capturing() ? zl_capture_conflict(context) : CUDA_SUCCESS;

    if (result != CUDA_SUCCESS || posted == atomic_load(&context->settled))
        return result;
    command = zl_begin(ZL_OP_context_synchronize, context, sizeof *command, true);
    result = command ? zl_call(&command->header, NULL, 0, NULL) : zl_gone();
    if (result == CUDA_SUCCESS)
        atomic_store(&context->settled, posted);
    return result;
}

CUresult zl_cuCtxSynchronize_v2(CUcontext ctx)
{
    zl_context *context = named(ctx);
    CUresult result;

    if (!context)
        return ctx ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
    result = zl_context_check(context);
    return result == CUDA_SUCCESS ? zl_cuCtxSynchronize(context) : result;
}

static bool limit_known(CUlimit limit)
{
    return (unsigned)limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

CUresult zl_cuCtxGetLimit(zl_context *context, size_t *pvalue, CUlimit limit)
{
    if (!limit_known(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *pvalue = context->limits[limit];
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxSetLimit(zl_context *context, CUlimit limit, size_t value)
{
    static const size_t largest[ZL_LIMITS] = {
        [CU_LIMIT_STACK_SIZE] = 512 << 10,
        [CU_LIMIT_PRINTF_FIFO_SIZE] = SIZE_MAX,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = SIZE_MAX,
        [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 24,
        [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 65536,
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128,
        [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0,
    };
    if (!limit_known(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context->limits[limit] = value < largest[limit] ? value : largest[limit]; /* "the driver is free to modify it" */
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxGetCacheConfig(zl_context *context, CUfunc_cache *pconfig)
{
    *pconfig = context->cache_config;
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxSetCacheConfig(zl_context *context, CUfunc_cache config)
{
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    context->cache_config = config;      /* a preference, and the devices here have nothing to choose between */
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxGetStreamPriorityRange(zl_context *context, int *leastPriority, int *greatestPriority)
{
    const struct zl_device *device = &zl_state.devices[context->device];

    if (leastPriority)
        *leastPriority = device->least_priority;
    if (greatestPriority)
        *greatestPriority = device->greatest_priority;
    return CUDA_SUCCESS;
}
