/* User objects: reference counts that programs and graphs hold, and a function that is called when none is left. */
#include "graph.h"

#include <limits.h>
#include <stdlib.h>

struct zl_object {
    uint64_t handle;
    void *pointer;
    CUhostFn destroy;
    uint64_t references;
    zl_object *next;
};

static zl_object *unheld;                /* to be destroyed without the lock */

static zl_object *get(CUuserObject object)
{
    return zl_handle_get(ZL_OBJECT, (uint64_t)object);
}

static void release(zl_object *object, uint64_t count)
{
    object->references -= count;
    if (object->references)
        return;
    zl_handle_remove(ZL_OBJECT, object->handle);
    object->next = unheld;
    unheld = object;
}

void zl_graph_unlock(void)
{
    zl_object *objects = unheld;

    unheld = NULL;
    pthread_mutex_unlock(&zl_graph_lock);
    while (objects) {
        zl_object *object = objects;
        objects = object->next;
        object->destroy(object->pointer);
        free(object);
    }
}

/* Adds to what a graph holds; the object's own count is the caller's matter. */
static bool hold(zl_graph *graph, zl_object *object, uint64_t count)
{
    for (size_t i = 0; i < graph->object_count; i++)
        if (graph->objects[i].object == object) {
            graph->objects[i].count += count;
            return true;
        }
    if (!zl_graph_grow((void **)&graph->objects, &graph->object_capacity, graph->object_count, sizeof *graph->objects))
        return false;
    graph->objects[graph->object_count++] = (struct zl_hold){object, count};
    return true;
}

CUresult zl_objects_share(zl_graph *graph, const zl_graph *from)
{
    for (size_t i = 0; i < from->object_count; i++) {
        if (!hold(graph, from->objects[i].object, from->objects[i].count))
            return CUDA_ERROR_OUT_OF_MEMORY;
        from->objects[i].object->references += from->objects[i].count;
    }
    return CUDA_SUCCESS;
}

void zl_objects_drop(zl_graph *graph)
{
    for (size_t i = 0; i < graph->object_count; i++)
        release(graph->objects[i].object, graph->objects[i].count);
    free(graph->objects);
    graph->objects = NULL;
    graph->object_count = graph->object_capacity = 0;
}

/* --- entry points --- */

CUresult zl_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
                               unsigned int flags)
{
    zl_object *object;

    /* The one flag there is has to be given. */
    if (!destroy || !initialRefcount || initialRefcount > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    object = calloc(1, sizeof *object);
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    object->pointer = ptr;
    object->destroy = destroy;
    object->references = initialRefcount;
    object->handle = zl_handle_new(ZL_OBJECT, object);
    if (!object->handle) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *object_out = (CUuserObject)object->handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_object *found;

    pthread_mutex_lock(&zl_graph_lock);
    found = get(object);
    if (found && count && count <= INT_MAX) {
        found->references += count;
        result = CUDA_SUCCESS;
    }
    zl_graph_unlock();
    return result;
}

CUresult zl_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_object *found;

    pthread_mutex_lock(&zl_graph_lock);
    found = get(object);
    if (found && count && count <= INT_MAX && count <= found->references) {
        release(found, count);
        result = CUDA_SUCCESS;
    }
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_object *found;
    zl_graph *holder;

    pthread_mutex_lock(&zl_graph_lock);
    holder = zl_graph_get(graph);
    found = get(object);
    if (holder && found && count && count <= INT_MAX && !(flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) &&
        (!flags || count <= found->references)) {
        result = hold(holder, found, count) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS && !flags)
            found->references += count;  /* moved references are the caller's own */
    }
    zl_graph_unlock();
    return result;
}

CUresult zl_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_object *found;
    zl_graph *holder;

    pthread_mutex_lock(&zl_graph_lock);
    holder = zl_graph_get(graph);
    found = get(object);
    for (size_t i = 0; holder && found && i < holder->object_count; i++) {
        struct zl_hold *held = &holder->objects[i];
        if (held->object != found || !count || count > held->count)
            continue;
        held->count -= count;
        if (!held->count)
            *held = holder->objects[--holder->object_count];
        release(found, count);
        result = CUDA_SUCCESS;
        break;
    }
    zl_graph_unlock();
    return result;
}
