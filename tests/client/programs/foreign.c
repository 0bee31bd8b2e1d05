/* Graphics resources, external memory and semaphores: nothing can be one, and the manual's code says it. */
#include "check.h"

int main(void)
{
    CUgraphicsResource resource = (CUgraphicsResource)(uintptr_t)0x1230, none = NULL;
    CUexternalMemory memory = (CUexternalMemory)(uintptr_t)0x1230;
    CUexternalSemaphore semaphore = (CUexternalSemaphore)(uintptr_t)0x1230;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = 16};
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC levels = {.numLevels = 1};
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC handle = {.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = {0};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait = {0};
    CUresult (*older)(CUgraphicsResource, unsigned);
    CUmipmappedArray mipmap;
    CUarray array;
    CUdeviceptr p;
    size_t size;

    EXPECT(cuGraphicsUnregisterResource(resource), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuDestroyExternalMemory(memory), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    EXPECT(cuGraphicsUnregisterResource(resource), CUDA_ERROR_INVALID_CONTEXT);
    start();

    EXPECT(cuGraphicsUnregisterResource(resource), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphicsUnregisterResource(none), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphicsSubResourceGetMappedArray(&array, resource, 0, 0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphicsSubResourceGetMappedArray(NULL, resource, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGraphicsResourceGetMappedMipmappedArray(&mipmap, resource), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphicsResourceGetMappedMipmappedArray(NULL, resource), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGraphicsResourceGetMappedPointer(&p, &size, resource), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphicsResourceGetMappedPointer(NULL, &size, resource), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGraphicsResourceGetMappedPointer(&p, NULL, resource), CUDA_ERROR_INVALID_VALUE);
    for (unsigned flags = 0; flags < 3; flags++)
        EXPECT(cuGraphicsResourceSetMapFlags(resource, flags), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphicsResourceSetMapFlags(resource, 3), CUDA_ERROR_INVALID_VALUE);
    OK(cuGetProcAddress("cuGraphicsResourceSetMapFlags", (void **)&older, 3000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    EXPECT(older(resource, 2), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(older(resource, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGraphicsMapResources(1, &resource, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphicsMapResources(1, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGraphicsUnmapResources(1, &none, NULL), CUDA_ERROR_INVALID_HANDLE);

    EXPECT(cuExternalMemoryGetMappedBuffer(&p, memory, &buffer), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuExternalMemoryGetMappedBuffer(&p, memory, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuExternalMemoryGetMappedBuffer(NULL, memory, &buffer), CUDA_ERROR_INVALID_VALUE);
    buffer.flags = 1;
    EXPECT(cuExternalMemoryGetMappedBuffer(&p, memory, &buffer), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &levels), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuExternalMemoryGetMappedMipmappedArray(NULL, memory, &levels), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDestroyExternalMemory(memory), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuDestroyExternalMemory(NULL), CUDA_ERROR_INVALID_HANDLE);

    handle.handle.fd = 0;
    EXPECT(cuImportExternalSemaphore(&semaphore, &handle), CUDA_ERROR_NOT_SUPPORTED);
    handle.handle.fd = -1;
    EXPECT(cuImportExternalSemaphore(&semaphore, &handle), CUDA_ERROR_INVALID_HANDLE);
    handle.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    EXPECT(cuImportExternalSemaphore(&semaphore, &handle), CUDA_ERROR_INVALID_HANDLE);
    handle.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE;
    EXPECT(cuImportExternalSemaphore(&semaphore, &handle), CUDA_ERROR_NOT_SUPPORTED);
    handle.type = (CUexternalSemaphoreHandleType)11;
    EXPECT(cuImportExternalSemaphore(&semaphore, &handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuImportExternalSemaphore(&semaphore, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuImportExternalSemaphore(NULL, &handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuSignalExternalSemaphoresAsync(&semaphore, &signal, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuWaitExternalSemaphoresAsync(&semaphore, &wait, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuDestroyExternalSemaphore(semaphore), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMemAlloc(&p, 16));                        /* and all is well */
    OK(cuMemFree(p));
    return 0;
}
