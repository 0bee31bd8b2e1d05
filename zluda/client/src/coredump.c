/* Coredumps (driver API, "Coredump Attributes Control API"): the attributes are kept, but no coredump is made here, so
   that what would ask for one is refused, and callbacks that wait for one are never called. */
#include "client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 1024 };                    /* bytes of a name with its NUL */

struct settings {
    uint64_t context;                    /* ZL_CONTEXT handle; 0: the whole program's */
    struct settings *next;
    bool trigger_host;
    unsigned flags;
    char file[TEXT], pipe[TEXT];
};

struct CUcoredumpCallbackEntry_st {
    struct CUcoredumpCallbackEntry_st *next;
    bool complete;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings *all;             /* those of contexts that set any, then the program's */
static CUcoredumpCallbackHandle callbacks;

static struct settings *find(uint64_t context)
{
    struct settings *each;

    for (each = all; each && each->context != context; each = each->next)
        ;
    return each;
}

static struct settings *program_settings(void)
{
    struct settings *found = find(0);
    char host[256] = "";

    if (found || !(found = calloc(1, sizeof *found)))
        return found;
    gethostname(host, sizeof host - 1);
    found->trigger_host = true;
    snprintf(found->file, TEXT, "core.cuda.%s.%d", host, (int)getpid());
    snprintf(found->pipe, TEXT, "corepipe.cuda.%s.%d", host, (int)getpid());
    found->next = all;
    all = found;
    return found;
}

/* A context's own settings: those of the program until it sets some. */
static struct settings *settings_of(uint64_t context, bool change)
{
    struct settings *program = program_settings(), *own = context ? find(context) : program;

    if (own || !change || !program)
        return own ? own : program;
    own = malloc(sizeof *own);
    if (own) {
        *own = *program;
        own->context = context;
        own->next = all;
        all = own;
    }
    return own;
}

static size_t size_of(CUcoredumpSettings attrib)
{
    switch (attrib) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_TRIGGER_HOST:
    case CU_COREDUMP_LIGHTWEIGHT:
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
        return sizeof(bool);
    case CU_COREDUMP_FILE:
    case CU_COREDUMP_PIPE:
        return TEXT;
    case CU_COREDUMP_GENERATION_FLAGS:
        return sizeof(int);
    default:
        return 0;
    }
}

static bool is_text(CUcoredumpSettings attrib)
{
    return attrib == CU_COREDUMP_FILE || attrib == CU_COREDUMP_PIPE;
}

/* The checks that reading and writing share; `done` if only the size was asked for. */
static CUresult check(CUcoredumpSettings attrib, const void *value, size_t *size, bool *done)
{
    const size_t expected = size_of(attrib);

    *done = !value;
    if (!expected || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (!value)
        *size = expected;
    else if (is_text(attrib) ? !*size : *size < expected)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult get(uint64_t context, CUcoredumpSettings attrib, void *value, size_t *size)
{
    struct settings *settings;
    bool done;
    CUresult result = check(attrib, value, size, &done);

    if (result != CUDA_SUCCESS || done)
        return result;
    pthread_mutex_lock(&lock);
    settings = settings_of(context, false);
    if (!settings) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (is_text(attrib)) {
        const char *text = attrib == CU_COREDUMP_FILE ? settings->file : settings->pipe;
        if (strlen(text) < *size)
            memcpy(value, text, strlen(text) + 1);
        else
            result = CUDA_ERROR_INVALID_VALUE;
    } else if (attrib == CU_COREDUMP_GENERATION_FLAGS) {
        memcpy(value, &settings->flags, sizeof settings->flags);
    } else {
        bool answer = attrib == CU_COREDUMP_TRIGGER_HOST
                          ? settings->trigger_host
                          : attrib == CU_COREDUMP_LIGHTWEIGHT &&
                                (settings->flags & CU_COREDUMP_LIGHTWEIGHT_FLAGS) == CU_COREDUMP_LIGHTWEIGHT_FLAGS;
        memcpy(value, &answer, sizeof answer);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult write_value(struct settings *settings, CUcoredumpSettings attrib, const void *value, size_t size)
{
    const unsigned known = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT | CU_COREDUMP_GZIP_COMPRESS |
                           CU_COREDUMP_FAULTED_CONTEXTS_ONLY | CU_COREDUMP_NO_ERRBAR_AT_EXIT |
                           (unsigned)CU_COREDUMP_LOG_ONLY;
    bool on = *(const unsigned char *)value;
    unsigned flags;
    size_t length;

    switch (attrib) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
        return on ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
    case CU_COREDUMP_TRIGGER_HOST:
        settings->trigger_host = on;
        return CUDA_SUCCESS;
    case CU_COREDUMP_LIGHTWEIGHT:
        settings->flags = on ? settings->flags | CU_COREDUMP_LIGHTWEIGHT_FLAGS
                             : settings->flags & ~(unsigned)CU_COREDUMP_LIGHTWEIGHT_FLAGS;
        return CUDA_SUCCESS;
    case CU_COREDUMP_GENERATION_FLAGS:
        memcpy(&flags, value, sizeof flags);
        if (flags & ~known)
            return CUDA_ERROR_INVALID_VALUE;
        settings->flags = flags;
        return CUDA_SUCCESS;
    default:
        length = strnlen(value, size);
        if (length >= TEXT)
            return CUDA_ERROR_INVALID_VALUE;
        memset(attrib == CU_COREDUMP_FILE ? settings->file : settings->pipe, 0, TEXT);
        memcpy(attrib == CU_COREDUMP_FILE ? settings->file : settings->pipe, value, length);
        return CUDA_SUCCESS;
    }
}

static CUresult set(uint64_t context, CUcoredumpSettings attrib, const void *value, size_t *size)
{
    struct settings *settings;
    bool done;
    CUresult result = check(attrib, value, size, &done);

    if (result != CUDA_SUCCESS || done)
        return result;
    pthread_mutex_lock(&lock);
    settings = settings_of(context, true);
    result = settings ? write_value(settings, attrib, value, *size) : CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult zl_cuCoredumpGetAttribute(zl_context *context, CUcoredumpSettings attrib, void *value, size_t *size)
{
    return get(context->handle, attrib, value, size);
}

CUresult zl_cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return get(0, attrib, value, size);
}

CUresult zl_cuCoredumpSetAttribute(zl_context *context, CUcoredumpSettings attrib, void *value, size_t *size)
{
    if (attrib == CU_COREDUMP_ENABLE_USER_TRIGGER || attrib == CU_COREDUMP_PIPE) /* the program's alone */
        return CUDA_ERROR_INVALID_VALUE;
    return set(context->handle, attrib, value, size);
}

CUresult zl_cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return set(0, attrib, value, size);
}

/* --- callbacks --- */

static CUresult enter(CUcoredumpStatusCallback callback, bool complete, CUcoredumpCallbackHandle *out)
{
    CUcoredumpCallbackHandle entry;

    if (!callback)
        return CUDA_ERROR_INVALID_VALUE;
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry->complete = complete;
    pthread_mutex_lock(&lock);
    entry->next = callbacks;
    callbacks = entry;
    pthread_mutex_unlock(&lock);
    if (out)
        *out = entry;
    return CUDA_SUCCESS;
}

static CUresult leave(CUcoredumpCallbackHandle handle, bool complete)
{
    CUcoredumpCallbackHandle *at, found = NULL;

    pthread_mutex_lock(&lock);
    for (at = &callbacks; *at && *at != handle; at = &(*at)->next)
        ;
    if (handle && *at && handle->complete == complete) {
        found = *at;
        *at = found->next;
    }
    pthread_mutex_unlock(&lock);
    free(found);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult zl_cuCoredumpRegisterStartCallback(CUcoredumpStatusCallback callback, void *userData,
                                            CUcoredumpCallbackHandle *callbackOut)
{
    (void)userData;
    return enter(callback, false, callbackOut);
}

CUresult zl_cuCoredumpRegisterCompleteCallback(CUcoredumpStatusCallback callback, void *userData,
                                               CUcoredumpCallbackHandle *callbackOut)
{
    (void)userData;
    return enter(callback, true, callbackOut);
}

CUresult zl_cuCoredumpDeregisterStartCallback(CUcoredumpCallbackHandle callback)
{
    return leave(callback, false);
}

CUresult zl_cuCoredumpDeregisterCompleteCallback(CUcoredumpCallbackHandle callback)
{
    return leave(callback, true);
}
