/* Every form of the graph and capture calls that came in several, each by its own symbol. */
#define __CUDA_API_VERSION_INTERNAL
#include "check.h"

int main(void)
{
    CUcontext context;
    CUmodule module;
    CUfunction scale;
    CUdeviceptr data;
    CUgraph graph, captured, other;
    CUgraphNode a, b, c, d, nodes[4], from[4], to[4];
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    CUgraphExec exec;
    CUgraphExecUpdateResult why;
    CUstream stream;
    CUstreamCaptureStatus state;
    const CUgraphNode *behind;
    cuuint64_t id = 0;
    uint32_t factor = 3, shift = 1, value;
    void *arguments[] = {&data, &factor, &shift};
    CUDA_KERNEL_NODE_PARAMS_v1 first = {0};
    CUDA_KERNEL_NODE_PARAMS_v2 second = {0};
    char log[8] = "x";
    size_t count;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&scale, module, "scale"));
    OK(cuMemAlloc_v2(&data, 64));
    first.func = scale;
    first.gridDimX = first.gridDimY = first.gridDimZ = first.blockDimX = first.blockDimY = first.blockDimZ = 1;
    first.kernelParams = arguments;
    memcpy(&second, &first, sizeof first);

    OK(cuGraphCreate(&graph, 0));
    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){data, 0, 5, 4, 1, 1, context};
    OK(cuGraphAddNode(&a, graph, NULL, 0, &params));
    EXPECT(cuGraphAddNode(&b, graph, NULL, 1, &params), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphAddKernelNode(&b, graph, &a, 1, &first));
    EXPECT(cuGraphAddKernelNode(&c, graph, &a, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphAddKernelNode_v2(&c, graph, &b, 1, &second));
    params.memset.dst = data + 4;
    OK(cuGraphAddNode_v3(&d, graph, NULL, NULL, 0, &params));
    OK(cuGraphAddDependencies(graph, &c, &d, 1));
    EXPECT(cuGraphAddDependencies(graph, &c, &d, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphRemoveDependencies(graph, &c, &d, 1));
    EXPECT(cuGraphRemoveDependencies(graph, &c, &d, 1), CUDA_ERROR_INVALID_VALUE);
    count = 4;
    OK(cuGraphGetEdges(graph, from, to, &count));
    TRUE(count == 2 && from[0] == a && to[0] == b && from[1] == b && to[1] == c);
    EXPECT(cuGraphGetEdges(graph, from, NULL, &count), CUDA_ERROR_INVALID_VALUE);
    count = 4;
    OK(cuGraphNodeGetDependencies(b, nodes, &count));
    TRUE(count == 1 && nodes[0] == a);
    count = 4;
    OK(cuGraphNodeGetDependentNodes(b, nodes, &count));
    TRUE(count == 1 && nodes[0] == c);
    params.memset.value = 8;
    OK(cuGraphNodeSetParams_v2(d, &params));
    EXPECT(cuGraphNodeSetParams_v2(d, NULL), CUDA_ERROR_INVALID_VALUE);

    OK(cuGraphInstantiate(&exec, graph, NULL, log, sizeof log));
    TRUE(!*log);                         /* nothing to say */
    OK(cuGraphLaunch(exec, NULL));
    OK(cuMemcpyDtoH_v2(&value, data, 4));
    TRUE(value == (5 * 3 + 1) * 3 + 1);
    OK(cuMemcpyDtoH_v2(&value, data + 4, 4));
    TRUE(value == 8);
    factor = 0;
    OK(cuGraphExecKernelNodeSetParams(exec, c, &first));
    EXPECT(cuGraphExecKernelNodeSetParams(exec, c, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch_ptsz(exec, NULL));
    OK(cuStreamSynchronize_ptsz(NULL));
    OK(cuMemcpyDtoH_v2(&value, data, 4));
    TRUE(value == 1);
    OK(cuGraphExecUpdate(exec, graph, nodes, &why));
    TRUE(why == CU_GRAPH_EXEC_UPDATE_SUCCESS && !nodes[0]);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuMemcpyDtoH_v2(&value, data, 4));
    TRUE(value == 49);
    OK(cuGraphCreate(&other, 0));
    EXPECT(cuGraphExecUpdate(exec, other, nodes, &why), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    TRUE(why == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuGraphExecDestroy(exec));

    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(stream));
    OK(cuMemsetD32Async(data, 4, 1, stream));
    OK(cuStreamGetCaptureInfo(stream, &state, &id));
    TRUE(state == CU_STREAM_CAPTURE_STATUS_ACTIVE && id);
    OK(cuStreamGetCaptureInfo_v2(stream, &state, NULL, &captured, &behind, &count));
    TRUE(count == 1);
    nodes[0] = behind[0];
    OK(cuStreamUpdateCaptureDependencies(stream, nodes, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuStreamGetCaptureInfo_v2(stream, &state, NULL, NULL, NULL, &count));
    TRUE(count == 0);
    OK(cuStreamUpdateCaptureDependencies(stream, nodes, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    OK(cuStreamEndCapture(stream, &captured));
    OK(cuStreamGetCaptureInfo(stream, &state, &id));
    TRUE(state == CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuGraphDestroy(captured));
    OK(cuGraphDestroy(other));
    OK(cuGraphDestroy(graph));
    return 0;
}
