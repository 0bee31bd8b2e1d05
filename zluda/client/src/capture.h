/* Stream capture, as other files meet it. The graph lock guards its state too. */
#ifndef ZL_CAPTURE_H
#define ZL_CAPTURE_H

#include "graph.h"

bool zl_captured_slowly(CUstream stream);
/* Whether what is put into the stream is captured instead of executed. */
static inline bool zl_captured(CUstream stream)
{
    return ZL_LIKELY(!zl_capturing()) ? false : zl_captured_slowly(stream);
}

/* Captures one piece of work. */
CUresult zl_capture_work(CUstream stream, const CUgraphNodeParams *params);
CUresult zl_capture_launch(CUfunction function, const unsigned grid[3], const unsigned block[3],
                           unsigned shared, CUstream stream, void **params, void **extra);
/* A copy of which each side is the host's or the device's by its address. */
CUresult zl_capture_copy(CUstream stream, uint64_t destination, uint64_t source, size_t size);
CUresult zl_capture_box(CUstream stream, const zl_operand *to, const zl_operand *from, zl_box box);
CUresult zl_capture_fill(CUstream stream, uint64_t destination, size_t pitch, unsigned value,
                         unsigned bytes, size_t width, size_t height);
CUresult zl_capture_host(CUstream stream, CUhostFn function, void *argument);
CUresult zl_capture_graph(CUstream stream, const zl_graph *graph);
CUresult zl_capture_record(CUevent event, CUstream stream, unsigned flags);
/* Whether a wait is a capture's matter, as the stream is captured or the event was; then its result. */
bool zl_capture_wait(CUstream stream, CUevent event, unsigned flags, CUresult *result);
/* Whether the event was recorded last in a stream that was captured, so that it tells nothing outside of it. */
bool zl_capture_holds_event(uint64_t event);
extern _Atomic unsigned zl_captured_events; /* how many there are */
/* The event is recorded outside of any capture, or destroyed: what it held of one is gone. */
void zl_capture_forget_event(uint64_t event);
/* A stream (its name on the wire), or a context's streams, are destroyed while they may be captured. */
void zl_capture_forget_stream(uint64_t wire);
void zl_capture_forget_context(const zl_context *context);

/* --- inside --- */

typedef struct zl_capture {
    cuuint64_t id;
    zl_graph *graph;
    CUstreamCaptureMode mode;
    uint64_t thread, origin;             /* where it was begun: thread, stream on the wire */
    bool to_graph;                       /* which is the program's */
    bool invalid;
    struct zl_capture *next;
} zl_capture;

typedef struct zl_dependencies {
    CUgraphNode *nodes;
    CUgraphEdgeData *data;
    size_t count, capacity;
} zl_dependencies;

typedef struct zl_captured_stream {
    uint64_t wire;
    zl_context *context;
    bool blocking;                       /* so the legacy default stream would wait for it */
    zl_capture *capture;
    zl_dependencies tail;                /* what the next node depends on */
    struct zl_captured_stream *next;
} zl_captured_stream;

extern zl_capture *zl_capture_list;
extern zl_captured_stream *zl_captured_streams;

/* The stream's name on the wire, its context and whether the legacy stream waits for it. */
CUresult zl_capture_name(CUstream stream, zl_captured_stream *named);
zl_captured_stream *zl_capture_find(CUstream stream);
CUresult zl_capture_begin(CUstream stream, zl_graph *graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
                          CUstreamCaptureMode mode);
/* Forgets a capture, its streams, and its graph unless that is to be kept. */
void zl_capture_finish(zl_capture *capture, bool keep);
CUresult zl_dependencies_add(zl_dependencies *set, CUgraphNode node, const CUgraphEdgeData *data);

#endif
