/* Stream capture: work becomes a graph, streams fork and join by events, and what is not allowed breaks the capture. */
#include "check.h"

#define BAD CUDA_ERROR_INVALID_VALUE
#define UNSUPPORTED CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
#define INVALIDATED CUDA_ERROR_STREAM_CAPTURE_INVALIDATED

static CUcontext context;
static CUfunction add_one, scale;
static CUdeviceptr data;
static CUstream stream, second, blocking;

static uint32_t word(size_t index)
{
    uint32_t value;
    OK(cuMemcpyDtoH(&value, data + 4 * index, 4));
    return value;
}

/* data[index] = data[index] * factor + shift */
static void work(CUstream where, size_t index, uint32_t factor, uint32_t shift)
{
    CUdeviceptr address = data + 4 * index;
    void *arguments[] = {&address, &factor, &shift};
    OK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, where, arguments, NULL));
}

static CUstreamCaptureStatus status(CUstream where)
{
    CUstreamCaptureStatus found;
    OK(cuStreamIsCapturing(where, &found));
    return found;
}

static size_t nodes(CUgraph graph)
{
    size_t count;
    OK(cuGraphGetNodes(graph, NULL, &count));
    return count;
}

static void run_and_destroy(CUgraph graph, CUstream where)
{
    CUgraphExec exec;
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, where));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamSynchronize(where));
}

static void begin(CUstream where)
{
    OK(cuStreamBeginCapture(where, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

/* The capture is broken; ending it says so and gives nothing, and the stream is as it was. */
static void expect_broken(CUstream where)
{
    CUgraph graph = (CUgraph)1;
    TRUE(status(where) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT(cuMemsetD8Async(data, 0, 1, where), INVALIDATED);
    EXPECT(cuStreamEndCapture(where, &graph), INVALIDATED);
    TRUE(!graph);
    TRUE(status(where) == CU_STREAM_CAPTURE_STATUS_NONE);
}

static void one_stream(void)
{
    CUgraph graph = NULL, during;
    CUgraphExec exec;
    CUgraphNode found[8];
    CUgraphNodeType type;
    CUgraphEdgeData edges[8];
    CUgraphNode from[8], to[8];
    size_t count = 8;
    uint32_t source[2] = {5, 6}, target[2] = {0}, *pinned;
    cuuint64_t id = 0, id2;
    CUstreamCaptureStatus state;
    const CUgraphNode *behind;

    OK(cuMemAllocHost((void **)&pinned, 8));
    OK(cuMemsetD32(data, 0, 64));
    OK(cuCtxSynchronize());
    TRUE(status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
    begin(stream);
    TRUE(status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemcpyHtoDAsync(data, source, 8, stream));
    work(stream, 0, 10, 1);
    OK(cuMemsetD32Async(data + 8, 7, 2, stream));
    OK(cuMemcpyDtoDAsync(data + 16, data, 16, stream));
    OK(cuMemcpyDtoHAsync(pinned, data + 16, 8, stream));
    OK(cuStreamGetCaptureInfo(stream, &state, &id, &during, &behind, NULL, &count));
    TRUE(state == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && during && count == 1);
    OK(cuGraphNodeGetType(behind[0], &type));
    TRUE(type == CU_GRAPH_NODE_TYPE_MEMCPY);
    EXPECT(cuGraphDestroy(during), BAD); /* while it is captured */
    EXPECT(cuGraphDestroyNode(behind[0]), BAD);
    EXPECT(cuGraphInstantiate(&exec, during, 0), BAD);
    OK(cuMemcpyDtoHAsync(target, data + 16, 8, stream));
    OK(cuStreamEndCapture(stream, &graph));
    TRUE(graph == during);
    TRUE(word(0) == 0);                  /* nothing has run */
    count = 8;
    OK(cuGraphGetNodes(graph, found, &count));
    TRUE(count == 6);
    count = 8;
    OK(cuGraphGetEdges(graph, from, to, edges, &count));
    TRUE(count == 5);                    /* one behind the other */
    for (int i = 0; i < 5; i++)
        TRUE(from[i] == found[i] && to[i] == found[i + 1]);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(word(0) == 51 && word(1) == 6 && word(2) == 7 && word(3) == 7 && word(4) == 51 && word(7) == 7);
    TRUE(pinned[0] == 51 && pinned[1] == 6 && target[0] == 51 && target[1] == 6);
    source[0] = 8;
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(word(0) == 81 && target[0] == 81);

    /* A launch while capturing becomes a child graph. */
    begin(second);
    OK(cuStreamGetCaptureInfo(second, &state, &id2, NULL, NULL, NULL, NULL));
    TRUE(id2 != id);
    OK(cuGraphLaunch(exec, second));
    work(second, 0, 1, 1);
    OK(cuStreamEndCapture(second, &graph));
    TRUE(nodes(graph) == 2);
    OK(cuGraphExecDestroy(exec));
    run_and_destroy(graph, second);
    TRUE(word(0) == 82);
    OK(cuMemFreeHost(pinned));
}

static void fork_and_join(void)
{
    CUevent fork, join, late;
    CUgraph graph;
    size_t count;

    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&late, CU_EVENT_DISABLE_TIMING));
    OK(cuMemsetD32(data, 1, 4));
    OK(cuCtxSynchronize());
    begin(stream);
    work(stream, 0, 2, 0);
    OK(cuEventRecord(fork, stream));
    OK(cuStreamWaitEvent(second, fork, 0));
    TRUE(status(second) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    work(second, 1, 3, 0);
    work(stream, 2, 4, 0);
    EXPECT(cuStreamEndCapture(second, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED); /* begun elsewhere */
    expect_broken(stream);
    TRUE(status(second) == CU_STREAM_CAPTURE_STATUS_NONE);
    TRUE(word(0) == 1 && word(1) == 1);
    EXPECT(cuStreamWaitEvent(second, fork, 0), CUDA_ERROR_CAPTURED_EVENT); /* of a capture that is over */

    begin(stream);
    work(stream, 0, 2, 0);
    OK(cuEventRecord(fork, stream));
    EXPECT(cuEventQuery(fork), UNSUPPORTED); /* unsafe, whatever the event */
    expect_broken(stream);
    EXPECT(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
    EXPECT(cuEventSynchronize(fork), CUDA_ERROR_CAPTURED_EVENT);
    OK(cuEventRecord(fork, stream));     /* and is itself again */
    OK(cuEventSynchronize(fork));

    begin(stream);
    work(stream, 0, 2, 0);
    OK(cuEventRecord(fork, stream));
    OK(cuStreamWaitEvent(second, fork, 0));
    work(second, 1, 3, 0);
    work(stream, 2, 4, 0);
    EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    TRUE(!graph && status(stream) == CU_STREAM_CAPTURE_STATUS_NONE && status(second) == CU_STREAM_CAPTURE_STATUS_NONE);

    begin(stream);
    work(stream, 0, 2, 0);
    OK(cuEventRecord(fork, stream));
    OK(cuStreamWaitEvent(second, fork, 0));
    work(second, 1, 3, 0);
    work(stream, 2, 4, 0);
    OK(cuEventRecord(join, second));
    OK(cuStreamWaitEvent(stream, join, 0));
    work(stream, 1, 10, 7);
    OK(cuStreamEndCapture(stream, &graph));
    TRUE(nodes(graph) == 4);
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    TRUE(count == 4);                    /* a diamond */
    run_and_destroy(graph, stream);
    TRUE(word(0) == 2 && word(1) == 37 && word(2) == 4 && word(3) == 1);

    /* A stream that has been joined may go; one that has not is missing in the end. */
    for (int joined = 0; joined < 2; joined++) {
        CUstream forked;
        OK(cuStreamCreate(&forked, CU_STREAM_NON_BLOCKING));
        OK(cuMemsetD32(data, 1, 1));
        OK(cuCtxSynchronize());
        begin(stream);
        OK(cuEventRecord(fork, stream));
        OK(cuStreamWaitEvent(forked, fork, 0));
        work(forked, 0, 6, 0);
        if (joined) {
            OK(cuEventRecord(join, forked));
            OK(cuStreamWaitEvent(stream, join, 0));
        }
        OK(cuStreamDestroy(forked));
        work(stream, joined ? 0 : 1, 1, 1);
        EXPECT(cuStreamEndCapture(stream, &graph), joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        if (joined)
            run_and_destroy(graph, stream);
        TRUE(word(0) == (joined ? 7 : 1));
    }
    OK(cuMemsetD32(data, 2, 1));
    OK(cuCtxSynchronize());

    /* Across boundaries. */
    begin(stream);
    EXPECT(cuStreamWaitEvent(stream, late, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    expect_broken(stream);
    begin(stream);
    begin(second);
    OK(cuEventRecord(fork, stream));
    EXPECT(cuStreamWaitEvent(second, fork, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    expect_broken(stream);
    expect_broken(second);
    begin(stream);
    OK(cuEventRecord(fork, stream));
    EXPECT(cuStreamWaitEvent(NULL, fork, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    expect_broken(stream);

    /* Events as nodes. */
    EXPECT(cuEventRecordWithFlags(late, stream, CU_EVENT_RECORD_EXTERNAL), BAD);
    EXPECT(cuStreamWaitEvent(stream, late, CU_EVENT_WAIT_EXTERNAL), BAD);
    EXPECT(cuStreamWaitEvent(stream, late, 8), BAD);
    EXPECT(cuStreamWaitEvent(stream, (CUevent)0x77, 0), CUDA_ERROR_INVALID_HANDLE);
    begin(stream);
    OK(cuStreamWaitEvent(stream, late, CU_EVENT_WAIT_EXTERNAL));
    work(stream, 0, 1, 1);
    OK(cuEventRecordWithFlags(late, stream, CU_EVENT_RECORD_EXTERNAL));
    OK(cuStreamEndCapture(stream, &graph));
    TRUE(nodes(graph) == 3);
    run_and_destroy(graph, stream);
    OK(cuEventQuery(late));
    TRUE(word(0) == 3);
    OK(cuEventDestroy(fork));
    OK(cuEventDestroy(join));
    OK(cuEventDestroy(late));
}

static void *elsewhere(void *argument)
{
    CUgraph graph;
    CUdeviceptr memory;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    int kind = *(int *)argument;

    OK(cuCtxSetCurrent(context));
    if (kind == 0) {                     /* end: another thread's */
        EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    } else if (kind == 1) {              /* relaxed: anybody's */
        OK(cuStreamEndCapture(stream, &graph));
        OK(cuGraphDestroy(graph));
    } else if (kind == 2) {              /* something unsafe beside a global capture */
        EXPECT(cuMemAlloc(&memory, 16), UNSUPPORTED);
    } else if (kind == 3) {              /* that this thread does not look at */
        OK(cuThreadExchangeStreamCaptureMode(&mode));
        TRUE(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
        OK(cuMemAlloc(&memory, 16));
        OK(cuMemFree(memory));
    } else {                             /* beside a capture that is not global */
        OK(cuMemAlloc(&memory, 16));
        OK(cuMemFree(memory));
    }
    return NULL;
}

static void in_thread(int kind)
{
    pthread_t thread;
    TRUE(!pthread_create(&thread, NULL, elsewhere, &kind));
    pthread_join(thread, NULL);
}

static void finish(CUstream where)
{
    CUgraph graph;
    OK(cuStreamEndCapture(where, &graph));
    OK(cuGraphDestroy(graph));
}

static void threads_and_modes(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr memory;

    begin(stream);
    in_thread(0);
    in_thread(3);
    TRUE(status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    in_thread(2);
    expect_broken(stream);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    in_thread(4);
    in_thread(0);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    TRUE(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemAlloc(&memory, 16));         /* relaxed */
    OK(cuMemFree(memory));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    TRUE(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(cuMemAlloc(&memory, 16), UNSUPPORTED);
    expect_broken(stream);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemAlloc(&memory, 16));
    OK(cuMemFree(memory));
    in_thread(1);
    mode = 7;
    EXPECT(cuThreadExchangeStreamCaptureMode(&mode), BAD);
    EXPECT(cuThreadExchangeStreamCaptureMode(NULL), BAD);
}

static void forbidden(void)
{
    CUgraph graph;
    CUstreamCaptureStatus state;
    CUstream gone;
    uint32_t value = 0;
    void *pinned;

    EXPECT(cuStreamBeginCapture(NULL, 0), UNSUPPORTED);
    EXPECT(cuStreamBeginCapture(CU_STREAM_LEGACY, 0), UNSUPPORTED);
    EXPECT(cuStreamBeginCapture((CUstream)0x77, 0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamBeginCapture(stream, 3), BAD);
    EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT(cuStreamEndCapture(stream, NULL), BAD);
    EXPECT(cuStreamIsCapturing(stream, NULL), BAD);
    EXPECT(cuStreamIsCapturing((CUstream)0x77, &state), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamGetCaptureInfo(stream, NULL, NULL, NULL, NULL, NULL, NULL), BAD);
    OK(cuStreamGetCaptureInfo(stream, &state, NULL, NULL, NULL, NULL, NULL));
    TRUE(state == CU_STREAM_CAPTURE_STATUS_NONE);

    begin(stream);
    EXPECT(cuStreamBeginCapture(stream, 0), CUDA_ERROR_ILLEGAL_STATE);
    TRUE(status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(cuStreamSynchronize(stream), UNSUPPORTED);
    expect_broken(stream);
    begin(stream);
    EXPECT(cuStreamQuery(stream), UNSUPPORTED);
    expect_broken(stream);
    begin(stream);
    EXPECT(cuCtxSynchronize(), UNSUPPORTED);
    expect_broken(stream);
    begin(stream);
    EXPECT(cuMemFree(data), UNSUPPORTED);
    expect_broken(stream);
    begin(stream);
    EXPECT(cuMemAllocHost(&pinned, 16), UNSUPPORTED);
    expect_broken(stream);
    begin(stream);
    EXPECT(cuMemcpyHtoD(data, &value, 4), UNSUPPORTED);
    expect_broken(stream);
    OK(cuMemsetD8(data, 0, 4));

    /* The legacy stream would wait for blocking streams, and not for others. */
    begin(stream);
    OK(cuMemsetD32Async(data, 5, 1, NULL));
    OK(cuStreamIsCapturing(NULL, &state));
    TRUE(state == CU_STREAM_CAPTURE_STATUS_NONE);
    finish(stream);
    TRUE(word(0) == 5);
    begin(blocking);
    EXPECT(cuStreamIsCapturing(NULL, &state), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    TRUE(status(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(cuMemsetD32Async(data, 6, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    expect_broken(blocking);
    TRUE(word(0) == 5);

    /* Wrong work does not break it; a destroyed stream ends it. */
    begin(stream);
    EXPECT(cuLaunchKernel(scale, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), BAD);
    EXPECT(cuMemsetD32Async(data + 1, 0, 1, stream), BAD);
    OK(cuStreamEndCapture(stream, &graph));
    TRUE(nodes(graph) == 0);
    OK(cuGraphDestroy(graph));
    OK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
    begin(gone);
    work(gone, 0, 1, 1);
    OK(cuStreamDestroy(gone));
    EXPECT(cuStreamEndCapture(gone, &graph), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxSynchronize());

    /* A thread's own default stream. */
    begin(CU_STREAM_PER_THREAD);
    work(CU_STREAM_PER_THREAD, 0, 2, 3);
    OK(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    run_and_destroy(graph, CU_STREAM_PER_THREAD);
    TRUE(word(0) == 13);
}

static void into_a_graph(void)
{
    CUgraph graph, same, other;
    CUgraphNode first, joint, more[2];
    CUDA_MEMSET_NODE_PARAMS set = {.dst = data, .value = 100, .elementSize = 4, .width = 1, .height = 1};
    CUstreamCaptureStatus state;
    const CUgraphNode *behind;
    size_t count;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&other, 0));
    OK(cuGraphAddMemsetNode(&first, graph, NULL, 0, &set, context));
    EXPECT(cuStreamBeginCaptureToGraph(stream, other, &first, NULL, 1, 0), BAD);
    EXPECT(cuStreamBeginCaptureToGraph(stream, (CUgraph)0x70, NULL, NULL, 0, 0), BAD);
    EXPECT(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 1, 0), BAD);
    OK(cuStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1, 0));
    work(stream, 0, 2, 1);
    OK(cuGraphAddEmptyNode(&joint, graph, NULL, 0)); /* by hand, in between */
    EXPECT(cuStreamUpdateCaptureDependencies(second, &joint, NULL, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT(cuStreamUpdateCaptureDependencies(stream, &joint, NULL, 1, 2), BAD);
    EXPECT(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 1, 0), BAD);
    OK(cuStreamUpdateCaptureDependencies(stream, &joint, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    OK(cuStreamGetCaptureInfo(stream, &state, NULL, NULL, &behind, NULL, &count));
    TRUE(count == 2 && behind[1] == joint);
    work(stream, 0, 3, 0);
    OK(cuStreamGetCaptureInfo(stream, &state, NULL, NULL, &behind, NULL, &count));
    TRUE(count == 1);
    more[0] = behind[0];
    OK(cuGraphNodeGetDependencies(more[0], NULL, NULL, &count));
    TRUE(count == 2);
    OK(cuStreamUpdateCaptureDependencies(stream, &joint, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuStreamUpdateCaptureDependencies(stream, more, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuStreamEndCapture(stream, &same));
    TRUE(same == graph && nodes(graph) == 4);
    run_and_destroy(graph, stream);
    TRUE(word(0) == 603);
    OK(cuGraphDestroy(other));
}

/* Rows, slices and arrays. */
static void boxes(void)
{
    CUDA_ARRAY_DESCRIPTOR descriptor = {.Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    uint32_t source[8], target[4] = {0};
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = source, .srcPitch = 16, .WidthInBytes = 16, .Height = 2,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY};
    CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcXInBytes = 4, .WidthInBytes = 8, .Height = 2, .Depth = 1,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = data, .dstPitch = 8};
    CUarray array;
    CUgraph graph;

    OK(cuArrayCreate(&array, &descriptor));
    in.dstArray = out.srcArray = array;
    begin(stream);
    OK(cuMemcpy2DAsync(&in, stream));
    OK(cuMemcpy3DAsync(&out, stream));
    OK(cuMemcpyDtoHAsync(target, data, 16, stream));
    OK(cuStreamEndCapture(stream, &graph));
    TRUE(nodes(graph) == 3);
    for (uint32_t i = 0; i < 8; i++)
        source[i] = i;                   /* read when the graph runs */
    run_and_destroy(graph, stream);
    TRUE(target[0] == 1 && target[1] == 2 && target[2] == 5 && target[3] == 6);
    begin(stream);
    EXPECT(cuMemcpy2D(&in), UNSUPPORTED);
    expect_broken(stream);
    OK(cuArrayDestroy(array));
}

int main(void)
{
    context = start();
    add_one = kernel("add_one");
    scale = kernel("scale");
    OK(cuMemAlloc(&data, 1024));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    one_stream();
    fork_and_join();
    threads_and_modes();
    forbidden();
    into_a_graph();
    boxes();
    return 0;
}
