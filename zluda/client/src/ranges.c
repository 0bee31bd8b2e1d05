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

void zl_range_add(zl_range range)
{
    size_t at;

    pthread_rwlock_wrlock(&lock);
    at = upper(range.base);
    if (at && ranges[at - 1].base == range.base && ranges[at - 1].kind == range.kind) { /* a global asked for again */
        pthread_rwlock_unlock(&lock);
        return;
    }
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
    pthread_rwlock_unlock(&lock);
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
    return zl_range_find(address, &range) && size <= range.size - (address - range.base);
}

bool zl_range_remove(uint64_t base, enum zl_range_kind kind, zl_range *range)
{
    bool found = false;
    size_t at;

    pthread_rwlock_wrlock(&lock);
    at = upper(base);
    if (at && ranges[at - 1].base == base && ranges[at - 1].kind == kind) {
        *range = ranges[at - 1];
        memmove(&ranges[at - 1], &ranges[at], (count - at) * sizeof *ranges);
        count--;
        found = true;
    }
    pthread_rwlock_unlock(&lock);
    return found;
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
