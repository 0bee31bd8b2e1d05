/* Messages to the user: one line each on standard error. */
#include "client.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void zl_log(const char *format, ...)
{
    char line[2048] = "zluda: ";
    va_list arguments;
    int length, cancellable;
    ssize_t written;

    va_start(arguments, format);
    length = vsnprintf(line + 7, sizeof line - 8, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    length = 7 + (length > (int)sizeof line - 9 ? (int)sizeof line - 9 : length);
    line[length++] = '\n';
    cancellable = zl_hold_cancellation();
    written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;                       /* there is nobody left to tell */
    zl_allow_cancellation(cancellable);
    zl_logs_add(CU_LOG_LEVEL_ERROR, line + 7, (size_t)length - 8);
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
        zl_log("%s is not supported%s%s", symbol, *note ? ": " : "", note);
    return CUDA_ERROR_NOT_SUPPORTED;
}
