/* Changing executable graphs: one node, a child graph, or all of it after a graph of the same shape. Launches that were
   posted before are not affected, as the ring keeps the order. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* --- what may change --- */

static bool same_fill_shape(const CUDA_MEMSET_NODE_PARAMS_v2 *a, const CUDA_MEMSET_NODE_PARAMS_v2 *b)
{
    if (a->height != b->height)
        return false;
    return a->height == 1 || (a->width == b->width && a->pitch == b->pitch && a->elementSize == b->elementSize);
}

/* Whether the memory that a copy touches is of the same sort as before. */
static bool same_copy_sides(const CUDA_MEMCPY3D *a, const CUDA_MEMCPY3D *b)
{
    return a->srcMemoryType == b->srcMemoryType && a->dstMemoryType == b->dstMemoryType;
}

static CUgraphExecUpdateResult compare(const zl_node *old, const zl_content *new)
{
    const CUgraphNodeParams *a = &old->content.params, *b = &new->params;

    switch (old->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return a->kernel.ctx == b->kernel.ctx ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (a->memcpy.copyCtx != b->memcpy.copyCtx || !same_copy_sides(&a->memcpy.copyParams, &b->memcpy.copyParams))
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (a->memset.ctx != b->memset.ctx || !same_fill_shape(&a->memset, &b->memset))
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return zl_content_context(&old->content) == zl_content_context(new) ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                                            : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    default:
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    }
}

/* --- one node --- */

static bool one_dimensional(const CUDA_MEMCPY3D *c)
{
    return c->Height == 1 && c->Depth == 1;
}

static CUresult replace(zl_exec *exec, zl_node *node)
{
    struct zl_cmd_graph_replace *command;
    zl_bytes bytes = {0};
    bool local;
    CUresult result = zl_step_pack(node, &bytes, &local);

    if (result == CUDA_SUCCESS) {
        command = zl_begin(ZL_OP_graph_replace, exec->context, ZL_TAIL_graph_replace + bytes.size, false);
        if (command) {
            command->graph = exec->handle;
            command->index = (uint32_t)node->step;
            memcpy((uint8_t *)command + ZL_TAIL_graph_replace, bytes.data, bytes.size);
            zl_post(&command->header, NULL);
            exec->locals += (size_t)local - (size_t)exec->local[node->step];
            exec->local[node->step] = local;
        } else {
            result = zl_gone();
        }
    }
    free(bytes.data);
    return result;
}

/* The executable graph and its node that stands for one of the graph it was made of, which still exists. */
static CUresult find(CUgraphExec hExec, CUgraphNode hNode, zl_exec **exec, zl_node **node)
{
    *exec = zl_exec_get(hExec);
    if (!*exec || !zl_node_get(hNode) || !(*node = zl_graph_find((*exec)->graph, (uint64_t)hNode)))
        return CUDA_ERROR_INVALID_VALUE;
    return (*exec)->driver == zl_state.driver_process ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult set(CUgraphExec hExec, CUgraphNode hNode, const CUgraphNodeParams *params)
{
    zl_content content, before;
    zl_exec *exec;
    zl_node *node;
    CUresult result;

    pthread_mutex_lock(&zl_graph_lock);
    result = find(hExec, hNode, &exec, &node);
    if (result == CUDA_SUCCESS && (node->type != params->type || node->content.child))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && node->type == CU_GRAPH_NODE_TYPE_MEMCPY &&
        (!one_dimensional(&params->memcpy.copyParams) || !one_dimensional(&node->content.params.memcpy.copyParams)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = zl_content_make(&content, params);
    if (result == CUDA_SUCCESS) {
        content.attributes = node->content.attributes;
        if (compare(node, &content) != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
            result = CUDA_ERROR_INVALID_VALUE;
        } else {
            before = node->content;
            node->content = content;
            result = replace(exec, node);
            content = result == CUDA_SUCCESS ? before : content;
            if (result != CUDA_SUCCESS)
                node->content = before;
        }
        content.attributes = NULL;       /* stay with the node */
        zl_content_free(&content);
    }
    zl_graph_unlock();
    return result;
}

/* --- all nodes --- */

static CUgraphExecUpdateResult refuse(CUgraphExecUpdateResultInfo *info, CUgraphExecUpdateResult why, const zl_node *node,
                                      const zl_node *from)
{
    info->result = why;
    info->errorNode = node ? (CUgraphNode)node->handle : NULL;
    info->errorFromNode = from ? (CUgraphNode)from->handle : NULL;
    return why;
}

/* Nodes are paired in the order in which they were added, and dependencies in theirs. */
static CUgraphExecUpdateResult match(const zl_graph *old, const zl_graph *new, CUgraphExecUpdateResultInfo *info)
{
    if (old->count != new->count)
        return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
    for (size_t i = 0; i < new->count; i++) {
        const zl_node *a = old->nodes[i], *b = new->nodes[i];
        CUgraphExecUpdateResult result;
        if (a->from.count != b->from.count)
            return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b, NULL);
        for (size_t j = 0; j < b->from.count; j++)
            if (a->from.items[j].node->index != b->from.items[j].node->index)
                return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b, b->from.items[j].node);
        if (a->type != b->type)
            return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b, NULL);
        result = compare(a, &b->content);
        if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            return refuse(info, result, b, NULL);
        if (b->content.child) {
            result = match(a->content.child, b->content.child, info);
            if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
                return result;
        }
    }
    return refuse(info, CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL, NULL);
}

/* The nodes go on standing for those of the graph that was instantiated, enabled or not as they were. */
static void inherit(zl_graph *new, const zl_graph *old)
{
    new->origin = old->origin;
    for (size_t i = 0; i < new->count; i++) {
        new->nodes[i]->origin = old->nodes[i]->origin;
        new->nodes[i]->enabled = old->nodes[i]->enabled;
        if (new->nodes[i]->content.child)
            inherit(new->nodes[i]->content.child, old->nodes[i]->content.child);
    }
}

/* Puts a copy of `graph` in the place of all of the executable graph, or of what a child graph node in it has. */
static CUresult update(zl_exec *exec, zl_node *node, const zl_graph *graph, CUgraphExecUpdateResultInfo *info)
{
    zl_graph **place = node ? &node->content.child : &exec->graph, *before = *place, *copy;
    CUgraphInstantiateResult reason;
    zl_node *culprit;
    CUresult result;

    if (match(before, graph, info) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    result = zl_graph_copy(graph, true, &copy);
    if (result == CUDA_SUCCESS) {
        inherit(copy, before);
        copy->parent = node;
        *place = copy;
        result = zl_exec_define(exec, &culprit, &reason);
        if (result != CUDA_SUCCESS)
            *place = before;
        zl_graph_free(result == CUDA_SUCCESS ? before : copy);
    }
    if (result != CUDA_SUCCESS) {
        refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    return CUDA_SUCCESS;
}

/* --- entry points --- */

CUresult zl_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_graph *graph;
    zl_exec *exec;

    *resultInfo = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    pthread_mutex_lock(&zl_graph_lock);
    exec = zl_exec_get(hGraphExec);
    graph = zl_graph_get(hGraph);
    if (exec && graph)
        result = exec->driver == zl_state.driver_process ? update(exec, NULL, graph, resultInfo) : CUDA_ERROR_INVALID_HANDLE;
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                              CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResultInfo info;
    CUresult result = zl_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);

    *hErrorNode_out = info.errorNode;
    *updateResult_out = info.result;
    return result;
}

CUresult zl_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
    CUgraphExecUpdateResultInfo info;
    zl_graph *graph;
    zl_exec *exec;
    zl_node *node;
    CUresult result;

    pthread_mutex_lock(&zl_graph_lock);
    result = find(hGraphExec, hNode, &exec, &node);
    graph = zl_graph_get(childGraph);
    if (result == CUDA_SUCCESS && (!graph || !node->content.child))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && update(exec, node, graph, &info) != CUDA_SUCCESS)
        result = CUDA_ERROR_INVALID_VALUE;
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return zl_cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
    return set(hGraphExec, hNode, nodeParams);
}

CUresult zl_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&params.kernel, nodeParams, sizeof *nodeParams);
    return set(hGraphExec, hNode, &params);
}

CUresult zl_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&params.kernel, nodeParams, sizeof *nodeParams);
    return set(hGraphExec, hNode, &params);
}

CUresult zl_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    params.memcpy.copyCtx = ctx;
    params.memcpy.copyParams = *copyParams;
    return set(hGraphExec, hNode, &params);
}

CUresult zl_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    if (!memsetParams)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&params.memset, memsetParams, sizeof *memsetParams); /* the start of the newer form */
    params.memset.ctx = ctx;
    return set(hGraphExec, hNode, &params);
}

CUresult zl_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};

    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    params.host.fn = nodeParams->fn;
    params.host.userData = nodeParams->userData;
    return set(hGraphExec, hNode, &params);
}

CUresult zl_cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    params.eventRecord.event = event;
    return set(hGraphExec, hNode, &params);
}

CUresult zl_cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    params.eventWait.event = event;
    return set(hGraphExec, hNode, &params);
}

/* Only these can be switched off, says the manual. */
static bool switchable(const zl_node *node)
{
    return node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           node->type == CU_GRAPH_NODE_TYPE_MEMSET;
}

CUresult zl_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
    zl_exec *exec;
    zl_node *node;
    CUresult result;

    pthread_mutex_lock(&zl_graph_lock);
    result = find(hGraphExec, hNode, &exec, &node);
    if (result == CUDA_SUCCESS && !switchable(node))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && node->enabled != (isEnabled != 0)) {
        node->enabled = isEnabled != 0;
        result = replace(exec, node);
        if (result != CUDA_SUCCESS)
            node->enabled = !node->enabled;
    }
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
    zl_exec *exec;
    zl_node *node;
    CUresult result;

    pthread_mutex_lock(&zl_graph_lock);
    result = find(hGraphExec, hNode, &exec, &node);
    if (result == CUDA_SUCCESS && !switchable(node))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *isEnabled = node->enabled;
    zl_graph_unlock();
    return result;
}
