/* What is not allowed while streams are captured: work that capture cannot see, and the legacy default stream. */
#include "capture.h"

static CUresult refuse(zl_capture *capture, CUresult why)
{
    if (capture->invalid && why != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    capture->invalid = true;
    return why;
}

/* Captures that the legacy default stream of a context would depend on. */
static CUresult refuse_legacy(const zl_context *context)
{
    CUresult result = CUDA_SUCCESS;

    for (zl_captured_stream *stream = zl_captured_streams; stream; stream = stream->next)
        if (stream->blocking && stream->context == context)
            result = refuse(stream->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return result;
}

CUresult zl_capture_refuse_stream(CUstream stream, const zl_context *context)
{
    CUresult result = CUDA_SUCCESS;
    zl_captured_stream *captured;

    pthread_mutex_lock(&zl_graph_lock);
    if (!stream || stream == CU_STREAM_LEGACY)
        result = refuse_legacy(context ? context : zl_current());
    else if ((captured = zl_capture_find(stream)))
        result = refuse(captured->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}

/* Whether a capture forbids the calling thread what may be unsafe (cuThreadExchangeStreamCaptureMode). */
static bool forbids(const zl_capture *capture, const zl_thread *thread)
{
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || thread->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (capture->thread == thread->number)
        return true;
    return thread->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult zl_capture_unsafe(void)
{
    const zl_thread *thread = zl_thread_self();
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&zl_graph_lock);
    for (zl_capture *capture = zl_capture_list; capture; capture = capture->next)
        if (forbids(capture, thread)) {
            capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}

CUresult zl_capture_conflict(const zl_context *context)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&zl_graph_lock);
    for (zl_captured_stream *stream = zl_captured_streams; stream; stream = stream->next)
        if (stream->context == context) {
            stream->capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}
