/* Linking: inputs go to the driver process as they are added; the image that comes back belongs to the CUlinkState. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A log that grows until the state is destroyed, in the program's buffer. */
struct log {
    char *buffer;
    size_t size, used;
    void **filled;
};

struct link {
    pthread_mutex_t lock;
    CUdevice device;
    uint32_t process;                    /* the driver process that knows the inputs */
    struct log info, error;
    void **wall_time;
    float milliseconds;
    void *image;
    size_t image_size;
};

/* NULL, too, for a state whose inputs went down with their driver process. */
static struct link *link_of(CUlinkState state)
{
    struct link *link = zl_handle_get(ZL_LINK, (uint64_t)state);
    return link && (link->image || link->process == zl_state.driver_process) ? link : NULL;
}

/* --- options --- */

/* What cuLinkAddData and cuLinkAddFile take: options of the compiler alone. */
static CUresult check_input_options(unsigned count, CUjit_option *options, void **values)
{
    zl_jit jit;

    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        switch (options[i]) {
        case CU_JIT_WALL_TIME:
        case CU_JIT_INFO_LOG_BUFFER:
        case CU_JIT_ERROR_LOG_BUFFER:
        case CU_JIT_TARGET_FROM_CUCONTEXT:
        case CU_JIT_TARGET:
        case CU_JIT_FALLBACK_STRATEGY:
            return CUDA_ERROR_INVALID_VALUE;
        default:
            break;
        }
    return zl_jit_parse(count, options, values, &jit);
}

static void append(struct log *log, const zl_tail *text)
{
    size_t room = log->buffer && log->size ? log->size - 1 - log->used : 0;
    size_t length = text->data ? text->size : 0;

    length = length < room ? length : room;
    if (length) {
        if (log->used && log->used + 1 < log->size) {
            log->buffer[log->used++] = '\n';
            length = length < room - 1 ? length : room - 1;
        }
        memcpy(log->buffer + log->used, text->data, length);
        log->used += length;
    }
    if (log->buffer && log->size)
        log->buffer[log->used] = 0;
    if (log->filled)
        *log->filled = (void *)(uintptr_t)(log->used ? log->used + 1 : 0);
}

/* Tells what happened through the options of cuLinkCreate. */
static void report(struct link *link, const zl_tail *errors, const struct timespec *since)
{
    struct timespec now;

    zl_logs_add(CU_LOG_LEVEL_ERROR, errors->data, errors->size);
    append(&link->error, errors);
    append(&link->info, &(zl_tail){0});
    clock_gettime(CLOCK_MONOTONIC, &now);
    link->milliseconds += (float)(now.tv_sec - since->tv_sec) * 1e3f + (float)(now.tv_nsec - since->tv_nsec) * 1e-6f;
    if (link->wall_time)
        memcpy(link->wall_time, &link->milliseconds, sizeof link->milliseconds);
}

/* --- entry points --- */

CUresult zl_cuLinkCreate_v2(zl_context *context, unsigned int numOptions, CUjit_option *options, void **optionValues,
                            CUlinkState *stateOut)
{
    zl_jit jit;
    struct link *link;
    uint64_t handle;
    CUresult result = zl_jit_parse(numOptions, options, optionValues, &jit);

    for (unsigned i = 0; result == CUDA_SUCCESS && i < numOptions; i++)
        if (options[i] == CU_JIT_FALLBACK_STRATEGY) /* the linker wants exact matches */
            result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    link = calloc(1, sizeof *link);
    handle = link ? zl_handle_new(ZL_LINK, link) : 0;
    if (!handle) {
        free(link);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_init(&link->lock, NULL);
    link->device = context->device;
    link->process = zl_state.driver_process;
    link->info = (struct log){.buffer = jit.info, .size = jit.info_size, .filled = jit.info_filled};
    link->error = (struct log){.buffer = jit.error, .size = jit.error_size, .filled = jit.error_filled};
    link->wall_time = jit.wall_time;
    *stateOut = (CUlinkState)handle;
    return CUDA_SUCCESS;
}

CUresult zl_cuLinkCreate(zl_context *context, unsigned int numOptions, CUjit_option *options, void **optionValues,
                         CUlinkState *stateOut)
{
    return zl_cuLinkCreate_v2(context, numOptions, options, optionValues, stateOut);
}

/* The name and the input behind it, as they travel; to be freed. */
static uint8_t *pack(const char *name, size_t name_size, const void *data, size_t size)
{
    size_t total;
    /* More than the window holds could not travel. */
    bool travels = !__builtin_add_overflow(name_size, size, &total) && total < zl_state.window_size;
    uint8_t *packed = travels ? malloc(total) : NULL;

    if (packed) {
        memcpy(packed, name, name_size);
        memcpy(packed + name_size, data, size);
    }
    return packed;
}

static CUresult send_input(CUlinkState state, struct link *link, CUjitInputType type, const void *data, size_t size,
                           const char *name, zl_tail *errors)
{
    size_t name_size = strnlen(name, 4096);
    uint8_t *packed = pack(name, name_size, data, size);
    struct zl_cmd_link_add *command;
    zl_payload payload;
    CUresult result;

    if (!packed)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = zl_payload_prepare(&payload, packed, name_size + size);
    if (result == CUDA_SUCCESS) {
        command = zl_begin(ZL_OP_link_add, NULL, ZL_TAIL_link_add + zl_payload_inline(&payload), true);
        if (command) {
            command->link = (uint64_t)state;
            command->device = link->device;
            command->type = (uint32_t)type;
            command->address = payload.address;
            command->size = size;
            command->name_size = name_size;
            memcpy((uint8_t *)command + ZL_TAIL_link_add, packed, zl_payload_inline(&payload));
            result = zl_call(&command->header, NULL, 0, errors);
        } else {
            result = zl_gone();
        }
        zl_payload_release(&payload);
    }
    free(packed);
    return result;
}

static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t size, const char *name,
                    unsigned count, CUjit_option *options, void **values)
{
    struct link *link = link_of(state);
    struct timespec since;
    zl_tail errors = {0};
    CUresult result;

    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!data || !size || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_input_options(count, options, values);
    if (result != CUDA_SUCCESS)
        return result;
    clock_gettime(CLOCK_MONOTONIC, &since);
    pthread_mutex_lock(&link->lock);
    result = send_input(state, link, type, data, size, name ? name : "", &errors);
    report(link, &errors, &since);
    pthread_mutex_unlock(&link->lock);
    free(errors.data);
    return result;
}

CUresult zl_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                             unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    return add(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult zl_cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                          unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    return add(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult zl_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                             CUjit_option *options, void **optionValues)
{
    void *data;
    size_t size;
    CUresult result;

    if (!link_of(state))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    result = zl_file_read(path, &data, &size);
    if (result != CUDA_SUCCESS)
        return result;
    result = add(state, type, data, size, path, numOptions, options, optionValues);
    free(data);
    return result;
}

CUresult zl_cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                          CUjit_option *options, void **optionValues)
{
    return zl_cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}

static CUresult complete(CUlinkState state, struct link *link)
{
    struct timespec since;
    zl_tail tail = {0};
    CUresult result;
    struct zl_cmd_link_complete *command;

    if (link->image)
        return CUDA_SUCCESS;
    clock_gettime(CLOCK_MONOTONIC, &since);
    command = zl_begin(ZL_OP_link_complete, NULL, sizeof *command, true);
    if (!command)
        return zl_gone();
    command->link = (uint64_t)state;
    result = zl_call(&command->header, NULL, 0, &tail);
    report(link, result == CUDA_SUCCESS ? &(zl_tail){0} : &tail, &since);
    if (result == CUDA_SUCCESS) {
        link->image = tail.data;
        link->image_size = tail.size;
        return link->image ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
    }
    free(tail.data);
    return result;
}

CUresult zl_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct link *link = link_of(state);
    CUresult result;

    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&link->lock);
    result = complete(state, link);
    if (result == CUDA_SUCCESS) {
        *cubinOut = link->image;
        if (sizeOut)
            *sizeOut = link->image_size;
    }
    pthread_mutex_unlock(&link->lock);
    return result;
}

CUresult zl_cuLinkDestroy(CUlinkState state)
{
    struct link *link = zl_handle_remove(ZL_LINK, (uint64_t)state);
    struct zl_cmd_link_destroy *command;

    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    command = zl_begin(ZL_OP_link_destroy, NULL, sizeof *command, false);
    if (command) {                       /* else the driver process is gone, and its part of the state with it */
        command->link = (uint64_t)state;
        zl_post(&command->header, NULL);
    }
    pthread_mutex_destroy(&link->lock);
    free(link->image);
    free(link);
    return CUDA_SUCCESS;
}
