/* Clones, changes of executable graphs, user objects, and the drawing of a graph. argv[1]: a file for the drawing. */
#include "check.h"

#define BAD CUDA_ERROR_INVALID_VALUE
#define FAILURE CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE

static CUcontext context;
static CUfunction add_one, scale;
static CUdeviceptr data;
static CUgraphNode no_node = (CUgraphNode)0x123450;
static CUgraph no_graph = (CUgraph)0x123450;

static uint32_t word(size_t index)
{
    uint32_t value;
    OK(cuMemcpyDtoH(&value, data + 4 * index, 4));
    return value;
}

static CUDA_KERNEL_NODE_PARAMS scale_params(void **arguments, CUdeviceptr *address, uint32_t *factor, uint32_t *shift)
{
    CUDA_KERNEL_NODE_PARAMS params = {.func = scale, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                      .blockDimY = 1, .blockDimZ = 1, .kernelParams = arguments};
    arguments[0] = address;
    arguments[1] = factor;
    arguments[2] = shift;
    return params;
}

static CUgraphNode add_scale(CUgraph graph, CUgraphNode behind, uint32_t factor, uint32_t shift)
{
    void *arguments[3];
    CUdeviceptr address = data;
    CUDA_KERNEL_NODE_PARAMS params = scale_params(arguments, &address, &factor, &shift);
    CUgraphNode node;
    OK(cuGraphAddKernelNode(&node, graph, &behind, behind ? 1 : 0, &params));
    return node;
}

static CUgraphNode add_fill(CUgraph graph, uint32_t value, size_t height)
{
    CUDA_MEMSET_NODE_PARAMS params = {.dst = data, .pitch = 8, .value = value, .elementSize = 4, .width = 1, .height = height};
    CUgraphNode node;
    OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
    return node;
}

static uint32_t launched(CUgraphExec exec)
{
    OK(cuGraphLaunch(exec, NULL));
    return word(0);
}

static void clones(void)
{
    CUgraph graph, copy, inner, inner_copy;
    CUgraphNode fill, kernel_node, child, found, nodes[4];
    CUgraphExec exec;
    size_t count = 4;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&inner, 0));
    add_scale(inner, NULL, 2, 0);
    fill = add_fill(graph, 5, 1);
    kernel_node = add_scale(graph, fill, 3, 1);
    OK(cuGraphAddChildGraphNode(&child, graph, &kernel_node, 1, inner));
    OK(cuGraphDestroy(inner));           /* was copied */
    OK(cuGraphClone(&copy, graph));
    EXPECT(cuGraphClone(&copy, no_graph), BAD);
    EXPECT(cuGraphClone(NULL, graph), BAD);
    OK(cuGraphNodeFindInClone(&found, kernel_node, copy));
    TRUE(found != kernel_node);
    OK(cuGraphNodeGetDependencies(found, nodes, NULL, &count));
    TRUE(count == 1);
    {
        CUgraphNode fill_copy;
        OK(cuGraphNodeFindInClone(&fill_copy, fill, copy));
        TRUE(nodes[0] == fill_copy);
    }
    OK(cuGraphNodeFindInClone(&found, child, copy));
    OK(cuGraphChildGraphNodeGetGraph(found, &inner_copy));
    OK(cuGraphChildGraphNodeGetGraph(child, &inner));
    TRUE(inner != inner_copy);
    EXPECT(cuGraphNodeFindInClone(&found, no_node, copy), BAD);
    EXPECT(cuGraphNodeFindInClone(&found, kernel_node, graph), BAD);
    OK(cuGraphNodeFindInClone(&found, kernel_node, copy));
    OK(cuGraphDestroyNode(found));
    EXPECT(cuGraphNodeFindInClone(&found, kernel_node, copy), BAD);
    OK(cuGraphDestroy(graph));
    OK(cuGraphInstantiate(&exec, copy, 0));
    TRUE(launched(exec) == 5 || word(0) == 10); /* the child now stands beside the fill */
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(copy));
}

static void single_nodes(void)
{
    CUgraph graph;
    CUgraphNode fill, kernel_node, empty;
    CUgraphExec exec;
    CUDA_MEMSET_NODE_PARAMS set = {.dst = data, .value = 9, .elementSize = 4, .width = 1, .height = 1};
    CUdeviceptr address = data;
    uint32_t factor = 10, shift = 2;
    void *arguments[3];
    CUDA_KERNEL_NODE_PARAMS params = scale_params(arguments, &address, &factor, &shift);
    CUgraphNodeParams general = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    unsigned enabled;

    OK(cuGraphCreate(&graph, 0));
    fill = add_fill(graph, 5, 1);
    kernel_node = add_scale(graph, fill, 3, 1);
    OK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    OK(cuGraphInstantiate(&exec, graph, 0));
    TRUE(launched(exec) == 16);
    OK(cuGraphExecKernelNodeSetParams(exec, kernel_node, &params));
    TRUE(launched(exec) == 52);
    OK(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
    TRUE(launched(exec) == 92);
    general.memset = (CUDA_MEMSET_NODE_PARAMS_v2){data, 0, 4, 4, 2, 1, context};
    OK(cuGraphExecNodeSetParams(exec, fill, &general));
    TRUE(launched(exec) == 42 && word(1) == 4);

    /* Launches that were enqueued before are not affected. */
    OK(cuGraphLaunch(exec, NULL));
    OK(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
    TRUE(word(0) == 42);

    OK(cuGraphNodeGetEnabled(exec, kernel_node, &enabled));
    TRUE(enabled == 1);
    OK(cuGraphNodeSetEnabled(exec, kernel_node, 0));
    OK(cuGraphNodeGetEnabled(exec, kernel_node, &enabled));
    TRUE(enabled == 0 && launched(exec) == 9);
    OK(cuGraphNodeSetEnabled(exec, kernel_node, 5));
    TRUE(launched(exec) == 92);
    EXPECT(cuGraphNodeSetEnabled(exec, empty, 0), BAD);
    EXPECT(cuGraphNodeSetEnabled(exec, no_node, 0), BAD);
    EXPECT(cuGraphNodeGetEnabled((CUgraphExec)0x70, fill, &enabled), BAD);
    EXPECT(cuGraphNodeGetEnabled(exec, fill, NULL), BAD);

    EXPECT(cuGraphExecKernelNodeSetParams(exec, fill, &params), BAD); /* another type */
    EXPECT(cuGraphExecKernelNodeSetParams(exec, no_node, &params), BAD);
    EXPECT(cuGraphExecKernelNodeSetParams((CUgraphExec)0x70, kernel_node, &params), BAD);
    EXPECT(cuGraphExecKernelNodeSetParams(exec, kernel_node, NULL), BAD);
    EXPECT(cuGraphExecNodeSetParams(exec, kernel_node, NULL), BAD);
    params.gridDimX = 0;
    EXPECT(cuGraphExecKernelNodeSetParams(exec, kernel_node, &params), BAD);
    set.height = 2;
    set.pitch = 4;
    EXPECT(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context), BAD); /* another height */
    set.height = 1;
    set.dst = 0;
    EXPECT(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context), BAD);
    EXPECT(cuGraphExecMemsetNodeSetParams(exec, fill, NULL, context), BAD);
    TRUE(launched(exec) == 92);          /* as it was */
    OK(cuGraphDestroyNode(fill));
    set.dst = data;
    EXPECT(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context), BAD); /* no node of the graph any more */
    TRUE(launched(exec) == 92);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static void count_call(void *calls)
{
    ++*(int *)calls;
}

static void other_nodes(void)
{
    CUgraph graph, inner, replacement;
    CUgraphNode copy_node, host, child, record, wait, inside;
    CUgraphExec exec;
    uint32_t source[2] = {1, 2}, other[2] = {30, 40};
    CUDA_MEMCPY3D copy = {.WidthInBytes = 8, .Height = 1, .Depth = 1, .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = source,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = data};
    int first = 0, second = 0;
    CUDA_HOST_NODE_PARAMS call = {count_call, &first};
    CUevent event, event2;

    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&event2, 0));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&inner, 0));
    OK(cuGraphCreate(&replacement, 0));
    OK(cuGraphAddMemcpyNode(&copy_node, graph, NULL, 0, &copy, context));
    OK(cuGraphAddHostNode(&host, graph, &copy_node, 1, &call));
    inside = add_scale(inner, NULL, 2, 0);
    add_scale(replacement, NULL, 5, 0);
    OK(cuGraphAddChildGraphNode(&child, graph, &host, 1, inner));
    OK(cuGraphAddEventRecordNode(&record, graph, &child, 1, event));
    OK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, event));
    OK(cuGraphInstantiate(&exec, graph, 0));
    TRUE(launched(exec) == 2 && first == 1);
    copy.srcHost = other;
    OK(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, context));
    call.userData = &second;
    OK(cuGraphExecHostNodeSetParams(exec, host, &call));
    OK(cuGraphExecEventRecordNodeSetEvent(exec, record, event2));
    OK(cuGraphExecEventWaitNodeSetEvent(exec, wait, event2));
    OK(cuGraphExecChildGraphNodeSetParams(exec, child, replacement));
    TRUE(launched(exec) == 150 && word(1) == 40 && first == 1 && second == 1);
    OK(cuEventSynchronize(event2));
    /* A node of the child graph. */
    {
        CUgraph embedded;
        size_t count = 1;
        void *arguments[3];
        CUdeviceptr address = data;
        uint32_t factor = 7, shift = 1;
        CUDA_KERNEL_NODE_PARAMS params = scale_params(arguments, &address, &factor, &shift);
        OK(cuGraphChildGraphNodeGetGraph(child, &embedded));
        OK(cuGraphGetNodes(embedded, &inside, &count));
        OK(cuGraphExecKernelNodeSetParams(exec, inside, &params));
        TRUE(launched(exec) == 211);
    }
    OK(cuGraphAddEmptyNode(&inside, replacement, NULL, 0));
    EXPECT(cuGraphExecChildGraphNodeSetParams(exec, child, replacement), BAD); /* another shape */
    EXPECT(cuGraphExecChildGraphNodeSetParams(exec, child, no_graph), BAD);
    EXPECT(cuGraphExecChildGraphNodeSetParams(exec, host, inner), BAD);
    copy.Height = 2;
    EXPECT(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, context), BAD);
    copy.Height = 1;
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = data + 8;
    EXPECT(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, context), BAD);
    EXPECT(cuGraphExecMemcpyNodeSetParams(exec, copy_node, NULL, context), BAD);
    call.fn = NULL;
    EXPECT(cuGraphExecHostNodeSetParams(exec, host, &call), BAD);
    EXPECT(cuGraphExecHostNodeSetParams(exec, host, NULL), BAD);
    EXPECT(cuGraphExecEventRecordNodeSetEvent(exec, record, (CUevent)0x70), BAD);
    EXPECT(cuGraphExecEventWaitNodeSetEvent(exec, record, event), BAD);
    TRUE(launched(exec) == 211);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(inner));
    OK(cuGraphDestroy(replacement));
    OK(cuEventDestroy(event));
    OK(cuEventDestroy(event2));
}

static void whole_graphs(void)
{
    CUgraph graph, next;
    CUgraphNode fill, kernel_node, extra;
    CUgraphExec exec;
    CUgraphExecUpdateResultInfo info;

    OK(cuGraphCreate(&graph, 0));
    fill = add_fill(graph, 5, 1);
    kernel_node = add_scale(graph, fill, 3, 1);
    OK(cuGraphInstantiate(&exec, graph, 0));
    TRUE(launched(exec) == 16);

    OK(cuGraphCreate(&next, 0));
    EXPECT(cuGraphExecUpdate(exec, next, &info), FAILURE);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !info.errorNode);
    fill = add_fill(next, 6, 1);
    extra = add_scale(next, NULL, 4, 2);
    EXPECT(cuGraphExecUpdate(exec, next, &info), FAILURE);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && info.errorNode == extra);
    OK(cuGraphAddDependencies(next, &fill, &extra, NULL, 1));
    OK(cuGraphExecUpdate(exec, next, &info));
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && !info.errorNode && !info.errorFromNode);
    TRUE(launched(exec) == 26);
    OK(cuGraphDestroy(next));
    TRUE(launched(exec) == 26);
    /* It still stands for the graph it was made of. */
    OK(cuGraphNodeSetEnabled(exec, kernel_node, 0));
    TRUE(launched(exec) == 6);

    OK(cuGraphCreate(&next, 0));
    fill = add_fill(next, 1, 1);
    OK(cuGraphAddEmptyNode(&extra, next, &fill, 1));
    EXPECT(cuGraphExecUpdate(exec, next, &info), FAILURE);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == extra);
    OK(cuGraphDestroy(next));
    OK(cuGraphCreate(&next, 0));
    fill = add_fill(next, 1, 2);         /* two dimensions */
    add_scale(next, fill, 1, 1);
    EXPECT(cuGraphExecUpdate(exec, next, &info), FAILURE);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED && info.errorNode == fill);
    EXPECT(cuGraphExecUpdate(exec, no_graph, &info), BAD);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR);
    EXPECT(cuGraphExecUpdate((CUgraphExec)0x70, next, &info), BAD);
    EXPECT(cuGraphExecUpdate(exec, next, NULL), BAD);
    TRUE(launched(exec) == 6);           /* as it was */
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(next));
}

static void objects(void)
{
    CUuserObject object, other;
    CUgraph graph, copy;
    CUgraphExec exec;
    int gone = 0, gone2 = 0;

    EXPECT(cuUserObjectCreate(&object, &gone, count_call, 1, 0), BAD);
    EXPECT(cuUserObjectCreate(&object, &gone, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), BAD);
    EXPECT(cuUserObjectCreate(&object, &gone, count_call, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), BAD);
    EXPECT(cuUserObjectCreate(NULL, &gone, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), BAD);
    OK(cuUserObjectCreate(&object, &gone, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuUserObjectRetain(object, 2));
    EXPECT(cuUserObjectRetain(object, 0), BAD);
    EXPECT(cuUserObjectRelease(object, 4), BAD);
    EXPECT(cuUserObjectRelease((CUuserObject)0x70, 1), BAD);
    OK(cuUserObjectRelease(object, 2));
    TRUE(!gone);
    OK(cuUserObjectRelease(object, 1));
    TRUE(gone == 1);
    EXPECT(cuUserObjectRelease(object, 1), BAD);
    EXPECT(cuUserObjectRetain(object, 1), BAD);

    gone = 0;
    OK(cuUserObjectCreate(&object, &gone, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuUserObjectCreate(&other, &gone2, count_call, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphCreate(&graph, 0));
    add_fill(graph, 1, 1);
    EXPECT(cuGraphRetainUserObject(no_graph, object, 1, 0), BAD);
    EXPECT(cuGraphRetainUserObject(graph, object, 0, 0), BAD);
    EXPECT(cuGraphRetainUserObject(graph, object, 1, 8), BAD);
    EXPECT(cuGraphRetainUserObject(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE), BAD); /* more than there are */
    EXPECT(cuGraphReleaseUserObject(graph, object, 1), BAD);
    OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    OK(cuGraphRetainUserObject(graph, other, 2147483647, 0));
    EXPECT(cuGraphReleaseUserObject(graph, object, 2), BAD);
    OK(cuGraphReleaseUserObject(graph, other, 2147483647));
    OK(cuUserObjectRelease(other, 2));
    TRUE(gone2 == 1);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphClone(&copy, graph));
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuGraphDestroy(copy));
    TRUE(!gone);                         /* the executable graph has it too */
    OK(cuGraphExecDestroy(exec));
    TRUE(gone == 1);
}

static void drawing(const char *path)
{
    CUgraph graph, inner;
    CUgraphNode fill, child;
    char text[8192] = "";
    FILE *file;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&inner, 0));
    add_scale(inner, NULL, 2, 0);
    fill = add_fill(graph, 5, 1);
    OK(cuGraphAddChildGraphNode(&child, graph, &fill, 1, inner));
    add_scale(graph, child, 1, 1);
    OK(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    file = fopen(path, "r");
    TRUE(file && fread(text, 1, sizeof text - 1, file));
    fclose(file);
    TRUE(!strncmp(text, "digraph", 7) && strstr(text, "MEMSET") && strstr(text, "scale") && strstr(text, "block 1,1,1"));
    {
        int arrows = 0, open = 0;
        for (char *at = text; *at; at++) {
            arrows += at[0] == '-' && at[1] == '>';
            open += (*at == '{') - (*at == '}');
        }
        TRUE(arrows == 2 && open == 0);
    }
    EXPECT(cuGraphDebugDotPrint(graph, NULL, 0), BAD);
    EXPECT(cuGraphDebugDotPrint(no_graph, path, 0), BAD);
    EXPECT(cuGraphDebugDotPrint(graph, path, 1u << 30), BAD);
    EXPECT(cuGraphDebugDotPrint(graph, "/no such folder/x", 0), CUDA_ERROR_OPERATING_SYSTEM);
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(inner));
}

int main(int count, char **arguments)
{
    context = start();
    add_one = kernel("add_one");
    scale = kernel("scale");
    OK(cuMemAlloc(&data, 1024));
    clones();
    single_nodes();
    other_nodes();
    whole_graphs();
    objects();
    drawing(count > 1 ? arguments[1] : "graph.dot");
    return 0;
}
