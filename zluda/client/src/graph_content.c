/* What nodes do: parameters checked, and what they point to taken, when they are given. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* A context that parameters name, or the current one. */
static CUresult find_context(CUcontext named, zl_context **context)
{
    *context = named ? zl_handle_get(ZL_CONTEXT, (uint64_t)named) : zl_current();
    if (!*context)
        return named ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    return zl_context_check(*context);
}

/* Room for the parameter block and pointers to its parts. */
static bool make_block(zl_content *content, uint32_t parameters, uint32_t bytes)
{
    content->arguments = calloc(1, parameters * sizeof(void *) + bytes + 1);
    content->block = content->arguments ? (uint8_t *)(content->arguments + parameters) : NULL;
    content->block_bytes = bytes;
    return content->arguments;
}

static CUresult make_kernel(zl_content *content, const CUDA_KERNEL_NODE_PARAMS_v3 *p)
{
    const unsigned grid[3] = {p->gridDimX, p->gridDimY, p->gridDimZ}, block[3] = {p->blockDimX, p->blockDimY, p->blockDimZ};
    CUDA_KERNEL_NODE_PARAMS_v3 *own = &content->params.kernel;
    zl_context *context = NULL;
    zl_function_entry *function;
    const void *buffer;
    CUresult result;

    if (!p->func && !p->kern)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->ctx || !zl_handle_get(ZL_FUNCTION, (uint64_t)p->func)) {
        result = find_context(p->ctx, &context); /* a CUfunction brings its own */
        if (result != CUDA_SUCCESS)
            return result;
    }
    if (p->func)
        result = zl_function_use(context, p->func, &function);
    else if ((result = zl_kernel_function(context, p->kern, &function)) == CUDA_SUCCESS)
        result = zl_function_use(context, (CUfunction)function->handle, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (context && function->context != context)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_context_check(function->context);
    if (result == CUDA_SUCCESS)
        result = zl_launch_shape(function, grid, block, p->sharedMemBytes);
    if (result == CUDA_SUCCESS)
        result = zl_launch_arguments(function, p->kernelParams, p->extra, &buffer);
    if (result != CUDA_SUCCESS)
        return result;
    if (!make_block(content, function->info.parameters, function->info.parameter_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    zl_launch_pack(function, p->kernelParams, buffer, content->block);
    for (uint32_t i = 0; i < function->info.parameters; i++)
        content->arguments[i] = content->block + function->parameters[i].offset;
    own->func = (CUfunction)function->handle;
    own->kern = p->kern;
    own->ctx = (CUcontext)function->context->handle;
    own->kernelParams = content->arguments;
    own->extra = NULL;
    return CUDA_SUCCESS;
}

static CUresult make_copy(zl_content *content, const CUDA_MEMCPY_NODE_PARAMS *p)
{
    zl_box_copy copy;
    zl_context *context;
    CUresult result;

    if (p->flags || p->reserved)
        return CUDA_ERROR_INVALID_VALUE;
    result = find_context(p->copyCtx, &context);
    if (result != CUDA_SUCCESS)
        return result;
    content->params.memcpy.copyCtx = (CUcontext)context->handle;
    return zl_copy_resolve(&content->params.memcpy, &copy);
}

static CUresult make_fill(zl_content *content, const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
    zl_context *context;
    CUresult result = find_context(p->ctx, &context);

    if (result == CUDA_SUCCESS)
        result = zl_fill_check(p);
    if (result == CUDA_SUCCESS)
        content->params.memset.ctx = (CUcontext)context->handle;
    return result;
}

static CUresult make_child(zl_content *content, const CUDA_CHILD_GRAPH_NODE_PARAMS *p)
{
    zl_graph *graph = zl_graph_get(p->graph);
    CUresult result;

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
        if (graph->parent || graph->captures)
            return CUDA_ERROR_INVALID_VALUE;
        content->child = graph;
    } else if (p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
        result = zl_graph_copy(graph, false, &content->child);
        if (result != CUDA_SUCCESS)
            return result;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    content->params.graph.graph = (CUgraph)content->child->handle;
    return CUDA_SUCCESS;
}

CUresult zl_content_make(zl_content *content, const CUgraphNodeParams *params)
{
    *content = (zl_content){.params = *params};
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return make_kernel(content, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return make_copy(content, &params->memcpy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return make_fill(content, &params->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        return params->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return make_child(content, &params->graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return zl_handle_get(ZL_EVENT, (uint64_t)params->eventWait.event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return zl_handle_get(ZL_EVENT, (uint64_t)params->eventRecord.event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    case CU_GRAPH_NODE_TYPE_MEMCPY_BATCH:
        return zl_not_supported("cuGraphAddNode", "a node type that is not built");
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult zl_content_copy(zl_content *content, const zl_content *from, bool hidden)
{
    CUresult result = CUDA_SUCCESS;

    *content = (zl_content){.params = from->params};
    if (from->arguments) {
        size_t parameters = (size_t)((void **)from->block - from->arguments);
        if (!make_block(content, (uint32_t)parameters, from->block_bytes))
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(content->block, from->block, from->block_bytes);
        for (size_t i = 0; i < parameters; i++)
            content->arguments[i] = content->block + ((uint8_t *)from->arguments[i] - from->block);
        content->params.kernel.kernelParams = content->arguments;
    }
    if (from->attributes) {
        content->attributes = malloc(ZL_NODE_ATTRIBUTES * sizeof *content->attributes);
        if (!content->attributes)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(content->attributes, from->attributes, ZL_NODE_ATTRIBUTES * sizeof *content->attributes);
    }
    if (from->child) {
        result = zl_graph_copy(from->child, hidden, &content->child);
        if (result == CUDA_SUCCESS)
            content->params.graph.graph = (CUgraph)content->child->handle;
    }
    return result;
}

void zl_content_free(zl_content *content)
{
    free(content->arguments);
    free(content->attributes);
    if (content->child)
        zl_graph_free(content->child);
    *content = (zl_content){0};
}

zl_context *zl_content_context(const zl_content *content)
{
    const CUgraphNodeParams *p = &content->params;
    const zl_event *event = NULL;

    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return zl_handle_get(ZL_CONTEXT, (uint64_t)p->kernel.ctx);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return zl_handle_get(ZL_CONTEXT, (uint64_t)p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return zl_handle_get(ZL_CONTEXT, (uint64_t)p->memset.ctx);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        event = zl_handle_get(ZL_EVENT, (uint64_t)p->eventRecord.event);
        return event ? event->context : NULL;
    default:
        return NULL;
    }
}
