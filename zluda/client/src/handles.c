/* Handles: numbers that name objects. A table lookup tells a valid one from garbage and from one that was destroyed.

   Bits: kind at 44, generation (16 bits) at 28, index (24 bits) at 4. So they look like pointers, are never small numbers
   (default streams are 0, 1 and 2), and the handle of a destroyed object stays invalid when its place is used again. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>

enum { CHUNK = 4096, CHUNKS = 4096 };

struct entry {
    void *_Atomic object;
    _Atomic uint32_t tag;                /* kind << 16 | generation; kind 0 while free */
    uint32_t next_free;
};

static struct entry *_Atomic chunks[CHUNKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t used, first_free, last_free; /* indices; 0 is never handed out */

static struct entry *entry_at(uint32_t index)
{
    struct entry *chunk = atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire);
    return chunk ? &chunk[index % CHUNK] : NULL;
}

static struct entry *entry_of(enum zl_kind kind, uint64_t handle)
{
    struct entry *entry;

    if ((handle & 15) || handle >> 44 != kind)
        return NULL;
    entry = entry_at((uint32_t)(handle >> 4) & 0xFFFFFF);
    if (!entry || atomic_load_explicit(&entry->tag, memory_order_acquire) != (handle >> 28 & 0xFFFFFFFF))
        return NULL;
    return entry;
}

uint64_t zl_handle_new(enum zl_kind kind, void *object)
{
    struct entry *entry;
    uint32_t index, generation;

    pthread_mutex_lock(&lock);
    if (first_free && used >= 1024) {    /* oldest first, so that a stale handle stays stale for long */
        index = first_free;
        entry = entry_at(index);
        first_free = entry->next_free;
        if (!first_free)
            last_free = 0;
    } else {
        index = ++used;
        if (index >= (uint32_t)CHUNK * CHUNKS) {
            pthread_mutex_unlock(&lock);
            return 0;
        }
        if (!entry_at(index)) {
            struct entry *chunk = calloc(CHUNK, sizeof *chunk);
            if (!chunk) {
                used--;
                pthread_mutex_unlock(&lock);
                return 0;
            }
            atomic_store_explicit(&chunks[index / CHUNK], chunk, memory_order_release);
        }
        entry = entry_at(index);
    }
    generation = (atomic_load_explicit(&entry->tag, memory_order_relaxed) + 1) & 0xFFFF;
    atomic_store_explicit(&entry->object, object, memory_order_relaxed);
    atomic_store_explicit(&entry->tag, (uint32_t)kind << 16 | generation, memory_order_release);
    pthread_mutex_unlock(&lock);
    return (uint64_t)kind << 44 | (uint64_t)generation << 28 | (uint64_t)index << 4;
}

void *zl_handle_get(enum zl_kind kind, uint64_t handle)
{
    struct entry *entry = entry_of(kind, handle);
    return entry ? atomic_load_explicit(&entry->object, memory_order_relaxed) : NULL;
}

static void release(struct entry *entry, uint32_t index)
{
    atomic_store_explicit(&entry->tag, atomic_load_explicit(&entry->tag, memory_order_relaxed) & 0xFFFF, memory_order_release);
    entry->next_free = 0;
    if (last_free)
        entry_at(last_free)->next_free = index;
    else
        first_free = index;
    last_free = index;
}

void *zl_handle_remove(enum zl_kind kind, uint64_t handle)
{
    struct entry *entry;
    void *object = NULL;

    pthread_mutex_lock(&lock);
    entry = entry_of(kind, handle);
    if (entry) {
        object = atomic_load_explicit(&entry->object, memory_order_relaxed);
        release(entry, (uint32_t)(handle >> 4) & 0xFFFFFF);
    }
    pthread_mutex_unlock(&lock);
    return object;
}

void zl_handle_each(enum zl_kind kind, bool (*visit)(uint64_t handle, void *object, void *argument), void *argument)
{
    pthread_mutex_lock(&lock);
    for (uint32_t index = 1; index <= used; index++) {
        struct entry *entry = entry_at(index);
        uint32_t tag = atomic_load_explicit(&entry->tag, memory_order_relaxed);
        if (tag >> 16 == kind && visit((uint64_t)tag << 28 | (uint64_t)index << 4, entry->object, argument))
            release(entry, index);
    }
    pthread_mutex_unlock(&lock);
}
