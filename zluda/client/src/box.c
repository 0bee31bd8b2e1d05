/* 2D and 3D copies: what both sides are, and the copy itself. An array is linear memory with a pitch of its own. */
#include "capture.h"

#include <string.h>

/* The sum of `a * b + c`, or that there is none. */
static bool multiply_add(size_t a, size_t b, size_t c, size_t *sum)
{
    return !__builtin_mul_overflow(a, b, sum) && !__builtin_add_overflow(*sum, c, sum);
}

/* Bytes from the first byte of a box to behind its last. */
static bool span(const struct zl_side *side, zl_box box, size_t *bytes)
{
    size_t rows;
    return multiply_add(box.depth - 1, side->rows, box.height - 1, &rows) && multiply_add(rows, side->pitch, box.width, bytes);
}

static CUresult array_side(const zl_operand *operand, zl_box box, struct zl_side *side)
{
    const zl_array *array = zl_handle_get(ZL_ARRAY, (uint64_t)operand->array);
    size_t x, y, z;

    if (!array || !array->element || operand->x % array->element || box.width % array->element)
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_add_overflow(operand->x, box.width, &x) || __builtin_add_overflow(operand->y, box.height, &y) ||
        __builtin_add_overflow(operand->z, box.depth, &z))
        return CUDA_ERROR_INVALID_VALUE;
    if (x > array->descriptor.Width * array->element || y > zl_array_rows(array) || z > zl_array_slices(array))
        return CUDA_ERROR_INVALID_VALUE;
    side->pitch = array->pitch;
    side->rows = zl_array_rows(array);
    side->start = array->address + (operand->z * side->rows + operand->y) * side->pitch + operand->x;
    side->device = true;
    return CUDA_SUCCESS;
}

static CUresult linear_side(zl_context *context, const zl_operand *operand, zl_box box, struct zl_side *side)
{
    size_t largest = (size_t)zl_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    size_t row, rows, offset, bytes;

    if (!operand->base || (operand->type == CU_MEMORYTYPE_DEVICE && !zl_in_window(operand->base)))
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_add_overflow(operand->x, box.width, &row) || __builtin_add_overflow(operand->y, box.height, &rows))
        return CUDA_ERROR_INVALID_VALUE;
    if (operand->pitch && (operand->pitch < row || operand->pitch > largest))
        return CUDA_ERROR_INVALID_VALUE;
    if (operand->rows && operand->rows < rows)
        return CUDA_ERROR_INVALID_VALUE;
    side->pitch = operand->pitch ? operand->pitch : row;
    side->rows = operand->rows ? operand->rows : rows;
    if (side->pitch > largest && (box.height > 1 || box.depth > 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (!multiply_add(operand->z, side->rows, operand->y, &offset) || !multiply_add(offset, side->pitch, operand->x, &offset) ||
        __builtin_add_overflow(operand->base, offset, &side->start) || !span(side, box, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return zl_place(side->start, bytes, &side->device);
}

static CUresult find_side(zl_context *context, const zl_operand *operand, zl_box box, struct zl_side *side)
{
    switch (operand->type) {
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        return linear_side(context, operand, box, side);
    case CU_MEMORYTYPE_ARRAY:
        return array_side(operand, box, side);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult zl_box_check(zl_context *context, const zl_operand *to, const zl_operand *from, zl_box box, zl_box_copy *copy)
{
    CUresult result = find_side(context, to, box, &copy->to);

    copy->box = box;
    return result == CUDA_SUCCESS ? find_side(context, from, box, &copy->from) : result;
}

static CUresult post(zl_context *context, const zl_box_copy *copy, CUstream stream)
{
    struct zl_cmd_copy_3d *command;
    uint64_t wire;
    CUresult result = zl_use_stream(stream, &context, &wire);

    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_copy_3d, context, sizeof *command, false);
    if (!command)
        return zl_gone();
    command->stream = wire;
    command->destination = copy->to.start;
    command->destination_pitch = copy->to.pitch;
    command->destination_height = copy->to.rows;
    command->source = copy->from.start;
    command->source_pitch = copy->from.pitch;
    command->source_height = copy->from.rows;
    command->width = copy->box.width;
    command->height = copy->box.height;
    command->depth = copy->box.depth;
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

void zl_box_move(const zl_box_copy *copy)
{
    for (size_t z = 0; z < copy->box.depth; z++)
        for (size_t y = 0; y < copy->box.height; y++)
            memmove((void *)(uintptr_t)(copy->to.start + (z * copy->to.rows + y) * copy->to.pitch),
                    (const void *)(uintptr_t)(copy->from.start + (z * copy->from.rows + y) * copy->from.pitch), copy->box.width);
}

CUresult zl_box_run(zl_context *context, const zl_box_copy *copy, CUstream stream, enum zl_copy_mode mode)
{
    const struct zl_side *to = &copy->to, *from = &copy->from;
    bool one_row = copy->box.height == 1 && copy->box.depth == 1;
    CUresult result;

    if (to->device && from->device && (mode != ZL_COPY_NOW || (!zl_pinned(to->start) && !zl_pinned(from->start))))
        return one_row ? zl_copy_post(context, stream, to->start, from->start, copy->box.width) : post(context, copy, stream);
    if (mode == ZL_COPY_ASYNC && to->device && !from->device && one_row && copy->box.width <= ZL_TRAVELS_ALONG)
        return zl_copy_write(context, stream, to->start, (const void *)(uintptr_t)from->start, copy->box.width);
    result = zl_turn(context, stream);
    if (result == CUDA_SUCCESS)
        zl_box_move(copy);
    return result;
}

CUresult zl_box_copy_all(zl_context *context, const zl_operand *to, const zl_operand *from, zl_box box, CUstream stream,
                         enum zl_copy_mode mode)
{
    zl_box_copy copy;
    CUresult result;

    if (!box.width || !box.height || !box.depth)
        return CUDA_SUCCESS;
    result = zl_box_check(context, to, from, box, &copy);
    if (result == CUDA_SUCCESS && mode != ZL_COPY_NOW && zl_captured(stream))
        return zl_capture_box(stream, to, from, box);
    return result == CUDA_SUCCESS ? zl_box_run(context, &copy, stream, mode) : result;
}
