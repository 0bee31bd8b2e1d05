/* Libraries: images that load themselves into a context when something of them is first used there. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct loaded {
    uint64_t context;                    /* handle: a module goes with its context */
    CUmodule module;
    struct loaded *next;
};

struct kernel;
struct library {
    void *image;
    size_t size;
    zl_jit jit;
    struct loaded *loaded;
    struct kernel *kernels;
};

struct kernel {
    struct library *library;
    uint64_t library_handle, handle;
    char *name;
    struct kernel *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct library *library_of(CUlibrary library)
{
    return zl_handle_get(ZL_LIBRARY, (uint64_t)library);
}

/* The library's module in a context, loaded if it is not. */
static CUresult module_in(struct library *library, zl_context *context, CUmodule *module)
{
    struct loaded *loaded;
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    for (loaded = library->loaded; loaded; loaded = loaded->next)
        if (loaded->context == context->handle && zl_handle_get(ZL_MODULE, (uint64_t)loaded->module))
            break;
    if (loaded) {
        *module = loaded->module;
    } else if (!(loaded = malloc(sizeof *loaded))) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        result = zl_module_load_sized(context, library->image, library->size, &library->jit, module);
        if (result == CUDA_SUCCESS) {
            *loaded = (struct loaded){context->handle, *module, library->loaded};
            library->loaded = loaded;
        } else {
            free(loaded);
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Somewhere to look a library up in when no context was named: the current one, or any device's primary one. */
static zl_context *some_context(void)
{
    zl_context *context = zl_current();
    for (uint32_t device = 0; !context && device < zl_state.device_count; device++)
        context = zl_primary((CUdevice)device);
    return context && zl_context_check(context) == CUDA_SUCCESS ? context : NULL;
}

static CUresult load(CUlibrary *out, const void *image, size_t size, const zl_jit *jit)
{
    struct library *library = calloc(1, sizeof *library);
    zl_context *context = some_context();
    uint64_t handle;
    CUresult result = CUDA_SUCCESS;
    CUmodule module;

    if (library)
        library->image = calloc(size + 64, 1); /* the program may let go of its copy */
    handle = library && library->image ? zl_handle_new(ZL_LIBRARY, library) : 0;
    if (!handle) {
        free(library ? library->image : NULL);
        free(library);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(library->image, image, size);
    library->size = size;
    library->jit = *jit;
    /* So that a bad image shows now, with its log. */
    if (context) {
        result = module_in(library, context, &module);
    } else {
        uint32_t count;
        zl_tail names;
        result = zl_image_names(image, size, jit, &count, &names);
        free(names.data);
    }
    /* Logs belong to this call alone. */
    library->jit = (zl_jit){.optimisation = jit->optimisation};
    if (result != CUDA_SUCCESS) {
        zl_handle_remove(ZL_LIBRARY, handle);
        free(library->image);
        free(library);
        return result;
    }
    *out = (CUlibrary)handle;
    return CUDA_SUCCESS;
}

static CUresult check_options(unsigned count, const CUlibraryOption *options)
{
    if (count && !options)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
            return zl_not_supported("cuLibraryLoadData", "CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE");
        if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED) /* a permission that is not made use of */
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult load_gathered(CUlibrary *library, const void *code, size_t known, const zl_jit *jit)
{
    const void *start;
    void *gathered = NULL;
    size_t size;
    CUresult result = known ? CUDA_SUCCESS : zl_image_gather(code, &gathered, &size);

    if (result == CUDA_SUCCESS && !gathered)
        result = zl_image_size(code, known, &start, &size);
    if (result == CUDA_SUCCESS)
        result = load(library, gathered ? gathered : start, size, jit);
    free(gathered);
    return result;
}

static CUresult load_image(CUlibrary *library, const void *code, size_t known, CUjit_option *jit_options, void **jit_values,
                           unsigned jit_count, const CUlibraryOption *options, unsigned count)
{
    zl_jit jit;
    CUresult result = check_options(count, options);

    if (result == CUDA_SUCCESS)
        result = zl_jit_parse(jit_count, jit_options, jit_values, &jit);
    return result == CUDA_SUCCESS ? load_gathered(library, code, known, &jit) : result;
}

CUresult zl_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                              unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                              unsigned int numLibraryOptions)
{
    (void)libraryOptionValues;
    if (!code)
        return CUDA_ERROR_INVALID_VALUE;
    return load_image(library, code, 0, jitOptions, jitOptionsValues, numJitOptions, libraryOptions, numLibraryOptions);
}

CUresult zl_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
                                  unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                  unsigned int numLibraryOptions)
{
    void *data;
    size_t size;
    CUresult result;

    (void)libraryOptionValues;
    if (!fileName)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_file_read(fileName, &data, &size);
    if (result != CUDA_SUCCESS)
        return result;
    result = load_image(library, data, size, jitOptions, jitOptionsValues, numJitOptions, libraryOptions, numLibraryOptions);
    free(data);
    return result;
}

CUresult zl_cuLibraryUnload(CUlibrary hLibrary)
{
    struct library *library = zl_handle_remove(ZL_LIBRARY, (uint64_t)hLibrary);
    CUresult result = CUDA_SUCCESS;

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    for (struct loaded *loaded = library->loaded, *next; loaded; loaded = next) {
        zl_context *context = zl_handle_get(ZL_CONTEXT, loaded->context);
        next = loaded->next;
        if (context && zl_handle_get(ZL_MODULE, (uint64_t)loaded->module)) {
            CUresult unloaded = zl_cuModuleUnload(context, loaded->module);
            result = result == CUDA_SUCCESS ? unloaded : result;
        }
        free(loaded);
    }
    for (struct kernel *kernel = library->kernels, *next; kernel; kernel = next) {
        next = kernel->next;
        zl_handle_remove(ZL_KERNEL, kernel->handle);
        free(kernel->name);
        free(kernel);
    }
    free(library->image);
    free(library);
    return result;
}

/* --- kernels --- */

static CUresult kernel_named(CUlibrary hLibrary, struct library *library, const char *name, CUkernel *out)
{
    struct kernel *kernel;

    pthread_mutex_lock(&lock);
    for (kernel = library->kernels; kernel && strcmp(kernel->name, name); kernel = kernel->next)
        ;
    if (!kernel && (kernel = calloc(1, sizeof *kernel))) {
        kernel->library = library;
        kernel->library_handle = (uint64_t)hLibrary;
        kernel->name = strdup(name);
        kernel->handle = kernel->name ? zl_handle_new(ZL_KERNEL, kernel) : 0;
        if (kernel->handle) {
            kernel->next = library->kernels;
            library->kernels = kernel;
        } else {
            free(kernel->name);
            free(kernel);
            kernel = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    if (!kernel)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUkernel)kernel->handle;
    return CUDA_SUCCESS;
}

/* The names of a library's kernels, from its module in some context or else from its image. */
static CUresult names_of(CUlibrary hLibrary, struct library **library, uint32_t *count, zl_tail *names)
{
    zl_context *context = some_context();
    CUmodule module;
    CUresult result;

    *library = library_of(hLibrary);
    if (!*library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!context)
        return zl_image_names((*library)->image, (*library)->size, &(*library)->jit, count, names);
    result = module_in(*library, context, &module);
    return result == CUDA_SUCCESS ? zl_module_names(module, count, names) : result;
}

CUresult zl_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct library *found;
    zl_tail names = {0};
    uint32_t count = 0;
    const char *each;
    bool exists = false;
    CUresult result;

    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    result = names_of(library, &found, &count, &names);
    if (result == CUDA_SUCCESS) {
        each = names.data;
        for (uint32_t i = 0; i < count && !exists; i++, each += strlen(each) + 1)
            exists = !strcmp(each, name);
    }
    free(names.data);
    if (result != CUDA_SUCCESS)
        return result;
    return exists ? kernel_named(library, found, name, pKernel) : CUDA_ERROR_NOT_FOUND;
}

CUresult zl_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    struct library *library;
    zl_tail names = {0};
    uint32_t found;
    CUresult result = names_of(lib, &library, &found, &names);

    free(names.data);
    if (result == CUDA_SUCCESS)
        *count = found;
    return result;
}

CUresult zl_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    struct library *library;
    zl_tail names = {0};
    uint32_t found;
    const char *name;
    CUresult result;

    if (!kernels && numKernels)
        return CUDA_ERROR_INVALID_VALUE;
    result = names_of(lib, &library, &found, &names);
    name = names.data;
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < found && i < numKernels; i++, name += strlen(name) + 1)
        result = kernel_named(lib, library, name, &kernels[i]);
    free(names.data);
    return result;
}

CUresult zl_cuLibraryGetModule(zl_context *context, CUmodule *pMod, CUlibrary library)
{
    struct library *found = library_of(library);
    return found ? module_in(found, context, pMod) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_cuLibraryGetGlobal(zl_context *context, CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct library *found = library_of(library);
    CUmodule module;
    CUresult result = found ? module_in(found, context, &module) : CUDA_ERROR_INVALID_HANDLE;
    return result == CUDA_SUCCESS ? zl_cuModuleGetGlobal_v2(context, dptr, bytes, module, name) : result;
}

CUresult zl_cuLibraryGetManaged(zl_context *context, CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct library *found = library_of(library);
    CUmodule module;
    uint64_t address, size;
    CUresult result;

    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    result = found ? module_in(found, context, &module) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = zl_module_special(module, ZL_SPECIAL_MANAGED, name, &address, &size);
    /* As any variable it becomes a range that pointers can be asked about. */
    return result == CUDA_SUCCESS ? zl_cuModuleGetGlobal_v2(context, dptr, bytes, module, name) : result;
}

CUresult zl_cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
    (void)fptr;
    if (!symbol)
        return CUDA_ERROR_INVALID_VALUE;
    /* "If there is no device with attribute CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS": none has it here. */
    return library_of(library) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult zl_kernel_function(zl_context *context, CUkernel hKernel, zl_function_entry **entry)
{
    struct kernel *kernel = zl_handle_get(ZL_KERNEL, (uint64_t)hKernel);
    CUmodule module;
    CUresult result;

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    result = module_in(kernel->library, context, &module);
    return result == CUDA_SUCCESS ? zl_module_function(context, module, kernel->name, entry) : result;
}

CUresult zl_cuKernelGetFunction(zl_context *context, CUfunction *pFunc, CUkernel kernel)
{
    zl_function_entry *entry;
    CUresult result = zl_kernel_function(context, kernel, &entry);
    if (result == CUDA_SUCCESS)
        *pFunc = (CUfunction)entry->handle;
    return result;
}

CUresult zl_cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct kernel *found = zl_handle_get(ZL_KERNEL, (uint64_t)kernel);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *pLib = (CUlibrary)found->library_handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuKernelGetName(const char **name, CUkernel hfunc)
{
    struct kernel *found = zl_handle_get(ZL_KERNEL, (uint64_t)hfunc);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = found->name;
    return CUDA_SUCCESS;
}

/* A kernel's function on a device: in the current context if that is the device's, else in its primary one. */
static CUresult function_on(CUkernel kernel, CUdevice device, zl_function_entry **entry)
{
    zl_context *context = zl_current();
    CUresult result;

    if (!zl_handle_get(ZL_KERNEL, (uint64_t)kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!zl_device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!context || context->device != device)
        context = zl_primary(device);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    result = zl_context_check(context);
    return result == CUDA_SUCCESS ? zl_kernel_function(context, kernel, entry) : result;
}

CUresult zl_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
    zl_function_entry *entry;
    CUresult result = function_on(kernel, dev, &entry);
    return result == CUDA_SUCCESS ? zl_function_attribute(entry, attrib, pi) : result;
}

CUresult zl_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
    zl_function_entry *entry;
    CUresult result = function_on(kernel, dev, &entry);
    return result == CUDA_SUCCESS ? zl_function_set(entry, attrib, val) : result;
}

CUresult zl_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    zl_function_entry *entry;
    return (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : function_on(kernel, dev, &entry);
}

static CUresult any_function(CUkernel kernel, zl_function_entry **entry)
{
    zl_context *context = some_context();
    if (!zl_handle_get(ZL_KERNEL, (uint64_t)kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    return context ? zl_kernel_function(context, kernel, entry) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult zl_cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    zl_function_entry *entry;
    CUresult result = any_function(kernel, &entry);
    return result == CUDA_SUCCESS
               ? zl_cuFuncGetParamInfo(entry->context, (CUfunction)entry->handle, paramIndex, paramOffset, paramSize)
               : result;
}

CUresult zl_cuKernelGetParamCount(CUkernel kernel, size_t *paramCount)
{
    zl_function_entry *entry;
    CUresult result = any_function(kernel, &entry);
    if (result == CUDA_SUCCESS)
        *paramCount = entry->info.parameters;
    return result;
}
