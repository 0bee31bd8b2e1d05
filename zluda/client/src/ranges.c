/* What is allocated in the window: so that pointers are checked, described and told apart without asking the driver. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static zl_range *ranges;                 /* by base */
static size_t count, capacity;
static uint64_t next_id = 1;

/* The number of ranges whose base is at most `address`. */
static size_t upper(uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The lock is held for writing. */
static void insert(zl_range range, size_t at)
{
    if (count == capacity) {
        size_t larger = capacity ? capacity * 2 : 256;
        zl_range *grown = realloc(ranges, larger * sizeof *grown);
        if (!grown)
            abort();                     /* the host has no memory for 48 bytes an allocation */
        ranges = grown;
        capacity = larger;
    }
    memmove(&ranges[at + 1], &ranges[at], (count - at) * sizeof *ranges);
    range.id = next_id++;
    ranges[at] = range;
    count++;
}

void zl_range_add(zl_range range)
{
    size_t at;

    pthread_rwlock_wrlock(&lock);
    at = upper(range.base);
    if (!at || ranges[at - 1].base != range.base || ranges[at - 1].kind != range.kind) /* else a global asked for again */
        insert(range, at);
    pthread_rwlock_unlock(&lock);
}

bool zl_range_add_apart(zl_range range)
{
    size_t at;
    bool apart;

    pthread_rwlock_wrlock(&lock);
    at = upper(range.base);
    apart = (!at || range.base - ranges[at - 1].base >= ranges[at - 1].size) &&
            (at == count || ranges[at].base - range.base >= range.size);
    if (apart)
        insert(range, at);
    pthread_rwlock_unlock(&lock);
    return apart;
}

static bool find(uint64_t address, zl_range *range)
{
    size_t at = upper(address);
    if (!at || address - ranges[at - 1].base >= ranges[at - 1].size)
        return false;
    *range = ranges[at - 1];
    return true;
}

bool zl_range_find(uint64_t address, zl_range *range)
{
    bool found;
    pthread_rwlock_rdlock(&lock);
    found = find(address, range);
    pthread_rwlock_unlock(&lock);
    return found;
}

bool zl_range_holds(uint64_t address, uint64_t size)
{
    zl_range range;

    while (zl_range_find(address, &range)) {
        uint64_t left = range.size - (address - range.base);
        if (size <= left)
            return true;
        if (range.kind != ZL_RANGE_VIRTUAL)
            return false;
        address += left;                 /* mappings may follow one another */
        size -= left;
        if (!zl_range_find(address, &range) || range.kind != ZL_RANGE_VIRTUAL)
            return false;
    }
    return false;
}

static bool remove_if(uint64_t base, bool (*wanted)(const zl_range *, unsigned), unsigned argument, zl_range *range)
{
    bool found = false;
    size_t at;

    pthread_rwlock_wrlock(&lock);
    at = upper(base);
    if (at && ranges[at - 1].base == base && wanted(&ranges[at - 1], argument)) {
        *range = ranges[at - 1];
        memmove(&ranges[at - 1], &ranges[at], (count - at) * sizeof *ranges);
        count--;
        found = true;
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

static bool is_kind(const zl_range *range, unsigned kind)
{
    return range->kind == (enum zl_range_kind)kind && !range->pool;
}

static bool is_allocation(const zl_range *range, unsigned pools)
{
    return range->pool ? pools : range->kind == ZL_RANGE_DEVICE || range->kind == ZL_RANGE_MANAGED;
}

bool zl_range_remove(uint64_t base, enum zl_range_kind kind, zl_range *range)
{
    return remove_if(base, is_kind, kind, range);
}

bool zl_range_remove_allocation(uint64_t base, bool pools, zl_range *range)
{
    return remove_if(base, is_allocation, pools, range);
}

bool zl_range_set_sync(uint64_t address, bool sync)
{
    zl_range range;
    bool found;

    pthread_rwlock_wrlock(&lock);
    found = find(address, &range);
    if (found)
        ranges[upper(address) - 1].sync_memops = sync;
    pthread_rwlock_unlock(&lock);
    return found;
}

void zl_range_clear(void)
{
    pthread_rwlock_wrlock(&lock);
    count = 0;
    pthread_rwlock_unlock(&lock);
}

static void remove_where(uint64_t context, uint64_t module)
{
    size_t kept = 0;

    pthread_rwlock_wrlock(&lock);
    for (size_t i = 0; i < count; i++)
        if (!(context && ranges[i].context == context) && !(module && ranges[i].module == module))
            ranges[kept++] = ranges[i];
    count = kept;
    pthread_rwlock_unlock(&lock);
}

void zl_range_remove_context(uint64_t context)
{
    remove_where(context, 0);
}

void zl_range_remove_module(uint64_t module)
{
    remove_where(0, module);
}
