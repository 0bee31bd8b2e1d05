/* Registered host memory. It is this process's alone: the driver process and its devices cannot see it, so copies of it go
   through the window as those of any ordinary memory do, and it has no device pointer. Registering it keeps the books. */
#include "client.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether all pages of the range are there. */
static bool mapped(uint64_t base, uint64_t size)
{
    enum { AT_ONCE = 4096 };
    unsigned char there[AT_ONCE];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = base / page * page, end = base + size;

    while (start < end) {
        uint64_t pages = (end - start + page - 1) / page, bytes = (pages < AT_ONCE ? pages : AT_ONCE) * page;
        if (mincore((void *)(uintptr_t)start, bytes, there) < 0 && errno != EAGAIN)
            return false;
        start += bytes;
    }
    return true;
}

CUresult zl_cuMemHostRegister_v2(zl_context *context, void *p, size_t bytesize, unsigned int Flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                           CU_MEMHOSTREGISTER_READ_ONLY;
    uint64_t base = (uint64_t)(uintptr_t)p, end;

    if (!p || !bytesize || (Flags & ~known) || __builtin_add_overflow(base, bytesize, &end))
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_NOT_SUPPORTED; /* other devices' memory is not copied by way of the processor here */
    if (Flags & CU_MEMHOSTREGISTER_READ_ONLY &&
        !zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!mapped(base, bytesize))
        return CUDA_ERROR_INVALID_VALUE;
    /* What CUDA has allocated is in the table as well: such memory counts as registered. */
    if (base < zl_state.window_base + zl_state.window_size && end > zl_state.window_base)
        return zl_range_holds(base, 1) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    return zl_range_add_apart((zl_range){.base = base, .size = bytesize, .kind = ZL_RANGE_REGISTERED, .flags = Flags,
                                         .context = context->handle})
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult zl_cuMemHostRegister(zl_context *context, void *p, size_t bytesize, unsigned int Flags)
{
    return zl_cuMemHostRegister_v2(context, p, bytesize, Flags);
}

CUresult zl_cuMemHostUnregister(zl_context *context, void *p)
{
    zl_range range;

    (void)context;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    return zl_range_remove((uint64_t)(uintptr_t)p, ZL_RANGE_REGISTERED, &range) ? CUDA_SUCCESS
                                                                                : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
