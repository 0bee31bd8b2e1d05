/* Messages to the user: one line each on standard error. */
#include "client.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The level that a word of `length` bytes names, or -1. */
static int level_named(const char *word, size_t length)
{
    static const char *const names[] = {[ZL_ERROR] = "error", [ZL_WARNING] = "warning", [ZL_INFO] = "info", [ZL_DEBUG] = "debug"};

    while (length && isspace((unsigned char)*word))
        word++, length--;
    while (length && isspace((unsigned char)word[length - 1]))
        length--;
    for (int level = ZL_ERROR; level <= ZL_DEBUG; level++)
        if (strlen(names[level]) == length && !strncasecmp(word, names[level], length))
            return level;
    return -1;
}

static bool names_client(const char *area, size_t length)
{
    while (length && isspace((unsigned char)*area))
        area++, length--;
    while (length && isspace((unsigned char)area[length - 1]))
        length--;
    return length == 6 && !strncmp(area, "client", 6);
}

/* As zluda/server/logs.py reads it, which also says what is wrong. */
bool zl_logs(enum zl_level level)
{
    const char *word = getenv("ZLUDA_LOG");
    int general = ZL_WARNING, own = -1, found;

    for (size_t length; word && *word; word += length + (word[length] == ',')) {
        length = strcspn(word, ",");
        size_t area = strcspn(word, "=");
        found = area < length ? level_named(word + area + 1, length - area - 1) : level_named(word, length);
        if (found >= 0 && area >= length)
            general = found;
        else if (found >= 0 && names_client(word, area))
            own = found;
    }
    return (int)level <= (own >= 0 ? own : general);
}

static void say(enum zl_level level, bool shown, const char *format, va_list arguments)
{
    char line[2048] = "zluda: ";
    int length, cancellable;
    ssize_t written;

    length = vsnprintf(line + 7, sizeof line - 8, format, arguments);
    if (length < 0)
        return;
    length = 7 + (length > (int)sizeof line - 9 ? (int)sizeof line - 9 : length);
    line[length++] = '\n';
    cancellable = zl_hold_cancellation();
    if (shown) {
        written = write(STDERR_FILENO, line, (size_t)length);
        (void)written;                   /* there is nobody left to tell */
    }
    if (level <= ZL_WARNING)
        zl_logs_add(level == ZL_ERROR ? CU_LOG_LEVEL_ERROR : CU_LOG_LEVEL_WARNING, line + 7, (size_t)length - 8);
    zl_allow_cancellation(cancellable);
}

void zl_log(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(ZL_ERROR, true, format, arguments);
    va_end(arguments);
}

void zl_log_at(enum zl_level level, const char *format, ...)
{
    bool shown = zl_logs(level);
    va_list arguments;

    if (!shown && level > ZL_WARNING)
        return;
    va_start(arguments, format);
    say(level, shown, format, arguments);
    va_end(arguments);
}

CUresult zl_not_supported(const char *symbol, const char *note)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *told[1024];
    static unsigned count;
    bool first = true;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++)
        first &= told[i] != symbol;
    if (first && count < sizeof told / sizeof *told)
        told[count++] = symbol;
    pthread_mutex_unlock(&lock);
    if (first)
        zl_log_at(ZL_WARNING, "%s is not supported%s%s", symbol, *note ? ": " : "", note);
    return CUDA_ERROR_NOT_SUPPORTED;
}
