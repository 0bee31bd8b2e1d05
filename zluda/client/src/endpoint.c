/* Logical endpoints: no device here has them, so that no id can be reserved and none is valid (driver API, "Logical
   Endpoint Management"). */
#include "client.h"

static CUresult check_properties(const CUlogicalEndpointProp *prop)
{
    if (!prop || !prop->size || (prop->flags & ~(unsigned)CU_LOGICAL_ENDPOINT_FLAG_COUNTED_OPS) ||
        (prop->ipcHandleTypes & ~(unsigned)CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC))
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->type == CU_LOGICAL_ENDPOINT_TYPE_UNICAST ? !zl_device_valid(prop->unicast.device)
                                                       : prop->type != CU_LOGICAL_ENDPOINT_TYPE_MULTICAST ||
                                                             !prop->multicast.numDevices)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult zl_cuLogicalEndpointIdReserve(CUlogicalEndpointId *baseLeId, cuuint32_t count)
{
    (void)baseLeId;
    return count ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointIdRelease(CUlogicalEndpointId baseLeId, cuuint32_t count)
{
    (void)baseLeId, (void)count;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointGetLimits(cuuint64_t *bindAlignment, cuuint64_t *maxSize, const CUlogicalEndpointProp *prop)
{
    (void)bindAlignment, (void)maxSize;
    return check_properties(prop);
}

CUresult zl_cuLogicalEndpointCreate(CUlogicalEndpointId leId, const CUlogicalEndpointProp *prop)
{
    (void)leId;
    return check_properties(prop);
}

CUresult zl_cuLogicalEndpointDestroy(CUlogicalEndpointId leId)
{
    (void)leId;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointAddDevice(CUlogicalEndpointId leId, CUdevice dev)
{
    (void)leId, (void)dev;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointQuery(CUlogicalEndpointId leId, cuuint32_t count, int *queryStatus)
{
    (void)leId, (void)count, (void)queryStatus;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointBindAddr(CUlogicalEndpointId leId, CUdevice dev, cuuint64_t offset, void *ptr, cuuint64_t size,
                                      unsigned long long flags)
{
    (void)leId, (void)dev, (void)offset, (void)ptr, (void)size, (void)flags;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointBindMem(CUlogicalEndpointId leId, CUdevice dev, cuuint64_t offset,
                                     CUmemGenericAllocationHandle memHandle, cuuint64_t memOffset, cuuint64_t size,
                                     unsigned long long flags)
{
    (void)leId, (void)dev, (void)offset, (void)memHandle, (void)memOffset, (void)size, (void)flags;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointUnbind(CUlogicalEndpointId leId, CUdevice dev, cuuint64_t offset, cuuint64_t size)
{
    (void)leId, (void)dev, (void)offset, (void)size;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointExport(void *handle, CUlogicalEndpointId leId, CUlogicalEndpointIpcHandleType handleType)
{
    (void)handle, (void)leId, (void)handleType;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuLogicalEndpointImport(CUlogicalEndpointId leId, const void *handle, CUlogicalEndpointIpcHandleType handleType)
{
    (void)leId;
    return handle && handleType == CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC ? CUDA_ERROR_NOT_SUPPORTED
                                                                             : CUDA_ERROR_INVALID_VALUE;
}
