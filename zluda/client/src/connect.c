/* cuInit: shared memory, the window, the driver process and the hand-shake with it; and noticing its end. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

struct zl_state zl_state = {.socket = -1, .driver = -1, .note = -1};
struct zl_life *zl_life;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* No other thread is in the middle of starting a driver process when the host forks. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The window and the shared segment stay mapped in a child, so that pinned data can be read there. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    close_descriptor(&zl_state.socket);
    close_descriptor(&zl_state.driver);
    close_descriptor(&zl_state.note);
}

/* Out of the way of the standard streams, which a host may have closed: what it prints must not end up in here. */
static int above_standard(int descriptor)
{
    int moved;

    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(descriptor);
    return moved;
}

static int memory_file(const char *name, uint64_t size)
{
    int descriptor = above_standard(memfd_create(name, MFD_CLOEXEC));
    if (descriptor >= 0 && size && ftruncate(descriptor, (off_t)size) < 0)
        close_descriptor(&descriptor);
    return descriptor;
}

/* The most bytes that a file of this process may have. Growing one further would end the host by SIGXFSZ. */
static uint64_t largest_file(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

static bool send_hello(int socket, const int descriptors[4])
{
    struct zl_hello hello = {.magic = ZL_MAGIC, .protocol = ZL_PROTOCOL_IDENTITY, .window_base = zl_state.window_base,
                             .window_size = zl_state.window_size, .host = (uint32_t)getpid()};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(4 * sizeof(int))];
    } control = {0};
    struct iovec data = {&hello, sizeof hello};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    ssize_t sent;

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(4 * sizeof(int));
    memcpy(CMSG_DATA(rights), descriptors, 4 * sizeof(int));
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof hello;
}

/* The driver's answer; with ANSWER_READY comes its pidfd. */
static bool receive_answer(int socket, struct zl_answer *answer, int *pidfd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec data = {answer, sizeof *answer};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    struct cmsghdr *rights;
    ssize_t got;

    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof *answer)
        return false;
    for (rights = CMSG_FIRSTHDR(&message); rights; rights = CMSG_NXTHDR(&message, rights))
        if (rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
            memcpy(pidfd, CMSG_DATA(rights), sizeof *pidfd);
    *pidfd = above_standard(*pidfd);
    return true;
}

/* Agrees with the driver on a place for the window, and waits until it is ready. */
static CUresult shake_hands(const int descriptors[4])
{
    struct zl_answer answer;

    for (int round = 0; round < 64; round++) {
        if (!send_hello(zl_state.socket, descriptors) || !receive_answer(zl_state.socket, &answer, &zl_state.driver)) {
            zl_log("the driver process ended before it was ready");
            if (!zl_print_note())
                zl_log("it was started as `%s -m zluda.server`: ZLUDA_PYTHON must name a Python in which zluda is installed "
                       "(or start the program with `zluda run`)", zl_spawned_python());
            return CUDA_ERROR_SYSTEM_NOT_READY;
        }
        answer.message[sizeof answer.message - 1] = 0;
        if (answer.kind == ZL_ANSWER_READY && zl_state.driver >= 0) {
            zl_state.driver_process = answer.process;
            return CUDA_SUCCESS;
        }
        if (answer.kind == ZL_ANSWER_FAILED) {
            zl_log("%s", answer.message);
            return (CUresult)answer.result;
        }
        /* ANSWER_MOVE: what it proposes, or whatever else is free here. */
        zl_window_release(zl_state.window_base, zl_state.window_size);
        if (zl_window_reserve(answer.window_base, answer.window_size)) {
            zl_state.window_base = answer.window_base;
            zl_state.window_size = answer.window_size;
        } else {
            zl_state.window_base = zl_window_find(largest_file(), &zl_state.window_size);
            if (!zl_state.window_base)
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    zl_log("host and driver process found no common place for the memory window");
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void close_connection(void)
{
    close_descriptor(&zl_state.socket);
    close_descriptor(&zl_state.driver);
    close_descriptor(&zl_state.note);
}

/* Starts a driver process over memory files that it makes, in a window that is reserved. */
static CUresult start_driver(void)
{
    int pair[2], window, shared, host;
    char message[1024] = "";
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    void *mapped = MAP_FAILED;

    window = memory_file("zluda-window", zl_state.window_size);
    shared = memory_file("zluda-ring", ZL_SHARED_BYTES);
    zl_state.note = memory_file("zluda-note", 0);
    host = above_standard((int)syscall(SYS_pidfd_open, getpid(), 0));
    if (window < 0 || shared < 0 || zl_state.note < 0 || host < 0) {
        zl_log("cannot create shared memory or a pidfd (Linux 5.3 or newer is needed): %s", strerror(errno));
        goto done;
    }
    /* At its old place, if there was one: other threads may be looking at it. */
    mapped = mmap(zl_state.shared, ZL_SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | (zl_state.shared ? MAP_FIXED : 0),
                  shared, 0);
    if (mapped == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        zl_log("cannot connect to a driver process: %s", strerror(errno));
        goto done;
    }
    zl_state.shared = mapped;
    zl_state.control = mapped;
    zl_state.devices = (struct zl_device *)(zl_state.shared + ZL_DEVICES_OFFSET);
    pair[1] = above_standard(pair[1]);
    zl_state.socket = above_standard(pair[0]);
    if (pair[1] < 0 || zl_state.socket < 0) {
        zl_log("cannot connect to a driver process: %s", strerror(errno));
        if (pair[1] >= 0)
            close(pair[1]);
        goto done;
    }
    if (zl_spawn_driver(pair[1], message, sizeof message)) {
        zl_log("%s", message);
        close(pair[1]);
        result = CUDA_ERROR_SYSTEM_NOT_READY;
        goto done;
    }
    close(pair[1]);
    result = shake_hands((int[]){window, shared, host, zl_state.note});
    if (result == CUDA_SUCCESS && !zl_window_map(window, zl_state.window_base, zl_state.window_size)) {
        zl_log("cannot map the memory window: %s", strerror(errno));
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS)
        zl_state.device_count = zl_state.control->device_count;
done:
    close_descriptor(&window);
    close_descriptor(&shared);
    close_descriptor(&host);
    if (result != CUDA_SUCCESS)
        close_connection();
    return result;
}

static CUresult connect_driver(void)
{
    CUresult result;

    zl_state.window_base = zl_window_find(largest_file(), &zl_state.window_size);
    if (!zl_state.window_base) {
        zl_log("no room of 1 GiB for the memory window; is RLIMIT_AS (ulimit -v) or RLIMIT_FSIZE (ulimit -f) set low?");
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = start_driver();
    if (result != CUDA_SUCCESS && zl_state.window_base)
        zl_window_release(zl_state.window_base, zl_state.window_size);
    return result;
}

CUresult zl_restart(void)
{
    CUresult result = CUDA_SUCCESS;
    int cancellable = zl_hold_cancellation();

    pthread_mutex_lock(&lock);
    if (atomic_load(&zl_state.dead)) {
        zl_ring_reset();
        close_connection();
        /* In the same window, or wherever the new process finds room for it. */
        if (zl_state.window_base)
            zl_window_release(zl_state.window_base, zl_state.window_size);
        if (!zl_state.window_base || !zl_window_reserve(zl_state.window_base, zl_state.window_size))
            zl_state.window_base = zl_window_find(largest_file(), &zl_state.window_size);
        result = zl_state.window_base ? start_driver() : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS)
            atomic_store(&zl_state.dead, 0);
    }
    pthread_mutex_unlock(&lock);
    zl_allow_cancellation(cancellable);
    return result;
}

static bool make_life(void)
{
    long page = sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || madvise(at, (size_t)page, MADV_WIPEONFORK) < 0)
        return false;
    __atomic_store_n(&zl_life, (struct zl_life *)at, __ATOMIC_RELEASE);
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

CUresult zl_initialise(void)
{
    CUresult result;
    int cancellable = zl_hold_cancellation();

    pthread_mutex_lock(&lock);
    if (zl_state.initialised) {
        /* A child of a process that has called cuInit cannot use the API, and cannot start over. */
        result = zl_life->alive ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    } else if (!zl_life && !make_life()) {
        zl_log("cannot set up fork detection: %s", strerror(errno));
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        result = connect_driver();
        if (result == CUDA_SUCCESS) {
            zl_state.initialised = true;
            __atomic_store_n(&zl_life->alive, 1, __ATOMIC_RELEASE); /* other threads look without the lock */
        }
    }
    pthread_mutex_unlock(&lock);
    zl_allow_cancellation(cancellable);
    return result;
}

CUresult zl_cuInit(unsigned int Flags)
{
    return Flags ? CUDA_ERROR_INVALID_VALUE : zl_initialise();
}

CUresult zl_cuDriverGetVersion(int *driverVersion)
{
    *driverVersion = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult zl_gone(void)
{
    int dead = atomic_load(&zl_state.dead);
    if (!dead && zl_driver_ended())
        dead = atomic_load(&zl_state.dead);
    return dead ? (CUresult)dead : CUDA_ERROR_LAUNCH_FAILED;
}
