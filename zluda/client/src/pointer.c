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
        return 4;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return 1;
    default:
        return 0;
    }
}

static uint64_t value_of(CUpointer_attribute attribute, CUdeviceptr pointer, const zl_range *range)
{
    enum { READ_WRITE = 3 };
    zl_context *context = zl_handle_get(ZL_CONTEXT, range->context);

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return range->context;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return range->kind == ZL_RANGE_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return pointer;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return range->id;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return context ? (uint32_t)context->device : 0;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return range->base;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return range->size;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return 1;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return READ_WRITE;
    default:                             /* not managed, no IPC, no pool, no exportable handles */
        return 0;
    }
}

CUresult zl_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    size_t size = attribute_size(attribute);
    zl_range range;
    uint64_t value;

    if (!size)
        return attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    if (!zl_range_find(ptr, &range))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && range.kind != ZL_RANGE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
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
