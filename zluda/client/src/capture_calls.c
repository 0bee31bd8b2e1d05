/* Entry points of stream capture. */
#include "capture.h"

#include <stdlib.h>

static CUresult begin(CUstream stream, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                      size_t count, CUstreamCaptureMode mode, bool to_graph)
{
    zl_graph *graph = NULL;
    CUresult result = CUDA_SUCCESS;

    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&zl_graph_lock);
    if (to_graph && !(graph = zl_graph_get(hGraph)))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        const zl_node *node = zl_node_get(dependencies[i]);
        if (!node || node->graph != graph)
            result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS)
        result = zl_capture_begin(stream, graph, dependencies, data, count, mode);
    zl_graph_unlock();
    return result;
}

CUresult zl_cuStreamBeginCapture(CUstream hStream)
{
    return begin(hStream, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, false);
}

CUresult zl_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin(hStream, NULL, NULL, NULL, 0, mode, false);
}

CUresult zl_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                        const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode)
{
    return begin(hStream, hGraph, dependencies, dependencyData, numDependencies, mode, true);
}

/* Marks a node and all that it depends on. */
static void reach(zl_node *node, zl_node **stack)
{
    size_t depth = 0;

    if (node->mark)
        return;
    node->mark = 1;
    stack[depth++] = node;
    while (depth) {
        const zl_edges *edges = &stack[--depth]->from;
        for (size_t i = 0; i < edges->count; i++) {
            zl_node *before = edges->items[i].node;
            if (!before->mark) {
                before->mark = 1;
                stack[depth++] = before;
            }
        }
    }
}

/* Whether all that streams of the capture have done last lies behind what the first of them ends with. */
static CUresult check_joined(const zl_capture *capture, const zl_captured_stream *origin)
{
    const zl_graph *graph = capture->graph;
    zl_node **stack = malloc((graph->count + 1) * sizeof *stack);

    if (!stack)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->count; i++)
        graph->nodes[i]->mark = 0;
    for (size_t i = 0; i < origin->tail.count; i++)
        reach(zl_node_get(origin->tail.nodes[i]), stack);
    free(stack);
    for (const zl_captured_stream *stream = zl_captured_streams; stream; stream = stream->next)
        for (size_t i = 0; stream->capture == capture && i < stream->tail.count; i++)
            if (!zl_node_get(stream->tail.nodes[i])->mark)
                return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    return CUDA_SUCCESS;
}

static CUresult end(CUstream hStream, CUgraph *graph)
{
    zl_captured_stream named, *stream;
    zl_capture *capture;
    CUresult result = zl_capture_name(hStream, &named);

    if (result != CUDA_SUCCESS)
        return result;
    stream = zl_capture_find(hStream);
    if (!stream)
        return CUDA_ERROR_ILLEGAL_STATE;
    capture = stream->capture;
    if (capture->origin != stream->wire) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != zl_thread_self()->number)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(capture, stream);
    if (result == CUDA_SUCCESS)
        *graph = (CUgraph)capture->graph->handle;
    zl_capture_finish(capture, result == CUDA_SUCCESS);
    return result;
}

CUresult zl_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    CUresult result;

    *phGraph = NULL;
    pthread_mutex_lock(&zl_graph_lock);
    result = end(hStream, phGraph);
    zl_graph_unlock();
    return result;
}

/* The stream's capture, or none. The legacy stream has none, but must not be asked while it would depend on one. */
static CUresult query(CUstream hStream, zl_captured_stream **stream)
{
    zl_captured_stream named;
    CUresult result = zl_capture_name(hStream, &named);

    *stream = NULL;
    if (result != CUDA_SUCCESS)
        return result;
    if (named.wire == ZL_STREAM_LEGACY) {
        for (const zl_captured_stream *other = zl_captured_streams; other; other = other->next)
            if (other->blocking && other->context == named.context)
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        return CUDA_SUCCESS;
    }
    *stream = zl_capture_find(hStream);
    return CUDA_SUCCESS;
}

static CUstreamCaptureStatus status(const zl_captured_stream *stream)
{
    if (!stream)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult zl_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    zl_captured_stream *stream;
    CUresult result;

    pthread_mutex_lock(&zl_graph_lock);
    result = query(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *captureStatus = status(stream);
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}

/* Whether edge data would be lost on somebody who asks for the nodes alone. */
static bool lossy(const zl_captured_stream *stream)
{
    for (size_t i = 0; i < stream->tail.count; i++)
        if (!zl_edge_plain(&stream->tail.data[i]))
            return true;
    return false;
}

CUresult zl_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                      CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                      const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    zl_captured_stream *stream;
    CUresult result;

    if (edgeData_out && !dependencies_out)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&zl_graph_lock);
    result = query(hStream, &stream);
    if (result == CUDA_SUCCESS)
        *captureStatus_out = status(stream);
    if (result == CUDA_SUCCESS && stream && !stream->capture->invalid) {
        if (dependencies_out && !edgeData_out && lossy(stream))
            result = CUDA_ERROR_LOSSY_QUERY;
        if (id_out)
            *id_out = stream->capture->id;
        if (graph_out)
            *graph_out = (CUgraph)stream->capture->graph->handle;
        if (dependencies_out)
            *dependencies_out = stream->tail.nodes;
        if (edgeData_out)
            *edgeData_out = stream->tail.data;
        if (numDependencies_out)
            *numDependencies_out = stream->tail.count;
    }
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}

CUresult zl_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                      CUgraph *graph_out, const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
    return zl_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out);
}

CUresult zl_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
    return zl_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

static CUresult update(CUstream hStream, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count, bool set)
{
    zl_captured_stream *stream;
    CUresult result = query(hStream, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!stream)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (size_t i = 0; i < count; i++) {
        const zl_node *node = zl_node_get(nodes[i]);
        if (!node || node->graph != stream->capture->graph)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (set && nodes != stream->tail.nodes) /* the program may give back what it was given */
        stream->tail.count = 0;
    else if (set)
        stream->tail.count = count < stream->tail.count ? count : stream->tail.count;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = zl_dependencies_add(&stream->tail, nodes[i], data ? &data[i] : NULL);
    return result;
}

CUresult zl_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                 const CUgraphEdgeData *dependencyData, size_t numDependencies, unsigned int flags)
{
    CUresult result;

    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (numDependencies && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&zl_graph_lock);
    result = update(hStream, dependencies, dependencyData, numDependencies, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}

CUresult zl_cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies, unsigned int flags)
{
    return zl_cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies, flags);
}

CUresult zl_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    zl_thread *thread = zl_thread_self();
    CUstreamCaptureMode before = thread->capture_mode;

    if ((unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread->capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
