/* Stream capture: which streams are captured, and work that becomes nodes. What breaks the rules invalidates a capture:
   its streams stay unusable until it is ended. */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

_Atomic unsigned zl_captures;
_Atomic unsigned zl_captured_events;
zl_capture *zl_capture_list;
zl_captured_stream *zl_captured_streams;
static cuuint64_t last_id;

/* What an event was recorded behind, in a capture that may have ended. */
static struct captured_event {
    uint64_t event;
    cuuint64_t capture;
    zl_dependencies behind;
    struct captured_event *next;
} *events;

/* --- dependencies --- */

CUresult zl_dependencies_add(zl_dependencies *set, CUgraphNode node, const CUgraphEdgeData *data)
{
    size_t room = set->capacity;

    for (size_t i = 0; i < set->count; i++)
        if (set->nodes[i] == node)
            return CUDA_SUCCESS;
    if (!zl_graph_grow((void **)&set->data, &room, set->count, sizeof *set->data) ||
        !zl_graph_grow((void **)&set->nodes, &set->capacity, set->count, sizeof *set->nodes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    set->nodes[set->count] = node;
    set->data[set->count++] = data ? *data : (CUgraphEdgeData){0};
    return CUDA_SUCCESS;
}

static CUresult merge(zl_dependencies *set, const zl_dependencies *more)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < more->count; i++)
        result = zl_dependencies_add(set, more->nodes[i], &more->data[i]);
    return result;
}

static void empty(zl_dependencies *set)
{
    free(set->nodes);
    free(set->data);
    *set = (zl_dependencies){0};
}

/* --- streams --- */

CUresult zl_capture_name(CUstream stream, zl_captured_stream *named)
{
    zl_stream *found;

    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
        *named = (zl_captured_stream){.wire = ZL_STREAM_LEGACY, .context = zl_current(), .blocking = true};
        if (stream == CU_STREAM_PER_THREAD)
            named->wire = zl_thread_self()->number << 4 | ZL_STREAM_PER_THREAD;
        return named->context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    }
    found = zl_handle_get(ZL_STREAM, (uint64_t)stream);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *named = (zl_captured_stream){
        .wire = (uint64_t)stream,
        .context = found->context,
        .blocking = !(found->flags & CU_STREAM_NON_BLOCKING),
    };
    return CUDA_SUCCESS;
}

static zl_captured_stream *find(const zl_captured_stream *named)
{
    zl_captured_stream *found = zl_captured_streams;

    while (found && (found->wire != named->wire || found->context != named->context))
        found = found->next;
    return found;
}

zl_captured_stream *zl_capture_find(CUstream stream)
{
    zl_captured_stream named;
    return zl_capture_name(stream, &named) == CUDA_SUCCESS ? find(&named) : NULL;
}

bool zl_captured_slowly(CUstream stream)
{
    bool found;

    pthread_mutex_lock(&zl_graph_lock);
    found = zl_capture_find(stream);
    pthread_mutex_unlock(&zl_graph_lock);
    return found;
}

static zl_captured_stream *join(zl_capture *capture, const zl_captured_stream *named)
{
    zl_captured_stream *stream = malloc(sizeof *stream);

    if (!stream)
        return NULL;
    *stream = *named;
    stream->capture = capture;
    stream->next = zl_captured_streams;
    zl_captured_streams = stream;
    atomic_fetch_add(&zl_captures, 1);
    return stream;
}

static void leave(zl_captured_stream *stream)
{
    zl_captured_stream **link = &zl_captured_streams;

    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    empty(&stream->tail);
    free(stream);
    atomic_fetch_sub(&zl_captures, 1);
}

CUresult zl_capture_begin(CUstream stream, zl_graph *graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
                          CUstreamCaptureMode mode)
{
    zl_captured_stream named, *first;
    zl_capture *capture;
    CUresult result = zl_capture_name(stream, &named);

    if (result == CUDA_SUCCESS)
        result = zl_context_check(named.context);
    if (result != CUDA_SUCCESS)
        return result;
    if (named.wire == ZL_STREAM_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (find(&named))
        return CUDA_ERROR_ILLEGAL_STATE;
    capture = calloc(1, sizeof *capture);
    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->to_graph = graph;
    capture->graph = graph ? graph : zl_graph_new(false);
    first = capture->graph ? join(capture, &named) : NULL;
    result = first ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = zl_dependencies_add(&first->tail, nodes[i], data ? &data[i] : NULL);
    if (result != CUDA_SUCCESS) {
        if (first)
            leave(first);
        if (capture->graph && !graph)
            zl_graph_free(capture->graph);
        free(capture);
        return result;
    }
    capture->graph->captures++;
    capture->id = ++last_id;
    capture->mode = mode;
    capture->thread = zl_thread_self()->number;
    capture->origin = named.wire;
    capture->next = zl_capture_list;
    zl_capture_list = capture;
    return CUDA_SUCCESS;
}

void zl_capture_finish(zl_capture *capture, bool keep)
{
    zl_captured_stream *stream, *next;
    zl_capture **link = &zl_capture_list;

    for (stream = zl_captured_streams; stream; stream = next) {
        next = stream->next;
        if (stream->capture == capture)
            leave(stream);
    }
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    capture->graph->captures--;
    if (!keep && !capture->to_graph)
        zl_graph_free(capture->graph);
    free(capture);
}

void zl_capture_forget_stream(uint64_t wire)
{
    zl_captured_stream *stream;

    if (!zl_capturing())
        return;
    pthread_mutex_lock(&zl_graph_lock);
    for (stream = zl_captured_streams; stream && stream->wire != wire; stream = stream->next)
        ;
    if (stream && stream->capture->origin == wire) /* nobody can end it any more */
        zl_capture_finish(stream->capture, false);
    /* Another may go once it has been joined; what it did last is looked at in the end. */
    zl_graph_unlock();
}

void zl_capture_forget_context(const zl_context *context)
{
    zl_captured_stream *stream;

    if (!zl_capturing())
        return;
    pthread_mutex_lock(&zl_graph_lock);
    do {
        for (stream = zl_captured_streams; stream && stream->context != context; stream = stream->next)
            ;
        if (stream)
            zl_capture_finish(stream->capture, false);
    } while (stream);
    zl_graph_unlock();
}

/* --- events --- */

static struct captured_event *find_event(uint64_t event)
{
    struct captured_event *found = events;

    while (found && found->event != event)
        found = found->next;
    return found;
}

void zl_capture_forget_event(uint64_t event)
{
    struct captured_event **link = &events, *found;

    if (!atomic_load_explicit(&zl_captured_events, memory_order_relaxed))
        return;
    pthread_mutex_lock(&zl_graph_lock);
    while (*link && (*link)->event != event)
        link = &(*link)->next;
    found = *link;
    if (found) {
        *link = found->next;
        empty(&found->behind);
        free(found);
        atomic_fetch_sub(&zl_captured_events, 1);
    }
    pthread_mutex_unlock(&zl_graph_lock);
}

bool zl_capture_holds_event(uint64_t event)
{
    bool found;

    pthread_mutex_lock(&zl_graph_lock);
    found = find_event(event);
    pthread_mutex_unlock(&zl_graph_lock);
    return found;
}

static zl_capture *find_capture(cuuint64_t id)
{
    zl_capture *found = zl_capture_list;

    while (found && found->id != id)
        found = found->next;
    return found;
}

static CUresult record(uint64_t event, const zl_captured_stream *stream)
{
    struct captured_event *found = find_event(event);

    if (!found) {
        found = calloc(1, sizeof *found);
        if (!found)
            return CUDA_ERROR_OUT_OF_MEMORY;
        found->event = event;
        found->next = events;
        events = found;
        atomic_fetch_add(&zl_captured_events, 1);
    }
    found->capture = stream->capture->id;
    found->behind.count = 0;
    return merge(&found->behind, &stream->tail);
}

CUresult zl_capture_record(CUevent event, CUstream stream, unsigned flags)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    zl_captured_stream *captured;
    CUresult result;
    zl_event *found = zl_handle_get(ZL_EVENT, (uint64_t)event);

    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        params.eventRecord.event = event;
        return zl_capture_work(stream, &params);
    }
    pthread_mutex_lock(&zl_graph_lock);
    captured = zl_capture_find(stream);
    if (!captured || found->context != captured->context)
        result = CUDA_ERROR_INVALID_HANDLE;
    else if (captured->capture->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else
        result = record((uint64_t)event, captured);
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}

/* The stream's next work waits for what the event holds of a capture; a stream outside of it joins. */
static CUresult wait_for(const zl_captured_stream *named, const struct captured_event *event)
{
    zl_captured_stream *stream = find(named);
    zl_capture *capture = find_capture(event->capture);

    if (!capture) {                      /* it has ended: the event tells nothing any more */
        if (!stream)
            return CUDA_ERROR_CAPTURED_EVENT;
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (capture->invalid || (stream && stream->capture->invalid))
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream && stream->capture != capture) {
        stream->capture->invalid = capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (!stream && named->wire == ZL_STREAM_LEGACY) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!stream)
        stream = join(capture, named);
    return stream ? merge(&stream->tail, &event->behind) : CUDA_ERROR_OUT_OF_MEMORY;
}

bool zl_capture_wait(CUstream stream, CUevent event, unsigned flags, CUresult *result)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    zl_captured_stream named, *captured;
    struct captured_event *found;
    bool ours = true;

    if (!zl_capturing() && !atomic_load_explicit(&zl_captured_events, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&zl_graph_lock);
    *result = zl_capture_name(stream, &named);
    if (*result == CUDA_SUCCESS) {
        captured = find(&named);
        found = find_event((uint64_t)event);
        if (captured && (flags & CU_EVENT_WAIT_EXTERNAL)) {
            params.eventWait.event = event;
            *result = zl_capture_work(stream, &params);
        } else if (found) {
            *result = wait_for(&named, found);
        } else if (captured) {           /* on work outside of the capture */
            *result = captured->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
            captured->capture->invalid = true;
        } else {
            ours = false;
        }
    }
    pthread_mutex_unlock(&zl_graph_lock);
    return ours;
}

/* --- work --- */

CUresult zl_capture_work(CUstream stream, const CUgraphNodeParams *params)
{
    zl_captured_stream *captured;
    zl_node *node;
    CUresult result = CUDA_ERROR_INVALID_HANDLE;

    pthread_mutex_lock(&zl_graph_lock);
    captured = zl_capture_find(stream);
    if (captured && captured->capture->invalid) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (captured) {
        zl_dependencies *tail = &captured->tail;
        result = zl_node_add(captured->capture->graph, tail->nodes, tail->data, tail->count, params, &node);
        if (result == CUDA_SUCCESS) {
            tail->count = 0;
            result = zl_dependencies_add(tail, (CUgraphNode)node->handle, NULL);
        }
    }
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}

static CUresult own_context(CUstream stream, zl_context **context)
{
    zl_captured_stream named;
    CUresult result = zl_capture_name(stream, &named);

    *context = named.context;
    return result == CUDA_SUCCESS ? zl_context_check(named.context) : result;
}

CUresult zl_capture_launch(CUfunction function, const unsigned grid[3], const unsigned block[3],
                           unsigned shared, CUstream stream, void **kernel_params, void **extra)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    zl_function_entry *entry;
    zl_context *context;
    CUresult result = own_context(stream, &context);

    if (result == CUDA_SUCCESS)
        result = zl_function_use(context, function, &entry);
    if (result != CUDA_SUCCESS)
        return result;
    if (entry->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    params.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
        (CUfunction)entry->handle, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, kernel_params, extra, NULL, NULL,
    };
    return zl_capture_work(stream, &params);
}

static bool of_device(uint64_t address)
{
    zl_range range;
    return zl_range_find(address, &range) && range.kind != ZL_RANGE_HOST;
}

static zl_operand operand(uint64_t address)
{
    return (zl_operand){.type = of_device(address) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST, .base = address};
}

CUresult zl_capture_copy(CUstream stream, uint64_t destination, uint64_t source, size_t size)
{
    const zl_operand to = operand(destination), from = operand(source);
    return zl_capture_box(stream, &to, &from, (zl_box){size, 1, 1});
}

CUresult zl_capture_box(CUstream stream, const zl_operand *to, const zl_operand *from, zl_box box)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    zl_context *context;
    CUresult result = own_context(stream, &context);

    if (result != CUDA_SUCCESS)
        return result;
    params.memcpy.copyCtx = (CUcontext)context->handle;
    params.memcpy.copyParams = (CUDA_MEMCPY3D){
        .srcXInBytes = from->x, .srcY = from->y, .srcZ = from->z, .srcMemoryType = from->type,
        .srcHost = (const void *)(uintptr_t)from->base, .srcDevice = from->base, .srcArray = from->array,
        .srcPitch = from->pitch, .srcHeight = from->rows,
        .dstXInBytes = to->x, .dstY = to->y, .dstZ = to->z, .dstMemoryType = to->type,
        .dstHost = (void *)(uintptr_t)to->base, .dstDevice = to->base, .dstArray = to->array,
        .dstPitch = to->pitch, .dstHeight = to->rows,
        .WidthInBytes = box.width, .Height = box.height, .Depth = box.depth,
    };
    return zl_capture_work(stream, &params);
}

CUresult zl_capture_fill(CUstream stream, uint64_t destination, size_t pitch, unsigned value,
                         unsigned bytes, size_t width, size_t height)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    zl_context *context;
    CUresult result = own_context(stream, &context);

    if (result != CUDA_SUCCESS)
        return result;
    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
        destination, pitch, value, bytes, width, height, (CUcontext)context->handle,
    };
    return zl_capture_work(stream, &params);
}

CUresult zl_capture_host(CUstream stream, CUhostFn function, void *argument)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};

    params.host.fn = function;
    params.host.userData = argument;
    return zl_capture_work(stream, &params);
}

CUresult zl_capture_graph(CUstream stream, const zl_graph *graph)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    zl_graph *copy;
    CUresult result;

    pthread_mutex_lock(&zl_graph_lock);
    result = zl_graph_copy(graph, false, &copy);
    if (result == CUDA_SUCCESS) {
        params.graph.graph = (CUgraph)copy->handle;
        params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
        result = zl_capture_work(stream, &params);
        if (result != CUDA_SUCCESS)
            zl_graph_free(copy);
    }
    pthread_mutex_unlock(&zl_graph_lock);
    return result;
}
