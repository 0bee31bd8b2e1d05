/* What no device here has is refused: by the code of the manual, after the checks of the manual. */
#include "check.h"

static void multicast(void)
{
    CUmulticastObjectProp good = {.numDevices = 1, .size = 1 << 21}, none = {.size = 1 << 21}, empty = {.numDevices = 1};
    CUmulticastObjectProp flags = {.numDevices = 1, .size = 1 << 21, .flags = 1}, many = {.numDevices = 99, .size = 4096};
    CUmemGenericAllocationHandle handle = 7;
    size_t granularity;

    EXPECT(cuMulticastCreate(&handle, &good), CUDA_ERROR_NOT_SUPPORTED);
    TRUE(handle == 7);
    EXPECT(cuMulticastCreate(NULL, &good), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastCreate(&handle, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastCreate(&handle, &none), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastCreate(&handle, &empty), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastCreate(&handle, &flags), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastCreate(&handle, &many), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastGetGranularity(&granularity, &good, CU_MULTICAST_GRANULARITY_MINIMUM), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuMulticastGetGranularity(NULL, &good, CU_MULTICAST_GRANULARITY_MINIMUM), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastGetGranularity(&granularity, &good, (CUmulticastGranularity_flags)2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastAddDevice(handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastAddDevice(handle, 99), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuMulticastBindMem(handle, 0, handle, 0, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastBindMem_v2(handle, 99, 0, handle, 0, 4096, 0), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuMulticastBindMem_v2(handle, 0, 0, handle, 0, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastBindAddr(handle, 0, 4096, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastBindAddr_v2(handle, 0, 0, 4096, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastBindAddr_v2(handle, -1, 0, 4096, 4096, 0), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuMulticastUnbind(handle, 0, 0, 4096), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMulticastUnbind(handle, 99, 0, 4096), CUDA_ERROR_INVALID_DEVICE);
}

static void endpoints(void)
{
    CUlogicalEndpointProp good = {.type = CU_LOGICAL_ENDPOINT_TYPE_UNICAST, .size = 4096}, bad = good, none = {.size = 4096};
    CUlogicalEndpointId id = 5;
    cuuint64_t alignment, size;
    int status;

    bad.unicast.device = 99;
    EXPECT(cuLogicalEndpointIdReserve(&id, 1), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuLogicalEndpointIdReserve(&id, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointIdReserve(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointIdRelease(id, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointGetLimits(&alignment, &size, &good), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuLogicalEndpointGetLimits(&alignment, &size, &bad), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointGetLimits(&alignment, &size, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointCreate(id, &good), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuLogicalEndpointCreate(id, &none), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointCreate(id, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointDestroy(id), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointAddDevice(id, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointQuery(id, 1, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointBindAddr(id, 0, 0, &id, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointBindMem(id, 0, 0, 0, 0, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointUnbind(id, 0, 0, 4096), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointExport(&good, id, CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogicalEndpointImport(id, &good, CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuLogicalEndpointImport(id, NULL, CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC), CUDA_ERROR_INVALID_VALUE);
}

static void CUDA_CB notified(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
    (void)info, (void)data, (void)handle;
}

static void device(void)
{
    CUasyncCallbackHandle callback = NULL;
    CUcliqueInfo clique;
    CUuuid uuid;
    size_t count = 1;
    int list;

    EXPECT(cuDeviceGetCliqueCount(&count, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuDeviceGetCliqueCount(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetCliqueCount(&count, 99), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetCliqueInfo(&clique, &count, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuDeviceGetCliqueInfo(&clique, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetFabricClusterUuid(&uuid, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuDeviceGetFabricClusterUuid(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetNvSciSyncAttributes(&list, 0, CUDA_NVSCISYNC_ATTR_WAIT), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuDeviceGetNvSciSyncAttributes(&list, 99, CUDA_NVSCISYNC_ATTR_WAIT), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetNvSciSyncAttributes(&list, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetNvSciSyncAttributes(&list, 0, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetNvSciSyncAttributes(NULL, 0, CUDA_NVSCISYNC_ATTR_SIGNAL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceRegisterAsyncNotification(0, notified, NULL, &callback), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuDeviceRegisterAsyncNotification(99, notified, NULL, &callback), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceRegisterAsyncNotification(0, NULL, NULL, &callback), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceRegisterAsyncNotification(0, notified, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceUnregisterAsyncNotification(0, callback), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceUnregisterAsyncNotification(99, callback), CUDA_ERROR_INVALID_DEVICE);
}

static void green(CUcontext context)
{
    CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_SM}, result[2];
    CU_DEV_SM_RESOURCE_GROUP_PARAMS group = {.smCount = 2};
    CUdevResourceDesc desc = NULL;
    CUgreenCtx made = NULL;
    CUcontext converted;
    CUstream stream;
    CUevent event;
    unsigned count = 2;
    unsigned long long id;

    EXPECT(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    EXPECT(cuDeviceGetDevResource(99, &resource, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGetDevResource(0, NULL, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxGetDevResource(context, &resource, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    EXPECT(cuCtxGetDevResource(NULL, &resource, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxGetDevResource(context, NULL, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamGetDevResource(NULL, &resource, CU_DEV_RESOURCE_TYPE_WORKQUEUE), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    EXPECT(cuStreamGetDevResource((CUstream)context, &resource, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuGreenCtxGetDevResource(made, &resource, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuGreenCtxGetDevResource(made, &resource, (CUdevResourceType)5), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    EXPECT(cuDevSmResourceSplitByCount(result, &count, &resource, NULL, 0, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    EXPECT(cuDevSmResourceSplitByCount(result, NULL, &resource, NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevSmResourceSplitByCount(result, &count, NULL, NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevSmResourceSplitByCount(result, &count, &resource, NULL, 8, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevSmResourceSplit(result, 1, &resource, NULL, 0, &group), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    EXPECT(cuDevSmResourceSplit(result, 1, NULL, NULL, 0, &group), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevSmResourceSplit(result, 1, &resource, NULL, 1, &group), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevSmResourceSplit(result, 1, &resource, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevResourceGenerateDesc(&desc, &resource, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    EXPECT(cuDevResourceGenerateDesc(&desc, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevResourceGenerateDesc(&desc, &resource, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevResourceGenerateDesc(NULL, &resource, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGreenCtxCreate(&made, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGreenCtxCreate(&made, (CUdevResourceDesc)&resource, 0, 1), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuGreenCtxCreate(&made, (CUdevResourceDesc)&resource, 99, 1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuGreenCtxCreate(&made, (CUdevResourceDesc)&resource, 0, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGreenCtxCreate(NULL, (CUdevResourceDesc)&resource, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGreenCtxDestroy((CUgreenCtx)context), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxFromGreenCtx(&converted, (CUgreenCtx)context), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxFromGreenCtx(NULL, (CUgreenCtx)context), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGreenCtxGetId(NULL, &id), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuGreenCtxGetId(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventCreate(&event, 0));
    EXPECT(cuGreenCtxRecordEvent(NULL, event), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuGreenCtxWaitEvent(NULL, event), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuGreenCtxStreamCreate(&stream, NULL, CU_STREAM_NON_BLOCKING, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuGreenCtxStreamCreate(&stream, NULL, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGreenCtxStreamCreate(NULL, NULL, CU_STREAM_NON_BLOCKING, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventDestroy(event));
}

static void checkpoint(void)
{
    CUcheckpointLockArgs lock = {0}, wrong_lock = {.reserved1 = {0, 0, 1}};
    CUcheckpointCheckpointArgs checkpoint = {0}, wrong_checkpoint = {.reserved = {1}};
    CUcheckpointRestoreArgs restore = {0}, wrong_restore = {.gpuPairsCount = 1};
    CUcheckpointUnlockArgs unlock = {0}, wrong_unlock = {.reserved = {1}};
    CUprocessState state;
    int self = (int)getpid(), tid;

    EXPECT(cuCheckpointProcessGetRestoreThreadId(self, &tid), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuCheckpointProcessGetRestoreThreadId(self, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointProcessGetRestoreThreadId(0, &tid), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointProcessGetRestoreThreadId(0x7FFFFFFF, &tid), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointProcessGetState(self, &state), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuCheckpointProcessGetState(-1, &state), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointProcessGetState(self, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointProcessLock(self, &lock), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuCheckpointProcessLock(self, NULL), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuCheckpointProcessLock(self, &wrong_lock), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointProcessCheckpoint(self, &checkpoint), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuCheckpointProcessCheckpoint(self, &wrong_checkpoint), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointProcessRestore(self, &restore), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuCheckpointProcessRestore(self, &wrong_restore), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointProcessUnlock(self, &unlock), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuCheckpointProcessUnlock(self, &wrong_unlock), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCheckpointOperationComplete(NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    CUcontext context;
    CUmulticastObjectProp prop = {.numDevices = 1, .size = 1 << 21};
    CUmemGenericAllocationHandle handle;

    EXPECT(cuMulticastCreate(&handle, &prop), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuCheckpointProcessLock((int)getpid(), NULL), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    context = start();
    multicast();
    endpoints();
    device();
    green(context);
    checkpoint();
    return 0;
}
