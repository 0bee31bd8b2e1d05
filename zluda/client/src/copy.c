/* Copies and fills. Device memory lies in the window, so a copy to or from it is this process's memcpy once the stream's
   order allows it; only copies inside the window are the driver's work. */
#include "capture.h"

#include <string.h>

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

CUresult zl_place(uint64_t address, size_t size, bool *device)
{
    uint64_t last;

    *device = zl_in_window(address);
    if (*device)
        return zl_range_holds(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!address || size >> 56 || __builtin_add_overflow(address, size - 1, &last))
        return CUDA_ERROR_INVALID_VALUE;
    return last < zl_state.window_base || address > zl_state.window_base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_copy_post(zl_context *context, CUstream stream, uint64_t destination, uint64_t source, size_t size)
{
    struct zl_cmd_copy *command;
    uint64_t wire;
    CUresult result = zl_use_stream(stream, &context, &wire);

    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_copy, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->stream = wire;
    command->destination = destination;
    command->source = source;
    command->size = size;
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

CUresult zl_copy_write(zl_context *context, CUstream stream, uint64_t destination, const void *data, size_t size)
{
    struct zl_cmd_write *command;
    uint64_t wire;
    CUresult result = zl_use_stream(stream, &context, &wire);

    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_write, context, ZL_TAIL_write + size, false);
    if (!command)
        return zl_gone();
    command->stream = wire;
    command->destination = destination;
    command->size = size;
    memcpy((uint8_t *)command + ZL_TAIL_write, data, size);
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

/* Memory that the host reads itself counts as the host's in a synchronous copy: its bytes are there when the call returns.
   So do those of memory with CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
bool zl_pinned(uint64_t address)
{
    zl_range range;
    return zl_range_find(address, &range) &&
           (range.kind == ZL_RANGE_HOST || range.kind == ZL_RANGE_MANAGED || range.host || range.sync_memops);
}

static CUresult copy(zl_context *context, uint64_t destination, uint64_t source, size_t size, CUstream stream, bool async)
{
    bool to_device, from_device;
    CUresult result;

    if (!size)
        return CUDA_SUCCESS;
    if ((result = zl_place(destination, size, &to_device)) != CUDA_SUCCESS ||
        (result = zl_place(source, size, &from_device)) != CUDA_SUCCESS)
        return result;
    if (async && zl_captured(stream))
        return zl_capture_copy(stream, destination, source, size);
    if (to_device && from_device) {
        bool host = zl_pinned(destination) || zl_pinned(source);
        if (async || !host)
            return zl_copy_post(context, stream, destination, source, size);
    } else if (async && to_device && size <= ZL_TRAVELS_ALONG) {
        return zl_copy_write(context, stream, destination, (const void *)(uintptr_t)source, size);
    }
    result = zl_turn(context, stream);
    if (result == CUDA_SUCCESS)
        memmove((void *)(uintptr_t)destination, (const void *)(uintptr_t)source, size);
    return result;
}

CUresult zl_cuMemcpy(zl_context *context, CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream default_stream)
{
    return copy(context, dst, src, ByteCount, default_stream, false);
}

CUresult zl_cuMemcpyAsync(zl_context *context, CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy(context, dst, src, ByteCount, hStream, true);
}

static bool device_side(uint64_t address, size_t size)
{
    return !size || zl_in_window(address);
}

CUresult zl_cuMemcpyHtoD_v2(zl_context *context, CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                            CUstream default_stream)
{
    if (!device_side(dstDevice, ByteCount))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(context, dstDevice, address_of(srcHost), ByteCount, default_stream, false);
}

CUresult zl_cuMemcpyDtoH_v2(zl_context *context, void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream default_stream)
{
    if (!device_side(srcDevice, ByteCount))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(context, address_of(dstHost), srcDevice, ByteCount, default_stream, false);
}

CUresult zl_cuMemcpyDtoD_v2(zl_context *context, CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                            CUstream default_stream)
{
    return zl_cuMemcpyDtoDAsync_v2(context, dstDevice, srcDevice, ByteCount, default_stream);
}

CUresult zl_cuMemcpyHtoDAsync_v2(zl_context *context, CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                 CUstream hStream)
{
    if (!device_side(dstDevice, ByteCount))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(context, dstDevice, address_of(srcHost), ByteCount, hStream, true);
}

CUresult zl_cuMemcpyDtoHAsync_v2(zl_context *context, void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    if (!device_side(srcDevice, ByteCount))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(context, address_of(dstHost), srcDevice, ByteCount, hStream, true);
}

CUresult zl_cuMemcpyDtoDAsync_v2(zl_context *context, CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                 CUstream hStream)
{
    if (!device_side(dstDevice, ByteCount) || !device_side(srcDevice, ByteCount))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(context, dstDevice, srcDevice, ByteCount, hStream, true);
}

/* --- fills --- */

static CUresult fill(zl_context *context, CUstream stream, uint64_t destination, size_t pitch, unsigned value, unsigned bytes,
                     size_t width, size_t height)
{
    struct zl_cmd_fill *command;
    size_t row, extent;
    uint64_t wire;
    CUresult result;

    if (!width || !height)
        return CUDA_SUCCESS;
    if (__builtin_mul_overflow(width, (size_t)bytes, &row) || destination % bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (height == 1)
        pitch = row;
    else if (pitch > (size_t)zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MAX_PITCH))
        return CUDA_ERROR_INVALID_VALUE;
    if (pitch % bytes || pitch < row || __builtin_mul_overflow(height - 1, pitch, &extent) ||
        __builtin_add_overflow(extent, row, &extent) || !zl_in_window(destination) || !zl_range_holds(destination, extent))
        return CUDA_ERROR_INVALID_VALUE;
    if (zl_captured(stream))
        return zl_capture_fill(stream, destination, pitch, value, bytes, width, height);
    result = zl_use_stream(stream, &context, &wire);
    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_fill, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->stream = wire;
    command->destination = destination;
    command->pitch = pitch;
    command->width = width;
    command->height = height;
    command->value = value;
    command->value_bytes = bytes;
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

/* A synchronous fill of pinned memory is done when it returns; of device memory it is as good as asynchronous. */
static CUresult fill_now(zl_context *context, CUstream stream, uint64_t destination, size_t pitch, unsigned value,
                         unsigned bytes, size_t width, size_t height)
{
    CUresult result = fill(context, stream, destination, pitch, value, bytes, width, height);
    return result == CUDA_SUCCESS && width && height && zl_pinned(destination) ? zl_turn(context, stream) : result;
}

CUresult zl_cuMemsetD8_v2(zl_context *context, CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream default_stream)
{
    return fill_now(context, default_stream, dstDevice, 0, uc, 1, N, 1);
}

CUresult zl_cuMemsetD16_v2(zl_context *context, CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream default_stream)
{
    return fill_now(context, default_stream, dstDevice, 0, us, 2, N, 1);
}

CUresult zl_cuMemsetD32_v2(zl_context *context, CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream default_stream)
{
    return fill_now(context, default_stream, dstDevice, 0, ui, 4, N, 1);
}

CUresult zl_cuMemsetD8Async(zl_context *context, CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return fill(context, hStream, dstDevice, 0, uc, 1, N, 1);
}

CUresult zl_cuMemsetD16Async(zl_context *context, CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return fill(context, hStream, dstDevice, 0, us, 2, N, 1);
}

CUresult zl_cuMemsetD32Async(zl_context *context, CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return fill(context, hStream, dstDevice, 0, ui, 4, N, 1);
}

CUresult zl_cuMemsetD2D8_v2(zl_context *context, CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                            size_t Height, CUstream default_stream)
{
    return fill_now(context, default_stream, dstDevice, dstPitch, uc, 1, Width, Height);
}

CUresult zl_cuMemsetD2D16_v2(zl_context *context, CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                             size_t Height, CUstream default_stream)
{
    return fill_now(context, default_stream, dstDevice, dstPitch, us, 2, Width, Height);
}

CUresult zl_cuMemsetD2D32_v2(zl_context *context, CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                             size_t Height, CUstream default_stream)
{
    return fill_now(context, default_stream, dstDevice, dstPitch, ui, 4, Width, Height);
}

CUresult zl_cuMemsetD2D8Async(zl_context *context, CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                              size_t Height, CUstream hStream)
{
    return fill(context, hStream, dstDevice, dstPitch, uc, 1, Width, Height);
}

CUresult zl_cuMemsetD2D16Async(zl_context *context, CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                               size_t Height, CUstream hStream)
{
    return fill(context, hStream, dstDevice, dstPitch, us, 2, Width, Height);
}

CUresult zl_cuMemsetD2D32Async(zl_context *context, CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                               size_t Height, CUstream hStream)
{
    return fill(context, hStream, dstDevice, dstPitch, ui, 4, Width, Height);
}
