/* Handles for other processes: no device here has any (CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED is 0). What the manual
   says of arguments is checked first. */
#include "client.h"

CUresult zl_cuIpcGetMemHandle(zl_context *context, CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    zl_range range;

    (void)context, (void)pHandle;
    if (!zl_range_find(dptr, &range) || range.kind != ZL_RANGE_DEVICE || range.base != dptr)
        return CUDA_ERROR_INVALID_VALUE;
    return zl_not_supported("cuIpcGetMemHandle", "");
}

static CUresult open_memory(unsigned flags)
{
    return flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ? zl_not_supported("cuIpcOpenMemHandle", "") : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuIpcOpenMemHandle(zl_context *context, CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    (void)context, (void)pdptr, (void)handle;
    return open_memory(Flags);
}

CUresult zl_cuIpcOpenMemHandle_v2(zl_context *context, CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    (void)context, (void)pdptr, (void)handle;
    return open_memory(Flags);
}

CUresult zl_cuIpcCloseMemHandle(zl_context *context, CUdeviceptr dptr)
{
    (void)context, (void)dptr;
    return CUDA_ERROR_INVALID_VALUE;     /* none was ever opened */
}

CUresult zl_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    const zl_event *found = zl_handle_get(ZL_EVENT, (uint64_t)event);

    (void)pHandle;
    if (!found || !(found->flags & CU_EVENT_INTERPROCESS)) /* and cuEventCreate makes none of these */
        return CUDA_ERROR_INVALID_HANDLE;
    return zl_not_supported("cuIpcGetEventHandle", "");
}

CUresult zl_cuIpcOpenEventHandle(zl_context *context, CUevent *phEvent, CUipcEventHandle handle)
{
    (void)context, (void)phEvent, (void)handle;
    return zl_not_supported("cuIpcOpenEventHandle", "");
}
