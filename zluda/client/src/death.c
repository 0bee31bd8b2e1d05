/* The end of the driver process: noticed, explained, and turned into the result that every later call returns. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

#define ZL_P_PIDFD 3                      /* P_PIDFD of newer C libraries */

/* The wait status of the driver process, which is not our child: from its pidfd once init has reaped it (Linux 6.15), from
   /proc until then. Older kernels and a quick init leave nothing to read. */
static bool wait_status(int *status)
{
    char path[64], text[1024], *field;
    ssize_t length;
    siginfo_t child = {0};
    int file;

    /* Where the host is the first process of a container, what its children leave behind becomes its own child. */
    if (waitid((idtype_t)ZL_P_PIDFD, (id_t)zl_state.driver, &child, WEXITED | WNOHANG) == 0 && child.si_pid) {
        *status = child.si_code == CLD_EXITED ? (child.si_status & 0xFF) << 8 : child.si_status;
        return true;
    }
    for (int tries = 0; tries < 20; tries++) {
        struct pidfd_information information = {.mask = PIDFD_INFORMATION_EXIT};
        if (ioctl(zl_state.driver, PIDFD_GET_INFORMATION, &information) == 0 && (information.mask & PIDFD_INFORMATION_EXIT)) {
            *status = information.exit_code;
            return true;
        }
        snprintf(path, sizeof path, "/proc/%u/stat", zl_state.driver_process);
        file = open(path, O_RDONLY | O_CLOEXEC);
        length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
        if (file >= 0)
            close(file);
        text[length > 0 ? length : 0] = 0;
        field = strrchr(text, ')');
        if (field && field[2] == 'Z' && (field = strrchr(field, ' ')) != NULL) {
            *status = atoi(field);       /* the last field is the exit code */
            return true;
        }
        usleep(1000);
    }
    return false;
}

/* The signal that ended it, 0 for an exit, -1 if unknown. Where the system does not tell, the driver's death note does,
   which Python's fault handler writes before it dies of a fatal signal. */
static int ending(int *exit_status)
{
    static const struct {
        const char *text;
        int signal;
    } notes[] = {{"Segmentation fault", SIGSEGV}, {"Aborted", SIGABRT}, {"Bus error", SIGBUS},
                 {"Illegal instruction", SIGILL}, {"Floating", SIGFPE}};
    char note[256] = "";
    int status;

    *exit_status = -1;
    if (pread(zl_state.note, note, sizeof note - 1, 0) > 0)
        for (unsigned i = 0; i < sizeof notes / sizeof *notes; i++)
            if (strstr(note, notes[i].text))
                return notes[i].signal;
    if (!wait_status(&status))
        return -1;
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    *exit_status = WEXITSTATUS(status);
    return 0;
}

bool zl_print_note(void)
{
    char note[4096];
    ssize_t length = pread(zl_state.note, note, sizeof note - 1, 0);

    if (length <= 0)
        return false;
    if (zl_logs(ZL_DEBUG)) {
        ssize_t written = write(STDERR_FILENO, note, (size_t)length);
        (void)written;
    } else {
        zl_log_at(ZL_WARNING, "ZLUDA_LOG=debug shows where the threads of the driver process were");
    }
    return true;
}

static struct {
    uint64_t function;
    char name[256];                      /* the last byte stays 0, whoever reads meanwhile */
} last_launch;

void zl_note_launch(const zl_function_entry *function)
{
    if (last_launch.function == function->handle)
        return;
    last_launch.function = function->handle;
    strncpy(last_launch.name, function->name, sizeof last_launch.name - 1);
}

static void explain(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int signal, status;
    CUresult result = CUDA_ERROR_LAUNCH_FAILED;

    pthread_mutex_lock(&lock);
    if (!atomic_load(&zl_state.dead)) {
        signal = ending(&status);
        if (signal == SIGSEGV) {
            zl_log("the driver process ended by a segmentation fault: a kernel touched memory that is not there%s%s",
                   *last_launch.name ? "; the last kernel launched was " : "", last_launch.name);
            result = CUDA_ERROR_ILLEGAL_ADDRESS;
        } else if (signal > 0) {
            zl_log("the driver process was ended by signal %d (%s)%s", signal, strsignal(signal),
                   signal == SIGKILL ? ": by hand, or because the machine ran out of memory" : "");
        } else if (status >= 0) {
            zl_log("the driver process exited with status %d", status);
        } else {
            zl_log("the driver process ended unexpectedly");
        }
        zl_print_note();
        memset(&last_launch, 0, sizeof last_launch);
        atomic_store(&zl_state.dead, (int)result);
    }
    pthread_mutex_unlock(&lock);
}

bool zl_driver_ended(void)
{
    struct pollfd poller = {.fd = zl_state.driver, .events = POLLIN};
    int cancellable;
    bool ended;

    if (atomic_load(&zl_state.dead))
        return true;
    cancellable = zl_hold_cancellation(); /* the caller may hold the ring's lock */
    ended = poll(&poller, 1, 0) > 0;
    if (ended)
        explain();
    zl_allow_cancellation(cancellable);
    return ended;
}
