/* Events and contexts as a whole. */
#include "capture.h"

/* The context and the event of a call, checked. */
static CUresult find(CUcontext handle, CUevent event, zl_context **context, zl_event **found)
{
    *context = handle ? zl_handle_get(ZL_CONTEXT, (uint64_t)handle) : NULL;
    if (!*context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *found = zl_handle_get(ZL_EVENT, (uint64_t)event);
    return *found ? zl_context_check(*context) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct zl_cmd_context_record *command;
    zl_context *context;
    zl_event *event;
    CUresult result = find(hCtx, hEvent, &context, &event);

    if (result != CUDA_SUCCESS)
        return result;
    if (event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    result = zl_capture_conflict(context);
    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_context_record, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->event = (uint64_t)hEvent;
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

CUresult zl_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    struct zl_cmd_context_wait *command;
    zl_context *context;
    zl_event *event;
    CUresult result = find(hCtx, hEvent, &context, &event);

    if (result == CUDA_SUCCESS)
        result = zl_context_check(event->context);
    if (result == CUDA_SUCCESS)
        result = zl_capture_conflict(context);
    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_context_wait, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->event = (uint64_t)hEvent;
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}
