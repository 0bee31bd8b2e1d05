/* The memory window: an address range reserved here and in the driver process, and laid over one memory file. */
#include "client.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static const uint64_t DEFAULT_SIZE = 1ULL << 40, SMALLEST = 1ULL << 30;

/* Where a window may be: the driver process tries the same (zluda/window). */
static uint64_t candidate(uint64_t region, uint64_t step)
{
#ifdef __SANITIZE_THREAD__               /* has shadows for few addresses; wants a small RLIMIT_FSIZE and no randomisation */
    return 0x7f0000000000 + ((6 - region) * 16 + step) * SMALLEST;
#else
    return (region << 44) + step * DEFAULT_SIZE;
#endif
}

bool zl_window_reserve(uint64_t base, uint64_t size)
{
    void *wanted = (void *)(uintptr_t)base;
    void *got = mmap(wanted, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return false;
    if (got != wanted) {                 /* kernels before 4.17 take the address as a hint */
        munmap(got, size);
        return false;
    }
    return true;
}

void zl_window_release(uint64_t base, uint64_t size)
{
    munmap((void *)(uintptr_t)base, size);
}

uint64_t zl_window_find(uint64_t most, uint64_t *size)
{
    struct rlimit limit;

    *size = DEFAULT_SIZE;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        while (*size > limit.rlim_cur / 4)
            *size >>= 1;
    while (*size > most)
        *size >>= 1;
    for (; *size >= SMALLEST; *size >>= 1)
        for (uint64_t step = 0; step < 16; step++)
            for (uint64_t region = 6; region >= 2; region--) {
                uint64_t base = candidate(region, step);
                if (zl_window_reserve(base, *size))
                    return base;
            }
    return 0;
}

bool zl_window_map(int memory, uint64_t base, uint64_t size)
{
    void *at = (void *)(uintptr_t)base;
    if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memory, 0) == MAP_FAILED)
        return false;
    madvise(at, size, MADV_DONTDUMP);
    return true;
}
