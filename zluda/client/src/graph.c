/* Graphs and their nodes. The manual's "graph objects are not thread-safe" is the program's matter; one lock keeps the
   library itself from harm. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

pthread_mutex_t zl_graph_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
_Atomic unsigned zl_graph_ids;
static uint64_t tools_ids;

bool zl_graph_grow(void **items, size_t *capacity, size_t count, size_t size)
{
    size_t larger = *capacity ? *capacity * 2 : 4;
    void *grown;

    if (count < *capacity)
        return true;
    grown = realloc(*items, larger * size);
    if (!grown)
        return false;
    *items = grown;
    *capacity = larger;
    return true;
}

zl_graph *zl_graph_get(CUgraph graph)
{
    return zl_handle_get(ZL_GRAPH, (uint64_t)graph);
}

zl_node *zl_node_get(CUgraphNode node)
{
    return zl_handle_get(ZL_NODE, (uint64_t)node);
}

zl_graph *zl_graph_new(bool hidden)
{
    zl_graph *graph = calloc(1, sizeof *graph);

    if (!graph)
        return NULL;
    graph->id = atomic_fetch_add(&zl_graph_ids, 1) + 1;
    if (!hidden && !(graph->handle = zl_handle_new(ZL_GRAPH, graph))) {
        free(graph);
        return NULL;
    }
    return graph;
}

static void free_node(zl_node *node)
{
    if (node->handle)
        zl_handle_remove(ZL_NODE, node->handle);
    zl_content_free(&node->content);
    free(node->from.items);
    free(node->to.items);
    free(node);
}

void zl_graph_free(zl_graph *graph)
{
    if (graph->handle)
        zl_handle_remove(ZL_GRAPH, graph->handle);
    for (size_t i = 0; i < graph->count; i++)
        free_node(graph->nodes[i]);
    zl_objects_drop(graph);
    free(graph->nodes);
    free(graph);
}

/* An unconnected node without content at the end of the graph. */
static zl_node *append(zl_graph *graph, CUgraphNodeType type, bool hidden)
{
    zl_node *node;

    if (!zl_graph_grow((void **)&graph->nodes, &graph->capacity, graph->count, sizeof *graph->nodes))
        return NULL;
    node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    if (!hidden && !(node->handle = zl_handle_new(ZL_NODE, node))) {
        free(node);
        return NULL;
    }
    node->graph = graph;
    node->type = type;
    node->id = graph->next_node++;
    node->tools_id = ++tools_ids;
    node->enabled = true;
    node->index = graph->count;
    graph->nodes[graph->count++] = node;
    return node;
}

static void take_out(zl_node *node)
{
    zl_graph *graph = node->graph;

    for (size_t i = 0; i < node->from.count; i++)
        zl_edges_remove(&node->from.items[i].node->to, node);
    for (size_t i = 0; i < node->to.count; i++)
        zl_edges_remove(&node->to.items[i].node->from, node);
    graph->count--;
    memmove(&graph->nodes[node->index], &graph->nodes[node->index + 1], (graph->count - node->index) * sizeof *graph->nodes);
    for (size_t i = node->index; i < graph->count; i++)
        graph->nodes[i]->index = i;
    free_node(node);
}

CUresult zl_node_add(zl_graph *graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                     const CUgraphNodeParams *params, zl_node **out)
{
    bool moved = params->type == CU_GRAPH_NODE_TYPE_GRAPH && params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    zl_content content;
    zl_node *node;
    CUresult result;

    if (count && !dependencies)
        return CUDA_ERROR_INVALID_VALUE;
    for (const zl_graph *around = graph; moved && around; around = around->parent ? around->parent->graph : NULL)
        if ((CUgraph)around->handle == params->graph.graph)
            return CUDA_ERROR_INVALID_VALUE; /* a graph inside of itself */
    for (size_t i = 0; i < count; i++) {
        zl_node *from = zl_node_get(dependencies[i]);
        if (!from || from->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    }
    result = zl_content_make(&content, params);
    if (result != CUDA_SUCCESS)
        return result;
    node = append(graph, params->type, false);
    if (!node) {
        content.child = moved ? NULL : content.child;
        zl_content_free(&content);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->content = content;
    for (size_t i = 0; i < count; i++) {
        result = zl_edge_add(zl_node_get(dependencies[i]), node, data ? &data[i] : NULL);
        if (result != CUDA_SUCCESS) {
            node->content.child = moved ? NULL : content.child;
            take_out(node);
            return result;
        }
    }
    if (content.child)
        content.child->parent = node;
    *out = node;
    return CUDA_SUCCESS;
}

CUresult zl_graph_copy(const zl_graph *graph, bool hidden, zl_graph **out)
{
    zl_graph *copy = zl_graph_new(hidden);
    CUresult result = copy ? zl_objects_share(copy, graph) : CUDA_ERROR_OUT_OF_MEMORY;

    for (size_t i = 0; result == CUDA_SUCCESS && i < graph->count; i++) {
        const zl_node *from = graph->nodes[i];
        zl_node *node = append(copy, from->type, hidden);
        result = node ? zl_content_copy(&node->content, &from->content, hidden) : CUDA_ERROR_OUT_OF_MEMORY;
        if (result != CUDA_SUCCESS)
            break;
        node->origin = from->handle;
        node->id = from->id;
        node->enabled = from->enabled;
        if (node->content.child)
            node->content.child->parent = node;
    }
    for (size_t i = 0; result == CUDA_SUCCESS && i < graph->count; i++) {
        const zl_edges *edges = &graph->nodes[i]->from;
        for (size_t j = 0; result == CUDA_SUCCESS && j < edges->count; j++)
            result = zl_edge_add(copy->nodes[edges->items[j].node->index], copy->nodes[i], &edges->items[j].data);
    }
    if (result != CUDA_SUCCESS) {
        if (copy)
            zl_graph_free(copy);
        return result;
    }
    copy->next_node = graph->next_node;
    copy->origin = graph->handle;
    *out = copy;
    return CUDA_SUCCESS;
}

zl_node *zl_graph_find(const zl_graph *graph, uint64_t origin)
{
    for (size_t i = 0; i < graph->count; i++) {
        zl_node *node = graph->nodes[i], *inside;
        if (node->origin == origin)
            return node;
        if (node->content.child && (inside = zl_graph_find(node->content.child, origin)))
            return inside;
    }
    return NULL;
}

bool zl_graph_sort(const zl_graph *graph, zl_node **order, zl_node **culprit)
{
    size_t ready = 0;

    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->mark = graph->nodes[i]->from.count;
        if (!graph->nodes[i]->mark)
            order[ready++] = graph->nodes[i];
    }
    for (size_t done = 0; done < ready; done++) {
        const zl_edges *edges = &order[done]->to;
        for (size_t i = 0; i < edges->count; i++)
            if (!--edges->items[i].node->mark)
                order[ready++] = edges->items[i].node;
    }
    for (size_t i = 0; ready < graph->count && i < graph->count; i++)
        if (graph->nodes[i]->mark)
            *culprit = graph->nodes[i];
    return ready == graph->count;
}

/* --- entry points --- */

CUresult zl_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    zl_graph *graph;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_new(false);
    zl_graph_unlock();
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phGraph = (CUgraph)graph->handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuGraphDestroy(CUgraph hGraph)
{
    zl_graph *graph;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(hGraph);
    if (graph && !graph->parent && !graph->captures) { /* a child graph is its node's, one being captured the capture's */
        zl_graph_free(graph);
        result = CUDA_SUCCESS;
    }
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    zl_graph *graph, *copy;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(originalGraph);
    if (graph)
        result = zl_graph_copy(graph, false, &copy);
    if (result == CUDA_SUCCESS)
        *phGraphClone = (CUgraph)copy->handle;
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
    zl_graph *graph;
    zl_node *node = NULL;

    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(hClonedGraph);
    if (graph && zl_node_get(hOriginalNode))
        node = zl_graph_find(graph, (uint64_t)hOriginalNode);
    if (node)
        *phNode = (CUgraphNode)node->handle;
    zl_graph_unlock();
    return node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuGraphDestroyNode(CUgraphNode hNode)
{
    zl_node *node;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&zl_graph_lock);
    node = zl_node_get(hNode);
    if (node && !node->graph->captures) {
        take_out(node);
        result = CUDA_SUCCESS;
    }
    zl_graph_unlock();
    return result;
}

/* Nodes into an array of the program's, by the manual's rules: without an array only their number; what is left of the
   array becomes NULL. */
static CUresult list(const zl_graph *graph, bool roots, CUgraphNode *nodes, size_t *number)
{
    size_t found = 0;

    for (size_t i = 0; i < graph->count; i++) {
        if (roots && graph->nodes[i]->from.count)
            continue;
        if (nodes && found == *number)
            return CUDA_SUCCESS;
        if (nodes)
            nodes[found] = (CUgraphNode)graph->nodes[i]->handle;
        found++;
    }
    for (size_t i = found; nodes && i < *number; i++)
        nodes[i] = NULL;
    *number = found;
    return CUDA_SUCCESS;
}

static CUresult list_of(CUgraph hGraph, bool roots, CUgraphNode *nodes, size_t *number)
{
    zl_graph *graph;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(hGraph);
    if (graph)
        result = list(graph, roots, nodes, number);
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    return list_of(hGraph, false, nodes, numNodes);
}

CUresult zl_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    return list_of(hGraph, true, rootNodes, numRootNodes);
}

CUresult zl_cuGraphGetId(CUgraph hGraph, unsigned int *graphId)
{
    zl_graph *graph;

    pthread_mutex_lock(&zl_graph_lock);
    graph = zl_graph_get(hGraph);
    if (graph)
        *graphId = graph->id;
    zl_graph_unlock();
    return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

enum fact { TYPE, LOCAL_ID, TOOLS_ID, CONTAINING };

static CUresult tell(CUgraphNode hNode, enum fact fact, void *out)
{
    zl_node *node;

    pthread_mutex_lock(&zl_graph_lock);
    node = zl_node_get(hNode);
    if (node && fact == TYPE)
        *(CUgraphNodeType *)out = node->type;
    else if (node && fact == LOCAL_ID)
        *(unsigned *)out = node->id;
    else if (node && fact == TOOLS_ID)
        *(unsigned long long *)out = node->tools_id;
    else if (node)
        *(CUgraph *)out = (CUgraph)node->graph->handle;
    zl_graph_unlock();
    return node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    return tell(hNode, TYPE, type);
}

CUresult zl_cuGraphNodeGetLocalId(CUgraphNode hNode, unsigned int *nodeId)
{
    return tell(hNode, LOCAL_ID, nodeId);
}

CUresult zl_cuGraphNodeGetToolsId(CUgraphNode hNode, unsigned long long *toolsNodeId)
{
    return tell(hNode, TOOLS_ID, toolsNodeId);
}

CUresult zl_cuGraphNodeGetContainingGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    return tell(hNode, CONTAINING, phGraph);
}
