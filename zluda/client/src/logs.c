/* cuLogs*: the latest messages, kept for the program, handed to its callbacks, and written to CUDA_LOG_FILE. */
#include "client.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KEPT_BYTES = 25600, LONGEST = 4096 }; /* what the manual says is kept; of one message */

struct message {
    struct message *next;
    unsigned number;
    size_t length;                       /* with its newline */
    char text[];
};

struct CUlogsCallbackEntry_st {
    struct CUlogsCallbackEntry_st *next;
    CUlogsCallback function;
    void *data;
    unsigned running;                    /* calls of it */
    bool gone;
};
typedef struct CUlogsCallbackEntry_st callback;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
static struct message *oldest, *newest;
static size_t kept;
static unsigned next_number;
static callback *callbacks;
static _Thread_local bool in_callback;

static const char lost[] = "[older messages were lost: the log was full]\n";
static const char omitted[] = "[older messages are left out: the buffer is too small]\n";

/* --- messages --- */

static void write_all(int descriptor, const char *text, size_t length)
{
    while (length) {
        ssize_t written = write(descriptor, text, length);
        if (written <= 0)
            return;                      /* there is nobody left to tell */
        text += written;
        length -= (size_t)written;
    }
}

static void write_to_file(const struct message *message)
{
    const char *name = getenv("CUDA_LOG_FILE");
    int descriptor;

    if (!name || !*name)
        return;
    if (!strcmp(name, "stdout"))
        descriptor = STDOUT_FILENO;
    else if (!strcmp(name, "stderr"))
        descriptor = STDERR_FILENO;
    else
        descriptor = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return;
    write_all(descriptor, message->text, message->length);
    if (descriptor > STDERR_FILENO)
        close(descriptor);
}

static void keep(struct message *message)
{
    message->number = next_number++;
    if (newest)
        newest->next = message;
    else
        oldest = message;
    newest = message;
    kept += message->length;
    while (kept > KEPT_BYTES) {
        struct message *gone = oldest;
        oldest = gone->next;
        kept -= gone->length;
        free(gone);
    }
}

/* [time][thread][source][severity] text */
static struct message *format(CUlogLevel level, const char *text, size_t length)
{
    struct message *message = malloc(sizeof *message + LONGEST + 96);
    struct timespec now;
    struct tm here;
    int head;

    if (!message)
        return NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &here);
    head = snprintf(message->text, 96, "[%02d:%02d:%02d.%03ld][%ld][CUDA][%c] ", here.tm_hour, here.tm_min, here.tm_sec,
                    now.tv_nsec / 1000000, syscall(SYS_gettid), level == CU_LOG_LEVEL_ERROR ? 'E' : 'W');
    memcpy(message->text + head, text, length);
    message->length = (size_t)head + length;
    message->text[message->length++] = '\n';
    message->next = NULL;
    return message;
}

/* Calls everyone who is registered, without the lock, so that a callback may call cuLogs* itself. */
static void tell(CUlogLevel level, const char *text, size_t length)
{
    char copy[LONGEST + 1];
    callback *next;

    for (callback *each = callbacks; each; each = next) {
        if (!each->gone) {
            each->running++;
            pthread_mutex_unlock(&lock);
            memcpy(copy, text, length);  /* each may write in its own */
            copy[length] = 0;
            in_callback = true;
            each->function(each->data, level, copy, length);
            in_callback = false;
            pthread_mutex_lock(&lock);
            each->running--;
            pthread_cond_broadcast(&returned);
        }
        next = each->next;
    }
    for (callback **at = &callbacks; *at;) { /* those that left while they, or others, were called */
        callback *each = *at;
        if (each->gone && !each->running) {
            *at = each->next;
            free(each);
        } else {
            at = &each->next;
        }
    }
}

static void add_line(CUlogLevel level, const char *text, size_t length)
{
    struct message *message;
    int cancellable = zl_hold_cancellation();

    length = length < LONGEST ? length : LONGEST;
    message = format(level, text, length);
    pthread_mutex_lock(&lock);
    if (message) {
        write_to_file(message);
        keep(message);
    }
    if (!in_callback)                    /* what a callback causes is not told to callbacks */
        tell(level, text, length);
    pthread_mutex_unlock(&lock);
    zl_allow_cancellation(cancellable);
}

void zl_logs_add(CUlogLevel level, const char *text, size_t length)
{
    while (length) {
        const char *end = memchr(text, '\n', length);
        size_t line = end ? (size_t)(end - text) : length;
        if (line)
            add_line(level, text, line);
        line += end ? 1 : 0;
        text += line;
        length -= line;
    }
}

/* --- callbacks --- */

CUresult zl_cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
    callback *fresh;

    if (!callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fresh->function = callbackFunc;
    fresh->data = userData;
    pthread_mutex_lock(&lock);
    fresh->next = callbacks;
    callbacks = fresh;
    pthread_mutex_unlock(&lock);
    if (callback_out)
        *callback_out = fresh;
    return CUDA_SUCCESS;
}

/* After it has returned, the callback is not running, unless it is the callback that asks. */
CUresult zl_cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
    callback **at;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    pthread_mutex_lock(&lock);
    for (at = &callbacks; *at && *at != handle; at = &(*at)->next)
        ;
    if (handle && *at && !handle->gone) {
        handle->gone = true;
        handle->running++;               /* stays until we are done with it */
        while (!in_callback && handle->running > 1)
            pthread_cond_wait(&returned, &lock);
        if (--handle->running == 0) {
            for (at = &callbacks; *at != handle; at = &(*at)->next)
                ;
            *at = handle->next;
            free(handle);
        }
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* --- dumping --- */

CUresult zl_cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *iterator_out = next_number;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* The first message to dump, and whether some before it were lost. */
static const struct message *first_from(const CUlogIterator *iterator, bool *truncated)
{
    const struct message *message = oldest;
    unsigned first = oldest ? oldest->number : next_number;

    *truncated = iterator ? (int)(*iterator - first) < 0 : first != 0;
    while (iterator && message && (int)(message->number - *iterator) < 0)
        message = message->next;
    return message;
}

CUresult zl_cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
    const struct message *message;
    bool truncated;
    int file;

    if (!pathToFile || flags)
        return CUDA_ERROR_INVALID_VALUE;
    file = open(pathToFile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    message = first_from(iterator, &truncated);
    if (truncated)
        write_all(file, lost, sizeof lost - 1);
    for (; message; message = message->next)
        write_all(file, message->text, message->length);
    if (iterator)
        *iterator = next_number;
    pthread_mutex_unlock(&lock);
    close(file);
    return CUDA_SUCCESS;
}

/* Writes the messages from `from` behind a note, as many of the latest as fit; the bytes written, 0 if none fits. */
static size_t dump(const struct message *from, const char *note, char *buffer, size_t size)
{
    size_t total = 0, at;

    for (const struct message *each = from; each; each = each->next)
        total += each->length;
    if (total + strlen(note) + 1 > size) {
        note = omitted;
        while (from && total + strlen(note) + 1 > size) {
            total -= from->length;
            from = from->next;
        }
    }
    if (!from)
        return 0;
    at = strlen(note);
    memcpy(buffer, note, at);
    for (const struct message *each = from; each; each = each->next) {
        memcpy(buffer + at, each->text, each->length);
        at += each->length;
    }
    buffer[at] = 0;
    return at;
}

CUresult zl_cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
    const struct message *message;
    CUresult result = CUDA_SUCCESS;
    bool truncated;
    size_t room = *size;

    if (!buffer || !room || flags)
        return CUDA_ERROR_INVALID_VALUE;
    buffer[0] = 0;
    pthread_mutex_lock(&lock);
    message = first_from(iterator, &truncated);
    *size = message ? dump(message, truncated ? lost : "", buffer, room) : 0;
    if (message && !*size)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (iterator)
        *iterator = next_number;
    pthread_mutex_unlock(&lock);
    return result;
}
