/* What a pointer is. */
#include "client.h"

#include <string.h>

/* How many bytes an attribute takes; 0 for one that does not exist. */
static size_t attribute_size(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return 8;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL:
        return 4;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return 1;
    default:
        return 0;
    }
}

static uint64_t value_of(CUpointer_attribute attribute, CUdeviceptr pointer, const zl_range *range)
{
    enum { READ_WRITE = 3 };
    zl_context *context = zl_handle_get(ZL_CONTEXT, range->context);
    uint64_t base, size;
    bool is_mapped;

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return range->context;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return range->kind == ZL_RANGE_HOST || range->kind == ZL_RANGE_REGISTERED || range->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return pointer;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return range->id;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return (uint32_t)(context ? context->device : range->device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return range->kind == ZL_RANGE_VIRTUAL && zl_reservation_find(pointer, &base, &size, &is_mapped) ? base : range->base;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return range->kind == ZL_RANGE_VIRTUAL && zl_reservation_find(pointer, &base, &size, &is_mapped) ? size : range->size;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return range->base;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return range->size;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return range->kind != ZL_RANGE_REGISTERED;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return range->sync_memops;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return range->kind == ZL_RANGE_MANAGED;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return range->pool;
    case CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL:
        return UINT32_MAX;               /* -1: of no domain */
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return READ_WRITE;
    default:                             /* no IPC, no exportable handles, no RDMA, no decompression */
        return 0;
    }
}

/* Whether the pointer has such a thing at all. */
static CUresult exists(CUpointer_attribute attribute, const zl_range *range)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:   /* memory of a pool belongs to the device */
        return range->context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return range->kind == ZL_RANGE_DEVICE || range->kind == ZL_RANGE_GLOBAL || (range->kind == ZL_RANGE_VIRTUAL && !range->host)
                   ? CUDA_ERROR_INVALID_VALUE
                   : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        if (!zl_current())
            return CUDA_ERROR_INVALID_CONTEXT;
        return range->kind == ZL_RANGE_REGISTERED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

/* Of an address that is reserved, but that nobody has access to. */
static CUresult of_reserved(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    uint64_t base, size;
    bool is_mapped;

    if (!zl_reservation_find(pointer, &base, &size, &is_mapped))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        memcpy(data, &base, sizeof base);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        memcpy(data, &size, sizeof size);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        memcpy(data, &is_mapped, sizeof is_mapped);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult zl_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    size_t size = attribute_size(attribute);
    zl_range range;
    uint64_t value;
    CUresult result;

    if (!size)
        return attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    if (!zl_range_find(ptr, &range))
        return of_reserved(data, attribute, ptr);
    result = exists(attribute, &range);
    if (result != CUDA_SUCCESS)
        return result;
    value = value_of(attribute, ptr, &range);
    memcpy(data, &value, size);
    return CUDA_SUCCESS;
}

CUresult zl_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
    if (!numAttributes || !attributes)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numAttributes; i++) {
        size_t size = attribute_size(attributes[i]);
        if (!size || !data[i])
            return CUDA_ERROR_INVALID_VALUE;
        /* Unlike the single form, a pointer that is unknown to CUDA is no error: its attributes are zero. */
        if (zl_cuPointerGetAttribute(data[i], attributes[i], ptr) != CUDA_SUCCESS) {
            memset(data[i], 0, size);
            if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
                *(int *)data[i] = CU_DEVICE_INVALID;
        }
    }
    return CUDA_SUCCESS;
}

CUresult zl_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    unsigned sync;
    CUresult result;
    zl_context *context;
    zl_range range;

    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !zl_range_find(ptr, &range))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&sync, value, sizeof sync);
    if (sync > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!zl_range_set_sync(ptr, sync))
        return CUDA_ERROR_INVALID_VALUE;
    context = zl_handle_get(ZL_CONTEXT, range.context);
    if (!context)
        context = zl_current();
    if (!sync || !context)
        return CUDA_SUCCESS;
    /* Synchronous operations that were posted before and may be in flight. */
    result = zl_context_check(context);
    return result == CUDA_SUCCESS ? zl_turn(context, CU_STREAM_LEGACY) : result;
}

CUresult zl_cuMemGetHandleForAddressRange(zl_context *context, void *handle, CUdeviceptr dptr, size_t size,
                                          CUmemRangeHandleType handleType, unsigned long long flags)
{
    enum { PAGE = 4096 };

    (void)context, (void)handle;
    if (handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || (flags & ~(unsigned long long)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!size || dptr % PAGE || size % PAGE || !zl_in_window(dptr) || !zl_range_holds(dptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;     /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0 */
}
