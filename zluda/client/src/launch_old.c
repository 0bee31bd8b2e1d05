/* Launches as before CUDA 4: block shape, shared memory and parameters are set on the function, then it is launched
   (driver API, "Execution Control [DEPRECATED]"). */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETER_BYTES = 4096 };         /* as much as parameters took then */

struct zl_old_launch {
    unsigned block[3], shared;
    size_t size;
    uint8_t parameters[PARAMETER_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is set on any function */

/* The function's settings, with the lock held if that succeeds. */
static CUresult settings_of(zl_context *context, CUfunction function, struct zl_old_launch **settings)
{
    zl_function_entry *entry;
    CUresult result = zl_function_use(context, function, &entry);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (!entry->old && !(entry->old = calloc(1, sizeof *entry->old))) {
        pthread_mutex_unlock(&lock);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *settings = entry->old;
    return CUDA_SUCCESS;
}

CUresult zl_cuFuncSetBlockShape(zl_context *context, CUfunction hfunc, int x, int y, int z)
{
    const int32_t *limits = zl_state.devices[context->device].attributes;
    struct zl_old_launch *settings;
    CUresult result;

    if (x < 1 || y < 1 || z < 1 || x > limits[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] ||
        y > limits[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] || z > limits[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] ||
        (uint64_t)x * (uint64_t)y * (uint64_t)z > (uint64_t)limits[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
        return CUDA_ERROR_INVALID_VALUE;
    result = settings_of(context, hfunc, &settings);
    if (result != CUDA_SUCCESS)
        return result;
    settings->block[0] = (unsigned)x, settings->block[1] = (unsigned)y, settings->block[2] = (unsigned)z;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult zl_cuFuncSetSharedSize(zl_context *context, CUfunction hfunc, unsigned int bytes)
{
    struct zl_old_launch *settings;
    CUresult result = settings_of(context, hfunc, &settings);

    if (result != CUDA_SUCCESS)
        return result;
    settings->shared = bytes;            /* whether it is too much shows at the launch */
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult zl_cuParamSetSize(zl_context *context, CUfunction hfunc, unsigned int numbytes)
{
    struct zl_old_launch *settings;
    CUresult result;

    if (numbytes > PARAMETER_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    result = settings_of(context, hfunc, &settings);
    if (result != CUDA_SUCCESS)
        return result;
    settings->size = numbytes;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult zl_cuParamSetv(zl_context *context, CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    struct zl_old_launch *settings;
    CUresult result;

    if (!ptr || offset < 0 || offset > PARAMETER_BYTES || numbytes > (unsigned)(PARAMETER_BYTES - offset))
        return CUDA_ERROR_INVALID_VALUE;
    result = settings_of(context, hfunc, &settings);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(settings->parameters + offset, ptr, numbytes);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
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
    struct zl_old_launch copy, *settings;
    CUresult result = settings_of(context, f, &settings);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, copy.parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &copy.size,
                     CU_LAUNCH_PARAM_END};

    if (result != CUDA_SUCCESS)
        return result;
    copy = *settings;
    pthread_mutex_unlock(&lock);
    if (grid_width < 1 || grid_height < 1)
        return CUDA_ERROR_INVALID_VALUE;
    /* A block shape that was never set is 0, which no launch takes. */
    return zl_cuLaunchKernel(context, f, (unsigned)grid_width, (unsigned)grid_height, 1, copy.block[0], copy.block[1],
                             copy.block[2], copy.shared, hStream, NULL, extra);
}

CUresult zl_cuLaunchGrid(zl_context *context, CUfunction f, int grid_width, int grid_height)
{
    return zl_cuLaunchGridAsync(context, f, grid_width, grid_height, NULL);
}

CUresult zl_cuLaunch(zl_context *context, CUfunction f)
{
    return zl_cuLaunchGridAsync(context, f, 1, 1, NULL);
}
