/* Launches: everything CUDA refuses at once is refused here, then the packed arguments go on the ring. */
#include "capture.h"
#include "trace.h"

#include <string.h>

CUresult zl_launch_shape(const zl_function_entry *function, const unsigned grid[3], const unsigned block[3], unsigned shared)
{
    const int32_t *limits = zl_state.devices[function->context->device].attributes;
    const struct zl_function *info = &function->info;
    uint64_t threads = 1;

    for (int axis = 0; axis < 3; axis++) {
        if (!grid[axis] || grid[axis] > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis])
            return CUDA_ERROR_INVALID_VALUE;
        if (!block[axis] || block[axis] > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis])
            return CUDA_ERROR_INVALID_VALUE;
        if (info->required_block[0] && block[axis] != info->required_block[axis])
            return CUDA_ERROR_INVALID_VALUE;
        threads *= block[axis];
    }
    if (threads > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] ||
        (info->declared_threads && threads > info->declared_threads))
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > (unsigned)info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (shared > (unsigned)info->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* The parameter block that `extra` points to. */
static CUresult read_extra(const struct zl_function *info, void **extra, const void **buffer)
{
    const void *data = NULL;
    const size_t *size = NULL;

    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            data = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!info->parameter_bytes)
        return CUDA_SUCCESS;
    if (!data || !size || *size < info->parameter_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (*size > (info->parameter_bytes + 15u) / 16 * 16) /* a structure may be padded at its end */
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    *buffer = data;
    return CUDA_SUCCESS;
}

CUresult zl_launch_arguments(const zl_function_entry *function, void **kernelParams, void **extra, const void **buffer)
{
    *buffer = NULL;
    if (extra && kernelParams)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra)
        return read_extra(&function->info, extra, buffer);
    if (function->info.parameters && !kernelParams)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < function->info.parameters; i++)
        if (!kernelParams[i])
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

void zl_launch_pack(const zl_function_entry *function, void **kernelParams, const void *buffer, uint8_t *arguments)
{
    if (buffer) {
        memcpy(arguments, buffer, function->info.parameter_bytes);
        return;
    }
    for (uint32_t i = 0; i < function->info.parameters; i++) {
        const zl_parameter *parameter = &function->parameters[i];
        if (parameter->size == 8)        /* most of them */
            memcpy(arguments + parameter->offset, kernelParams[i], 8);
        else
            memcpy(arguments + parameter->offset, kernelParams[i], parameter->size);
    }
}

CUresult zl_cuLaunchKernel(zl_context *context, CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                           unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                           unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    const unsigned grid[3] = {gridDimX, gridDimY, gridDimZ}, block[3] = {blockDimX, blockDimY, blockDimZ};
    struct zl_cmd_launch *command;
    zl_function_entry *function;
    const void *buffer;
    uint64_t stream;
    CUresult result;

    if (zl_captured(hStream))
        return zl_capture_launch(f, grid, block, sharedMemBytes, hStream, kernelParams, extra);
    result = zl_use_stream(hStream, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = zl_function_use(context, f, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (function->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    result = zl_launch_shape(function, grid, block, sharedMemBytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = zl_launch_arguments(function, kernelParams, extra, &buffer);
    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_launch, context, ZL_TAIL_launch + function->info.parameter_bytes, false);
    if (!command)
        return zl_gone();
    command->function = function->handle;
    command->stream = stream;
    memcpy(command->grid, grid, sizeof grid);
    memcpy(command->block, block, sizeof block);
    command->shared = sharedMemBytes;
    command->size = function->info.parameter_bytes;
    zl_launch_pack(function, kernelParams, buffer, (uint8_t *)command + ZL_TAIL_launch);
    if (zl_tracing())
        zl_trace_launch(function, (uint8_t *)command + ZL_TAIL_launch);
    zl_note_launch(function);
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}
