/* Occupancy: how many blocks share a multiprocessor, as far as threads, blocks and shared memory decide it. */
#include "client.h"

enum { WARP = 32 };

static int limit(const zl_function_entry *function, CUdevice_attribute attribute)
{
    return zl_device_attribute(function->context->device, attribute);
}

int zl_active_blocks(const zl_function_entry *function, int block, size_t dynamic)
{
    const int32_t *attributes = function->info.attributes;
    size_t shared;
    int warps, blocks, most;

    if (block > attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] ||
        dynamic > (size_t)attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
        return 0;
    shared = (size_t)attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] + dynamic;
    warps = (block + WARP - 1) / WARP;
    blocks = limit(function, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    most = limit(function, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / WARP / warps;
    blocks = most < blocks ? most : blocks;
    if (shared) {
        most = (int)((size_t)limit(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared);
        blocks = most < blocks ? most : blocks;
    }
    return blocks;
}

CUresult zl_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(zl_context *context, int *numBlocks, CUfunction func,
                                                                 int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
    zl_function_entry *function;
    CUresult result;

    if (blockSize <= 0 || (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_function_use(context, func, &function);
    if (result == CUDA_SUCCESS)
        *numBlocks = zl_active_blocks(function, blockSize, dynamicSMemSize);
    return result;
}

CUresult zl_cuOccupancyMaxActiveBlocksPerMultiprocessor(zl_context *context, int *numBlocks, CUfunction func, int blockSize,
                                                        size_t dynamicSMemSize)
{
    return zl_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(context, numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult zl_cuOccupancyMaxPotentialBlockSizeWithFlags(zl_context *context, int *minGridSize, int *blockSize, CUfunction func,
                                                      CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                                      int blockSizeLimit, unsigned int flags)
{
    zl_function_entry *function;
    int largest, best_threads = 0, best_block = 0, best_blocks = 0;
    CUresult result;

    if (blockSizeLimit < 0 || (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_function_use(context, func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    largest = function->info.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
    if (blockSizeLimit && blockSizeLimit < largest)
        largest = blockSizeLimit;
    for (int size = (largest + WARP - 1) / WARP * WARP; size > 0; size -= WARP) {
        int block = size < largest ? size : largest;
        size_t shared = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(block) : dynamicSMemSize;
        int blocks = zl_active_blocks(function, block, shared);
        if (blocks * block > best_threads) {
            best_threads = blocks * block;
            best_block = block;
            best_blocks = blocks;
        }
    }
    *blockSize = best_block;
    *minGridSize = best_blocks * limit(function, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}

CUresult zl_cuOccupancyMaxPotentialBlockSize(zl_context *context, int *minGridSize, int *blockSize, CUfunction func,
                                             CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                             int blockSizeLimit)
{
    return zl_cuOccupancyMaxPotentialBlockSizeWithFlags(context, minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                                        dynamicSMemSize, blockSizeLimit, 0);
}

CUresult zl_cuOccupancyAvailableDynamicSMemPerBlock(zl_context *context, size_t *dynamicSmemSize, CUfunction func,
                                                    int numBlocks, int blockSize)
{
    zl_function_entry *function;
    int64_t room, most;
    CUresult result;

    if (numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_function_use(context, func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (numBlocks > zl_active_blocks(function, blockSize, 0))
        return CUDA_ERROR_INVALID_VALUE;
    room = limit(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / numBlocks -
           function->info.attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    most = function->info.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    room = room < most ? room : most;
    *dynamicSmemSize = room > 0 ? (size_t)room : 0;
    return CUDA_SUCCESS;
}

/* --- clusters: no device here makes any, so that each block is one of its own --- */

/* Blocks of a configuration on one multiprocessor, as all else of it decides. */
static CUresult blocks_of(zl_context *context, CUfunction func, const CUlaunchConfig *config, zl_function_entry **function,
                          int *blocks)
{
    uint64_t wire, threads;
    CUresult result;

    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_use_stream(config->hStream, &context, &wire);
    if (result == CUDA_SUCCESS)
        result = zl_function_use(context, func, function);
    if (result != CUDA_SUCCESS)
        return result;
    threads = (uint64_t)config->blockDimX * config->blockDimY;
    if (!threads || !config->blockDimZ || threads > INT32_MAX || threads * config->blockDimZ > INT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = zl_active_blocks(*function, (int)(threads * config->blockDimZ), config->sharedMemBytes);
    return CUDA_SUCCESS;
}

CUresult zl_cuOccupancyMaxPotentialClusterSize(zl_context *context, int *clusterSize, CUfunction func,
                                               const CUlaunchConfig *config)
{
    zl_function_entry *function;
    int blocks;
    CUresult result = blocks_of(context, func, config, &function, &blocks);

    if (result == CUDA_SUCCESS)
        *clusterSize = blocks ? 1 : 0;
    return result;
}

CUresult zl_cuOccupancyMaxActiveClusters(zl_context *context, int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
    zl_function_entry *function;
    bool given = false;
    int blocks;
    CUresult result = blocks_of(context, func, config, &function, &blocks);

    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *value = &config->attrs[i].value;
        if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            continue;
        if (value->clusterDim.x != 1 || value->clusterDim.y != 1 || value->clusterDim.z != 1)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        given = true;
    }
    if (!given)                          /* "must be specified in config, else the function will return an error" */
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *numClusters = blocks * limit(function, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}
