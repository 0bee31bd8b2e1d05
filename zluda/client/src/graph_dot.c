/* A graph as text for Graphviz. Child graphs are drawn as clusters. */
#include "graph.h"

#include <inttypes.h>
#include <stdio.h>

static const char *type_name(CUgraphNodeType type)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST:
        return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return "GRAPH";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return "WAIT_EVENT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return "EVENT_RECORD";
    default:
        return "EMPTY";
    }
}

/* A symbol in a label: characters that Graphviz takes for its own are escaped. */
static void write_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        fputc(*text, file);
    }
}

static bool wanted(unsigned flags, unsigned detail)
{
    return flags & (detail | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

static void write_kernel(FILE *file, const CUDA_KERNEL_NODE_PARAMS_v3 *p, unsigned flags)
{
    const zl_function_entry *function = zl_handle_get(ZL_FUNCTION, (uint64_t)p->func);

    fputs("\\n", file);
    write_text(file, function ? function->name : "(unloaded)");
    if (wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
        fprintf(file, "\\ngrid %u,%u,%u\\nblock %u,%u,%u\\nshared %u", p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
                p->blockDimY, p->blockDimZ, p->sharedMemBytes);
}

static void write_details(FILE *file, const zl_node *node, unsigned flags)
{
    const CUgraphNodeParams *p = &node->content.params;
    zl_box_copy copy;

    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
        write_kernel(file, &p->kernel, flags);
    else if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY && wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS) &&
             zl_copy_resolve(&p->memcpy, &copy) == CUDA_SUCCESS)
        fprintf(file, "\\nfrom 0x%" PRIx64 "\\nto 0x%" PRIx64 "\\n%zu x %zu x %zu", copy.from.start, copy.to.start,
                copy.box.width, copy.box.height, copy.box.depth);
    else if (node->type == CU_GRAPH_NODE_TYPE_MEMSET && wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
        fprintf(file, "\\n0x%llx\\n%u (%u bytes)\\n%zu x %zu", (unsigned long long)p->memset.dst, p->memset.value,
                p->memset.elementSize, p->memset.width, p->memset.height);
    else if (node->type == CU_GRAPH_NODE_TYPE_HOST && wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
        fprintf(file, "\\n%p(%p)", *(void *const *)&p->host.fn, p->host.userData);
    else if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
        fprintf(file, "\\nevent %p", (void *)p->eventRecord.event);
    else if (node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
        fprintf(file, "\\nevent %p", (void *)p->eventWait.event);
    if (wanted(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(file, "\\nhandle 0x%" PRIx64, node->handle);
}

static void write_graph(FILE *file, const zl_graph *graph, unsigned flags)
{
    fprintf(file, "subgraph cluster_%u {\nlabel=\"graph_%u\"\n", graph->id, graph->id);
    for (size_t i = 0; i < graph->count; i++) {
        const zl_node *node = graph->nodes[i];
        fprintf(file, "\"graph_%u_node_%u\" [shape=\"record\" label=\"%u\\n%s", graph->id, node->id, node->id,
                type_name(node->type));
        write_details(file, node, flags);
        fputs("\"]\n", file);
    }
    for (size_t i = 0; i < graph->count; i++)
        for (size_t j = 0; j < graph->nodes[i]->to.count; j++)
            fprintf(file, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\"\n", graph->id, graph->nodes[i]->id, graph->id,
                    graph->nodes[i]->to.items[j].node->id);
    fputs("}\n", file);
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i]->content.child)
            write_graph(file, graph->nodes[i]->content.child, flags);
}

static bool draw(const zl_graph *graph, const char *path, unsigned flags)
{
    FILE *file = fopen(path, "we");
    bool failed;

    if (!file)
        return false;
    fputs("digraph dot {\n", file);
    write_graph(file, graph, flags);
    fputs("}\n", file);
    failed = ferror(file);
    return !fclose(file) && !failed;
}

CUresult zl_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    const unsigned known = (CU_GRAPH_DEBUG_DOT_FLAGS_FABRIC_CPY_BATCH_NODE_PARAMS << 1) - 1;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    int cancellable;
    zl_graph *graph;

    if (!path || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    cancellable = zl_hold_cancellation();
    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(hGraph);
    if (graph)
        result = draw(graph, path, flags) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
    zl_graph_unlock();
    zl_allow_cancellation(cancellable);
    return result;
}
