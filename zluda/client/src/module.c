/* Modules: images go to the driver process; what is asked of a module by name is kept here. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of every module's list of functions */

/* --- options --- */

CUresult zl_jit_parse(unsigned count, CUjit_option *options, void **values, zl_jit *jit)
{
    *jit = (zl_jit){.optimisation = 4};
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        uintptr_t number = (uintptr_t)values[i];
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            jit->info = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            jit->info_size = (unsigned)number;
            jit->info_filled = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            jit->error = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            jit->error_size = (unsigned)number;
            jit->error_filled = &values[i];
            break;
        case CU_JIT_WALL_TIME:
            jit->wall_time = &values[i];
            break;
        case CU_JIT_OPTIMIZATION_LEVEL:
            if (number > 4)
                return CUDA_ERROR_INVALID_VALUE;
            jit->optimisation = (unsigned)number;
            break;
        case CU_JIT_GLOBAL_SYMBOL_NAMES:
        case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
        case CU_JIT_GLOBAL_SYMBOL_COUNT:
            return zl_not_supported("cuModuleLoadDataEx", "CU_JIT_GLOBAL_SYMBOL_*");
        default:                         /* the others are preferences that change no result */
            if ((unsigned)options[i] > CU_JIT_BINARY_LOADER_THREAD_COUNT)
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static void fill_log(char *buffer, size_t size, void **filled, const zl_tail *log, bool used)
{
    size_t length = used && log->data ? log->size : 0;

    if (buffer && size) {
        length = length < size - 1 ? length : size - 1;
        if (length)
            memcpy(buffer, log->data, length);
        buffer[length] = 0;
    }
    if (filled)
        *filled = (void *)(uintptr_t)(length ? length + 1 : 0);
}

/* --- loading and unloading --- */

static void fill_logs(const zl_jit *jit, CUresult result, const zl_tail *log)
{
    if (result != CUDA_SUCCESS)
        zl_logs_add(CU_LOG_LEVEL_ERROR, log->data, log->size);
    fill_log(jit->info, jit->info_size, jit->info_filled, log, result == CUDA_SUCCESS);
    fill_log(jit->error, jit->error_size, jit->error_filled, log, result != CUDA_SUCCESS);
}

static CUresult load(zl_context *context, const void *image, size_t size, const zl_jit *jit, CUmodule *out)
{
    zl_module *module = calloc(1, sizeof *module);
    uint64_t handle = module ? zl_handle_new(ZL_MODULE, module) : 0;
    struct zl_cmd_module_load *command;
    zl_payload payload = {0};
    zl_tail log = {0};
    CUresult result;
    bool info = jit->info && jit->info_size, error = jit->error && jit->error_size;

    if (!handle) {
        free(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->context = context;
    result = zl_payload_prepare(&payload, image, size);
    if (result == CUDA_SUCCESS) {
        command = zl_begin(ZL_OP_module_load, context, ZL_TAIL_module_load + zl_payload_inline(&payload), true);
        if (command) {
            command->module = handle;
            command->address = payload.address;
            command->size = size;
            command->optimisation = jit->optimisation;
            command->logs = (info ? 1u : 0u) | (error ? 2u : 0u);
            memcpy((uint8_t *)command + ZL_TAIL_module_load, image, zl_payload_inline(&payload));
            result = zl_call(&command->header, NULL, 0, &log);
            /* The variables' first values may still be on their way. */
            atomic_fetch_add(&context->posted, 1);
        } else {
            result = zl_gone();
        }
        zl_payload_release(&payload);
    }
    fill_logs(jit, result, &log);
    free(log.data);
    if (result != CUDA_SUCCESS) {
        zl_handle_remove(ZL_MODULE, handle);
        free(module);
        return result;
    }
    *out = (CUmodule)handle;
    return CUDA_SUCCESS;
}

CUresult zl_module_load_sized(zl_context *context, const void *image, size_t size, const zl_jit *jit, CUmodule *module)
{
    struct timespec before, after;
    CUresult result;
    float milliseconds;

    clock_gettime(CLOCK_MONOTONIC, &before);
    result = load(context, image, size, jit, module);
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (jit->wall_time) {
        milliseconds = (float)(after.tv_sec - before.tv_sec) * 1e3f + (float)(after.tv_nsec - before.tv_nsec) * 1e-6f;
        memcpy(jit->wall_time, &milliseconds, sizeof milliseconds);
    }
    return result;
}

CUresult zl_module_load(zl_context *context, const void *image, const zl_jit *jit, CUmodule *module)
{
    const void *start;
    void *gathered;
    size_t size;
    CUresult result;

    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_image_gather(image, &gathered, &size);
    if (result == CUDA_SUCCESS && !gathered)
        result = zl_image_size(image, 0, &start, &size);
    if (result == CUDA_SUCCESS)
        result = zl_module_load_sized(context, gathered ? gathered : start, size, jit, module);
    free(gathered);
    return result;
}

CUresult zl_image_names(const void *image, size_t size, const zl_jit *jit, uint32_t *count, zl_tail *names)
{
    struct zl_cmd_image_kernels *command;
    struct zl_image_kernels_reply reply = {0};
    zl_payload payload = {0};
    CUresult result = zl_payload_prepare(&payload, image, size);

    *names = (zl_tail){0};
    if (result != CUDA_SUCCESS)
        return result;
    command = zl_begin(ZL_OP_image_kernels, NULL, ZL_TAIL_image_kernels + zl_payload_inline(&payload), true);
    if (command) {
        command->address = payload.address;
        command->size = size;
        memcpy((uint8_t *)command + ZL_TAIL_image_kernels, image, zl_payload_inline(&payload));
        result = zl_call(&command->header, &reply, sizeof reply, names);
        *count = reply.count;
    } else {
        result = zl_gone();
    }
    zl_payload_release(&payload);
    fill_logs(jit, result, result == CUDA_SUCCESS ? &(zl_tail){0} : names);
    return result;
}

CUresult zl_cuModuleLoadDataEx(zl_context *context, CUmodule *module, const void *image, unsigned int numOptions,
                               CUjit_option *options, void **optionValues)
{
    zl_jit jit;
    CUresult result = zl_jit_parse(numOptions, options, optionValues, &jit);
    return result == CUDA_SUCCESS ? zl_module_load(context, image, &jit, module) : result;
}

CUresult zl_cuModuleLoadData(zl_context *context, CUmodule *module, const void *image)
{
    return zl_cuModuleLoadDataEx(context, module, image, 0, NULL, NULL);
}

CUresult zl_cuModuleLoadFatBinary(zl_context *context, CUmodule *module, const void *fatCubin)
{
    return zl_cuModuleLoadDataEx(context, module, fatCubin, 0, NULL, NULL);
}

CUresult zl_cuModuleLoad(zl_context *context, CUmodule *module, const char *fname)
{
    void *data;
    size_t size;
    CUresult result;

    if (!fname)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_file_read(fname, &data, &size);
    if (result != CUDA_SUCCESS)
        return result;
    result = load(context, data, size, &(zl_jit){.optimisation = 4}, module);
    free(data);
    return result;
}

static void forget_functions(zl_module *module)
{
    zl_function_entry *next;

    for (zl_function_entry *entry = module->functions; entry; entry = next) {
        next = entry->next;
        zl_handle_remove(ZL_FUNCTION, entry->handle);
        zl_launch_forget(entry);
        free(entry->name);
        free(entry->parameters);
        free(entry->old);
        free(entry);
    }
}

CUresult zl_cuModuleUnload(zl_context *context, CUmodule hmod)
{
    zl_module *module = zl_handle_remove(ZL_MODULE, (uint64_t)hmod);
    struct zl_cmd_module_unload *command;

    (void)context;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    zl_range_remove_module((uint64_t)hmod);
    command = zl_begin(ZL_OP_module_unload, module->context, sizeof *command, true);
    forget_functions(module);
    free(module);
    if (!command)
        return zl_gone();
    command->module = (uint64_t)hmod;
    return zl_call(&command->header, NULL, 0, NULL);
}

struct forgotten {
    zl_context *context;
    zl_module *list[64];
    unsigned count;
};

static bool collect(uint64_t handle, void *object, void *argument)
{
    struct forgotten *forgotten = argument;
    zl_module *module = object;

    (void)handle;
    if (module->context != forgotten->context || forgotten->count == sizeof forgotten->list / sizeof *forgotten->list)
        return false;
    forgotten->list[forgotten->count++] = module;
    return true;
}

void zl_module_forget_context(zl_context *context)
{
    struct forgotten forgotten = {.context = context};

    do {                                 /* in portions: forgetting functions takes the table's lock again */
        forgotten.count = 0;
        zl_handle_each(ZL_MODULE, collect, &forgotten);
        for (unsigned i = 0; i < forgotten.count; i++) {
            forget_functions(forgotten.list[i]);
            free(forgotten.list[i]);
        }
    } while (forgotten.count);
}

CUresult zl_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    const char *wanted = getenv("CUDA_MODULE_LOADING");
    *mode = wanted && !strcmp(wanted, "EAGER") ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* --- functions by name --- */

CUresult zl_function_load(zl_function_entry *entry)
{
    size_t length = strlen(entry->name);
    struct zl_cmd_module_function *command;
    zl_tail tail = {0};
    CUresult result;

    if (__atomic_load_n(&entry->parameters, __ATOMIC_ACQUIRE))
        return CUDA_SUCCESS;
    if (length > ZL_INLINE_BYTES)        /* no PTX has such a name, and the ring has no room for it */
        return CUDA_ERROR_NOT_FOUND;
    command = zl_begin(ZL_OP_module_function, entry->context, ZL_TAIL_module_function + length, true);
    if (!command)
        return zl_gone();
    command->module = (uint64_t)entry->module;
    command->function = entry->handle;
    command->size = (uint32_t)length;
    memcpy((uint8_t *)command + ZL_TAIL_module_function, entry->name, length);
    result = zl_call(&command->header, NULL, 0, &tail);
    if (result == CUDA_SUCCESS && tail.size >= sizeof entry->info) {
        pthread_mutex_lock(&lock);
        if (!entry->parameters) {
            size_t rest = tail.size - sizeof entry->info;
            zl_parameter *parameters = malloc(rest + sizeof *parameters);
            if (parameters) {
                memcpy(&entry->info, tail.data, sizeof entry->info);
                memcpy(parameters, (uint8_t *)tail.data + sizeof entry->info, rest);
                __atomic_store_n(&entry->parameters, parameters, __ATOMIC_RELEASE);
            } else {
                result = CUDA_ERROR_OUT_OF_MEMORY;
            }
        }
        pthread_mutex_unlock(&lock);
    } else if (result == CUDA_SUCCESS) {
        result = CUDA_ERROR_UNKNOWN;
    }
    free(tail.data);
    return result;
}

static zl_function_entry *new_entry(zl_module *module, CUmodule handle, const char *name)
{
    zl_function_entry *entry = calloc(1, sizeof *entry);

    if (!entry)
        return NULL;
    entry->name = strdup(name);
    entry->context = module->context;
    entry->module = handle;
    entry->handle = entry->name ? zl_handle_new(ZL_FUNCTION, entry) : 0;
    if (!entry->handle) {
        free(entry->name);
        free(entry);
        return NULL;
    }
    return entry;
}

static void drop_entry(zl_function_entry *entry)
{
    zl_handle_remove(ZL_FUNCTION, entry->handle);
    free(entry->name);
    free(entry->parameters);
    free(entry->old);
    free(entry);
}

static zl_function_entry *find_entry(zl_module *module, const char *name)
{
    zl_function_entry *entry;

    for (entry = module->functions; entry && strcmp(entry->name, name); entry = entry->next)
        ;
    return entry;
}

/* The module's entry for the name: `fresh`, unless another thread was quicker. */
static zl_function_entry *enter(zl_module *module, zl_function_entry *fresh)
{
    zl_function_entry *entry;

    pthread_mutex_lock(&lock);
    entry = find_entry(module, fresh->name);
    if (!entry) {
        fresh->next = module->functions;
        module->functions = fresh;
    }
    pthread_mutex_unlock(&lock);
    if (entry)
        drop_entry(fresh);
    return entry ? entry : fresh;
}

/* The module's entry for a name that exists, made if there is none; it is not loaded yet. */
static zl_function_entry *entry_for(zl_module *module, CUmodule handle, const char *name)
{
    zl_function_entry *entry;

    pthread_mutex_lock(&lock);
    entry = find_entry(module, name);
    pthread_mutex_unlock(&lock);
    if (!entry && (entry = new_entry(module, handle, name)))
        entry = enter(module, entry);
    return entry;
}

CUresult zl_module_function(zl_context *context, CUmodule hmod, const char *name, zl_function_entry **function)
{
    zl_module *module = zl_handle_get(ZL_MODULE, (uint64_t)hmod);
    zl_function_entry *entry;
    CUresult result;

    (void)context;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    entry = find_entry(module, name);
    pthread_mutex_unlock(&lock);
    if (entry) {
        result = zl_function_load(entry);
    } else {                             /* nobody sees the entry before it is known that the name exists */
        entry = new_entry(module, hmod, name);
        if (!entry)
            return CUDA_ERROR_OUT_OF_MEMORY;
        result = zl_function_load(entry);
        if (result != CUDA_SUCCESS) {
            drop_entry(entry);
            return result;
        }
        entry = enter(module, entry);
        result = zl_function_load(entry);
    }
    if (result == CUDA_SUCCESS)
        *function = entry;
    return result;
}

CUresult zl_cuModuleGetFunction(zl_context *context, CUfunction *hfunc, CUmodule hmod, const char *name)
{
    zl_function_entry *entry;
    CUresult result;

    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_module_function(context, hmod, name, &entry);
    if (result == CUDA_SUCCESS)
        *hfunc = (CUfunction)entry->handle;
    return result;
}

CUresult zl_module_names(CUmodule hmod, uint32_t *count, zl_tail *names)
{
    zl_module *module = zl_handle_get(ZL_MODULE, (uint64_t)hmod);
    struct zl_module_functions_reply reply;
    struct zl_cmd_module_functions *command;
    CUresult result;

    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    command = zl_begin(ZL_OP_module_functions, module->context, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->module = (uint64_t)hmod;
    result = zl_call(&command->header, &reply, sizeof reply, names);
    *count = reply.count;
    return result;
}

CUresult zl_cuModuleGetFunctionCount(zl_context *context, unsigned int *count, CUmodule mod)
{
    zl_tail names = {0};
    uint32_t found = 0;
    CUresult result = zl_module_names(mod, &found, &names);

    (void)context;
    free(names.data);
    if (result == CUDA_SUCCESS)
        *count = found;
    return result;
}

CUresult zl_cuModuleEnumerateFunctions(zl_context *context, CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
    zl_tail names = {0};
    uint32_t found = 0;
    const char *name;
    CUresult result;

    (void)context;
    if (!functions && numFunctions)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_module_names(mod, &found, &names);
    name = names.data;
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < found && i < numFunctions; i++, name += strlen(name) + 1) {
        zl_module *module = zl_handle_get(ZL_MODULE, (uint64_t)mod);
        zl_function_entry *entry = module ? entry_for(module, mod, name) : NULL;
        if (entry)
            functions[i] = (CUfunction)entry->handle;
        else
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(names.data);
    return result;
}

CUresult zl_cuModuleGetGlobal_v2(zl_context *context, CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    zl_module *module = zl_handle_get(ZL_MODULE, (uint64_t)hmod);
    struct zl_module_global_reply reply;
    struct zl_cmd_module_global *command;
    CUresult result;
    size_t length;

    (void)context;
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    length = strlen(name);
    if (length > ZL_INLINE_BYTES)
        return CUDA_ERROR_NOT_FOUND;
    command = zl_begin(ZL_OP_module_global, module->context, ZL_TAIL_module_global + length, true);
    if (!command)
        return zl_gone();
    command->module = (uint64_t)hmod;
    command->size = (uint32_t)length;
    memcpy((uint8_t *)command + ZL_TAIL_module_global, name, length);
    result = zl_call(&command->header, &reply, sizeof reply, NULL);
    if (result != CUDA_SUCCESS)
        return result;
    if (reply.size)
        zl_range_add((zl_range){.base = reply.address, .size = reply.size, .kind = ZL_RANGE_GLOBAL,
                                .context = module->context->handle, .module = (uint64_t)hmod});
    if (dptr)
        *dptr = reply.address;
    if (bytes)
        *bytes = reply.size;
    return CUDA_SUCCESS;
}

CUresult zl_module_special(CUmodule hmod, uint32_t kind, const char *name, uint64_t *address, uint64_t *size)
{
    zl_module *module = zl_handle_get(ZL_MODULE, (uint64_t)hmod);
    struct zl_module_special_reply reply;
    struct zl_cmd_module_special *command;
    CUresult result;
    size_t length;

    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    length = strlen(name);
    if (length > ZL_INLINE_BYTES)
        return CUDA_ERROR_NOT_FOUND;
    command = zl_begin(ZL_OP_module_special, module->context, ZL_TAIL_module_special + length, true);
    if (!command)
        return zl_gone();
    command->module = (uint64_t)hmod;
    command->kind = kind;
    command->size = (uint32_t)length;
    memcpy((uint8_t *)command + ZL_TAIL_module_special, name, length);
    result = zl_call(&command->header, &reply, sizeof reply, NULL);
    if (result == CUDA_SUCCESS) {
        *address = reply.address;
        *size = reply.size;
    }
    return result;
}

CUresult zl_cuModuleGetTexRef(zl_context *context, CUtexref *pTexRef, CUmodule hmod, const char *name)
{
    uint64_t address, size;
    (void)context, (void)pTexRef;
    return zl_module_special(hmod, ZL_SPECIAL_TEXTURE, name, &address, &size);
}

CUresult zl_cuModuleGetSurfRef(zl_context *context, CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
    uint64_t address, size;
    (void)context, (void)pSurfRef;
    return zl_module_special(hmod, ZL_SPECIAL_SURFACE, name, &address, &size);
}
