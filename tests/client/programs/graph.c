/* Graphs built by hand: shape, parameters, instantiation, launches, and what is refused. */
#include "check.h"

#define BAD CUDA_ERROR_INVALID_VALUE

static CUcontext context;
static CUfunction add_one, scale;
static CUdeviceptr data;                 /* 256 words */
static CUgraph none = (CUgraph)0x123450;
static CUgraphNode no_node = (CUgraphNode)0x123450;

static uint32_t word(size_t index)
{
    uint32_t value;
    OK(cuMemcpyDtoH(&value, data + 4 * index, 4));
    return value;
}

static CUgraphNode add_fill(CUgraph graph, const CUgraphNode *behind, size_t count, uint32_t value, size_t words)
{
    CUDA_MEMSET_NODE_PARAMS params = {.dst = data, .value = value, .elementSize = 4, .width = words, .height = 1};
    CUgraphNode node;
    OK(cuGraphAddMemsetNode(&node, graph, behind, count, &params, context));
    return node;
}

static CUDA_KERNEL_NODE_PARAMS launch_of(CUfunction function, void **arguments)
{
    CUDA_KERNEL_NODE_PARAMS params = {.func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                      .blockDimY = 1, .blockDimZ = 1, .kernelParams = arguments};
    return params;
}

/* data[0] = data[0] * factor + shift */
static CUgraphNode add_scale(CUgraph graph, const CUgraphNode *behind, size_t count, uint32_t factor, uint32_t shift)
{
    CUdeviceptr address = data;
    void *arguments[] = {&address, &factor, &shift}; /* copied: they are gone when the graph is launched */
    CUDA_KERNEL_NODE_PARAMS params = launch_of(scale, arguments);
    CUgraphNode node;
    OK(cuGraphAddKernelNode(&node, graph, behind, count, &params));
    factor = shift = 0xDEAD;
    return node;
}

static CUDA_MEMCPY3D linear(void *to, CUmemorytype to_type, const void *from, CUmemorytype from_type, size_t size)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = size, .Height = 1, .Depth = 1, .dstMemoryType = to_type, .srcMemoryType = from_type,
                          .dstHost = to, .srcHost = from, .dstDevice = (CUdeviceptr)(uintptr_t)to,
                          .srcDevice = (CUdeviceptr)(uintptr_t)from};
    return copy;
}

static void run(CUgraph graph)
{
    CUgraphExec exec;
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuGraphExecDestroy(exec));
}

static void shape(void)
{
    CUgraph graph, other;
    CUgraphNode a, b, c, d, nodes[6], from[6], to[6];
    CUgraphNodeType type;
    CUgraphEdgeData edges[6], odd = {.type = 7};
    size_t count;
    unsigned id, id2;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&other, 0));
    EXPECT(cuGraphCreate(&graph, 1), BAD);
    EXPECT(cuGraphCreate(NULL, 0), BAD);
    OK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
    OK(cuGraphAddEmptyNode(&b, graph, &a, 1));
    OK(cuGraphAddEmptyNode(&c, graph, &a, 1));
    nodes[0] = b;
    nodes[1] = c;
    OK(cuGraphAddEmptyNode(&d, graph, nodes, 2));
    EXPECT(cuGraphAddEmptyNode(&d, none, NULL, 0), BAD);
    EXPECT(cuGraphAddEmptyNode(NULL, graph, NULL, 0), BAD);
    EXPECT(cuGraphAddEmptyNode(&d, graph, NULL, 1), BAD);
    EXPECT(cuGraphAddEmptyNode(&d, other, &a, 1), BAD); /* a node of another graph */
    nodes[1] = b;
    EXPECT(cuGraphAddEmptyNode(&d, graph, nodes, 2), BAD); /* twice the same */
    OK(cuGraphGetNodes(graph, NULL, &count));
    TRUE(count == 4);                    /* nothing was left of those refused */
    count = 6;
    OK(cuGraphGetNodes(graph, nodes, &count));
    TRUE(count == 4 && nodes[0] == a && nodes[1] == b && nodes[2] == c && nodes[3] == d && !nodes[4] && !nodes[5]);
    count = 2;
    OK(cuGraphGetNodes(graph, nodes, &count));
    TRUE(count == 2 && nodes[1] == b);
    EXPECT(cuGraphGetNodes(graph, nodes, NULL), BAD);
    EXPECT(cuGraphGetNodes(none, nodes, &count), BAD);
    count = 6;
    OK(cuGraphGetRootNodes(graph, nodes, &count));
    TRUE(count == 1 && nodes[0] == a && !nodes[1]);
    OK(cuGraphNodeGetType(d, &type));
    TRUE(type == CU_GRAPH_NODE_TYPE_EMPTY);
    EXPECT(cuGraphNodeGetType(no_node, &type), BAD);
    EXPECT(cuGraphNodeGetType(d, NULL), BAD);

    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    TRUE(count == 4);
    count = 6;
    OK(cuGraphGetEdges(graph, from, to, edges, &count));
    TRUE(count == 4 && from[0] == a && to[0] == b && from[1] == a && to[1] == c && from[3] == c && to[3] == d && !from[4]);
    EXPECT(cuGraphGetEdges(graph, from, NULL, NULL, &count), BAD);
    count = 6;
    OK(cuGraphNodeGetDependencies(d, nodes, NULL, &count));
    TRUE(count == 2 && nodes[0] == b && nodes[1] == c && !nodes[2]);
    OK(cuGraphNodeGetDependentNodes(a, NULL, NULL, &count));
    TRUE(count == 2);
    EXPECT(cuGraphNodeGetDependencies(no_node, NULL, NULL, &count), BAD);

    EXPECT(cuGraphAddDependencies(graph, &a, &b, NULL, 1), BAD); /* is there already */
    EXPECT(cuGraphAddDependencies(graph, &a, &a, NULL, 1), BAD);
    EXPECT(cuGraphAddDependencies(other, &a, &d, NULL, 1), BAD);
    EXPECT(cuGraphAddDependencies(graph, NULL, &d, NULL, 1), BAD);
    EXPECT(cuGraphAddDependencies(graph, &a, &d, &odd, 1), BAD);
    OK(cuGraphAddDependencies(graph, NULL, NULL, NULL, 0));
    from[0] = a;
    to[0] = d;
    from[1] = a;
    to[1] = b;
    EXPECT(cuGraphAddDependencies(graph, from, to, NULL, 2), BAD); /* all or none */
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    TRUE(count == 4);
    OK(cuGraphAddDependencies(graph, &a, &d, NULL, 1));
    OK(cuGraphRemoveDependencies(graph, &a, &d, NULL, 1));
    EXPECT(cuGraphRemoveDependencies(graph, &a, &d, NULL, 1), BAD);
    OK(cuGraphAddDependencies_v2(graph, &a, &d, NULL, 1));
    OK(cuGraphRemoveDependencies_v2(graph, &a, &d, NULL, 1));

    OK(cuGraphGetId(graph, &id));
    OK(cuGraphGetId(other, &id2));
    TRUE(id != id2);
    OK(cuGraphNodeGetLocalId(a, &id));
    OK(cuGraphNodeGetLocalId(b, &id2));
    TRUE(id != id2);
    {
        unsigned long long tool, tool2;
        CUgraph containing;
        OK(cuGraphNodeGetToolsId(a, &tool));
        OK(cuGraphNodeGetToolsId(b, &tool2));
        TRUE(tool != tool2);
        OK(cuGraphNodeGetContainingGraph(a, &containing));
        TRUE(containing == graph);
        EXPECT(cuGraphNodeGetContainingGraph(no_node, &containing), BAD);
    }

    OK(cuGraphDestroyNode(b));
    EXPECT(cuGraphDestroyNode(b), BAD);
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    TRUE(count == 2);
    OK(cuGraphDestroy(graph));
    EXPECT(cuGraphDestroy(graph), BAD);
    EXPECT(cuGraphNodeGetType(a, &type), BAD);
    OK(cuGraphDestroy(other));
}

static void edges(void)
{
    CUgraph graph;
    CUgraphNode a, b, nodes[2];
    CUgraphEdgeData early = {.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, .from_port = 1}, got[2];
    size_t count = 2;

    OK(cuGraphCreate(&graph, 0));
    a = add_scale(graph, NULL, 0, 1, 1);
    b = add_scale(graph, NULL, 0, 1, 1);
    OK(cuGraphAddDependencies(graph, &a, &b, &early, 1));
    EXPECT(cuGraphNodeGetDependencies(b, nodes, NULL, &count), CUDA_ERROR_LOSSY_QUERY);
    EXPECT(cuGraphNodeGetDependencies(b, NULL, got, &count), BAD);
    OK(cuGraphNodeGetDependencies(b, nodes, got, &count));
    TRUE(count == 1 && nodes[0] == a && !memcmp(got, &early, sizeof early));
    EXPECT(cuGraphGetEdges(graph, nodes, nodes, NULL, &count), CUDA_ERROR_LOSSY_QUERY);
    EXPECT(cuGraphRemoveDependencies(graph, &a, &b, NULL, 1), BAD); /* there is none like that */
    OK(cuGraphRemoveDependencies(graph, &a, &b, &early, 1));
    OK(cuGraphDestroy(graph));
}

/* Order: fill with 3, then in either order of adding *5+1, *7+2. */
static void order(void)
{
    CUgraph graph;
    CUgraphNode fill, first, second;
    CUgraphExec exec;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    cuuint64_t flags;
    unsigned id;

    OK(cuGraphCreate(&graph, 0));
    second = add_scale(graph, NULL, 0, 7, 2);
    first = add_scale(graph, NULL, 0, 5, 1);
    fill = add_fill(graph, NULL, 0, 3, 1);
    OK(cuGraphAddDependencies(graph, &fill, &first, NULL, 1));
    OK(cuGraphAddDependencies(graph, &first, &second, NULL, 1));
    run(graph);
    TRUE(word(0) == (3 * 5 + 1) * 7 + 2);

    OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    OK(cuGraphExecGetFlags(exec, &flags));
    TRUE(flags == CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    EXPECT(cuGraphExecGetFlags(exec, NULL), BAD);
    OK(cuGraphExecGetId(exec, &id));
    OK(cuGraphDestroy(graph));           /* an executable graph stands alone */
    OK(cuMemsetD32(data, 0, 1));
    OK(cuGraphUpload(exec, NULL));
    OK(cuGraphLaunch(exec, NULL));
    TRUE(word(0) == (3 * 5 + 1) * 7 + 2);
    EXPECT(cuGraphLaunch(exec, (CUstream)0x77), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphLaunch((CUgraphExec)context, NULL), BAD);
    OK(cuGraphExecDestroy(exec));
    EXPECT(cuGraphExecDestroy(exec), BAD);
    EXPECT(cuGraphLaunch(exec, NULL), BAD);
    EXPECT(cuGraphUpload(exec, NULL), BAD);
    EXPECT(cuGraphExecGetFlags(exec, &flags), BAD);

    /* A cycle. */
    OK(cuGraphCreate(&graph, 0));
    first = add_scale(graph, NULL, 0, 1, 1);
    second = add_scale(graph, &first, 1, 1, 1);
    OK(cuGraphAddDependencies(graph, &second, &first, NULL, 1));
    EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), BAD);
    EXPECT(cuGraphInstantiateWithParams(&exec, graph, &params), BAD);
    TRUE(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    TRUE(params.hErrNode_out == first || params.hErrNode_out == second);
    {
        char log[64] = "x";
        CUgraphNode culprit = NULL;
        EXPECT(cuGraphInstantiate_v2(&exec, graph, &culprit, log, sizeof log), BAD);
        TRUE(culprit == first || culprit == second);
        TRUE(strstr(log, "cycle"));
    }
    OK(cuGraphRemoveDependencies(graph, &second, &first, NULL, 1));
    params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    OK(cuGraphInstantiateWithParams(&exec, graph, &params));
    TRUE(params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS && !params.hErrNode_out);
    OK(cuGraphExecGetFlags(exec, &flags));
    TRUE(!flags);                        /* upload is not told */
    OK(cuGraphExecDestroy(exec));
    EXPECT(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD), BAD);
    EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 1 << 20), BAD);
    EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 5), BAD);
    EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 4), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuGraphInstantiateWithFlags(&exec, none, 0), BAD);
    EXPECT(cuGraphInstantiateWithFlags(NULL, graph, 0), BAD);
    EXPECT(cuGraphInstantiateWithParams(&exec, graph, NULL), BAD);
    OK(cuGraphDestroy(graph));
    /* Nothing at all. */
    OK(cuGraphCreate(&graph, 0));
    run(graph);
    OK(cuGraphDestroy(graph));
}

/* The forms of CUDA 10, which the header's names no longer stand for. */
#pragma push_macro("cuGraphKernelNodeSetParams")
#pragma push_macro("cuGraphKernelNodeGetParams")
#undef cuGraphKernelNodeSetParams
#undef cuGraphKernelNodeGetParams
static CUresult set_first_form(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    return cuGraphKernelNodeSetParams(node, params);
}

static CUresult get_first_form(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    return cuGraphKernelNodeGetParams(node, params);
}
#pragma pop_macro("cuGraphKernelNodeSetParams")
#pragma pop_macro("cuGraphKernelNodeGetParams")

static void kernels(void)
{
    CUgraph graph;
    CUgraphNode node;
    CUdeviceptr address = data;
    uint32_t count = 4;
    void *arguments[] = {&address, &count}, *missing[] = {&address, NULL};
    CUDA_KERNEL_NODE_PARAMS params = launch_of(add_one, arguments), got;
    CUDA_KERNEL_NODE_PARAMS_v1 old, got_old;
    struct {
        CUdeviceptr address;
        uint32_t count;
    } packed = {data, 2};
    size_t size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CUlaunchAttributeValue value = {.priority = -3}, told;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    OK(cuGraphKernelNodeGetParams(node, &got));
    TRUE(got.func == add_one && got.gridDimX == 1 && got.blockDimZ == 1 && got.ctx == context && !got.extra);
    TRUE(*(CUdeviceptr *)got.kernelParams[0] == data && *(uint32_t *)got.kernelParams[1] == 4);
    OK(cuGraphKernelNodeGetParams_v2(node, &got));
    memcpy(&old, &got, sizeof old);
    old.kernelParams = NULL;
    old.extra = extra;
    OK(set_first_form(node, &old));
    OK(get_first_form(node, &got_old));
    TRUE(got_old.func == add_one && *(uint32_t *)got_old.kernelParams[1] == 2);
    EXPECT(cuGraphKernelNodeGetParams(no_node, &got), BAD);
    EXPECT(cuGraphKernelNodeSetParams(node, NULL), BAD);
    OK(cuMemsetD32(data, 10, 4));
    run(graph);
    TRUE(word(0) == 11 && word(1) == 11 && word(2) == 10);
    OK(cuGraphKernelNodeSetParams(node, &params));
    run(graph);
    TRUE(word(0) == 12 && word(3) == 11);

    /* Wrong parameters leave the node as it was. */
    params.blockDimX = 0;
    EXPECT(cuGraphKernelNodeSetParams(node, &params), BAD);
    EXPECT(cuGraphAddKernelNode(&node, graph, NULL, 0, &params), BAD);
    params.blockDimX = 1;
    params.kernelParams = missing;
    EXPECT(cuGraphKernelNodeSetParams(node, &params), BAD);
    params.kernelParams = NULL;
    EXPECT(cuGraphKernelNodeSetParams(node, &params), BAD);
    params.kernelParams = arguments;
    params.func = (CUfunction)0x77;
    EXPECT(cuGraphKernelNodeSetParams(node, &params), CUDA_ERROR_INVALID_HANDLE);
    params.func = NULL;
    EXPECT(cuGraphKernelNodeSetParams(node, &params), BAD);
    params.func = add_one;
    params.ctx = (CUcontext)0x77;
    EXPECT(cuGraphKernelNodeSetParams(node, &params), BAD);
    run(graph);
    TRUE(word(0) == 13);

    OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told));
    TRUE(told.priority == -3);
    value.cooperative = 1;
    EXPECT(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuGraphKernelNodeSetAttribute(node, 99, &value), BAD);
    EXPECT(cuGraphKernelNodeGetAttribute(no_node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told), BAD);
    {
        CUgraphNode other;
        OK(cuGraphAddKernelNode(&other, graph, NULL, 0, &(CUDA_KERNEL_NODE_PARAMS){
            add_one, 1, 1, 1, 1, 1, 1, 0, arguments, NULL, NULL, NULL}));
        OK(cuGraphKernelNodeCopyAttributes(other, node));
        OK(cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told));
        TRUE(told.priority == -3);
        EXPECT(cuGraphKernelNodeCopyAttributes(other, no_node), BAD);
    }
    OK(cuGraphDestroy(graph));
}

static void copies(void)
{
    CUgraph graph;
    CUgraphNode up, fill, down, inside;
    CUgraphExec exec;
    uint32_t source[4] = {1, 2, 3, 4}, target[4] = {0}, *pinned;
    CUDA_MEMCPY3D copy = linear((void *)(uintptr_t)data, CU_MEMORYTYPE_DEVICE, source, CU_MEMORYTYPE_HOST, 16), got;
    CUDA_MEMSET_NODE_PARAMS set = {.dst = data + 4, .pitch = 64, .value = 0xABCD, .elementSize = 2, .width = 3, .height = 2}, told;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemcpyNode(&up, graph, NULL, 0, &copy, context));
    OK(cuGraphMemcpyNodeGetParams(up, &got));
    TRUE(!memcmp(&got, &copy, sizeof got));
    fill = add_fill(graph, &up, 1, 9, 1);
    copy = linear(target, CU_MEMORYTYPE_HOST, (void *)(uintptr_t)data, CU_MEMORYTYPE_DEVICE, 16);
    OK(cuGraphAddMemcpyNode(&down, graph, &fill, 1, &copy, context));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    TRUE(target[0] == 9 && target[1] == 2 && target[3] == 4);
    source[1] = 20;                      /* what is there when the graph runs */
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    TRUE(target[1] == 20);
    OK(cuGraphExecDestroy(exec));

    /* Pinned memory, and rows between pitches. */
    OK(cuMemAllocHost((void **)&pinned, 4096));
    memset(pinned, 0, 4096);
    copy = linear(pinned, CU_MEMORYTYPE_HOST, (void *)(uintptr_t)data, CU_MEMORYTYPE_DEVICE, 8);
    copy.Height = 2;
    copy.Depth = 2;
    copy.srcPitch = 16;
    copy.srcHeight = 4;
    copy.dstPitch = 32;
    copy.dstHeight = 2;
    copy.srcXInBytes = 4;
    copy.dstY = 1;
    copy.dstHeight = 3;
    OK(cuGraphMemcpyNodeSetParams(down, &copy));
    for (uint32_t i = 0; i < 64; i++)
        OK(cuMemsetD32(data + 4 * i, 100 + i, 1));
    OK(cuGraphDestroyNode(up));
    OK(cuGraphDestroyNode(fill));
    run(graph);
    OK(cuCtxSynchronize());
    /* From word 1 + 4 y + 16 z to word 8 (y + 1) + 24 z, two words each. */
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 2; x++)
                TRUE(pinned[8 * (y + 1) + 24 * z + x] == (uint32_t)(100 + 1 + 4 * y + 16 * z + x));
    TRUE(!pinned[0] && !pinned[10] && !pinned[24]);

    copy = linear((void *)(uintptr_t)(data + 1012), CU_MEMORYTYPE_DEVICE, source, CU_MEMORYTYPE_HOST, 16);
    EXPECT(cuGraphAddMemcpyNode(&up, graph, NULL, 0, &copy, context), BAD); /* behind the allocation */
    copy = linear(source, CU_MEMORYTYPE_DEVICE, source, CU_MEMORYTYPE_HOST, 16);
    EXPECT(cuGraphAddMemcpyNode(&up, graph, NULL, 0, &copy, context), BAD);
    copy = linear((void *)(uintptr_t)data, CU_MEMORYTYPE_DEVICE, source, CU_MEMORYTYPE_HOST, 0);
    EXPECT(cuGraphAddMemcpyNode(&up, graph, NULL, 0, &copy, context), BAD);
    copy.WidthInBytes = SIZE_MAX - 2;
    EXPECT(cuGraphAddMemcpyNode(&up, graph, NULL, 0, &copy, context), BAD);
    copy.WidthInBytes = 4;
    copy.srcMemoryType = 9;
    EXPECT(cuGraphAddMemcpyNode(&up, graph, NULL, 0, &copy, context), BAD);
    EXPECT(cuGraphAddMemcpyNode(&up, graph, NULL, 0, NULL, context), BAD);
    EXPECT(cuGraphMemcpyNodeSetParams(down, &copy), BAD);
    EXPECT(cuGraphMemcpyNodeGetParams(no_node, &copy), BAD);

    /* Fills of two dimensions. */
    OK(cuGraphDestroyNode(down));
    OK(cuGraphAddMemsetNode(&inside, graph, NULL, 0, &set, context));
    OK(cuMemsetD32(data, 0, 64));
    run(graph);
    TRUE(word(0) == 0 && word(1) == 0xABCDABCD && word(2) == 0xABCD && word(3) == 0 && word(17) == 0xABCDABCD && word(18) == 0xABCD);
    OK(cuGraphMemsetNodeGetParams(inside, &told));
    TRUE(told.dst == data + 4 && told.pitch == 64 && told.value == 0xABCD && told.elementSize == 2 && told.width == 3 && told.height == 2);
    set.pitch = 4;
    EXPECT(cuGraphMemsetNodeSetParams(inside, &set), BAD);
    set.pitch = 64;
    set.elementSize = 3;
    EXPECT(cuGraphMemsetNodeSetParams(inside, &set), BAD);
    set.elementSize = 2;
    set.dst = data + 1;
    EXPECT(cuGraphMemsetNodeSetParams(inside, &set), BAD);
    set.dst = data;
    set.width = 0;
    EXPECT(cuGraphMemsetNodeSetParams(inside, &set), BAD);
    set.width = 1;
    set.height = 1000;
    EXPECT(cuGraphMemsetNodeSetParams(inside, &set), BAD);
    set.height = 1;
    OK(cuGraphMemsetNodeSetParams(inside, &set));
    EXPECT(cuGraphAddMemsetNode(&inside, graph, NULL, 0, NULL, context), BAD);
    EXPECT(cuGraphAddMemsetNode(&inside, graph, NULL, 0, &set, (CUcontext)0x77), BAD);
    run(graph);
    TRUE(word(0) == 0xABCD && word(1) == 0xABCDABCD);
    OK(cuMemFreeHost(pinned));
    OK(cuGraphDestroy(graph));
}

static void set_flag(void *flag)
{
    *(int *)flag += 1;
}

static void events_and_hosts(void)
{
    CUgraph graph;
    CUgraphNode record, wait, host, fill;
    CUevent event, other, told;
    CUstream stream;
    CUgraphExec exec;
    int calls = 0;
    CUDA_HOST_NODE_PARAMS call = {set_flag, &calls}, got;

    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&other, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuGraphCreate(&graph, 0));
    fill = add_fill(graph, NULL, 0, 77, 1);
    OK(cuGraphAddEventRecordNode(&record, graph, &fill, 1, event));
    OK(cuGraphEventRecordNodeGetEvent(record, &told));
    TRUE(told == event);
    OK(cuGraphEventRecordNodeSetEvent(record, other));
    OK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, event));
    OK(cuGraphEventWaitNodeSetEvent(wait, other));
    OK(cuGraphEventWaitNodeGetEvent(wait, &told));
    TRUE(told == other);
    EXPECT(cuGraphEventWaitNodeGetEvent(record, &told), BAD);
    EXPECT(cuGraphEventRecordNodeSetEvent(record, (CUevent)0x77), BAD);
    EXPECT(cuGraphAddEventRecordNode(&record, graph, NULL, 0, (CUevent)0x77), BAD);
    EXPECT(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, NULL), BAD);
    OK(cuGraphAddHostNode(&host, graph, &wait, 1, &call));
    OK(cuGraphHostNodeGetParams(host, &got));
    TRUE(got.fn == set_flag && got.userData == &calls);
    OK(cuGraphHostNodeSetParams(host, &call));
    call.fn = NULL;
    EXPECT(cuGraphHostNodeSetParams(host, &call), BAD);
    EXPECT(cuGraphAddHostNode(&host, graph, NULL, 0, NULL), BAD);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuEventSynchronize(other));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 2 && word(0) == 77);
    OK(cuEventQuery(event));             /* never recorded */
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuEventDestroy(event));
    OK(cuEventDestroy(other));
    OK(cuStreamDestroy(stream));
}

/* Each launch of an executable graph is behind earlier ones, in whatever stream. */
static void streams(void)
{
    CUfunction nap = kernel("nap");
    CUstream slow, fast;
    CUgraph graph;
    CUgraphExec exec;

    OK(cuStreamCreate(&slow, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&fast, CU_STREAM_NON_BLOCKING));
    OK(cuGraphCreate(&graph, 0));
    add_scale(graph, NULL, 0, 3, 1);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuMemsetD32(data, 1, 1));
    OK(cuCtxSynchronize());
    OK(launch_nap(nap, slow, 100));
    OK(cuGraphLaunch(exec, slow));
    OK(cuGraphLaunch(exec, fast));       /* behind the launch in `slow` */
    OK(cuStreamSynchronize(fast));
    TRUE(word(0) == 13);
    OK(cuStreamDestroy(slow));
    OK(cuGraphLaunch(exec, fast));
    OK(cuStreamDestroy(fast));
    OK(cuCtxSynchronize());
    TRUE(word(0) == 40);
    OK(cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
    OK(cuGraphLaunch(exec, CU_STREAM_LEGACY));
    TRUE(word(0) == 364);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static void general(void)
{
    CUgraph graph, inner, child;
    CUgraphNode fill, kernel_node, child_node, node;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET}, got;
    CUdeviceptr address = data;
    uint32_t factor = 10, shift = 5;
    void *arguments[] = {&address, &factor, &shift};
    size_t count;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&inner, 0));
    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){data, 0, 4, 4, 1, 1, context};
    OK(cuGraphAddNode(&fill, graph, NULL, NULL, 0, &params));
    OK(cuGraphNodeGetParams(fill, &got));
    TRUE(got.type == CU_GRAPH_NODE_TYPE_MEMSET && got.memset.value == 4);
    params.memset.value = 6;
    OK(cuGraphNodeSetParams(fill, &params));
    params.reserved0[1] = 1;
    EXPECT(cuGraphNodeSetParams(fill, &params), BAD);
    EXPECT(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), BAD);
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    memcpy(&params.kernel, &(CUDA_KERNEL_NODE_PARAMS){scale, 1, 1, 1, 1, 1, 1, 0, arguments, NULL, NULL, NULL}, sizeof params.kernel);
    OK(cuGraphAddNode(&kernel_node, inner, NULL, NULL, 0, &params));
    EXPECT(cuGraphNodeSetParams(fill, &params), BAD); /* another type */
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = inner;
    OK(cuGraphAddNode(&child_node, graph, &fill, NULL, 1, &params));
    TRUE(params.graph.graph != inner);   /* the clone */
    OK(cuGraphChildGraphNodeGetGraph(child_node, &child));
    TRUE(child == params.graph.graph);
    EXPECT(cuGraphDestroy(child), BAD);  /* is its node's */
    OK(cuGraphGetNodes(child, NULL, &count));
    TRUE(count == 1);
    run(graph);
    TRUE(word(0) == 65);
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    EXPECT(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
    params.type = 55;
    EXPECT(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), BAD);
    EXPECT(cuGraphAddNode(&node, graph, NULL, NULL, 0, NULL), BAD);
    EXPECT(cuGraphNodeSetParams(fill, NULL), BAD);
    EXPECT(cuGraphNodeGetParams(no_node, &got), BAD);
    /* Moved into another graph, a graph is that graph's. */
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = graph;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    EXPECT(cuGraphAddNode(&node, child, NULL, NULL, 0, &params), BAD); /* inside of itself */
    EXPECT(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), BAD);
    params.graph.graph = inner;
    OK(cuGraphAddNode(&node, graph, &child_node, NULL, 1, &params));
    EXPECT(cuGraphDestroy(inner), BAD);
    EXPECT(cuGraphAddChildGraphNode(&node, graph, NULL, 0, none), BAD);
    run(graph);
    TRUE(word(0) == 655);
    OK(cuGraphDestroy(graph));
    EXPECT(cuGraphGetNodes(inner, NULL, &count), BAD);
}

/* Launches in a stream of another context, and a context that goes. */
static void contexts(void)
{
    CUDA_MEMSET_NODE_PARAMS set = {.value = 3, .elementSize = 4, .width = 1, .height = 1};
    CUcontext other;
    CUdeviceptr elsewhere;
    CUstream foreign;
    CUgraph graph, mixed;
    CUgraphNode node;
    CUgraphExec exec, of_other;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};

    OK(cuGraphCreate(&graph, 0));
    add_scale(graph, NULL, 0, 2, 1);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuMemsetD32(data, 1, 1));
    OK(cuCtxSynchronize());
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuMemAlloc(&elsewhere, 64));
    OK(cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING));
    OK(cuGraphLaunch(exec, foreign));
    OK(cuGraphLaunch(exec, foreign));
    OK(cuStreamSynchronize(foreign));
    TRUE(word(0) == 7);
    set.dst = elsewhere;
    OK(cuGraphClone(&mixed, graph));
    OK(cuGraphAddMemsetNode(&node, mixed, NULL, 0, &set, other));
    EXPECT(cuGraphInstantiateWithParams(&of_other, mixed, &params), CUDA_ERROR_NOT_SUPPORTED);
    TRUE(params.result_out == CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED && params.hErrNode_out == node);
    OK(cuGraphDestroy(mixed));
    OK(cuGraphCreate(&mixed, 0));
    OK(cuGraphAddMemsetNode(&node, mixed, NULL, 0, &set, NULL)); /* in the current one */
    OK(cuGraphInstantiate(&of_other, mixed, 0));
    OK(cuCtxDestroy(other));
    OK(cuCtxSetCurrent(context));
    EXPECT(cuGraphLaunch(of_other, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuGraphExecDestroy(of_other));
    OK(cuGraphDestroy(mixed));
    OK(cuGraphLaunch(exec, NULL));
    TRUE(word(0) == 15);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

/* Memory and functions that are gone when a graph is instantiated. */
static void gone(void)
{
    CUDA_MEMSET_NODE_PARAMS set = {.value = 1, .elementSize = 1, .width = 8, .height = 1};
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUmodule module;
    CUfunction function;
    CUdeviceptr address = data, memory;
    uint32_t count = 1;
    void *arguments[] = {&address, &count};
    CUDA_KERNEL_NODE_PARAMS params;

    OK(cuGraphCreate(&graph, 0));
    OK(cuMemAlloc(&memory, 64));
    set.dst = memory;
    OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, NULL));
    OK(cuMemFree(memory));
    EXPECT(cuGraphInstantiate(&exec, graph, 0), BAD);
    OK(cuGraphDestroyNode(node));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&function, module, "add_one"));
    params = launch_of(function, arguments);
    OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    OK(cuModuleUnload(module));
    EXPECT(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_HANDLE);
    OK(cuGraphDestroy(graph));
    OK(cuMemsetD32(data, 1, 1));
    TRUE(word(0) == 1);
}

int main(void)
{
    CUgraph graph;

    EXPECT(cuGraphCreate(&graph, 0), CUDA_ERROR_NOT_INITIALIZED);
    context = start();
    add_one = kernel("add_one");
    scale = kernel("scale");
    OK(cuMemAlloc(&data, 1024));
    shape();
    edges();
    order();
    kernels();
    copies();
    events_and_hosts();
    streams();
    general();
    contexts();
    gone();
    return 0;
}
