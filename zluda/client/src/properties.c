/* Properties of devices and contexts that follow from attributes, or that the devices here do not have to choose. */
#include "client.h"

CUresult zl_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *prop = (CUdevprop){
        .maxThreadsPerBlock = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .sharedMemPerBlock = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .memPitch = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        .regsPerBlock = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        .clockRate = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .textureAlign = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    };
    for (int axis = 0; axis < 3; axis++) {
        prop->maxThreadsDim[axis] = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis);
        prop->maxGridSize[axis] = zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis);
    }
    return CUDA_SUCCESS;
}

CUresult zl_cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format, unsigned numChannels,
                                               CUdevice dev)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_FLOAT:
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (numChannels != 1 && numChannels != 2 && numChannels != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (!zl_device_valid(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *maxWidthInElements = (size_t)zl_device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    return CUDA_SUCCESS;
}
