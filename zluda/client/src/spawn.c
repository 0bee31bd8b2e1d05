/* Starting the driver process so that the host program does not notice: no signal, no child to wait for, nothing of the
   host's environment that could get in its way. */
#include "client.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ZL_DEFAULT_PYTHON
#define ZL_DEFAULT_PYTHON ""
#endif

extern char **environ;

enum { DRIVER_SOCKET = 3, STACK = 64 * 1024 };

struct start {
    const char *python;
    char **arguments, **environment;
    int socket;
    char *stack;                         /* two, for child and grandchild */
    volatile int error;
    const char *volatile failed;
};

static bool executable(const char *path)
{
    return access(path, X_OK) == 0;
}

/* The Python that runs the driver: ZLUDA_PYTHON; or that of the environment this library is installed in; or the one
   it was built with. */
static bool find_python(char *python, size_t size)
{
    const char *wanted = getenv("ZLUDA_PYTHON");
    char place[PATH_MAX];
    Dl_info info;

    if (wanted && *wanted)
        return (size_t)snprintf(python, size, "%s", wanted) < size;
    if (dladdr((void *)(uintptr_t)zl_spawn_driver, &info) && realpath(info.dli_fname, place)) {
        bool installed = strstr(place, "/lib/python3") != NULL;
        for (char *slash = strrchr(place, '/'); slash && slash != place; slash = strrchr(place, '/')) {
            *slash = 0;
            if ((size_t)snprintf(python, size, "%s/pyvenv.cfg", place) < size && access(python, R_OK) == 0 &&
                (size_t)snprintf(python, size, "%s/bin/python", place) < size && executable(python))
                return true;
            /* <prefix>/lib/python3.x/site-packages/zluda/client/lib without a virtual environment */
            if (installed && strstr(place, "/lib/python3") == NULL &&
                (size_t)snprintf(python, size, "%s/bin/python3", place) < size && executable(python))
                return true;
        }
    }
    return (size_t)snprintf(python, size, "%s", ZL_DEFAULT_PYTHON) < size && executable(python);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

char **zl_driver_environment(void)
{
    size_t count = 0, kept = 0;
    char **copy;

    while (environ && environ[count]) /* clearenv() leaves none */
        count++;
    copy = malloc((count + 1) * sizeof *copy);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        char *variable = environ[i];
        if (starts(variable, "ZLUDA_LD_LIBRARY_PATH="))
            copy[kept++] = variable + 6; /* what the driver's own libraries are to be looked up in */
        else if (!starts(variable, "PYTHON") && !starts(variable, "LD_"))
            copy[kept++] = variable;
    }
    copy[kept] = NULL;
    return copy;
}

/* Limits that a host may have put on itself; the driver process needs descriptors and addresses of its own. */
static const __rlimit_resource_t raised[] = {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_CPU};

static void fail(struct start *start, const char *what)
{
    start->error = errno;
    start->failed = what;
}

/* Runs in the grandchild, in the host's memory: nothing here but system calls. */
static int become_driver(void *argument)
{
    struct start *start = argument;
    cpu_set_t all;
    struct rlimit limit;
    sigset_t none;
    int null;

    setsid();
    for (int number = 1; number < NSIG; number++)
        if (number != SIGKILL && number != SIGSTOP)
            signal(number, number == SIGINT ? SIG_IGN : SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    memset(&all, 0xFF, sizeof all);
    sched_setaffinity(0, sizeof all, &all); /* what is not allowed is left out by the kernel */
    for (unsigned i = 0; i < sizeof raised / sizeof *raised; i++)
        if (getrlimit(raised[i], &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit(raised[i], &limit);
        }
    if (start->socket == DRIVER_SOCKET ? fcntl(DRIVER_SOCKET, F_SETFD, 0) < 0 : dup2(start->socket, DRIVER_SOCKET) < 0) {
        fail(start, "dup2");
        _exit(127);
    }
    null = open("/dev/null", O_RDWR);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (fcntl(STDERR_FILENO, F_GETFD) < 0 && null >= 0)
        dup2(null, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);  /* the host's output is not the driver's */
#ifdef SYS_close_range
    if (syscall(SYS_close_range, DRIVER_SOCKET + 1, ~0U, 0) < 0)
#endif
        for (int descriptor = DRIVER_SOCKET + 1; descriptor < 65536; descriptor++)
            close(descriptor);
    execve(start->python, start->arguments, start->environment);
    fail(start, start->python);
    _exit(127);
}

static int become_parent(void *argument)
{
    struct start *start = argument;
    if (clone(become_driver, start->stack + 2 * STACK, CLONE_VM | CLONE_VFORK, start) < 0)
        fail(start, "clone");
    _exit(0);
}

static char python[PATH_MAX];            /* under the lock of cuInit */

const char *zl_driver_python(void)
{
    return find_python(python, sizeof python) ? python : "";
}

int zl_spawn_driver(int socket, char *message, size_t size)
{
    char *arguments[] = {python, "-P", "-m", "zluda.server", "--fd", "3", NULL};
    struct start start = {.python = python, .arguments = arguments, .socket = socket};
    sigset_t all, before;
    int reaper = 0;
    pid_t child;

    if (!find_python(python, sizeof python)) {
        snprintf(message, size, "no Python found to run the driver process with: set ZLUDA_PYTHON, or start the program with `zluda run`");
        return ENOENT;
    }
    start.environment = zl_driver_environment();
    start.stack = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (!start.environment || start.stack == MAP_FAILED) {
        free(start.environment);
        snprintf(message, size, "no memory to start the driver process");
        return ENOMEM;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the host runs in a child that shares its memory */
    /* A host that adopts orphans would see the driver as its child, and wait for it for ever. Nothing can be done where the
       host is the first process of its PID namespace: there wait() sees the driver. */
    if (prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper)
        prctl(PR_SET_CHILD_SUBREAPER, 0);
    /* Exit signal 0: the host's wait() does not see the child, which ends at once and leaves the driver to init. */
    child = clone(become_parent, start.stack + STACK, CLONE_VM | CLONE_VFORK, &start);
    if (child < 0)
        fail(&start, "clone");
    else
        while (waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
            ;
    if (reaper)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(start.stack, 2 * STACK);
    free(start.environment);
    if (start.error)
        snprintf(message, size, "cannot start the driver process: %s: %s", start.failed == python ? python : start.failed, strerror(start.error));
    return start.error;
}
