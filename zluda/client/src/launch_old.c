/* The launches of CUDA 1 to 3: shape, shared memory and parameters are set one by one, and stay with the function. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETER_BYTES = 4096 };         /* the most that a kernel may have, as the manual has it for these devices */

struct zl_old_launch {
    unsigned block[3], shared, size;
    uint8_t parameters[PARAMETER_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void zl_launch_forget(zl_function_entry *function)
{
    free(function->old);
    function->old = NULL;
}

/* What is set for a function, with the lock held; the block is one thread until told otherwise. */
static CUresult find(zl_context *context, CUfunction handle, zl_function_entry **function, struct zl_old_launch **old)
{
    CUresult result = zl_function_use(context, handle, function);

    pthread_mutex_lock(&lock);
    if (result == CUDA_SUCCESS && !(*function)->old) {
        (*function)->old = calloc(1, sizeof **old);
        if ((*function)->old)
            (*function)->old->block[0] = (*function)->old->block[1] = (*function)->old->block[2] = 1;
        else
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS)
        pthread_mutex_unlock(&lock);
    else
        *old = (*function)->old;
    return result;
}

CUresult zl_cuFuncSetBlockShape(zl_context *context, CUfunction hfunc, int x, int y, int z)
{
    const int shape[3] = {x, y, z};
    zl_function_entry *function;
    struct zl_old_launch *old;
    int64_t threads = 1;
    CUresult result = find(context, hfunc, &function, &old);

    if (result != CUDA_SUCCESS)
        return result;
    for (int axis = 0; axis < 3; axis++) {
        if (shape[axis] <= 0 ||
            shape[axis] > zl_device_attribute(function->context->device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis))
            result = CUDA_ERROR_INVALID_VALUE;
        else
            threads *= shape[axis];
    }
    if (threads > zl_device_attribute(function->context->device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
        result = CUDA_ERROR_INVALID_VALUE;
    for (int axis = 0; result == CUDA_SUCCESS && axis < 3; axis++)
        old->block[axis] = (unsigned)shape[axis];
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult zl_cuFuncSetSharedSize(zl_context *context, CUfunction hfunc, unsigned int bytes)
{
    zl_function_entry *function;
    struct zl_old_launch *old;
    CUresult result = find(context, hfunc, &function, &old);

    if (result != CUDA_SUCCESS)
        return result;
    if (bytes > (unsigned)function->info.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
        result = CUDA_ERROR_INVALID_VALUE;
    else
        old->shared = bytes;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult zl_cuParamSetSize(zl_context *context, CUfunction hfunc, unsigned int numbytes)
{
    zl_function_entry *function;
    struct zl_old_launch *old;
    CUresult result = find(context, hfunc, &function, &old);

    if (result != CUDA_SUCCESS)
        return result;
    if (numbytes > PARAMETER_BYTES)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        old->size = numbytes;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult zl_cuParamSetv(zl_context *context, CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    zl_function_entry *function;
    struct zl_old_launch *old;
    CUresult result = find(context, hfunc, &function, &old);

    if (result != CUDA_SUCCESS)
        return result;
    if (offset < 0 || offset > PARAMETER_BYTES || numbytes > PARAMETER_BYTES - (unsigned)offset || (numbytes && !ptr))
        result = CUDA_ERROR_INVALID_VALUE;
    else if (numbytes)
        memcpy(old->parameters + offset, ptr, numbytes);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult zl_cuParamSeti(zl_context *context, CUfunction hfunc, int offset, unsigned int value)
{
    return zl_cuParamSetv(context, hfunc, offset, &value, sizeof value);
}

CUresult zl_cuParamSetf(zl_context *context, CUfunction hfunc, int offset, float value)
{
    return zl_cuParamSetv(context, hfunc, offset, &value, sizeof value);
}

CUresult zl_cuLaunchGridAsync(zl_context *context, CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    struct zl_old_launch *old, now;
    zl_function_entry *function;
    size_t size;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, now.parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CUresult result = find(context, f, &function, &old);

    if (result != CUDA_SUCCESS)
        return result;
    now = *old;
    pthread_mutex_unlock(&lock);
    size = now.size;
    if (grid_width <= 0 || grid_height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return zl_cuLaunchKernel(context, f, (unsigned)grid_width, (unsigned)grid_height, 1, now.block[0], now.block[1],
                             now.block[2], now.shared, hStream, NULL, extra);
}

CUresult zl_cuLaunchGrid(zl_context *context, CUfunction f, int grid_width, int grid_height)
{
    return zl_cuLaunchGridAsync(context, f, grid_width, grid_height, CU_STREAM_LEGACY);
}

CUresult zl_cuLaunch(zl_context *context, CUfunction f)
{
    return zl_cuLaunchGridAsync(context, f, 1, 1, CU_STREAM_LEGACY);
}

CUresult zl_cuFuncSetSharedMemConfig(zl_context *context, CUfunction hfunc, CUsharedconfig config)
{
    zl_function_entry *function;

    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return zl_function_use(context, hfunc, &function); /* "nothing on devices with fixed shared memory bank size" */
}
