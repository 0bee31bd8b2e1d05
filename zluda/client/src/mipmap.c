/* Mipmapped arrays: one array a level, all in one storage. */
#include "client.h"

#include <stdlib.h>

enum { LEVELS = 18, ALIGNMENT = 512 };   /* 1 + log2 of the greatest width, at most; bytes that levels are aligned to */

typedef struct mipmapped {
    zl_context *context;
    uint64_t address;
    unsigned levels;
    CUarray level[LEVELS];
} mipmapped;

static size_t halve(size_t extent, unsigned level)
{
    return !extent ? 0 : extent >> level ? extent >> level : 1;
}

static CUDA_ARRAY3D_DESCRIPTOR descriptor_of(const CUDA_ARRAY3D_DESCRIPTOR *whole, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR d = *whole;

    d.Width = halve(d.Width, level);
    d.Height = halve(d.Height, level);
    if (!(d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
        d.Depth = halve(d.Depth, level);
    return d;
}

/* 1 + floor(log2(max(width, height, depth))) */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    size_t largest = d->Width > d->Height ? d->Width : d->Height;
    unsigned levels = 0;

    for (largest = largest > d->Depth ? largest : d->Depth; largest; largest >>= 1)
        levels++;
    return levels;
}

static void forget_levels(mipmapped *mipmap)
{
    for (unsigned i = 0; i < mipmap->levels; i++)
        zl_array_forget((uint64_t)mipmap->level[i]);
}

/* Makes the levels' arrays, which count from the start of the storage; its size, or 0 without memory. */
static size_t make_levels(mipmapped *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *whole, unsigned levels)
{
    size_t total = 0;

    for (unsigned i = 0; i < levels; i++) {
        CUDA_ARRAY3D_DESCRIPTOR d = descriptor_of(whole, i);
        uint64_t handle;
        size_t size;
        zl_array *array = zl_array_new(mipmap->context, &d, true, &handle, &size);
        if (!array)
            return 0;
        zl_array_place(array, total);
        total += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        mipmap->level[mipmap->levels++] = (CUarray)handle;
    }
    return total;
}

static CUresult build(mipmapped *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *whole, unsigned levels)
{
    size_t size = make_levels(mipmap, whole, levels);
    CUresult result;

    if (!size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = zl_storage_allocate(mipmap->context, size, &mipmap->address);
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < levels; i++)
        zl_array_place(zl_handle_get(ZL_ARRAY, (uint64_t)mipmap->level[i]), mipmap->address);
    return CUDA_SUCCESS;
}

CUresult zl_cuMipmappedArrayCreate(zl_context *context, CUmipmappedArray *pHandle,
                                   const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned levels;
    mipmapped *mipmap;
    uint64_t handle;
    CUresult result;

    if (!pMipmappedArrayDesc)
        return CUDA_ERROR_INVALID_VALUE;
    descriptor = *pMipmappedArrayDesc;
    result = zl_array_check(&descriptor, true);
    if (result != CUDA_SUCCESS)
        return result;
    levels = most_levels(&descriptor);
    if (numMipmapLevels < levels)
        levels = numMipmapLevels ? numMipmapLevels : 1;
    mipmap = calloc(1, sizeof *mipmap);
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mipmap->context = context;
    result = build(mipmap, &descriptor, levels);
    handle = result == CUDA_SUCCESS ? zl_handle_new(ZL_MIPMAPPED_ARRAY, mipmap) : 0;
    if (!handle) {
        if (result == CUDA_SUCCESS)
            zl_storage_free(context, mipmap->address);
        forget_levels(mipmap);
        free(mipmap);
        return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
    }
    *pHandle = (CUmipmappedArray)handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuMipmappedArrayGetLevel(zl_context *context, CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                     unsigned int level)
{
    const mipmapped *mipmap = zl_handle_get(ZL_MIPMAPPED_ARRAY, (uint64_t)hMipmappedArray);

    (void)context;
    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    if (level >= mipmap->levels)
        return CUDA_ERROR_INVALID_VALUE;
    *pLevelArray = mipmap->level[level];
    return CUDA_SUCCESS;
}

/* Waits for the work in flight, which may still use the levels. */
CUresult zl_cuMipmappedArrayDestroy(zl_context *context, CUmipmappedArray hMipmappedArray)
{
    mipmapped *mipmap = zl_handle_remove(ZL_MIPMAPPED_ARRAY, (uint64_t)hMipmappedArray);
    uint64_t address;

    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    context = mipmap->context;
    address = mipmap->address;
    forget_levels(mipmap);
    free(mipmap);
    return zl_storage_free(context, address);
}

/* Both ask for what only arrays of a kind have that no device here makes. */
CUresult zl_cuMipmappedArrayGetMemoryRequirements(zl_context *context, CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                                  CUmipmappedArray mipmap, CUdevice device)
{
    (void)context, (void)memoryRequirements, (void)mipmap, (void)device;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuMipmappedArrayGetSparseProperties(zl_context *context, CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                                CUmipmappedArray mipmap)
{
    (void)context, (void)sparseProperties, (void)mipmap;
    return CUDA_ERROR_INVALID_VALUE;
}
