/* CUDA arrays: linear device memory with a pitch of its own and no address that a program sees. */
#include "client.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 64, PLANE = 512 };          /* bytes that rows and planes are aligned to */

/* --- shapes --- */

enum shape { LINE, PLANE_2D, VOLUME, LINES, PLANES, CUBEMAP, CUBEMAPS };

struct extent {
    size_t width, height, depth;
};

/* The manual's table of valid extents, with the numbers of the CUDA programming guide for compute capability 8.0. They
   stand here because the attributes it names are 0 until textures and surfaces are built: arrays can be used without. */
static const struct extent texture[] = {
    [LINE] = {131072, 0, 0},
    [PLANE_2D] = {131072, 65536, 0},
    [VOLUME] = {16384, 16384, 16384},
    [LINES] = {32768, 0, 2048},
    [PLANES] = {32768, 32768, 2048},
    [CUBEMAP] = {32768, 32768, 6},
    [CUBEMAPS] = {32768, 32768, 2046},
};
static const struct extent surface[] = {
    [LINE] = {32768, 0, 0},
    [PLANE_2D] = {131072, 65536, 0},
    [VOLUME] = {16384, 16384, 16384},
    [LINES] = {32768, 0, 2048},
    [PLANES] = {32768, 32768, 2048},
    [CUBEMAP] = {32768, 32768, 6},
    [CUBEMAPS] = {32768, 32768, 2046},
};
static const struct extent volume_alternate = {8192, 8192, 32768}, gather = {32768, 32768, 0}, line_mipmapped = {32768, 0, 0},
                           plane_mipmapped = {32768, 32768, 0};

static bool within(const CUDA_ARRAY3D_DESCRIPTOR *d, const struct extent *most)
{
    return d->Width <= most->width && d->Height <= most->height && d->Depth <= most->depth;
}

/* What the extents and flags together mean, or that they mean nothing. */
static bool shape_of(const CUDA_ARRAY3D_DESCRIPTOR *d, enum shape *shape)
{
    bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;

    if (!d->Width)
        return false;
    if (d->Flags & CUDA_ARRAY3D_CUBEMAP) {
        *shape = layered ? CUBEMAPS : CUBEMAP;
        return d->Width == d->Height && d->Depth && (layered ? d->Depth % 6 == 0 : d->Depth == 6);
    }
    if (layered) {
        *shape = d->Height ? PLANES : LINES;
        return d->Depth != 0;
    }
    *shape = d->Depth ? VOLUME : d->Height ? PLANE_2D : LINE;
    return d->Height || !d->Depth;
}

CUresult zl_array_check(const CUDA_ARRAY3D_DESCRIPTOR *d, bool mipmapped)
{
    /* Sparse arrays, deferred mapping and the graphics flags: CU_DEVICE_ATTRIBUTE_*_SUPPORTED is 0. */
    const unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
    const zl_plane *planes;
    unsigned element, count;
    enum shape shape;
    CUresult result;

    if ((d->Flags & ~known) || !shape_of(d, &shape))
        return CUDA_ERROR_INVALID_VALUE;
    if (mipmapped && (shape == LINE || shape == PLANE_2D)) {
        if (!within(d, shape == LINE ? &line_mipmapped : &plane_mipmapped))
            return CUDA_ERROR_INVALID_VALUE;
    } else if (!within(d, &texture[shape]) && !(shape == VOLUME && within(d, &volume_alternate))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((d->Flags & CUDA_ARRAY3D_SURFACE_LDST) && !within(d, &surface[shape]))
        return CUDA_ERROR_INVALID_VALUE;
    if ((d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) && (shape != PLANE_2D || !within(d, &gather)))
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_format_find(d->Format, d->NumChannels, &element, &planes, &count);
    if (result != CUDA_SUCCESS)
        return result;
    if (count && (shape != PLANE_2D || mipmapped)) /* a picture */
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (d->Width % (1u << planes[i].narrower) || d->Height % (1u << planes[i].lower))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

size_t zl_array_rows(const zl_array *array)
{
    return array->descriptor.Height ? array->descriptor.Height : 1;
}

size_t zl_array_slices(const zl_array *array)
{
    return array->descriptor.Depth ? array->descriptor.Depth : 1;
}

/* --- storage --- */

CUresult zl_storage_allocate(zl_context *context, size_t size, uint64_t *address)
{
    struct zl_memory_allocate_reply reply;
    struct zl_cmd_memory_allocate *command = zl_begin(ZL_OP_memory_allocate, context, sizeof *command, true);
    CUresult result;

    if (!command)
        return zl_gone();
    command->size = size;
    result = zl_call(&command->header, &reply, sizeof reply, NULL);
    if (result == CUDA_SUCCESS)
        *address = reply.address;
    return result;
}

CUresult zl_storage_free(zl_context *context, uint64_t address)
{
    struct zl_cmd_memory_free *command = zl_begin(ZL_OP_memory_free, context, sizeof *command, true);

    if (!command)
        return zl_gone();
    command->address = address;
    return zl_call(&command->header, NULL, 0, NULL);
}

/* --- arrays --- */

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static zl_array *find(CUarray handle)
{
    return zl_handle_get(ZL_ARRAY, (uint64_t)handle);
}

zl_array *zl_array_new(zl_context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, bool part, uint64_t *handle, size_t *size)
{
    zl_array *array = calloc(1, sizeof *array);
    const zl_plane *planes;

    if (!array)
        return NULL;
    array->context = context;
    array->descriptor = *descriptor;
    array->part = part;
    zl_format_find(descriptor->Format, descriptor->NumChannels, &array->element, &planes, &array->planes);
    array->pitch = round_up(descriptor->Width * array->element, ROW);
    *size = array->pitch * zl_array_rows(array) * zl_array_slices(array);
    *handle = zl_handle_new(ZL_ARRAY, array);
    if (!*handle) {
        free(array);
        return NULL;
    }
    for (unsigned i = 0; i < array->planes; i++) {
        CUDA_ARRAY3D_DESCRIPTOR d = *descriptor;
        uint64_t plane_handle;
        size_t plane_size;
        zl_array *plane;
        d.Width >>= planes[i].narrower;
        d.Height >>= planes[i].lower;
        d.Format = planes[i].format;
        d.NumChannels = planes[i].channels;
        plane = zl_array_new(context, &d, true, &plane_handle, &plane_size);
        if (!plane) {
            zl_array_forget(*handle);
            return NULL;
        }
        plane->address = *size;
        array->plane[i] = (CUarray)plane_handle;
        *size += round_up(plane_size, PLANE);
    }
    return array;
}

void zl_array_place(zl_array *array, uint64_t address)
{
    array->address += address;
    for (unsigned i = 0; i < array->planes; i++) {
        zl_array *plane = find(array->plane[i]);
        if (plane)
            plane->address += address;
    }
}

void zl_array_forget(uint64_t handle)
{
    zl_array *array = zl_handle_remove(ZL_ARRAY, handle);

    for (unsigned i = 0; array && i < array->planes; i++)
        zl_array_forget((uint64_t)array->plane[i]);
    free(array);
}

CUresult zl_cuArray3DCreate_v2(zl_context *context, CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    uint64_t handle, address;
    zl_array *array;
    CUresult result;
    size_t size;

    if (!pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    descriptor = *pAllocateArray;
    result = zl_array_check(&descriptor, false);
    if (result != CUDA_SUCCESS)
        return result;
    array = zl_array_new(context, &descriptor, false, &handle, &size);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = zl_storage_allocate(context, size, &address);
    if (result != CUDA_SUCCESS) {
        zl_array_forget(handle);
        return result;
    }
    zl_array_place(array, address);
    *pHandle = (CUarray)handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuArrayCreate_v2(zl_context *context, CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {0};

    if (!pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    descriptor.Width = pAllocateArray->Width;
    descriptor.Height = pAllocateArray->Height;
    descriptor.Format = pAllocateArray->Format;
    descriptor.NumChannels = pAllocateArray->NumChannels;
    return zl_cuArray3DCreate_v2(context, pHandle, &descriptor);
}

/* Waits for the work in flight, which may still use the array. */
CUresult zl_cuArrayDestroy(zl_context *context, CUarray hArray)
{
    zl_array *array = find(hArray);
    uint64_t address;

    if (!array || array->part)           /* what is part of another array goes with it */
        return CUDA_ERROR_INVALID_HANDLE;
    array = zl_handle_remove(ZL_ARRAY, (uint64_t)hArray);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    context = array->context;
    address = array->address;
    for (unsigned i = 0; i < array->planes; i++)
        zl_array_forget((uint64_t)array->plane[i]);
    free(array);
    return zl_storage_free(context, address);
}

CUresult zl_cuArray3DGetDescriptor_v2(zl_context *context, CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    const zl_array *array = find(hArray);

    (void)context;
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = array->descriptor;
    return CUDA_SUCCESS;
}

CUresult zl_cuArrayGetDescriptor_v2(zl_context *context, CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    const zl_array *array = find(hArray);

    (void)context;
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (array->descriptor.Depth)         /* which this structure cannot say */
        return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){array->descriptor.Width, array->descriptor.Height, array->descriptor.Format,
                                                array->descriptor.NumChannels};
    return CUDA_SUCCESS;
}

CUresult zl_cuArrayGetPlane(zl_context *context, CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
    const zl_array *array = find(hArray);

    (void)context;
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (planeIdx >= array->planes)
        return CUDA_ERROR_INVALID_VALUE;
    *pPlaneArray = array->plane[planeIdx];
    return CUDA_SUCCESS;
}

/* Both ask for what only arrays of a kind have that no device here makes. */
CUresult zl_cuArrayGetMemoryRequirements(zl_context *context, CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
                                         CUdevice device)
{
    (void)context, (void)memoryRequirements, (void)array, (void)device;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuArrayGetSparseProperties(zl_context *context, CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
    (void)context, (void)sparseProperties, (void)array;
    return CUDA_ERROR_INVALID_VALUE;
}
