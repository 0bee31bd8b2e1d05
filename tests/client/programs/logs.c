/* cuLogs*: callbacks, dumps, and what they refuse. argv[1]: a file to write. */
#include "check.h"

static char told[8192];
static unsigned calls;
static CUlogsCallbackHandle self;

static void note(void *data, CUlogLevel level, char *message, size_t length)
{
    TRUE(data == told && level == CU_LOG_LEVEL_ERROR && strlen(message) == length && length < sizeof told);
    strcpy(told, message);
    calls++;
}

static void leave(void *data, CUlogLevel level, char *message, size_t length)
{
    CUmodule module;
    (void)data, (void)level, (void)message, (void)length;
    calls++;
    EXPECT(cuModuleLoadData(&module, "an error within"), CUDA_ERROR_INVALID_IMAGE);
    OK(cuLogsUnregisterCallback(self));
}

static void provoke(void)
{
    CUmodule module;
    EXPECT(cuModuleLoadData(&module, "this is no image"), CUDA_ERROR_INVALID_IMAGE);
}

static unsigned lines(const char *text)
{
    unsigned count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

int main(int argc, char **argv)
{
    CUlogsCallbackHandle handle, other;
    CUlogIterator iterator = 99, before, other_iterator;
    static char buffer[65536];
    char small[200];
    size_t size;
    FILE *file;

    (void)argc;
    /* Before cuInit, and nothing yet. */
    OK(cuLogsCurrent(&iterator, 0));
    EXPECT(cuLogsCurrent(&iterator, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogsCurrent(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    size = sizeof buffer;
    buffer[0] = 'x';
    OK(cuLogsDumpToMemory(&iterator, buffer, &size, 0));
    TRUE(size == 0 && !buffer[0]);
    EXPECT(cuLogsRegisterCallback(NULL, NULL, &handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogsUnregisterCallback(NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogsUnregisterCallback((CUlogsCallbackHandle)&iterator), CUDA_ERROR_INVALID_VALUE);

    start();
    OK(cuLogsRegisterCallback(note, told, &handle));
    OK(cuLogsRegisterCallback(note, told, NULL));
    OK(cuLogsCurrent(&before, 0));
    provoke();
    TRUE(calls == 2 && strstr(told, "this is no image"));
    OK(cuLogsUnregisterCallback(handle));
    EXPECT(cuLogsUnregisterCallback(handle), CUDA_ERROR_INVALID_VALUE);
    provoke();
    TRUE(calls == 3);

    /* A callback that calls the driver and takes itself out. */
    OK(cuLogsRegisterCallback(leave, NULL, &self));
    provoke();
    TRUE(calls == 5);
    provoke();
    TRUE(calls == 6);

    /* Five messages since `before`: [time][thread][CUDA][E] text. */
    other_iterator = before;
    size = sizeof buffer;
    OK(cuLogsDumpToMemory(&before, buffer, &size, 0));
    TRUE(size == strlen(buffer) && lines(buffer) == 5);
    TRUE(buffer[0] == '[' && buffer[3] == ':' && strstr(buffer, "][CUDA][E] ") && strstr(buffer, "an error within"));
    size = sizeof buffer;
    OK(cuLogsDumpToMemory(&before, buffer, &size, 0));
    TRUE(size == 0);
    size = sizeof buffer;
    OK(cuLogsDumpToMemory(NULL, buffer, &size, 0));
    TRUE(lines(buffer) >= 5);

    /* As many of the latest as fit, and a note at the head. */
    provoke();
    size = sizeof small;
    OK(cuLogsDumpToMemory(&other_iterator, small, &size, 0));
    TRUE(size == strlen(small) && size < sizeof small && lines(small) == 2 && strstr(small, "this is no image"));
    TRUE(small[0] == '[' && strstr(small, "left out"));
    size = 5;
    memset(small, 'x', sizeof small);
    EXPECT(cuLogsDumpToMemory(NULL, small, &size, 0), CUDA_ERROR_INVALID_VALUE);
    TRUE(size == 0 && small[5] == 'x');
    size = sizeof small;
    EXPECT(cuLogsDumpToMemory(NULL, NULL, &size, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogsDumpToMemory(NULL, small, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogsDumpToMemory(NULL, small, &size, 1), CUDA_ERROR_INVALID_VALUE);

    /* Files. */
    provoke();
    OK(cuLogsDumpToFile(&other_iterator, argv[1], 0));
    file = fopen(argv[1], "r");
    size = fread(buffer, 1, sizeof buffer - 1, file);
    buffer[size] = 0;
    fclose(file);
    TRUE(lines(buffer) == 1 && strstr(buffer, "this is no image"));
    EXPECT(cuLogsDumpToFile(NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogsDumpToFile(NULL, argv[1], 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLogsDumpToFile(NULL, "/nonexistent/file", 0), CUDA_ERROR_INVALID_VALUE);

    /* The oldest go: 25600 bytes are kept. */
    OK(cuLogsRegisterCallback(note, told, &other));
    for (int i = 0; i < 500; i++)
        provoke();
    size = sizeof buffer;
    OK(cuLogsDumpToMemory(NULL, buffer, &size, 0));
    TRUE(size <= 25600 + 100 && size > 20000 && strstr(buffer, "were lost") == buffer + 16);
    OK(cuLogsUnregisterCallback(other));
    return 0;
}
