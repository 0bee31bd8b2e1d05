/* A forked child cannot use the API; its parent goes on; and the driver process is no child that a wait would see. */
#include "check.h"
#include <errno.h>
#include <sys/wait.h>

int main(void)
{
    CUdeviceptr memory;
    uint32_t value = 0;
    char *pinned;
    int status, count;
    pid_t child;

    EXPECT(cuInit(0), CUDA_SUCCESS);
    TRUE(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD);
    start();
    OK(cuMemAlloc(&memory, 4));
    OK(cuMemAllocHost((void **)&pinned, 4096));
    strcpy(pinned, "still readable");
    OK(cuMemsetD32(memory, 17, 1));
    child = fork();
    if (!child) {
        EXPECT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
        EXPECT(cuMemAlloc(&memory, 4), CUDA_ERROR_NOT_INITIALIZED);
        EXPECT(cuMemcpyDtoH(&value, memory, 4), CUDA_ERROR_NOT_INITIALIZED);
        EXPECT(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
        TRUE(!strcmp(pinned, "still readable"));
        _exit(42);
    }
    TRUE(waitpid(-1, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    TRUE(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD);
    OK(cuMemcpyDtoH(&value, memory, 4));
    TRUE(value == 17);
    return 0;
}
