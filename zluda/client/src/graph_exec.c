/* Executable graphs. The driver process has the steps, in an order that keeps every dependency; a launch is one posted
   command. Steps that only this process can do (copies of ordinary memory, host functions) cut a launch in parts: there
   the launching thread waits for its turn and does them itself. */
#include "graph.h"
#include "capture.h"

#include <stdlib.h>
#include <string.h>

zl_exec *zl_exec_get(CUgraphExec exec)
{
    return zl_handle_get(ZL_EXEC, (uint64_t)exec);
}

static size_t count_leaves(const zl_graph *graph)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->count; i++)
        count += graph->nodes[i]->content.child ? count_leaves(graph->nodes[i]->content.child) : 1;
    return count;
}

/* Child graphs run whole where their nodes stand. */
static CUresult collect(const zl_graph *graph, zl_node **leaves, size_t *count, zl_node **culprit)
{
    zl_node **order = malloc((graph->count + 1) * sizeof *order);
    CUresult result = order ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    if (order && !zl_graph_sort(graph, order, culprit))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < graph->count; i++) {
        if (order[i]->content.child) {
            result = collect(order[i]->content.child, leaves, count, culprit);
            continue;
        }
        order[i]->step = *count;
        leaves[(*count)++] = order[i];
    }
    free(order);
    return result;
}

static CUresult send(zl_exec *exec, const zl_bytes *bytes, size_t count)
{
    struct zl_cmd_graph_define *command;
    zl_payload payload;
    CUresult result = zl_payload_prepare(&payload, bytes->data, bytes->size);

    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_graph_define, exec->context, ZL_TAIL_graph_define + zl_payload_inline(&payload), true);
    if (command) {
        command->graph = exec->handle;
        command->address = payload.address;
        command->size = bytes->size;
        command->count = (uint32_t)count;
        if (zl_payload_inline(&payload))
            memcpy((uint8_t *)command + ZL_TAIL_graph_define, bytes->data, bytes->size);
        result = zl_call(&command->header, NULL, 0, NULL);
    } else {
        result = zl_gone();
    }
    zl_payload_release(&payload);
    return result;
}

/* The one context of all nodes; of a graph without any, the current one. */
static CUresult find_context(zl_node **leaves, size_t count, zl_context **context, zl_node **culprit)
{
    for (size_t i = 0; i < count; i++) {
        zl_context *own = zl_content_context(&leaves[i]->content);
        if (own && *context && own != *context) {
            *culprit = leaves[i];
            return zl_not_supported("cuGraphInstantiate", "graphs of nodes in several contexts");
        }
        *context = own ? own : *context;
    }
    if (!*context)
        *context = zl_current();
    return *context ? zl_context_check(*context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_exec_define(zl_exec *exec, zl_node **culprit, CUgraphInstantiateResult *reason)
{
    size_t count = 0, locals = 0, room = count_leaves(exec->graph);
    zl_node **leaves = malloc((room + 1) * sizeof *leaves);
    bool *local = calloc(room + 1, sizeof *local);
    zl_bytes bytes = {0};
    CUresult result = leaves && local ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    *culprit = NULL;
    *reason = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (result == CUDA_SUCCESS && (result = collect(exec->graph, leaves, &count, culprit)) == CUDA_ERROR_INVALID_VALUE)
        *reason = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    if (result == CUDA_SUCCESS && (result = find_context(leaves, count, &exec->context, culprit)) == CUDA_ERROR_NOT_SUPPORTED)
        *reason = CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        result = zl_step_pack(leaves[i], &bytes, &local[i]);
        locals += local[i];
    }
    if (result == CUDA_SUCCESS)
        result = send(exec, &bytes, count);
    free(bytes.data);
    if (result != CUDA_SUCCESS) {
        free(leaves);
        free(local);
        return result;
    }
    free(exec->leaves);
    free(exec->local);
    exec->leaves = leaves;
    exec->local = local;
    exec->count = count;
    exec->locals = locals;
    exec->driver = zl_state.driver_process;
    *reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return CUDA_SUCCESS;
}

static void free_exec(zl_exec *exec)
{
    if (exec->handle)
        zl_handle_remove(ZL_EXEC, exec->handle);
    if (exec->graph)
        zl_graph_free(exec->graph);
    free(exec->leaves);
    free(exec->local);
    free(exec);
}

static CUresult instantiate(CUgraphExec *out, CUgraph hGraph, cuuint64_t flags, CUgraphNode *culprit,
                            CUgraphInstantiateResult *reason)
{
    const cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                             CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_node *node = NULL;
    zl_graph *graph;
    zl_exec *exec;

    *culprit = NULL;
    *reason = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
        if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
            return CUDA_ERROR_INVALID_VALUE;
        return zl_not_supported("cuGraphInstantiate", "graphs launched from the device");
    }
    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(hGraph);
    if (graph && graph->captures)
        graph = NULL;                    /* not before the capture has ended */
    exec = graph ? calloc(1, sizeof *exec) : NULL;
    if (exec) {
        exec->flags = flags;
        exec->id = atomic_fetch_add(&zl_graph_ids, 1) + 1;
        exec->handle = zl_handle_new(ZL_EXEC, exec);
        result = exec->handle ? zl_graph_copy(graph, true, &exec->graph) : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS)
            result = zl_exec_define(exec, &node, reason);
        if (node)
            *culprit = (CUgraphNode)node->origin;
        if (result == CUDA_SUCCESS)
            *out = (CUgraphExec)exec->handle;
        else
            free_exec(exec);
    } else if (graph) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    zl_graph_unlock();
    return result;
}

/* --- entry points --- */

CUresult zl_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
    CUgraphInstantiateResult reason;
    CUgraphNode culprit;

    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) /* only where there is a stream for it */
        return CUDA_ERROR_INVALID_VALUE;
    return instantiate(phGraphExec, hGraph, flags, &culprit, &reason);
}

CUresult zl_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams, CUstream default_stream)
{
    CUresult result;

    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    result = instantiate(phGraphExec, hGraph, instantiateParams->flags, &instantiateParams->hErrNode_out,
                         &instantiateParams->result_out);
    if (result == CUDA_SUCCESS && (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) {
        CUstream stream = instantiateParams->hUploadStream;
        result = zl_cuGraphUpload(*phGraphExec, stream ? stream : default_stream);
        if (result != CUDA_SUCCESS) {
            zl_cuGraphExecDestroy(*phGraphExec);
            instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        }
    }
    return result;
}

/* The forms before CUDA 12 take a buffer for a message. */
static CUresult instantiate_with_log(CUgraphExec *out, CUgraph hGraph, CUgraphNode *culprit, char *log, size_t size)
{
    CUgraphInstantiateResult reason;
    CUgraphNode node;
    CUresult result = instantiate(out, hGraph, 0, &node, &reason);

    if (culprit)
        *culprit = node;
    if (log && size) {
        strncpy(log, reason == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE ? "the graph has a cycle" : "", size - 1);
        log[size - 1] = 0;
    }
    return result;
}

CUresult zl_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    return instantiate_with_log(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult zl_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    return instantiate_with_log(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

/* Whether it can run, in which stream. */
static CUresult usable(const zl_exec *exec, CUstream stream, zl_context **context, uint64_t *wire)
{
    CUresult result;

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (exec->driver != zl_state.driver_process)
        return CUDA_ERROR_INVALID_HANDLE; /* made before the device was reset */
    *context = zl_current() ? zl_current() : exec->context;
    result = zl_use_stream(stream, context, wire);
    if (result == CUDA_SUCCESS)
        result = zl_context_check(*context);
    return result == CUDA_SUCCESS ? zl_context_check(exec->context) : result;
}

static CUresult post(zl_exec *exec, zl_context *context, uint64_t wire, size_t first, size_t end)
{
    struct zl_cmd_graph_launch *command;

    if (first == end)
        return CUDA_SUCCESS;
    command = zl_begin(ZL_OP_graph_launch, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->graph = exec->handle;
    command->stream = wire;
    command->first = (uint32_t)first;
    command->count = (uint32_t)(end - first);
    if (exec->context != context)
        atomic_fetch_add(&exec->context->posted, 1);
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

CUresult zl_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
    zl_context *context;
    zl_exec *exec;
    uint64_t wire;
    CUresult result;
    size_t done = 0;

    pthread_mutex_lock(&zl_graph_lock);
    exec = zl_exec_get(hGraph);
    if (exec && zl_captured(hStream)) {
        result = zl_capture_graph(hStream, exec->graph);
        zl_graph_unlock();
        return result;
    }
    result = usable(exec, hStream, &context, &wire);
    for (size_t i = 0; result == CUDA_SUCCESS && exec->locals && i < exec->count; i++) {
        zl_content content;
        if (!exec->local[i])
            continue;
        result = post(exec, context, wire, done, i);
        if (result != CUDA_SUCCESS)
            break;
        done = i + 1;
        content = exec->leaves[i]->content; /* of these types, without pointers of its own */
        zl_graph_unlock();
        result = zl_step_run(&content, context, hStream);
        pthread_mutex_lock(&zl_graph_lock);
        exec = zl_exec_get(hGraph);
        if (result == CUDA_SUCCESS && (!exec || i >= exec->count))
            result = CUDA_ERROR_INVALID_VALUE; /* another thread has destroyed or changed it meanwhile */
    }
    if (result == CUDA_SUCCESS)
        result = post(exec, context, wire, done, exec->count);
    if (result == CUDA_SUCCESS)
        exec->launched = true;
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
    zl_context *context;
    uint64_t wire;
    CUresult result;

    pthread_mutex_lock(&zl_graph_lock); /* the driver process has it since it was instantiated */
    result = usable(zl_exec_get(hGraph), hStream, &context, &wire);
    zl_graph_unlock();
    return result;
}

static bool holds_objects(const zl_graph *graph)
{
    if (graph->object_count)
        return true;
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i]->content.child && holds_objects(graph->nodes[i]->content.child))
            return true;
    return false;
}

/* What is still running may use the objects. */
static void wait_for(zl_context *context)
{
    struct zl_cmd_context_synchronize *command;

    if (zl_context_check(context) != CUDA_SUCCESS)
        return;
    command = zl_begin(ZL_OP_context_synchronize, context, sizeof *command, true);
    if (command)
        zl_call(&command->header, NULL, 0, NULL);
}

CUresult zl_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct zl_cmd_graph_destroy *command;
    zl_exec *exec;

    pthread_mutex_lock(&zl_graph_lock);
    exec = zl_exec_get(hGraphExec);
    if (!exec) {
        zl_graph_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (exec->launched && holds_objects(exec->graph))
        wait_for(exec->context);
    command = exec->driver == zl_state.driver_process ? zl_begin(ZL_OP_graph_destroy, exec->context, sizeof *command, false) : NULL;
    if (command) {                       /* without a driver process there is nothing to give back */
        command->graph = exec->handle;
        zl_post(&command->header, NULL);
    }
    free_exec(exec);
    zl_graph_unlock();
    return CUDA_SUCCESS;
}

CUresult zl_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    zl_exec *exec;

    pthread_mutex_lock(&zl_graph_lock);
    exec = zl_exec_get(hGraphExec);
    if (exec)
        *flags = exec->flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD; /* "is not returned" */
    zl_graph_unlock();
    return exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuGraphExecGetId(CUgraphExec hGraphExec, unsigned int *graphId)
{
    zl_exec *exec;

    pthread_mutex_lock(&zl_graph_lock);
    exec = zl_exec_get(hGraphExec);
    if (exec)
        *graphId = exec->id;
    zl_graph_unlock();
    return exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
