/* The end of the driver process: noticed, explained, and turned into the result that every later call returns. */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* <linux/pidfd.h> of Linux 6.15: the exit status of a process that is not our child. */
struct pidfd_information {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code;
};
#define PIDFD_INFORMATION_EXIT (1UL << 3)
#define PIDFD_GET_INFORMATION _IOWR(0xFF, 11, struct pidfd_information)

/* The signal that ended it, 0 for an exit, -1 if unknown. Older kernels do not tell; then the driver's death note does,
   which Python's fault handler writes before it dies of a fatal signal. */
static int ending(int *status)
{
    static const struct {
        const char *text;
        int signal;
    } notes[] = {{"Segmentation fault", SIGSEGV}, {"Aborted", SIGABRT}, {"Bus error", SIGBUS},
                 {"Illegal instruction", SIGILL}, {"Floating", SIGFPE}};
    struct pidfd_information information;
    char note[256] = "";
    ssize_t length;

    *status = -1;
    for (int tries = 0; tries < 20; tries++) { /* the kernel tells once init has reaped the process */
        information = (struct pidfd_information){.mask = PIDFD_INFORMATION_EXIT};
        if (ioctl(zl_state.driver, PIDFD_GET_INFORMATION, &information) < 0)
            break;
        if (information.mask & PIDFD_INFORMATION_EXIT) {
            if (WIFSIGNALED(information.exit_code))
                return WTERMSIG(information.exit_code);
            *status = WEXITSTATUS(information.exit_code);
            return 0;
        }
        usleep(1000);
    }
    length = pread(zl_state.note, note, sizeof note - 1, 0);
    if (length <= 0)
        return -1;
    for (unsigned i = 0; i < sizeof notes / sizeof *notes; i++)
        if (strstr(note, notes[i].text))
            return notes[i].signal;
    return -1;
}

/* Prints the stack that the fault handler left, so that the log says where it happened. */
static void print_note(void)
{
    char note[4096];
    ssize_t length = pread(zl_state.note, note, sizeof note - 1, 0);

    if (length > 0) {
        ssize_t written = write(STDERR_FILENO, note, (size_t)length);
        (void)written;
    }
}

bool zl_driver_ended(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct pollfd poller = {.fd = zl_state.driver, .events = POLLIN};
    int signal, status;
    CUresult result = CUDA_ERROR_LAUNCH_FAILED;

    if (atomic_load(&zl_state.dead))
        return true;
    if (poll(&poller, 1, 0) <= 0)
        return false;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&zl_state.dead)) {
        signal = ending(&status);
        if (signal == SIGSEGV) {
            zl_log("the driver process ended by a segmentation fault: a kernel touched memory that is not there");
            result = CUDA_ERROR_ILLEGAL_ADDRESS;
        } else if (signal > 0) {
            zl_log("the driver process was ended by signal %d (%s)%s", signal, strsignal(signal),
                   signal == SIGKILL ? ": by hand, or because the machine ran out of memory" : "");
        } else if (status >= 0) {
            zl_log("the driver process exited with status %d", status);
        } else {
            zl_log("the driver process ended unexpectedly");
        }
        print_note();
        atomic_store(&zl_state.dead, (int)result);
    }
    pthread_mutex_unlock(&lock);
    return true;
}
