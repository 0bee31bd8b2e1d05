/* Checkpoints of CUDA processes (driver API, "CUDA Checkpointing"): not offered; refused as the manual says. */
#include "client.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Whether `size` bytes, reserved for the future, are zero as they must be. */
static bool zeroed(const void *reserved, size_t size)
{
    const unsigned char *bytes = reserved;
    return !size || (!bytes[0] && !memcmp(bytes, bytes + 1, size - 1));
}

static CUresult refuse(int pid, bool valid)
{
    bool exists = pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
    return exists && valid ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
    (void)tid;
    return refuse(pid, true);
}

CUresult zl_cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
    (void)state;
    return refuse(pid, true);
}

CUresult zl_cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    return refuse(pid, !args || (!args->reserved0 && zeroed(args->reserved1, sizeof args->reserved1)));
}

CUresult zl_cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    return refuse(pid, !args || zeroed(args->reserved, sizeof args->reserved));
}

CUresult zl_cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    return refuse(pid, !args || !args->gpuPairsCount || args->gpuPairs);
}

CUresult zl_cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    return refuse(pid, !args || zeroed(args->reserved, sizeof args->reserved));
}

CUresult zl_cuCheckpointOperationComplete(CUcheckpointOperationHandle handle)
{
    (void)handle;                        /* no operation waits for its completion */
    return CUDA_ERROR_INVALID_VALUE;
}
