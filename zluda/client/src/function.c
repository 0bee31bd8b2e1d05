/* Functions: attributes and parameters, as they were told when the function was loaded. */
#include "client.h"

#include <stdlib.h>
#include <string.h>

/* A function's entry whether it is loaded or not. */
static zl_function_entry *find(CUfunction function)
{
    return zl_handle_get(ZL_FUNCTION, (uint64_t)function);
}

CUresult zl_function_use(zl_context *context, CUfunction function, zl_function_entry **entry)
{
    *entry = find(function);
    if (!*entry) {                       /* "CUfunction ... or CUkernel cast to CUfunction", as the manual allows */
        CUresult result = zl_kernel_function(context, (CUkernel)function, entry);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return ZL_LIKELY(__atomic_load_n(&(*entry)->parameters, __ATOMIC_ACQUIRE) != NULL) ? CUDA_SUCCESS : zl_function_load(*entry);
}

CUresult zl_function_attribute(zl_function_entry *entry, CUfunction_attribute attribute, int *value)
{
    if ((unsigned)attribute > CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE)
        return CUDA_ERROR_INVALID_VALUE;
    *value = entry->info.attributes[attribute];
    return CUDA_SUCCESS;
}

CUresult zl_function_set(zl_function_entry *entry, CUfunction_attribute attribute, int value)
{
    struct zl_cmd_function_set_attribute *command;
    zl_tail tail = {0};
    CUresult result;

    command = zl_begin(ZL_OP_function_set_attribute, entry->context, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->function = entry->handle;
    command->attribute = (int32_t)attribute;
    command->value = value;
    result = zl_call(&command->header, NULL, 0, &tail);
    if (result == CUDA_SUCCESS && tail.size >= sizeof entry->info)
        memcpy(entry->info.attributes, ((struct zl_function *)tail.data)->attributes, sizeof entry->info.attributes);
    free(tail.data);
    return result;
}

CUresult zl_cuFuncGetAttribute(zl_context *context, int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    zl_function_entry *entry;
    CUresult result = zl_function_use(context, hfunc, &entry);
    return result == CUDA_SUCCESS ? zl_function_attribute(entry, attrib, pi) : result;
}

CUresult zl_cuFuncSetAttribute(zl_context *context, CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    zl_function_entry *entry;
    CUresult result = zl_function_use(context, hfunc, &entry);
    return result == CUDA_SUCCESS ? zl_function_set(entry, attrib, value) : result;
}

CUresult zl_cuFuncSetCacheConfig(zl_context *context, CUfunction hfunc, CUfunc_cache config)
{
    zl_function_entry *entry;

    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    return zl_function_use(context, hfunc, &entry); /* a preference; the devices here have nothing to choose between */
}

CUresult zl_cuFuncGetModule(zl_context *context, CUmodule *hmod, CUfunction hfunc)
{
    zl_function_entry *entry = find(hfunc);

    (void)context;
    if (!entry)
        return CUDA_ERROR_INVALID_HANDLE;
    *hmod = entry->module;
    return CUDA_SUCCESS;
}

CUresult zl_cuFuncGetName(zl_context *context, const char **name, CUfunction hfunc)
{
    zl_function_entry *entry = find(hfunc);

    (void)context;
    if (!entry)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = entry->name;
    return CUDA_SUCCESS;
}

CUresult zl_cuFuncGetParamInfo(zl_context *context, CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    zl_function_entry *entry;
    CUresult result = zl_function_use(context, func, &entry);

    if (result != CUDA_SUCCESS)
        return result;
    if (paramIndex >= entry->info.parameters)
        return CUDA_ERROR_INVALID_VALUE;
    *paramOffset = entry->parameters[paramIndex].offset;
    if (paramSize)
        *paramSize = entry->parameters[paramIndex].size;
    return CUDA_SUCCESS;
}

CUresult zl_cuFuncGetParamCount(zl_context *context, CUfunction func, size_t *paramCount)
{
    zl_function_entry *entry;
    CUresult result = zl_function_use(context, func, &entry);

    if (result == CUDA_SUCCESS)
        *paramCount = entry->info.parameters;
    return result;
}

CUresult zl_cuFuncIsLoaded(zl_context *context, CUfunctionLoadingState *state, CUfunction function)
{
    zl_function_entry *entry = find(function);

    (void)context;
    if (!entry)
        return CUDA_ERROR_INVALID_HANDLE;
    *state = entry->parameters ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUresult zl_cuFuncLoad(zl_context *context, CUfunction function)
{
    zl_function_entry *entry;
    return zl_function_use(context, function, &entry);
}
