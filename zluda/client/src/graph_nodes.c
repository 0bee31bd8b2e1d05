/* Adding nodes, and reading and changing what they do: the general forms, and one of each type. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static CUresult add(CUgraphNode *out, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                    size_t count, const CUgraphNodeParams *params, CUgraph *child)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_graph *graph;
    zl_node *node;

    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(hGraph);
    if (graph)
        result = zl_node_add(graph, dependencies, data, count, params, &node);
    if (result == CUDA_SUCCESS) {
        *out = (CUgraphNode)node->handle;
        if (child && node->content.child)
            *child = (CUgraph)node->content.child->handle;
    }
    zl_graph_unlock();
    return result;
}

/* Other parameters for a node, or none of it. */
static CUresult set(CUgraphNode hNode, const CUgraphNodeParams *params)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_content content;
    zl_node *node;

    pthread_mutex_lock(&zl_graph_lock);
    node = zl_node_get(hNode);
    if (node && node->type == params->type && node->type != CU_GRAPH_NODE_TYPE_GRAPH)
        result = zl_content_make(&content, params);
    if (result == CUDA_SUCCESS) {
        content.attributes = node->content.attributes;
        node->content.attributes = NULL;
        zl_content_free(&node->content);
        node->content = content;
    }
    zl_graph_unlock();
    return result;
}

static CUresult get(CUgraphNode hNode, int type, CUgraphNodeParams *params)
{
    zl_node *node;
    bool fits;

    pthread_mutex_lock(&zl_graph_lock);
    node = zl_node_get(hNode);
    fits = node && (type < 0 || node->type == (CUgraphNodeType)type);
    if (fits)
        *params = node->content.params;
    zl_graph_unlock();
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- the general forms --- */

static bool reserved_clear(const CUgraphNodeParams *params)
{
    return !params->reserved0[0] && !params->reserved0[1] && !params->reserved0[2] && !params->reserved2;
}

CUresult zl_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    if (!nodeParams || !reserved_clear(nodeParams))
        return CUDA_ERROR_INVALID_VALUE;
    return add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams, &nodeParams->graph.graph);
}

CUresult zl_cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    return zl_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
}

CUresult zl_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                           CUgraphNodeParams *nodeParams)
{
    return zl_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

CUresult zl_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return nodeParams && reserved_clear(nodeParams) ? set(hNode, nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuGraphNodeSetParams_v2(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return zl_cuGraphNodeSetParams(hNode, nodeParams);
}

CUresult zl_cuGraphNodeGetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return get(hNode, -1, nodeParams);
}

/* --- empty nodes --- */

CUresult zl_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies)
{
    const CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

/* --- kernels: the first form of the parameters is the start of the second --- */

static CUgraphNodeParams kernel_of(const void *params, size_t size)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&all.kernel, params, size);
    return all;
}

CUresult zl_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUgraphNodeParams params;

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    params = kernel_of(nodeParams, sizeof *nodeParams);
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

CUresult zl_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    params = kernel_of(nodeParams, sizeof *nodeParams);
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

CUresult zl_cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &params);
    if (result == CUDA_SUCCESS)
        memcpy(nodeParams, &params.kernel, sizeof *nodeParams);
    return result;
}

CUresult zl_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &params);
    if (result == CUDA_SUCCESS)
        memcpy(nodeParams, &params.kernel, sizeof *nodeParams);
    return result;
}

CUresult zl_cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUgraphNodeParams params;

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    params = kernel_of(nodeParams, sizeof *nodeParams);
    return set(hNode, &params);
}

CUresult zl_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    params = kernel_of(nodeParams, sizeof *nodeParams);
    return set(hNode, &params);
}

/* --- copies --- */

CUresult zl_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    params.memcpy.copyCtx = ctx;
    params.memcpy.copyParams = *copyParams;
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

CUresult zl_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, &params);
    if (result == CUDA_SUCCESS)
        *nodeParams = params.memcpy.copyParams;
    return result;
}

CUresult zl_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, &params);

    if (result != CUDA_SUCCESS || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    params.memcpy.copyParams = *nodeParams; /* in the context that it has */
    return set(hNode, &params);
}

/* --- fills --- */

static void put_fill(CUgraphNodeParams *params, const CUDA_MEMSET_NODE_PARAMS *p)
{
    params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
        p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, params->memset.ctx,
    };
}

CUresult zl_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    if (!memsetParams)
        return CUDA_ERROR_INVALID_VALUE;
    params.memset.ctx = ctx;
    put_fill(&params, memsetParams);
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

CUresult zl_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, &params);
    if (result == CUDA_SUCCESS)
        memcpy(nodeParams, &params.memset, sizeof *nodeParams); /* the start of the newer form */
    return result;
}

CUresult zl_cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, &params);

    if (result != CUDA_SUCCESS || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    put_fill(&params, nodeParams);
    return set(hNode, &params);
}

/* --- host functions --- */

static CUgraphNodeParams host_of(const CUDA_HOST_NODE_PARAMS *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = p->fn;
    params.host.userData = p->userData;
    return params;
}

CUresult zl_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                               size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    params = host_of(nodeParams);
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

CUresult zl_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_HOST, &params);
    if (result == CUDA_SUCCESS)
        *nodeParams = (CUDA_HOST_NODE_PARAMS){params.host.fn, params.host.userData};
    return result;
}

CUresult zl_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    params = host_of(nodeParams);
    return set(hNode, &params);
}

/* --- child graphs --- */

CUresult zl_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                     size_t numDependencies, CUgraph childGraph)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.graph.graph = childGraph;
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

CUresult zl_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_GRAPH, &params);
    if (result == CUDA_SUCCESS)
        *phGraph = params.graph.graph;
    return result;
}

/* --- events --- */

static CUgraphNodeParams event_of(CUgraphNodeType type, CUevent event)
{
    CUgraphNodeParams params = {.type = type};
    if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        params.eventRecord.event = event;
    else
        params.eventWait.event = event;
    return params;
}

CUresult zl_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                      size_t numDependencies, CUevent event)
{
    const CUgraphNodeParams params = event_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

CUresult zl_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, CUevent event)
{
    const CUgraphNodeParams params = event_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params, NULL);
}

CUresult zl_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &params);
    if (result == CUDA_SUCCESS)
        *event_out = params.eventRecord.event;
    return result;
}

CUresult zl_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    CUgraphNodeParams params;
    CUresult result = get(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &params);
    if (result == CUDA_SUCCESS)
        *event_out = params.eventWait.event;
    return result;
}

CUresult zl_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    const CUgraphNodeParams params = event_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    return set(hNode, &params);
}

CUresult zl_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    const CUgraphNodeParams params = event_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    return set(hNode, &params);
}

/* --- attributes of kernels: kept and given back; those a launch refuses are refused here --- */

static CUlaunchAttributeValue *attribute(zl_node *node, CUlaunchAttributeID id)
{
    zl_content *content = &node->content;

    if (node->type != CU_GRAPH_NODE_TYPE_KERNEL || (unsigned)id >= ZL_NODE_ATTRIBUTES)
        return NULL;
    if (!content->attributes)
        content->attributes = calloc(ZL_NODE_ATTRIBUTES, sizeof *content->attributes);
    return content->attributes ? &content->attributes[id] : NULL;
}

CUresult zl_cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
    CUlaunchAttributeValue *found = NULL;
    zl_node *node;

    pthread_mutex_lock(&zl_graph_lock);
    node = zl_node_get(hNode);
    if (node && (found = attribute(node, attr)))
        *value_out = *found;
    zl_graph_unlock();
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Attributes that ask for what a plain launch gives, or that are mere hints. */
static CUresult allowed(CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* allows overlap; none is always right */
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        return value->cooperative ? zl_not_supported("cuGraphKernelNodeSetAttribute", "cooperative launches") : CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (value->clusterDim.x <= 1 && value->clusterDim.y <= 1 && value->clusterDim.z <= 1)
            return CUDA_SUCCESS;
        return zl_not_supported("cuGraphKernelNodeSetAttribute", "thread block clusters");
    default:
        return zl_not_supported("cuGraphKernelNodeSetAttribute", "a launch attribute that is not built");
    }
}

CUresult zl_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    CUlaunchAttributeValue *found;
    zl_node *node;

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&zl_graph_lock);
    node = zl_node_get(hNode);
    if (node && (found = attribute(node, attr)) && (result = allowed(attr, value)) == CUDA_SUCCESS)
        *found = *value;
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    zl_node *to, *from;
    bool fits;

    pthread_mutex_lock(&zl_graph_lock);
    to = zl_node_get(dst);
    from = zl_node_get(src);
    fits = to && from && attribute(to, CU_LAUNCH_ATTRIBUTE_IGNORE) && attribute(from, CU_LAUNCH_ATTRIBUTE_IGNORE);
    if (fits)
        memcpy(to->content.attributes, from->content.attributes, ZL_NODE_ATTRIBUTES * sizeof *to->content.attributes);
    zl_graph_unlock();
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
