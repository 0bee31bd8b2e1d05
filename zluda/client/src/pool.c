/* Memory pools: their handles, properties and attributes, and which pool is a device's own. What is in a pool, the driver
   knows. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Places that have a default pool, as the driver process numbers them. */
enum { PLACE_HOST = ZL_MAX_DEVICES, PLACE_MANAGED, PLACE_MANAGED_HOST, PLACE_MANAGED_DEVICE, PLACES = PLACE_MANAGED_DEVICE + ZL_MAX_DEVICES };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t defaults[PLACES], current[PLACES]; /* handles, or 0 while nobody has asked */

static zl_pool *find(CUmemoryPool pool)
{
    return zl_handle_get(ZL_POOL, (uint64_t)pool);
}

/* The place of a kind of memory. */
static CUresult place_of(const CUmemLocation *location, CUmemAllocationType type, unsigned *place)
{
    bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;

    if (!location || (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED))
        return CUDA_ERROR_INVALID_VALUE;
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_NONE:
        *place = PLACE_MANAGED;
        return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (!zl_device_valid(location->id))
            return CUDA_ERROR_INVALID_DEVICE;
        *place = (managed ? PLACE_MANAGED_DEVICE : 0) + (unsigned)location->id;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
        *place = managed ? PLACE_MANAGED_HOST : PLACE_HOST;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: /* CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED is 0 */
        return CUDA_ERROR_NOT_SUPPORTED;
    default:                             /* no device has locality domains, so there is none to name */
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Managed and host memory have to be where all devices reach them. */
static bool offered(unsigned place)
{
    if (place < PLACE_HOST)
        return zl_device_attribute((CUdevice)place, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    for (uint32_t i = 0; i < zl_state.device_count; i++)
        if (!zl_device_attribute((CUdevice)i, place == PLACE_HOST ? CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED
                                                                 : CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
            return false;
    return true;
}

static CUmemLocation location_of(unsigned place)
{
    if (place < PLACE_HOST)
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)place};
    if (place >= PLACE_MANAGED_DEVICE)
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)(place - PLACE_MANAGED_DEVICE)};
    return (CUmemLocation){.type = place == PLACE_MANAGED ? CU_MEM_LOCATION_TYPE_NONE : CU_MEM_LOCATION_TYPE_HOST};
}

static uint64_t new_handle(unsigned place, size_t max_size, bool is_default)
{
    zl_pool *pool = calloc(1, sizeof *pool);
    uint64_t handle;

    if (!pool)
        return 0;
    *pool = (zl_pool){.place = place, .type = place > PLACE_HOST ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = location_of(place), .max_size = max_size, .is_default = is_default};
    pool->range_kind = place < PLACE_HOST ? ZL_RANGE_DEVICE : place == PLACE_HOST ? ZL_RANGE_HOST : ZL_RANGE_MANAGED;
    handle = zl_handle_new(ZL_POOL, pool);
    pool->wire = is_default ? (uint64_t)place << 4 | ZL_POOL_DEFAULT : handle;
    if (!handle)
        free(pool);
    return handle;
}

static CUresult default_of(unsigned place, uint64_t *handle)
{
    if (!offered(place))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!defaults[place])
        defaults[place] = new_handle(place, 0, true);
    *handle = defaults[place];
    return *handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult get_default(unsigned place, CUmemoryPool *pool)
{
    uint64_t handle = 0;
    CUresult result;

    pthread_mutex_lock(&lock);
    result = default_of(place, &handle);
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS)
        *pool = (CUmemoryPool)handle;
    return result;
}

static CUresult get_current(unsigned place, CUmemoryPool *pool)
{
    uint64_t handle = 0;
    CUresult result;

    pthread_mutex_lock(&lock);
    handle = current[place];
    result = handle ? CUDA_SUCCESS : default_of(place, &handle);
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS)
        *pool = (CUmemoryPool)handle;
    return result;
}

static CUresult set_current(unsigned place, CUmemoryPool pool)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    zl_pool *found;

    pthread_mutex_lock(&lock);           /* so that it is not destroyed meanwhile */
    found = find(pool);
    if (found && found->place == place) {
        current[place] = (uint64_t)pool;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult zl_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    return zl_device_valid(dev) ? get_default((unsigned)dev, pool_out) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult zl_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    return zl_device_valid(dev) ? get_current((unsigned)dev, pool) : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    return zl_device_valid(dev) ? set_current((unsigned)dev, pool) : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
    unsigned place;
    CUresult result = place_of(location, type, &place);
    return result == CUDA_SUCCESS ? get_default(place, pool_out) : result;
}

static CUresult place_for_current(const CUmemLocation *location, CUmemAllocationType type, unsigned *place)
{
    CUresult result = place_of(location, type, place);
    return result == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult zl_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    unsigned place;
    CUresult result = place_for_current(location, type, &place);
    return result == CUDA_SUCCESS ? get_current(place, pool) : result;
}

CUresult zl_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    unsigned place;
    CUresult result = place_for_current(location, type, &place);
    return result == CUDA_SUCCESS ? set_current(place, pool) : result;
}

static CUresult check_properties(const CUmemPoolProps *props, unsigned *place)
{
    const CUmemAllocationHandleType known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_WIN32 |
                                            CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC;
    CUresult result = place_for_current(&props->location, props->allocType, place);

    if (result != CUDA_SUCCESS)
        return result;
    for (size_t i = 0; i < sizeof props->reserved; i++)
        if (props->reserved[i])
            return CUDA_ERROR_INVALID_VALUE;
    if (props->win32SecurityAttributes || (props->handleTypes & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    if (*place >= PLACE_HOST && props->handleTypes) /* neither host memory of no node nor managed memory is shared */
        return CUDA_ERROR_INVALID_VALUE;
    if (*place > PLACE_HOST && (props->maxSize || props->usage))
        return CUDA_ERROR_INVALID_VALUE;
    if (props->usage & ~CU_MEM_CREATE_USAGE_HW_DECOMPRESS)
        return CUDA_ERROR_INVALID_VALUE;
    /* CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES is 0, and so is that of decompression. */
    return props->handleTypes || props->usage || !offered(*place) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult zl_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    enum { GRANULE = 512 };
    struct zl_cmd_pool_create *command;
    uint64_t handle;
    unsigned place;
    size_t max_size;
    CUresult result;

    if (!poolProps)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_properties(poolProps, &place);
    if (result != CUDA_SUCCESS)
        return result;
    if (__builtin_add_overflow(poolProps->maxSize, GRANULE - 1, &max_size))
        return CUDA_ERROR_INVALID_VALUE;
    max_size = max_size / GRANULE * GRANULE;
    handle = new_handle(place, max_size, false);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    command = zl_begin(ZL_OP_pool_create, NULL, sizeof *command, true);
    if (command) {
        command->pool = handle;
        command->place = place;
        command->max_size = max_size;
        result = zl_call(&command->header, NULL, 0, NULL);
    } else {
        result = zl_gone();
    }
    if (result == CUDA_SUCCESS)
        *pool = (CUmemoryPool)handle;
    else
        free(zl_handle_remove(ZL_POOL, handle));
    return result;
}

CUresult zl_cuMemPoolDestroy(CUmemoryPool pool)
{
    struct zl_cmd_pool_destroy *command;
    zl_pool *found;

    pthread_mutex_lock(&lock);
    found = find(pool);
    if (found && (found->is_default || !zl_handle_remove(ZL_POOL, (uint64_t)pool)))
        found = NULL;
    if (found && current[found->place] == (uint64_t)pool)
        current[found->place] = 0;
    pthread_mutex_unlock(&lock);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    free(found);
    command = zl_begin(ZL_OP_pool_destroy, NULL, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->pool = (uint64_t)pool;
    zl_post(&command->header, NULL);
    return CUDA_SUCCESS;
}

CUresult zl_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    zl_pool *found = find(pool);
    struct zl_cmd_pool_trim *command;

    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    command = zl_begin(ZL_OP_pool_trim, NULL, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->pool = found->wire;
    command->keep = minBytesToKeep;
    return zl_call(&command->header, NULL, 0, NULL);
}

/* --- attributes --- */

static bool is_wide(CUmemPool_attribute attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_MAX_POOL_SIZE:
        return true;
    default:
        return false;
    }
}

CUresult zl_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    zl_pool *found = find(pool);
    struct zl_cmd_pool_set *command;
    uint64_t number = 0;

    if (!found || !value)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&number, value, is_wide(attr) ? sizeof(cuuint64_t) : sizeof(int));
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (!number)
            break;
        return CUDA_ERROR_INVALID_VALUE;
    default:                             /* the others only tell */
        return CUDA_ERROR_INVALID_VALUE;
    }
    command = zl_begin(ZL_OP_pool_set, NULL, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->pool = found->wire;
    command->attribute = attr;
    command->value = number;
    return zl_call(&command->header, NULL, 0, NULL);
}

/* What never changes is answered here. */
static bool property(const zl_pool *pool, CUmemPool_attribute attribute, uint64_t *value)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_ALLOCATION_TYPE:
        *value = pool->type;
        return true;
    case CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES:
        *value = CU_MEM_HANDLE_TYPE_NONE;
        return true;
    case CU_MEMPOOL_ATTR_LOCATION_ID:
        *value = (uint64_t)(int64_t)pool->location.id;
        return true;
    case CU_MEMPOOL_ATTR_LOCATION_TYPE:
        *value = pool->location.type;
        return true;
    case CU_MEMPOOL_ATTR_MAX_POOL_SIZE:
        *value = pool->max_size;
        return true;
    case CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED:
        *value = 0;
        return true;
    case CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID:
        *value = UINT64_MAX;             /* -1: of no domain */
        return true;
    default:
        return false;
    }
}

CUresult zl_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    zl_pool *found = find(pool);
    struct zl_pool_get_reply reply;
    uint64_t number;
    CUresult result;

    if (!found || attr < CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES || attr > CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID)
        return CUDA_ERROR_INVALID_VALUE;
    if (!property(found, attr, &number)) {
        struct zl_cmd_pool_get *command = zl_begin(ZL_OP_pool_get, NULL, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->pool = found->wire;
        command->attribute = attr;
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
        if (result != CUDA_SUCCESS)
            return result;
        number = reply.value;
    }
    memcpy(value, &number, is_wide(attr) ? sizeof(cuuint64_t) : sizeof(int));
    return CUDA_SUCCESS;
}

/* --- access --- */

/* Whether the location has access without being given it, and for good. */
static bool own(const zl_pool *pool, const CUmemLocation *location)
{
    if (pool->type == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return true;
    return location->type == pool->location.type && (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id == pool->location.id);
}

static bool location_valid(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST || (location->type == CU_MEM_LOCATION_TYPE_DEVICE && zl_device_valid(location->id));
}

/* Devices whose kernels reach the window reach all that is in it. */
static bool reaches(const zl_pool *pool, CUdevice device)
{
    return zl_device_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) &&
           (pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            zl_device_attribute(pool->location.id, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY));
}

CUresult zl_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    zl_pool *found = find(pool);

    if (!found || !map || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) { /* all or nothing */
        CUmemAccess_flags flags = map[i].flags;
        if (!location_valid(&map[i].location) || (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
                                                  flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
            return CUDA_ERROR_INVALID_VALUE;
        if (own(found, &map[i].location)) {
            if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                return CUDA_ERROR_INVALID_VALUE;
        } else if (map[i].location.type == CU_MEM_LOCATION_TYPE_HOST) {
            return CUDA_ERROR_INVALID_VALUE; /* device memory is the devices' */
        } else if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                   (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE && !reaches(found, map[i].location.id))) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
            uint32_t bit = 1u << map[i].location.id;
            if (map[i].flags)
                atomic_fetch_or(&found->granted, bit);
            else
                atomic_fetch_and(&found->granted, ~bit);
        }
    return CUDA_SUCCESS;
}

CUresult zl_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
    zl_pool *found = find(memPool);
    bool granted;

    if (!found || !location || !location_valid(location))
        return CUDA_ERROR_INVALID_VALUE;
    granted = own(found, location) ||
              (location->type == CU_MEM_LOCATION_TYPE_DEVICE && (atomic_load(&found->granted) >> location->id & 1));
    *flags = granted ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* --- sharing: no pool here is made for it, and none comes from elsewhere --- */

CUresult zl_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
                                             unsigned long long flags)
{
    (void)handle_out, (void)pool, (void)handleType, (void)flags;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
                                               unsigned long long flags)
{
    (void)pool_out, (void)handle, (void)handleType, (void)flags;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    (void)shareData_out, (void)ptr;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
    (void)ptr_out, (void)pool, (void)shareData;
    return CUDA_ERROR_INVALID_VALUE;
}

/* --- when the driver process has ended --- */

static bool forget(uint64_t handle, void *object, void *argument)
{
    (void)handle, (void)argument;
    if (((zl_pool *)object)->is_default)
        return false;                    /* the next driver process has one like it */
    free(object);
    return true;
}

void zl_pools_forget(void)
{
    pthread_mutex_lock(&lock);
    zl_handle_each(ZL_POOL, forget, NULL);
    memset(current, 0, sizeof current);
    pthread_mutex_unlock(&lock);
}
