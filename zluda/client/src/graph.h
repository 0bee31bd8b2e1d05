/* Graphs: what the files on them share. All of it is called with `zl_graph_lock` held, unless it says otherwise. */
#ifndef ZL_GRAPH_H
#define ZL_GRAPH_H

#include "client.h"

#include <pthread.h>

typedef struct zl_node zl_node;
typedef struct zl_graph zl_graph;
typedef struct zl_object zl_object;

typedef struct zl_edge {
    zl_node *node;
    CUgraphEdgeData data;
} zl_edge;

typedef struct zl_edges {
    zl_edge *items;
    size_t count, capacity;
} zl_edges;

enum { ZL_NODE_ATTRIBUTES = 20 };

/* What a node does. Its pointers are its own. */
typedef struct zl_content {
    CUgraphNodeParams params;
    void **arguments;                    /* of a kernel: pointers into the parameter block, which follows them */
    uint8_t *block;
    uint32_t block_bytes;
    zl_graph *child;
    CUlaunchAttributeValue *attributes;  /* of a kernel: ZL_NODE_ATTRIBUTES of them, or NULL while none was set */
} zl_content;

struct zl_node {
    zl_graph *graph;
    uint64_t handle;                     /* 0 in executable graphs */
    uint64_t origin;                     /* handle of the node that this is a clone of */
    uint64_t tools_id;
    unsigned id;                         /* within the graph */
    CUgraphNodeType type;
    zl_content content;
    zl_edges from, to;                   /* dependencies, dependents: in the order in which they were added */
    size_t index;                        /* in graph->nodes */
    size_t step;                         /* in executable graphs: among all leaves */
    size_t mark;                         /* for walks */
    bool enabled;
};

struct zl_graph {
    uint64_t handle, origin;
    unsigned id, next_node;
    zl_node **nodes;                     /* in the order in which they were added */
    size_t count, capacity;
    zl_node *parent;                     /* the child graph node that owns it */
    struct zl_hold {
        zl_object *object;
        uint64_t count;
    } *objects;                          /* user objects, and how many references it has */
    size_t object_count, object_capacity;
    unsigned captures;                   /* going on into it */
};

extern pthread_mutex_t zl_graph_lock;
extern _Atomic unsigned zl_graph_ids;

/* --- graph.c --- */
zl_graph *zl_graph_get(CUgraph graph);
zl_node *zl_node_get(CUgraphNode node);
/* An empty graph; without a handle if it is `hidden`. NULL without memory. */
zl_graph *zl_graph_new(bool hidden);
void zl_graph_free(zl_graph *graph);
CUresult zl_graph_copy(const zl_graph *graph, bool hidden, zl_graph **copy);
/* Adds a node behind others. */
CUresult zl_node_add(zl_graph *graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                     const CUgraphNodeParams *params, zl_node **node);
/* The node that was cloned from the one with this handle, in the graph or in graphs inside of it. */
zl_node *zl_graph_find(const zl_graph *graph, uint64_t origin);
/* The nodes, each behind its dependencies: `order` has room for all. False if there is a cycle; `culprit` is in it. */
bool zl_graph_sort(const zl_graph *graph, zl_node **order, zl_node **culprit);
bool zl_graph_grow(void **items, size_t *capacity, size_t count, size_t size);

/* --- graph_edges.c --- */
CUresult zl_edge_check(const zl_node *from, const zl_node *to, const CUgraphEdgeData *data);
CUresult zl_edge_add(zl_node *from, zl_node *to, const CUgraphEdgeData *data);
bool zl_edge_plain(const CUgraphEdgeData *data);
void zl_edges_remove(zl_edges *edges, const zl_node *node);

/* --- graph_content.c --- */
/* Checks parameters and takes what they point to. */
CUresult zl_content_make(zl_content *content, const CUgraphNodeParams *params);
CUresult zl_content_copy(zl_content *content, const zl_content *from, bool hidden);
void zl_content_free(zl_content *content);
/* The context that work of these parameters belongs to; NULL for none in particular. */
zl_context *zl_content_context(const zl_content *content);

/* --- graph_steps.c --- */
typedef struct zl_bytes {
    uint8_t *data;
    size_t size, capacity;
} zl_bytes;
/* Appends a node's step as the driver process takes it; `local` if the client has to do it itself. */
CUresult zl_step_pack(const zl_node *node, zl_bytes *bytes, bool *local);
/* Does a step that is the client's own, in a stream's order. Called without the lock. */
CUresult zl_step_run(const zl_content *content, zl_context *context, CUstream stream);

/* --- graph_copy.c --- */
/* A node's copy, checked; its context has been filled in. */
CUresult zl_copy_resolve(const CUDA_MEMCPY_NODE_PARAMS *params, zl_box_copy *copy);
CUresult zl_fill_check(const CUDA_MEMSET_NODE_PARAMS_v2 *params);

/* --- graph_exec.c, graph_update.c --- */
typedef struct zl_exec {
    uint64_t handle;
    cuuint64_t flags;
    unsigned id;
    zl_context *context;                 /* of all its nodes */
    zl_graph *graph;                     /* hidden; its nodes' origins are those of the graph that was instantiated */
    zl_node **leaves;                    /* every node but child graphs, in the order of the steps */
    bool *local;                         /* steps that the client runs itself */
    size_t count, locals;
    uint32_t driver;                     /* the driver process that has it */
    bool launched;
} zl_exec;
zl_exec *zl_exec_get(CUgraphExec exec);
/* Makes the driver process have what exec->graph says; on failure nothing has changed there. `culprit`: the node at fault. */
CUresult zl_exec_define(zl_exec *exec, zl_node **culprit, CUgraphInstantiateResult *reason);

/* --- graph_objects.c --- */
CUresult zl_objects_share(zl_graph *graph, const zl_graph *from);
/* Gives up a graph's references. Objects that nothing holds any more are destroyed by zl_graph_unlock. */
void zl_objects_drop(zl_graph *graph);
void zl_graph_unlock(void);

#endif
