/* What each thread of the host has: its stack of contexts, and a number that tells its default streams apart. */
#include "client.h"

#include <pthread.h>
#include <stdlib.h>

static __thread zl_thread *self __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t numbers;

static void end(void *object)
{
    zl_thread *thread = object;

    self = NULL;
    if (thread->has_streams && zl_alive()) {
        struct zl_cmd_thread_end *command = zl_begin(ZL_OP_thread_end, NULL, sizeof *command, false);
        if (command) {
            command->stream = thread->number << 4 | ZL_STREAM_PER_THREAD;
            zl_post(&command->header, NULL);
        }
    }
    free(thread->stack);
    free(thread);
}

static void make_key(void)
{
    if (pthread_key_create(&key, end))
        abort();                         /* the host has used up its thread-specific keys */
}

zl_thread *zl_thread_self(void)
{
    if (ZL_LIKELY(self))
        return self;
    pthread_once(&once, make_key);
    self = calloc(1, sizeof *self);
    if (!self)
        abort();
    self->number = atomic_fetch_add(&numbers, 1) + 1;
    pthread_setspecific(key, self);
    return self;
}

int zl_hold_cancellation(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void zl_allow_cancellation(int before)
{
    pthread_setcancelstate(before, &before);
}

CUresult zl_enter(void)
{
    if (!zl_alive())
        return CUDA_ERROR_NOT_INITIALIZED;
    return ZL_LIKELY(!self || !self->calling_back) ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED;
}

zl_context *zl_current(void)
{
    zl_thread *thread = zl_thread_self();
    return thread->depth ? zl_handle_get(ZL_CONTEXT, thread->stack[thread->depth - 1]) : NULL;
}

CUresult zl_context_check(zl_context *context)
{
    int dead = atomic_load_explicit(&zl_state.dead, memory_order_relaxed);
    if (!atomic_load_explicit(&context->active, memory_order_relaxed))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return dead ? (CUresult)dead
                : (CUresult)__atomic_load_n(&zl_state.control->context_error[context->slot], __ATOMIC_RELAXED);
}

CUresult zl_enter_context(zl_context **context)
{
    zl_thread *thread;

    if (!zl_alive())
        return CUDA_ERROR_NOT_INITIALIZED;
    thread = zl_thread_self();
    if (!thread->depth)
        return thread->calling_back ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_INVALID_CONTEXT;
    *context = zl_handle_get(ZL_CONTEXT, thread->stack[thread->depth - 1]);
    return *context ? zl_context_check(*context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
