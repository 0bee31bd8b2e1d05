/* hosts WHAT: programs that are unkind to a library that starts a process. */
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void use(void)
{
    CUdeviceptr memory;
    uint32_t value = 0;

    OK(cuMemAlloc(&memory, 4));
    OK(cuMemsetD32(memory, 17, 1));
    OK(cuMemcpyDtoH(&value, memory, 4));
    TRUE(value == 17);
    OK(cuMemFree(memory));
}

/* It adopts orphans: the driver process must not become one of its children. */
static void subreaper(void)
{
    int status, reaper = 0;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start();
    TRUE(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD);
    TRUE(prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper == 1);
    use();
}

/* It has closed its standard streams: what it prints there later does not reach our descriptors. */
static void closed(void)
{
    struct stat about;
    int spare = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);

    for (int i = 0; i < 3; i++)
        close(i);
    start();
    for (int i = 0; i < 3; i++)
        if (fstat(i, &about) == 0) {
            dprintf(spare, "descriptor %d is taken\n", i);
            exit(1);
        }
    dup2(spare, STDERR_FILENO);
    use();
}

static void *initialise(void *argument)
{
    (void)argument;
    OK(cuInit(0));
    start();
    use();
    return NULL;
}

static void at_once(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, initialise, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

/* It forks while another thread is in cuInit: in the child, the API works or says that it does not, and never hangs. */
static void fork_in_init(void)
{
    pthread_t thread;
    int status;
    pid_t child;

    pthread_create(&thread, NULL, initialise, NULL);
    for (int i = 0; i < 5; i++) {
        usleep(1000);
        child = fork();
        if (!child) {
            CUresult result;
            alarm(20);
            result = cuInit(0);
            _exit(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
        }
        TRUE(waitpid(child, &status, 0) == child && status == 0);
    }
    pthread_join(thread, NULL);
}

/* A thread is not cancelled in the middle of a call, where it may hold a lock. */
static _Atomic int inside;

static void *be_cancelled(void *context)
{
    CUfunction nap;
    OK(cuCtxSetCurrent(context));
    nap = kernel("nap");
    inside = 1;
    OK(launch_nap(nap, NULL, 150));
    OK(cuStreamSynchronize(NULL));
    inside = 0;
    for (;;)
        pthread_testcancel();
    return NULL;
}

static void cancelled(void)
{
    CUcontext context = start();
    pthread_t thread;

    kernel("nap");
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, be_cancelled, context);
        while (!inside)
            usleep(1000);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        TRUE(!inside);
        use();
    }
}

static void at_exit(void)
{
    use();
}

static void exiting(void)
{
    start();
    atexit(at_exit);
}

static void all_memory(void)
{
    CUdeviceptr pieces[64];
    size_t free_bytes, total;
    int count;

    start();
    for (int round = 0; round < 3; round++) {
        CUresult result = CUDA_SUCCESS;
        for (count = 0; count < 64 && (result = cuMemAlloc(&pieces[count], 100 << 20)) == CUDA_SUCCESS; count++)
            ;
        TRUE(result == CUDA_ERROR_OUT_OF_MEMORY && count == 10);
        OK(cuMemGetInfo(&free_bytes, &total));
        TRUE(free_bytes == total - (size_t)count * (100 << 20));
        while (count)
            OK(cuMemFree(pieces[--count]));
        use();
    }
}

/* Names that do not exist, asked for by many threads at once. */
static void *ask(void *argument)
{
    CUmodule module = argument;
    CUfunction function;
    char name[32];

    start();
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, i % 4 ? "nobody%d" : "scale", i / 3);
        EXPECT(cuModuleGetFunction(&function, module, name), i % 4 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS);
    }
    return NULL;
}

static void asking(void)
{
    pthread_t threads[8];
    CUmodule module;

    start();
    OK(cuModuleLoadData(&module, ptx));
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, ask, module);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    OK(cuModuleUnload(module));
}

/* Work in flight when what it uses goes. */
static void in_flight(void)
{
    CUcontext first = start(), second;
    CUfunction nap;
    CUmodule module;
    CUdeviceptr memory;
    double started;

    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&nap, module, "nap"));
    OK(cuMemAlloc(&memory, 1 << 20));
    started = seconds();
    OK(launch_nap(nap, NULL, 100));
    OK(cuMemFree(memory));
    TRUE(seconds() - started > 0.09);
    OK(launch_nap(nap, NULL, 100));
    OK(cuModuleUnload(module));
    TRUE(seconds() - started > 0.19);
    EXPECT(launch_nap(nap, NULL, 1), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxCreate_v2(&second, 0, 0));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&nap, module, "nap"));
    OK(launch_nap(nap, NULL, 100));
    OK(cuCtxDestroy(second));
    TRUE(seconds() - started > 0.29);
    EXPECT(launch_nap(nap, NULL, 1), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxSetCurrent(first));
    use();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"subreaper", subreaper}, {"closed", closed},       {"at_once", at_once},       {"fork_in_init", fork_in_init},
               {"cancelled", cancelled}, {"exiting", exiting},     {"all_memory", all_memory}, {"asking", asking},
               {"in_flight", in_flight}};

    TRUE(argc == 2);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(argv[1], all[i].name)) {
            all[i].run();
            return 0;
        }
    return 2;
}
