/* Two contexts and two devices: copies between them, access that no device has, and no handles for other processes. */
#include "check.h"

static unsigned char host[256], back[256];

/* In the null stream it is behind all of both contexts' work, and before what comes later in the other one. */
static void in_order(CUcontext here, CUdeviceptr p, CUcontext there, CUdeviceptr q, CUstream far)
{
    CUmodule module;
    CUfunction nap;

    OK(cuCtxPushCurrent(there));
    OK(cuMemsetD8Async(q, 1, 256, far));
    OK(cuCtxSynchronize());
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&nap, module, "nap"));
    OK(launch_nap(nap, far, 100));
    OK(cuMemsetD8Async(q, 2, 256, far));
    OK(cuCtxPopCurrent(NULL));
    OK(cuMemcpyPeer(p, here, q, there, 256));
    OK(cuMemsetD8Async(q, 3, 256, far));
    OK(cuMemcpyDtoH(back, p, 256));
    TRUE(back[0] == 2 && back[255] == 2);
    OK(cuMemcpyPeerAsync(p, here, q, there, 256, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemcpyDtoH(back, p, 256));
    TRUE(back[0] == 3 && back[255] == 3);
}

static void copies(CUcontext here, CUcontext there)
{
    CUDA_MEMCPY3D_PEER c = {0};
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 32, .Height = 8, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUdeviceptr p, q;
    CUarray array;
    CUstream stream, far;

    OK(cuMemAlloc(&p, 256));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxPushCurrent(there));
    OK(cuMemAlloc(&q, 256));
    OK(cuArrayCreate(&array, &d));
    OK(cuStreamCreate(&far, CU_STREAM_NON_BLOCKING));
    OK(cuCtxPopCurrent(NULL));

    OK(cuMemcpyHtoD(p, host, 256));
    OK(cuMemcpyPeer(q, there, p, here, 256));
    OK(cuMemcpyDtoH(back, q, 256));
    TRUE(!memcmp(back, host, 256));
    OK(cuMemsetD8(p, 0, 256));
    OK(cuCtxSynchronize());
    OK(cuMemcpyPeerAsync(p + 10, here, q + 20, there, 100, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(back, p, 256));
    TRUE(!memcmp(back + 10, host + 20, 100) && back[9] == 0 && back[110] == 0);

    if (here != there)                             /* within one it does not wait for such a stream */
        in_order(here, p, there, q, far);

    EXPECT(cuMemcpyPeer(q, NULL, p, here, 16), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuMemcpyPeer(q, there, p, (CUcontext)stream, 16), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuMemcpyPeerAsync(q, (CUcontext)(uintptr_t)host, p, here, 16, stream), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuMemcpyPeer(q, there, p, here, 257), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyPeer(q, there, 0, here, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyPeer((CUdeviceptr)(uintptr_t)host, there, p, here, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyPeerAsync(q, there, p, here, 16, (CUstream)p), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMemcpyPeer(q, there, p, here, 0));

    /* Three dimensions: into an array of the other context, whose own it is, and back into linear memory. */
    OK(cuMemcpyHtoD(p, host, 256));
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = p;
    c.srcContext = here;
    c.srcPitch = 16;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = array;
    c.dstXInBytes = 4;
    c.dstY = 2;
    c.WidthInBytes = 16;
    c.Height = 5;
    c.Depth = 1;
    OK(cuMemcpy3DPeer(&c));
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = array;
    c.srcXInBytes = 4;
    c.srcY = 2;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = q;
    c.dstContext = there;
    c.dstPitch = 20;
    c.dstXInBytes = 1;
    c.dstY = 0;
    OK(cuMemcpy3DPeerAsync(&c, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(back, q, 256));
    for (int y = 0; y < 5; y++)
        TRUE(!memcmp(back + 20 * y + 1, host + 16 * y, 16));
    c.dstContext = NULL;
    EXPECT(cuMemcpy3DPeer(&c), CUDA_ERROR_INVALID_CONTEXT);
    c.dstContext = there;
    c.dstLOD = 1;
    EXPECT(cuMemcpy3DPeer(&c), CUDA_ERROR_INVALID_VALUE);
    c.dstLOD = 0;
    c.Height = 7;
    EXPECT(cuMemcpy3DPeerAsync(&c, stream), CUDA_ERROR_INVALID_VALUE);
    c.srcArray = NULL;
    EXPECT(cuMemcpy3DPeer(&c), CUDA_ERROR_INVALID_VALUE);
    c.Height = 5;
    c.srcArray = array;
    EXPECT(cuMemcpy3DPeerAsync(&c, (CUstream)p), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemcpy3DPeer(NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DPeerAsync(NULL, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayDestroy(array));
    OK(cuMemFree(p));
    OK(cuMemFree(q));
}

static void access_of(CUcontext here, CUcontext there)
{
    CUatomicOperation operations[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_FLOAT_MAX};
    unsigned capabilities[2] = {7, 7};
    int value;

    for (int i = 0; i < 4; i++) {
        OK(cuDeviceCanAccessPeer(&value, i & 1, i >> 1));
        TRUE(value == 0);
    }
    EXPECT(cuDeviceCanAccessPeer(&value, 0, 2), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceCanAccessPeer(NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
    for (int attribute = CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK;
         attribute <= CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED; attribute++) {
        value = 5;
        OK(cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)attribute, 0, 1));
        TRUE(value == 0);
        EXPECT(cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)attribute, 1, 1), CUDA_ERROR_INVALID_DEVICE);
    }
    EXPECT(cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)6, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, -1, 1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 9), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 1));
    TRUE(capabilities[0] == 0 && capabilities[1] == 0);
    EXPECT(cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetP2PAtomicCapabilities(NULL, operations, 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetP2PAtomicCapabilities(capabilities, NULL, 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 0), CUDA_ERROR_INVALID_DEVICE);
    operations[1] = CU_ATOMIC_OPERATION_MAX;
    EXPECT(cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 1), CUDA_ERROR_INVALID_VALUE);

    EXPECT(cuCtxEnablePeerAccess(there, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    EXPECT(cuCtxEnablePeerAccess(there, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxEnablePeerAccess(here, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxDisablePeerAccess(there), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    EXPECT(cuCtxDisablePeerAccess((CUcontext)(uintptr_t)host), CUDA_ERROR_INVALID_CONTEXT);
}

static void processes(void)
{
    CUipcMemHandle memory = {{0}};
    CUipcEventHandle shared = {{0}};
    CUdeviceptr p, q;
    CUevent event, other;
    CUresult (*older)(CUdeviceptr *, CUipcMemHandle, unsigned);
    int value;

    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
    TRUE(value == 0);
    OK(cuMemAlloc(&p, 64));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT(cuIpcGetMemHandle(&memory, p), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuIpcGetMemHandle(&memory, p + 4), CUDA_ERROR_INVALID_VALUE); /* not the base */
    EXPECT(cuIpcGetMemHandle(&memory, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuIpcGetMemHandle(NULL, p), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuIpcOpenMemHandle(&q, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuIpcOpenMemHandle(&q, memory, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuIpcOpenMemHandle(NULL, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cuGetProcAddress("cuIpcOpenMemHandle", (void **)&older, 4010, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    EXPECT(older(&q, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(older(&q, memory, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuIpcGetEventHandle(&shared, event), CUDA_ERROR_INVALID_HANDLE); /* not made for it */
    EXPECT(cuIpcGetEventHandle(&shared, (CUevent)p), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuIpcGetEventHandle(NULL, event), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuIpcOpenEventHandle(&other, shared), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuIpcOpenEventHandle(NULL, shared), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    EXPECT(cuIpcGetMemHandle(&memory, p), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventDestroy(event));
}

int main(void)
{
    CUcontext here = start(), there, second;

    for (int i = 0; i < 256; i++)
        host[i] = (unsigned char)(i * 7 + 3);
    OK(cuDevicePrimaryCtxRetain(&there, 1));
    OK(cuCtxCreate_v2(&second, 0, 0));
    OK(cuCtxSetCurrent(here));
    copies(here, there);
    copies(here, second);
    copies(here, here);
    access_of(here, there);
    access_of(here, second);
    processes();
    OK(cuCtxDestroy(second));
    EXPECT(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxDisablePeerAccess(second), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuMemcpyPeer(0, second, 0, here, 0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxPopCurrent(NULL));
    OK(cuCtxSetCurrent(NULL));
    EXPECT(cuCtxEnablePeerAccess(there, 0), CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}
