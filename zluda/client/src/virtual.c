/* Virtual memory management: which addresses are reserved, what is mapped there and who has access. The same pages are
   mapped here and in the driver process, one after the other. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GRANULARITY = 2 << 20, PAGE = 4096 };

/* What a handle stands for. It lives as long as somebody holds the handle or something is mapped to it. */
typedef struct physical {
    uint64_t handle, size, home;         /* home: where the memory is in the window's file, as an address */
    CUmemAllocationProp properties;
    unsigned held, mappings;
} physical;

typedef struct mapping {
    uint64_t base, size;
    physical *memory;
    uint32_t readers, writers;           /* by device */
    CUmemAccess_flags host;
} mapping;

typedef struct reservation {
    uint64_t base, size;
} reservation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static reservation *reservations;        /* neither is long: they are searched from the start */
static mapping *mappings;
static size_t reserved, reservations_room, mapped, mappings_room;

static bool room(void **array, size_t count, size_t *capacity, size_t item)
{
    size_t larger = *capacity ? *capacity * 2 : 16;
    void *grown;

    if (count < *capacity)
        return true;
    grown = realloc(*array, larger * item);
    if (!grown)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

static reservation *reservation_of(uint64_t address)
{
    for (size_t i = 0; i < reserved; i++)
        if (address - reservations[i].base < reservations[i].size)
            return &reservations[i];
    return NULL;
}

static mapping *mapping_of(uint64_t address)
{
    for (size_t i = 0; i < mapped; i++)
        if (address - mappings[i].base < mappings[i].size)
            return &mappings[i];
    return NULL;
}

static bool overlaps_mapping(uint64_t base, uint64_t size)
{
    for (size_t i = 0; i < mapped; i++)
        if (base < mappings[i].base + mappings[i].size && mappings[i].base < base + size)
            return true;
    return false;
}

/* Whether whole mappings, one after the other, make up the range. */
static bool whole_mappings(uint64_t base, uint64_t size)
{
    uint64_t at = base;

    if (!size || base + size < base)
        return false;
    while (at < base + size) {
        const mapping *found = mapping_of(at);
        if (!found || found->base != at || found->size > base + size - at)
            return false;
        at += found->size;
    }
    return true;
}

bool zl_reservation_find(uint64_t address, uint64_t *base, uint64_t *size, bool *is_mapped)
{
    const reservation *found;

    pthread_mutex_lock(&lock);
    found = reservation_of(address);
    if (found) {
        *base = found->base;
        *size = found->size;
        *is_mapped = mapping_of(address);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool offered(void)
{
    for (uint32_t i = 0; i < zl_state.device_count; i++)
        if (zl_device_attribute((CUdevice)i, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
            return true;
    return false;
}

/* --- addresses --- */

static CUresult reserve(uint64_t size, uint64_t alignment, uint64_t *address)
{
    struct zl_cmd_virtual_reserve *command;
    struct zl_virtual_reserve_reply reply;
    CUresult result;

    if (!room((void **)&reservations, reserved, &reservations_room, sizeof *reservations))
        return CUDA_ERROR_OUT_OF_MEMORY;
    command = zl_begin(ZL_OP_virtual_reserve, NULL, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->size = size;
    command->alignment = alignment;
    result = zl_call(&command->header, &reply, sizeof reply, NULL);
    if (result != CUDA_SUCCESS)
        return result;
    if (!zl_window_show(reply.address, size, reply.address, PROT_NONE))
        return CUDA_ERROR_OPERATING_SYSTEM;
    reservations[reserved++] = (reservation){reply.address, size};
    *address = reply.address;
    return CUDA_SUCCESS;
}

/* `addr` is a hint that is not taken: the addresses come from the window. */
CUresult zl_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
    uint64_t address = 0;
    CUresult result;

    if (!size || size % PAGE || addr % PAGE || (alignment & (alignment - 1)) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!offered())
        return CUDA_ERROR_NOT_SUPPORTED;
    if (size > zl_state.window_size || alignment > zl_state.window_size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    result = reserve(size, alignment, &address);
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS)
        *ptr = address;
    return result;
}

static CUresult free_addresses(uint64_t base, uint64_t size)
{
    reservation *found = reservation_of(base);
    struct zl_cmd_virtual_free *command;
    CUresult result;

    if (!found || found->base != base || found->size != size || overlaps_mapping(base, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (!zl_window_show(base, size, base, PROT_READ | PROT_WRITE))
        return CUDA_ERROR_OPERATING_SYSTEM;
    *found = reservations[--reserved];
    command = zl_begin(ZL_OP_virtual_free, NULL, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->address = base;
    command->size = size;
    result = zl_call(&command->header, NULL, 0, NULL);
    return result;
}

CUresult zl_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    CUresult result;

    pthread_mutex_lock(&lock);
    result = free_addresses(ptr, size);
    pthread_mutex_unlock(&lock);
    return result;
}

/* --- memory --- */

static CUresult check_properties(const CUmemAllocationProp *prop)
{
    const CUmemAllocationHandleType known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_WIN32 |
                                            CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC;
    const unsigned usages = CU_MEM_CREATE_USAGE_TILE_POOL | CU_MEM_CREATE_USAGE_HW_DECOMPRESS;

    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->win32HandleMetaData)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof prop->allocFlags.reserved; i++)
        if (prop->allocFlags.reserved[i])
            return CUDA_ERROR_INVALID_VALUE;
    if (prop->allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC || (prop->allocFlags.usage & ~usages) ||
        (prop->requestedHandleTypes & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (!zl_device_valid(prop->location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        if (!zl_device_attribute(prop->location.id, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
            return CUDA_ERROR_NOT_SUPPORTED;
        break;
    case CU_MEM_LOCATION_TYPE_HOST:
        if (prop->requestedHandleTypes)
            return CUDA_ERROR_INVALID_VALUE;
        if (!zl_device_attribute(0, CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
            return CUDA_ERROR_NOT_SUPPORTED;
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: /* CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0 */
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* No sharing between processes, remote access, sparse arrays, decompression; compression is only a wish. */
    return prop->requestedHandleTypes || prop->allocFlags.gpuDirectRDMACapable || prop->allocFlags.usage ? CUDA_ERROR_NOT_SUPPORTED
                                                                                                         : CUDA_SUCCESS;
}

CUresult zl_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
    CUresult result = check_properties(prop);

    if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *granularity = GRANULARITY;
    return result == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult zl_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct zl_cmd_physical_create *command;
    struct zl_physical_create_reply reply;
    CUresult result = check_properties(prop);
    physical *memory;

    if (result != CUDA_SUCCESS)
        return result;
    if (!size || size % GRANULARITY || flags)
        return CUDA_ERROR_INVALID_VALUE;
    memory = calloc(1, sizeof *memory);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = (physical){.size = size, .properties = *prop, .held = 1};
    memory->properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
    memory->handle = zl_handle_new(ZL_PHYSICAL, memory);
    command = memory->handle ? zl_begin(ZL_OP_physical_create, NULL, sizeof *command, true) : NULL;
    if (command) {
        command->physical = memory->handle;
        command->size = size;
        command->device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
    } else {
        result = memory->handle ? zl_gone() : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        memory->home = reply.home;
        *handle = memory->handle;
        return CUDA_SUCCESS;
    }
    if (memory->handle)
        zl_handle_remove(ZL_PHYSICAL, memory->handle);
    free(memory);
    return result;
}

/* A handle that somebody holds. The lock is held. */
static physical *find(CUmemGenericAllocationHandle handle)
{
    physical *memory = zl_handle_get(ZL_PHYSICAL, handle);
    return memory && memory->held ? memory : NULL;
}

/* Lets go of memory that nobody needs any more. The lock is held. */
static void collect(physical *memory)
{
    struct zl_cmd_physical_destroy *command;

    if (memory->held || memory->mappings)
        return;
    command = zl_begin(ZL_OP_physical_destroy, NULL, sizeof *command, false);
    if (command) {
        command->physical = memory->handle;
        zl_post(&command->header, NULL);
    }
    zl_handle_remove(ZL_PHYSICAL, memory->handle);
    free(memory);
}

CUresult zl_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    physical *memory;

    pthread_mutex_lock(&lock);
    memory = find(handle);
    if (memory) {
        memory->held--;
        collect(memory);
    }
    pthread_mutex_unlock(&lock);
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    mapping *found;

    pthread_mutex_lock(&lock);
    found = mapping_of((uint64_t)(uintptr_t)addr);
    if (found) {
        found->memory->held++;
        *handle = found->memory->handle;
    }
    pthread_mutex_unlock(&lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    physical *memory;

    pthread_mutex_lock(&lock);
    memory = find(handle);
    if (memory)
        *prop = memory->properties;
    pthread_mutex_unlock(&lock);
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- mapping --- */

static CUresult map(uint64_t base, uint64_t size, CUmemGenericAllocationHandle handle)
{
    const reservation *place = reservation_of(base);
    physical *memory = find(handle);
    struct zl_cmd_virtual_map *command;
    CUresult result;

    if (!place || size > place->size - (base - place->base) || overlaps_mapping(base, size) || !memory || size > memory->size)
        return CUDA_ERROR_INVALID_VALUE;
    if (!room((void **)&mappings, mapped, &mappings_room, sizeof *mappings))
        return CUDA_ERROR_OUT_OF_MEMORY;
    command = zl_begin(ZL_OP_virtual_map, NULL, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->address = base;
    command->size = size;
    command->physical = handle;
    result = zl_call(&command->header, NULL, 0, NULL);
    if (result == CUDA_SUCCESS) {
        mappings[mapped++] = (mapping){.base = base, .size = size, .memory = memory};
        memory->mappings++;
    }
    return result;
}

CUresult zl_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult result;

    if (!size || ptr % GRANULARITY || size % GRANULARITY || offset || flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    result = map(ptr, size, handle);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Nobody uses a mapping when it goes: the driver process waits for all work in flight. */
static CUresult unmap(mapping *gone)
{
    struct zl_cmd_virtual_unmap *command = zl_begin(ZL_OP_virtual_unmap, NULL, sizeof *command, true);
    physical *memory = gone->memory;
    zl_range range;
    CUresult result;

    if (!command)
        return zl_gone();
    command->address = gone->base;
    command->size = gone->size;
    result = zl_call(&command->header, NULL, 0, NULL);
    if (result != CUDA_SUCCESS)
        return result;
    zl_range_remove(gone->base, ZL_RANGE_VIRTUAL, &range);
    if (!zl_window_show(gone->base, gone->size, gone->base, PROT_NONE))
        result = CUDA_ERROR_OPERATING_SYSTEM;
    *gone = mappings[--mapped];
    memory->mappings--;
    collect(memory);
    return result;
}

CUresult zl_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    uint64_t at = ptr;

    pthread_mutex_lock(&lock);
    if (whole_mappings(ptr, size))
        for (result = CUDA_SUCCESS; at < ptr + size && result == CUDA_SUCCESS;) {
            mapping *found = mapping_of(at);
            at += found->size;
            result = unmap(found);
        }
    pthread_mutex_unlock(&lock);
    return result;
}

/* --- access --- */

static CUresult check_access(const CUmemAccessDesc *desc, const mapping *of)
{
    bool of_host = of->memory->properties.location.type == CU_MEM_LOCATION_TYPE_HOST;

    if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    switch (desc->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (!zl_device_valid(desc->location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        return zl_device_attribute(desc->location.id, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) ? CUDA_SUCCESS
                                                                                                               : CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_HOST:
        return of_host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUmemAccess_flags strongest(const mapping *of)
{
    if (of->writers || of->host == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return of->readers || of->host ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static void grant(mapping *to, const CUmemAccessDesc *desc)
{
    uint32_t bit;

    if (desc->location.type == CU_MEM_LOCATION_TYPE_HOST) {
        to->host = desc->flags;
        return;
    }
    bit = 1u << desc->location.id;
    to->readers = desc->flags ? to->readers | bit : to->readers & ~bit;
    to->writers = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? to->writers | bit : to->writers & ~bit;
}

/* One protection serves all: what any of them may do. The host's own copies need no more than the devices' kernels. */
static CUresult apply(const mapping *to)
{
    struct zl_cmd_virtual_access *command = zl_begin(ZL_OP_virtual_access, NULL, sizeof *command, true);
    const CUmemLocation *home = &to->memory->properties.location;
    bool of_host = home->type == CU_MEM_LOCATION_TYPE_HOST;
    CUmemAccess_flags access = strongest(to);
    zl_range range = {.base = to->base, .size = to->size, .kind = ZL_RANGE_VIRTUAL, .device = of_host ? 0 : home->id, .host = of_host};
    CUresult result;

    if (!command)
        return zl_gone();
    command->address = to->base;
    command->size = to->size;
    command->access = access;
    result = zl_call(&command->header, NULL, 0, NULL);
    if (result != CUDA_SUCCESS)
        return result;
    zl_range_remove(to->base, ZL_RANGE_VIRTUAL, &(zl_range){0});
    if (!zl_window_show(to->base, to->size, to->memory->home, access ? PROT_READ | PROT_WRITE : PROT_NONE))
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (access)
        zl_range_add(range);
    return CUDA_SUCCESS;
}

CUresult zl_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    CUresult result;

    if (!desc || !count)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    result = whole_mappings(ptr, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = ptr; result == CUDA_SUCCESS && at < ptr + size; at += mapping_of(at)->size)
        for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) /* all or nothing */
            result = check_access(&desc[i], mapping_of(at));
    for (uint64_t at = ptr; result == CUDA_SUCCESS && at < ptr + size; at += mapping_of(at)->size) {
        mapping *to = mapping_of(at);
        for (size_t i = 0; i < count; i++)
            grant(to, &desc[i]);
        result = apply(to);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult zl_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
    const mapping *found;
    CUresult result = CUDA_SUCCESS;

    if (!location)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && !zl_device_valid(location->id))
        return CUDA_ERROR_INVALID_DEVICE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE && location->type != CU_MEM_LOCATION_TYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    found = mapping_of(ptr);
    if (!found)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (location->type == CU_MEM_LOCATION_TYPE_HOST)
        *flags = found->host;
    else if (found->writers >> location->id & 1)
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    else
        *flags = found->readers >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    pthread_mutex_unlock(&lock);
    return result;
}

/* --- sharing: no memory here is made for it --- */

CUresult zl_cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                         CUmemAllocationHandleType handleType, unsigned long long flags)
{
    (void)shareableHandle, (void)handle, (void)handleType, (void)flags;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle, CUmemAllocationHandleType shHandleType)
{
    (void)handle, (void)osHandle;
    switch (shHandleType) {
    case CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: /* the attributes of handle types are 0 */
    case CU_MEM_HANDLE_TYPE_WIN32:
    case CU_MEM_HANDLE_TYPE_WIN32_KMT:
    case CU_MEM_HANDLE_TYPE_FABRIC:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* --- when the driver process has ended --- */

static bool forget(uint64_t handle, void *object, void *argument)
{
    (void)handle, (void)argument;
    free(object);
    return true;
}

void zl_virtual_forget(void)
{
    pthread_mutex_lock(&lock);
    reserved = mapped = 0;
    zl_handle_each(ZL_PHYSICAL, forget, NULL);
    pthread_mutex_unlock(&lock);
}
