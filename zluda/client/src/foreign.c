/* Resources of graphics APIs, memory and semaphores of others. A handle to one comes from registering or importing it,
   which no device here can; so there is no valid one, and every call says so as the manual has it. */
#include "client.h"

#include <fcntl.h>

/* --- graphics resources --- */

CUresult zl_cuGraphicsUnregisterResource(zl_context *context, CUgraphicsResource resource)
{
    (void)context, (void)resource;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsSubResourceGetMappedArray(zl_context *context, CUarray *pArray, CUgraphicsResource resource,
                                                unsigned int arrayIndex, unsigned int mipLevel)
{
    (void)context, (void)pArray, (void)resource, (void)arrayIndex, (void)mipLevel;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsResourceGetMappedMipmappedArray(zl_context *context, CUmipmappedArray *pMipmappedArray,
                                                      CUgraphicsResource resource)
{
    (void)context, (void)pMipmappedArray, (void)resource;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsResourceGetMappedPointer_v2(zl_context *context, CUdeviceptr *pDevPtr, size_t *pSize,
                                                  CUgraphicsResource resource)
{
    (void)context, (void)pDevPtr, (void)pSize, (void)resource;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsResourceSetMapFlags(zl_context *context, CUgraphicsResource resource, unsigned int flags)
{
    (void)context, (void)resource, (void)flags;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsResourceSetMapFlags_v2(zl_context *context, CUgraphicsResource resource, unsigned int flags)
{
    return zl_cuGraphicsResourceSetMapFlags(context, resource, flags);
}

CUresult zl_cuGraphicsMapResources(zl_context *context, unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
    (void)context, (void)count, (void)resources, (void)hStream;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuGraphicsUnmapResources(zl_context *context, unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
    (void)context, (void)count, (void)resources, (void)hStream;
    return CUDA_ERROR_INVALID_HANDLE;
}

/* --- external memory --- */

CUresult zl_cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                            const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    (void)devPtr, (void)extMem;
    return !bufferDesc || bufferDesc->flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
                                                    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
{
    (void)mipmap, (void)extMem;
    return mipmapDesc ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuDestroyExternalMemory(CUexternalMemory extMem)
{
    (void)extMem;
    return CUDA_ERROR_INVALID_HANDLE;
}

/* --- external semaphores --- */

CUresult zl_cuImportExternalSemaphore(CUexternalSemaphore *extSem_out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc)
{
    (void)extSem_out;
    if (!semHandleDesc)
        return CUDA_ERROR_INVALID_VALUE;
    switch (semHandleDesc->type) {
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD:
        return fcntl(semHandleDesc->handle.fd, F_GETFD) < 0 ? CUDA_ERROR_INVALID_HANDLE
                                                                     : zl_not_supported("cuImportExternalSemaphore", "");
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32:
        return zl_not_supported("cuImportExternalSemaphore", "");
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult zl_cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                            const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray, unsigned int numExtSems,
                                            CUstream stream)
{
    (void)extSemArray, (void)paramsArray, (void)numExtSems, (void)stream;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                          const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray, unsigned int numExtSems,
                                          CUstream stream)
{
    (void)extSemArray, (void)paramsArray, (void)numExtSems, (void)stream;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuDestroyExternalSemaphore(CUexternalSemaphore extSem)
{
    (void)extSem;
    return CUDA_ERROR_INVALID_HANDLE;
}
