/* Dependencies between the nodes of a graph. Edge data other than zeroes says that a dependent may start early; here it
   never does, which is always right. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

bool zl_edge_plain(const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData plain;
    return !memcmp(data, &plain, sizeof plain);
}

CUresult zl_edge_check(const zl_node *from, const zl_node *to, const CUgraphEdgeData *data)
{
    static const uint8_t zeroes[sizeof data->reserved];

    if (from == to || from->graph != to->graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (!data || zl_edge_plain(data))
        return CUDA_SUCCESS;
    if (memcmp(data->reserved, zeroes, sizeof zeroes) || data->to_port || data->type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
        data->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER)
        return CUDA_ERROR_INVALID_VALUE;
    if (from->type != CU_GRAPH_NODE_TYPE_KERNEL) /* the other ports are a kernel's */
        return CUDA_ERROR_INVALID_VALUE;
    if (data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC && data->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        return CUDA_ERROR_INVALID_VALUE;
    if (data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
        (to->type != CU_GRAPH_NODE_TYPE_KERNEL || data->from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static zl_edge *find(const zl_edges *edges, const zl_node *node)
{
    for (size_t i = 0; i < edges->count; i++)
        if (edges->items[i].node == node)
            return &edges->items[i];
    return NULL;
}

void zl_edges_remove(zl_edges *edges, const zl_node *node)
{
    zl_edge *edge = find(edges, node);

    if (edge) {
        edges->count--;
        memmove(edge, edge + 1, (size_t)(&edges->items[edges->count] - edge) * sizeof *edge);
    }
}

CUresult zl_edge_add(zl_node *from, zl_node *to, const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData plain;
    CUresult result = zl_edge_check(from, to, data);

    if (result != CUDA_SUCCESS)
        return result;
    /* The shorter of both lists: one node may be before, or behind, thousands. */
    if (from->to.count < to->from.count ? find(&from->to, to) : find(&to->from, from))
        return CUDA_ERROR_INVALID_VALUE; /* "specifying an existing dependency will return an error" */
    if (!zl_graph_grow((void **)&from->to.items, &from->to.capacity, from->to.count, sizeof(zl_edge)) ||
        !zl_graph_grow((void **)&to->from.items, &to->from.capacity, to->from.count, sizeof(zl_edge)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    from->to.items[from->to.count++] = (zl_edge){to, data ? *data : plain};
    to->from.items[to->from.count++] = (zl_edge){from, data ? *data : plain};
    return CUDA_SUCCESS;
}

/* --- entry points --- */

static CUresult ends(const zl_graph *graph, CUgraphNode from, CUgraphNode to, zl_node **before, zl_node **behind)
{
    *before = zl_node_get(from);
    *behind = zl_node_get(to);
    return *before && *behind && (*before)->graph == graph && (*behind)->graph == graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add(const zl_graph *graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
    CUresult result = CUDA_SUCCESS;
    size_t added = 0;
    zl_node *before, *behind;

    while (added < count && result == CUDA_SUCCESS) {
        result = ends(graph, from[added], to[added], &before, &behind);
        if (result == CUDA_SUCCESS)
            result = zl_edge_add(before, behind, data ? &data[added] : NULL);
        if (result == CUDA_SUCCESS)
            added++;
    }
    while (result != CUDA_SUCCESS && added--) { /* all or none */
        ends(graph, from[added], to[added], &before, &behind);
        zl_edges_remove(&before->to, behind);
        zl_edges_remove(&behind->from, before);
    }
    return result;
}

static CUresult take(const zl_graph *graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
    zl_node *before, *behind;

    for (size_t i = 0; i < count; i++) {
        const zl_edge *edge;
        CUresult result = ends(graph, from[i], to[i], &before, &behind);
        if (result != CUDA_SUCCESS)
            return result;
        edge = find(&before->to, behind);
        if (!edge || (data ? memcmp(&edge->data, &data[i], sizeof *data) != 0 : !zl_edge_plain(&edge->data)))
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        ends(graph, from[i], to[i], &before, &behind);
        zl_edges_remove(&before->to, behind);
        zl_edges_remove(&behind->from, before);
    }
    return CUDA_SUCCESS;
}

/* Adds or takes edges, under the lock. */
static CUresult change(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count,
                       CUresult (*how)(const zl_graph *, const CUgraphNode *, const CUgraphNode *, const CUgraphEdgeData *, size_t))
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_graph *graph;

    if (count && (!from || !to))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(handle);
    if (graph)
        result = how(graph, from, to, data, count);
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edgeData, size_t numDependencies)
{
    return change(hGraph, from, to, edgeData, numDependencies, add);
}

CUresult zl_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
    return zl_cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult zl_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                         const CUgraphEdgeData *edgeData, size_t numDependencies)
{
    return change(hGraph, from, to, edgeData, numDependencies, take);
}

CUresult zl_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
    return zl_cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

/* Arrays of the program's that edges are written to, by the manual's rules. */
struct listing {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
    size_t room, found;
    bool lossy;
};

static void put(struct listing *out, const zl_node *from, const zl_edge *edge)
{
    if ((out->from || out->to) && out->found < out->room) {
        if (out->from)
            out->from[out->found] = (CUgraphNode)from->handle;
        if (out->to)
            out->to[out->found] = (CUgraphNode)edge->node->handle;
        if (out->data)
            out->data[out->found] = edge->data;
        else
            out->lossy |= !zl_edge_plain(&edge->data);
    }
    out->found++;
}

static CUresult finish(struct listing *out, size_t *number)
{
    if (out->lossy)
        return CUDA_ERROR_LOSSY_QUERY;
    if (out->from || out->to) {
        for (size_t i = out->found; i < out->room; i++) {
            if (out->from)
                out->from[i] = NULL;
            if (out->to)
                out->to[i] = NULL;
        }
        if (out->found > out->room)
            return CUDA_SUCCESS;
    }
    *number = out->found;
    return CUDA_SUCCESS;
}

CUresult zl_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData, size_t *numEdges)
{
    struct listing out = {.from = from, .to = to, .data = edgeData, .room = *numEdges};
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_graph *graph;

    if (!from != !to || (edgeData && !from))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(hGraph);
    if (graph) {
        for (size_t i = 0; i < graph->count; i++)
            for (size_t j = 0; j < graph->nodes[i]->to.count; j++)
                put(&out, graph->nodes[i], &graph->nodes[i]->to.items[j]);
        result = finish(&out, numEdges);
    }
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    return zl_cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

static CUresult neighbours(CUgraphNode hNode, bool behind, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *number)
{
    struct listing out = {.to = nodes, .data = data, .room = *number};
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_node *node;

    if (data && !nodes)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&zl_graph_lock);
    node = zl_node_get(hNode);
    if (node) {
        const zl_edges *edges = behind ? &node->to : &node->from;
        for (size_t i = 0; i < edges->count; i++)
            put(&out, node, &edges->items[i]);
        result = finish(&out, number);
    }
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                          size_t *numDependencies)
{
    return neighbours(hNode, false, dependencies, edgeData, numDependencies);
}

CUresult zl_cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
    return neighbours(hNode, false, dependencies, NULL, numDependencies);
}

CUresult zl_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
                                            size_t *numDependentNodes)
{
    return neighbours(hNode, true, dependentNodes, edgeData, numDependentNodes);
}

CUresult zl_cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
    return neighbours(hNode, true, dependentNodes, NULL, numDependentNodes);
}
