/* Nodes as steps of an executable graph: packed for the driver process, or done here where only this process can. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static void *append(zl_bytes *bytes, size_t size)
{
    while (bytes->capacity - bytes->size < size) {
        size_t larger = bytes->capacity ? bytes->capacity * 2 : 4096;
        uint8_t *grown = realloc(bytes->data, larger);
        if (!grown)
            return NULL;
        bytes->data = grown;
        bytes->capacity = larger;
    }
    bytes->size += size;
    return memset(bytes->data + bytes->size - size, 0, size);
}

static CUresult pack_none(zl_bytes *bytes)
{
    struct zl_graph_step *step = append(bytes, sizeof *step);

    if (!step)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *step = (struct zl_graph_step){ZL_GRAPH_NONE, sizeof *step};
    return CUDA_SUCCESS;
}

static CUresult pack_kernel(zl_bytes *bytes, const zl_content *content)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *p = &content->params.kernel;
    size_t size = sizeof(struct zl_graph_kernel) + (content->block_bytes + 7u) / 8 * 8;
    struct zl_graph_kernel *step;

    if (!zl_handle_get(ZL_FUNCTION, (uint64_t)p->func)) /* its module has been unloaded */
        return CUDA_ERROR_INVALID_HANDLE;
    step = append(bytes, size);
    if (!step)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *step = (struct zl_graph_kernel){
        .kind = ZL_GRAPH_KERNEL,
        .size = (uint32_t)size,
        .function = (uint64_t)p->func,
        .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
        .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
        .shared = p->sharedMemBytes,
        .parameter_bytes = content->block_bytes,
    };
    memcpy(step + 1, content->block, content->block_bytes);
    return CUDA_SUCCESS;
}

/* Ordinary memory of the host is out of the driver process's reach. */
static CUresult pack_copy(zl_bytes *bytes, const CUDA_MEMCPY_NODE_PARAMS *params, bool *local)
{
    struct zl_graph_copy *step;
    zl_box_copy copy;
    CUresult result = zl_copy_resolve(params, &copy);

    if (result != CUDA_SUCCESS)
        return result;
    *local = !copy.to.device || !copy.from.device;
    if (*local)
        return pack_none(bytes);
    step = append(bytes, sizeof *step);
    if (!step)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *step = (struct zl_graph_copy){
        .kind = ZL_GRAPH_COPY,
        .size = sizeof *step,
        .destination = copy.to.start,
        .destination_pitch = copy.to.pitch,
        .destination_height = copy.to.rows,
        .source = copy.from.start,
        .source_pitch = copy.from.pitch,
        .source_height = copy.from.rows,
        .width = copy.box.width,
        .height = copy.box.height,
        .depth = copy.box.depth,
    };
    return CUDA_SUCCESS;
}

static CUresult pack_fill(zl_bytes *bytes, const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
    struct zl_graph_fill *step;
    CUresult result = zl_fill_check(p);

    if (result != CUDA_SUCCESS)
        return result;
    step = append(bytes, sizeof *step);
    if (!step)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *step = (struct zl_graph_fill){
        .kind = ZL_GRAPH_FILL,
        .size = sizeof *step,
        .destination = p->dst,
        .pitch = p->pitch,
        .value = p->value,
        .value_bytes = p->elementSize,
        .width = p->width,
        .height = p->height,
    };
    return CUDA_SUCCESS;
}

static CUresult pack_event(zl_bytes *bytes, uint32_t kind, CUevent event)
{
    struct zl_graph_event *step;

    if (!zl_handle_get(ZL_EVENT, (uint64_t)event))
        return CUDA_ERROR_INVALID_HANDLE;
    step = append(bytes, sizeof *step);
    if (!step)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *step = (struct zl_graph_event){kind, sizeof *step, (uint64_t)event};
    return CUDA_SUCCESS;
}

CUresult zl_step_pack(const zl_node *node, zl_bytes *bytes, bool *local)
{
    const CUgraphNodeParams *p = &node->content.params;

    *local = false;
    if (!node->enabled)
        return pack_none(bytes);
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return pack_kernel(bytes, &node->content);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return pack_copy(bytes, &p->memcpy, local);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return pack_fill(bytes, &p->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        *local = true;
        return pack_none(bytes);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return pack_event(bytes, ZL_GRAPH_RECORD, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return pack_event(bytes, ZL_GRAPH_WAIT, p->eventWait.event);
    default:
        return pack_none(bytes);
    }
}

/* --- steps of this process --- */

CUresult zl_step_run(const zl_content *content, zl_context *context, CUstream stream)
{
    zl_box_copy copy;
    CUresult result;

    if (content->params.type == CU_GRAPH_NODE_TYPE_HOST)
        return zl_cuLaunchHostFunc(context, stream, content->params.host.fn, content->params.host.userData);
    result = zl_copy_resolve(&content->params.memcpy, &copy);
    if (result == CUDA_SUCCESS)
        result = zl_turn(context, stream);
    if (result == CUDA_SUCCESS)
        zl_box_move(&copy);
    return result;
}
