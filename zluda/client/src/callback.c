/* Host functions and stream callbacks. They run in this process, one at a time, on a thread of their own that is started
   with the first of them. The driver process says whose turn it is in the control block and waits until it has run: not
   over the ring, whose reader may be waiting for that very stream. */
#include "capture.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct task {
    struct task *next;
    uint64_t id, generation;             /* of the driver process that is to call it */
    CUhostFn function;                   /* either this, */
    CUstreamCallback callback;           /* or this */
    CUstream stream;
    void *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static struct task *first, **last = &first;
static uint64_t last_id;
static bool running;

/* Held while a new driver process takes the place of one that has ended. */
static pthread_mutex_t restarting = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t generation;

void zl_callback_hold(void)
{
    pthread_mutex_lock(&restarting);
}

void zl_callback_restarted(void)
{
    atomic_fetch_add(&generation, 1);
}

void zl_callback_release(void)
{
    pthread_mutex_unlock(&restarting);
}

/* Takes the task with that number off the list; the first that no driver process is going to call, for 0. */
static struct task *take(uint64_t id, bool dead)
{
    struct task *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct task **at = &first; *at; at = &(*at)->next)
        if (id ? (*at)->id == id : dead || (*at)->generation != atomic_load(&generation)) {
            found = *at;
            *at = found->next;
            if (!found->next)
                last = at;
            break;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

/* A host function is not called after an error, a callback is and gets its code. */
static void call(struct task *task, CUresult status)
{
    if (task->callback)
        task->callback(task->stream, status, task->data);
    else if (status == CUDA_SUCCESS)
        task->function(task->data);
    free(task);
}

/* Runs what the driver process has named, or else sleeps a while. */
static void serve_once(void)
{
    struct zl_control *control;
    struct task *task;
    CUresult status;
    uint64_t id, before;
    bool dead;

    pthread_mutex_lock(&restarting);
    before = atomic_load(&generation);
    control = zl_state.control;
    dead = atomic_load(&zl_state.dead) || zl_driver_ended();
    id = __atomic_load_n(&control->host_call, __ATOMIC_ACQUIRE);
    if (dead || id == __atomic_load_n(&control->host_done, __ATOMIC_RELAXED)) {
        status = dead ? zl_gone() : CUDA_ERROR_LAUNCH_FAILED;
        task = take(0, dead);
        pthread_mutex_unlock(&restarting);
        if (task) {
            call(task, status);
        } else if (!dead) {
            struct timespec timeout = {.tv_nsec = 50000000};
            syscall(SYS_futex, (uint32_t *)&control->host_call, FUTEX_WAIT, (uint32_t)id, &timeout, NULL, 0);
        }
        return;
    }
    status = (CUresult)control->host_status;
    task = take(id, false);
    pthread_mutex_unlock(&restarting);
    if (task)
        call(task, status);
    pthread_mutex_lock(&restarting);
    if (before == atomic_load(&generation)) {
        __atomic_store_n(&control->host_done, id, __ATOMIC_RELEASE);
        syscall(SYS_futex, (uint32_t *)&control->host_done, FUTEX_WAKE, 0x7FFFFFFF, NULL, NULL, 0);
    }
    pthread_mutex_unlock(&restarting);
}

static void *serve(void *unused)
{
    zl_thread_self()->calling_back = true;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!first)
            pthread_cond_wait(&posted, &lock);
        pthread_mutex_unlock(&lock);
        serve_once();
    }
    return unused;
}

/* The signals of the host are for its own threads. */
static bool start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    bool started;

    pthread_mutex_lock(&lock);
    if (!running && pthread_attr_init(&attributes) == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        running = pthread_create(&thread, &attributes, serve, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    started = running;
    pthread_mutex_unlock(&lock);
    return started;
}

static CUresult enqueue(zl_context *context, CUstream stream, CUhostFn function, CUstreamCallback callback, void *data)
{
    struct zl_cmd_host_function *command;
    struct task *task;
    uint64_t wire;
    CUresult result;
    bool started;

    if (!function && !callback)
        return CUDA_ERROR_INVALID_VALUE;
    if (function && zl_captured(stream)) /* callbacks cannot be captured, says the manual: zl_use_stream refuses them */
        return zl_capture_host(stream, function, data);
    result = zl_use_stream(stream, &context, &wire);
    if (result != CUDA_SUCCESS)
        return result;
    task = calloc(1, sizeof *task);
    if (!task)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *task = (struct task){.function = function, .callback = callback, .stream = stream, .data = data};
    started = start_thread();
    command = started ? zl_begin(ZL_OP_host_function, context, sizeof *command, false) : NULL;
    if (!command) {
        free(task);
        return started ? zl_gone() : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);           /* inside the ring's, so that the driver process is the one it is posted to */
    task->id = ++last_id;
    task->generation = atomic_load(&generation);
    command->stream = wire;
    command->task = task->id;
    *last = task;
    last = &task->next;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
    zl_post(&command->header, context);
    return CUDA_SUCCESS;
}

CUresult zl_cuLaunchHostFunc(zl_context *context, CUstream hStream, CUhostFn fn, void *userData)
{
    return enqueue(context, hStream, fn, NULL, userData);
}

CUresult zl_cuLaunchHostFunc_v2(zl_context *context, CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode)
{
    (void)syncMode;                      /* how a thread waits for tasks: it sleeps, which both modes allow */
    return enqueue(context, hStream, fn, NULL, userData);
}

CUresult zl_cuStreamAddCallback(zl_context *context, CUstream hStream, CUstreamCallback callback, void *userData,
                                unsigned int flags)
{
    (void)flags;
    return enqueue(context, hStream, NULL, callback, userData);
}
