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

struct zl_state zl_state = {.socket = -1, .driver = -1, .note = -1, .window = -1};
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
    close_descriptor(&zl_state.window);
}

/* The most bytes that a file of this process may have. Growing one further would end the host by SIGXFSZ. */
static uint64_t largest_file(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

static bool send_hello(const int descriptors[4])
{
    struct zl_hello hello = {.magic = ZL_MAGIC, .protocol = ZL_PROTOCOL_IDENTITY, .window_base = zl_state.window_base,
                             .window_size = zl_state.window_size, .host = (uint32_t)getpid()};
    return zl_send(zl_state.socket, &hello, sizeof hello, descriptors, 4);
}

/* Agrees with the driver on a place for the window, and waits until it is ready. */
static CUresult shake_hands(const int descriptors[4])
{
    struct zl_answer answer;

    for (int round = 0; round < 64; round++) {
        /* With ANSWER_READY comes the driver's pidfd. */
        if (!send_hello(descriptors) || !zl_receive(zl_state.socket, &answer, sizeof answer, &zl_state.driver)) {
            zl_log("the driver process ended before it was ready");
            if (!zl_print_note())
                zl_log("it was started as `%s -m zluda.server`: ZLUDA_PYTHON must name a Python in which zluda is installed "
                       "(or start the program with `zluda run`)", zl_driver_python());
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
    close_descriptor(&zl_state.window);
}

/* Starts a driver process and opens a socket to it. */
static CUresult spawn(void)
{
    char message[1024] = "";
    int pair[2], failed;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        zl_log("cannot connect to a driver process: %s", strerror(errno));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pair[1] = zl_above_standard(pair[1]);
    zl_state.socket = zl_above_standard(pair[0]);
    if (pair[1] < 0 || zl_state.socket < 0) {
        zl_log("cannot connect to a driver process: %s", strerror(errno));
        close_descriptor(&pair[1]);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    failed = zl_spawn_driver(pair[1], message, sizeof message);
    close(pair[1]);
    if (failed)
        zl_log("%s", message);
    return failed ? CUDA_ERROR_SYSTEM_NOT_READY : CUDA_SUCCESS;
}

/* Starts a driver process, or takes the one that is waiting, over memory files that it makes, in a window that is
   reserved. */
static CUresult start_driver(void)
{
    int window, shared, host;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    void *mapped = MAP_FAILED;

    window = zl_memory_file("zluda-window", zl_state.window_size);
    shared = zl_memory_file("zluda-ring", ZL_SHARED_BYTES);
    zl_state.note = zl_memory_file("zluda-note", 0);
    host = zl_above_standard((int)syscall(SYS_pidfd_open, getpid(), 0));
    if (window < 0 || shared < 0 || zl_state.note < 0 || host < 0) {
        zl_log("cannot create shared memory or a pidfd (Linux 5.3 or newer is needed): %s", strerror(errno));
        goto done;
    }
    /* At its old place, if there was one: other threads may be looking at it. */
    mapped = mmap(zl_state.shared, ZL_SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | (zl_state.shared ? MAP_FIXED : 0),
                  shared, 0);
    if (mapped == MAP_FAILED) {
        zl_log("cannot map shared memory: %s", strerror(errno));
        goto done;
    }
    zl_state.shared = mapped;
    zl_state.control = mapped;
    zl_state.devices = (struct zl_device *)(zl_state.shared + ZL_DEVICES_OFFSET);
    zl_state.socket = zl_claim_driver();
    result = zl_state.socket >= 0 ? CUDA_SUCCESS : spawn();
    if (result == CUDA_SUCCESS)
        result = shake_hands((int[]){window, shared, host, zl_state.note});
    if (result == CUDA_SUCCESS && !zl_window_map(window, zl_state.window_base, zl_state.window_size)) {
        zl_log("cannot map the memory window: %s", strerror(errno));
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        zl_state.device_count = zl_state.control->device_count;
        zl_state.window = window;        /* kept, for mappings */
        window = -1;
        zl_log_at(ZL_INFO, "connected to driver process %u, devices: %u", zl_state.driver_process, zl_state.device_count);
    }
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
    zl_callback_hold();
    if (atomic_load(&zl_state.dead)) {
        zl_ring_reset();
        close_connection();
        /* In the same window, or wherever the new process finds room for it. */
        if (zl_state.window_base)
            zl_window_release(zl_state.window_base, zl_state.window_size);
        if (!zl_state.window_base || !zl_window_reserve(zl_state.window_base, zl_state.window_size))
            zl_state.window_base = zl_window_find(largest_file(), &zl_state.window_size);
        result = zl_state.window_base ? start_driver() : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS) {
            zl_callback_restarted();
            atomic_store(&zl_state.dead, 0);
        }
    }
    zl_callback_release();
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
