/* Streams and events. Their handles are made here, so that creating one is posted and costs no round trip. */
#include "capture.h"

#include <stdlib.h>

static _Atomic uint64_t last_stream_id = 2; /* 1 and 2 are the default streams' */

CUresult zl_use_stream(CUstream stream, zl_context **context, uint64_t *wire)
{
    zl_stream *found;

    if (zl_capturing()) {
        CUresult result = zl_capture_refuse_stream(stream, *context);
        if (result != CUDA_SUCCESS)
            return result;
    }
    if (!stream || stream == CU_STREAM_LEGACY) {
        *wire = ZL_STREAM_LEGACY;
        return CUDA_SUCCESS;
    }
    if (stream == CU_STREAM_PER_THREAD) {
        zl_thread *thread = zl_thread_self();
        thread->has_streams = true;
        *wire = thread->number << 4 | ZL_STREAM_PER_THREAD;
        return CUDA_SUCCESS;
    }
    found = zl_handle_get(ZL_STREAM, (uint64_t)stream);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *context = found->context;
    *wire = (uint64_t)stream;
    return zl_context_check(found->context);
}

CUresult zl_use_any_stream(CUstream stream, zl_context **context, uint64_t *wire)
{
    CUresult result;

    *context = NULL;
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
        result = zl_enter_context(context);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return zl_use_stream(stream, context, wire);
}

CUresult zl_use_event(CUevent event, zl_context **context, uint64_t *wire)
{
    zl_event *found = zl_handle_get(ZL_EVENT, (uint64_t)event);

    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (atomic_load_explicit(&zl_captured_events, memory_order_relaxed) && zl_capture_holds_event((uint64_t)event))
        return CUDA_ERROR_CAPTURED_EVENT;
    *wire = (uint64_t)event;
    if (*context)
        return CUDA_SUCCESS;
    *context = found->context;
    return zl_context_check(found->context);
}

CUresult zl_turn(zl_context *context, CUstream stream)
{
    struct zl_cmd_turn *command;
    uint64_t wire, posted;
    CUresult result = zl_use_stream(stream, &context, &wire);

    if (result != CUDA_SUCCESS)
        return result;
    posted = atomic_load(&context->posted);
    if (posted == atomic_load(&context->settled))
        return CUDA_SUCCESS;             /* nothing is in flight: no need to ask */
    command = zl_begin(ZL_OP_turn, context, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->stream = wire;
    result = zl_call(&command->header, NULL, 0, NULL);
    /* The default stream waits for all streams but non-blocking ones; without any, everything has finished. */
    if (result == CUDA_SUCCESS && wire == ZL_STREAM_LEGACY && !atomic_load(&context->non_blocking))
        atomic_store(&context->settled, posted);
    return result;
}

/* --- streams --- */

CUresult zl_cuStreamCreateWithPriority(zl_context *context, CUstream *phStream, unsigned int flags, int priority)
{
    struct zl_cmd_stream_create *command;
    const struct zl_device *device = &zl_state.devices[context->device];
    zl_stream *stream;
    uint64_t handle;

    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (priority > device->least_priority)
        priority = device->least_priority;
    if (priority < device->greatest_priority)
        priority = device->greatest_priority;
    stream = calloc(1, sizeof *stream);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *stream = (zl_stream){.context = context, .flags = flags, .priority = priority,
                          .id = atomic_fetch_add(&last_stream_id, 1) + 1};
    handle = zl_handle_new(ZL_STREAM, stream);
    command = handle ? zl_begin(ZL_OP_stream_create, context, sizeof *command, false) : NULL;
    if (!command) {
        if (handle)
            zl_handle_remove(ZL_STREAM, handle);
        free(stream);
        return handle ? zl_gone() : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (flags & CU_STREAM_NON_BLOCKING)
        atomic_store(&context->non_blocking, true);
    command->stream = handle;
    command->flags = flags;
    command->priority = priority;
    zl_post(&command->header, NULL);
    *phStream = (CUstream)handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuStreamCreate(zl_context *context, CUstream *phStream, unsigned int Flags)
{
    return zl_cuStreamCreateWithPriority(context, phStream, Flags, 0);
}

CUresult zl_cuStreamDestroy_v2(CUstream hStream)
{
    zl_stream *stream;
    struct zl_cmd_stream_destroy *command;

    zl_capture_forget_stream((uint64_t)hStream);
    stream = zl_handle_remove(ZL_STREAM, (uint64_t)hStream);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    command = zl_begin(ZL_OP_stream_destroy, stream->context, sizeof *command, false);
    free(stream);
    if (!command)
        return zl_gone();
    command->stream = (uint64_t)hStream;
    zl_post(&command->header, NULL);
    return CUDA_SUCCESS;
}

/* A stream's flags, priority and id: a default stream's are fixed. */
static CUresult describe(CUstream stream, zl_stream *description)
{
    zl_stream *found;

    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
        zl_context *context = zl_current();
        if (!context)
            return CUDA_ERROR_INVALID_CONTEXT;
        *description = (zl_stream){.context = context, .priority = context->settings.priority, .id = 1};
        if (stream == CU_STREAM_PER_THREAD) {
            description->priority = zl_thread_self()->settings.priority;
            description->id = zl_thread_self()->number << 32 | 2;
        }
        return zl_context_check(context);
    }
    found = zl_handle_get(ZL_STREAM, (uint64_t)stream);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *description = *found;
    return CUDA_SUCCESS;
}

CUresult zl_cuStreamGetPriority(CUstream hStream, int *priority)
{
    zl_stream stream;
    CUresult result = describe(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *priority = stream.priority;
    return result;
}

CUresult zl_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    zl_stream stream;
    CUresult result = describe(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *flags = stream.flags;
    return result;
}

CUresult zl_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    zl_stream stream;
    CUresult result = describe(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *streamId = stream.id;
    return result;
}

CUresult zl_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    zl_stream stream;
    CUresult result = describe(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *pctx = (CUcontext)stream.context->handle;
    return result;
}

CUresult zl_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    CUresult result = zl_cuStreamGetCtx(hStream, pCtx);
    if (result == CUDA_SUCCESS)
        *pGreenCtx = NULL;               /* a green context makes no streams here */
    return result;
}

CUresult zl_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    CUcontext context;
    return zl_cuStreamGetCtx_v2(hStream, &context, phCtx);
}

CUresult zl_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    zl_stream stream;
    CUresult result = describe(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *device = stream.context->device;
    return result;
}

/* --- events --- */

CUresult zl_cuEventCreate(zl_context *context, CUevent *phEvent, unsigned int Flags)
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    struct zl_cmd_event_create *command;
    zl_event *event;
    uint64_t handle;

    if ((Flags & ~known) || ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_EVENT_INTERPROCESS)
        return zl_not_supported("cuEventCreate", "interprocess events");
    event = calloc(1, sizeof *event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *event = (zl_event){context, Flags};
    handle = zl_handle_new(ZL_EVENT, event);
    command = handle ? zl_begin(ZL_OP_event_create, context, sizeof *command, false) : NULL;
    if (!command) {
        if (handle)
            zl_handle_remove(ZL_EVENT, handle);
        free(event);
        return handle ? zl_gone() : CUDA_ERROR_OUT_OF_MEMORY;
    }
    command->event = handle;
    command->flags = Flags;
    zl_post(&command->header, NULL);
    *phEvent = (CUevent)handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuEventDestroy_v2(CUevent hEvent)
{
    zl_event *event = zl_handle_remove(ZL_EVENT, (uint64_t)hEvent);
    struct zl_cmd_event_destroy *command;

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    zl_capture_forget_event((uint64_t)hEvent);
    command = zl_begin(ZL_OP_event_destroy, event->context, sizeof *command, false);
    free(event);
    if (!command)
        return zl_gone();
    command->event = (uint64_t)hEvent;
    zl_post(&command->header, NULL);
    return CUDA_SUCCESS;
}

CUresult zl_cuEventRecordWithFlags(zl_context *context, CUevent hEvent, CUstream hStream, unsigned int flags)
{
    zl_event *event = zl_handle_get(ZL_EVENT, (uint64_t)hEvent);
    struct zl_cmd_event_record *command;
    uint64_t wire;
    CUresult result;

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (zl_captured(hStream))
        return zl_capture_record(hEvent, hStream, flags);
    if (flags != CU_EVENT_RECORD_DEFAULT) /* CU_EVENT_RECORD_EXTERNAL is for streams that are being captured */
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_use_stream(hStream, &context, &wire);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    zl_capture_forget_event((uint64_t)hEvent);
    command = zl_begin(ZL_OP_event_record, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->event = (uint64_t)hEvent;
    command->stream = wire;
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

CUresult zl_cuEventRecord(zl_context *context, CUevent hEvent, CUstream hStream)
{
    return zl_cuEventRecordWithFlags(context, hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult zl_cuStreamWaitEvent(zl_context *context, CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct zl_cmd_event_wait *command;
    uint64_t stream, event;
    CUresult result;

    if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!zl_handle_get(ZL_EVENT, (uint64_t)hEvent))
        return CUDA_ERROR_INVALID_HANDLE;
    if (zl_capture_wait(hStream, hEvent, Flags, &result))
        return result;
    if (Flags != CU_EVENT_WAIT_DEFAULT)  /* CU_EVENT_WAIT_EXTERNAL is for streams that are being captured */
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_use_stream(hStream, &context, &stream);
    if (result == CUDA_SUCCESS)
        result = zl_use_event(hEvent, &context, &event);
    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_event_wait, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->stream = stream;
    command->event = event;
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

/* --- when a context goes --- */

static bool in_context(uint64_t handle, void *object, void *argument)
{
    /* The context is the first member of all of these. */
    (void)handle;
    if (*(zl_context **)object != argument)
        return false;
    free(object);
    return true;
}

void zl_context_forget(zl_context *context)
{
    zl_capture_forget_context(context);
    zl_handle_each(ZL_STREAM, in_context, context);
    zl_handle_each(ZL_EVENT, in_context, context);
    zl_handle_each(ZL_ARRAY, in_context, context);
    zl_handle_each(ZL_MIPMAPPED_ARRAY, in_context, context);
    zl_module_forget_context(context);
    zl_range_remove_context(context->handle);
    atomic_store(&context->non_blocking, false);
    atomic_store(&context->settled, atomic_load(&context->posted));
}
