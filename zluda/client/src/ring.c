/* The command ring: many threads of this process post, the driver process takes. One lock makes the order total. */
#include "client.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RING_UNITS = ZL_RING_BYTES / ZL_UNIT };
enum { SPINS = 4000 };                   /* about 50 to 100 microseconds; then sleep */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t head, known_tail, next_request;

static pthread_mutex_t slot_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t slot_free = PTHREAD_COND_INITIALIZER;
static uint16_t free_slots[ZL_MAX_SLOTS];
static uint32_t free_count, fresh_slots;

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool single_processor(void)
{
    static _Atomic long processors;
    long count = atomic_load_explicit(&processors, memory_order_relaxed);
    if (!count) {
        count = sysconf(_SC_NPROCESSORS_ONLN);
        atomic_store_explicit(&processors, count, memory_order_relaxed);
    }
    return count == 1;
}

/* Words in shared memory are plain integers in the generated structures. */
static uint32_t load32(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void futex_wait(uint32_t *word, uint32_t expected, long milliseconds)
{
    struct timespec timeout = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 0x7FFFFFFF, NULL, NULL, 0);
}

static uint16_t take_slot(void)
{
    uint16_t slot;
    int cancellable = zl_hold_cancellation();

    pthread_mutex_lock(&slot_lock);
    while (!free_count && fresh_slots == ZL_MAX_SLOTS)
        pthread_cond_wait(&slot_free, &slot_lock);
    slot = free_count ? free_slots[--free_count] : (uint16_t)fresh_slots++;
    pthread_mutex_unlock(&slot_lock);
    zl_allow_cancellation(cancellable);
    return slot;
}

static void give_slot(uint16_t slot)
{
    pthread_mutex_lock(&slot_lock);
    free_slots[free_count++] = slot;
    pthread_cond_broadcast(&slot_free);
    pthread_mutex_unlock(&slot_lock);
}

void zl_ring_reset(void)
{
    /* The driver process is gone: whoever waits for an answer comes back without one, and nobody begins to wait. */
    pthread_mutex_lock(&slot_lock);
    while (free_count != fresh_slots)
        pthread_cond_wait(&slot_free, &slot_lock);
    free_count = fresh_slots = 0;
    pthread_mutex_unlock(&slot_lock);
    pthread_mutex_lock(&lock);
    head = known_tail = 0;
    pthread_mutex_unlock(&lock);
}

static struct zl_slot *slot_at(uint16_t slot)
{
    return (struct zl_slot *)(zl_state.shared + ZL_SLOTS_OFFSET + (size_t)slot * ZL_SLOT_BYTES);
}

static void *unit_at(uint64_t unit)
{
    return zl_state.shared + ZL_RING_OFFSET + unit % RING_UNITS * ZL_UNIT;
}

/* Sleeps until the driver has made room (it wakes us at half empty, so that we do not wake for every command). */
static bool wait_for_room(uint64_t needed)
{
    struct zl_control *control = zl_state.control;

    for (;;) {
        uint32_t room = load32(&control->room);
        __atomic_store_n(&control->clients_waiting, 1, __ATOMIC_SEQ_CST);
        known_tail = __atomic_load_n(&control->tail, __ATOMIC_SEQ_CST);
        if (RING_UNITS - (head - known_tail) >= needed)
            return true;
        futex_wait(&control->room, room, 20);
        if (atomic_load(&zl_state.dead) || zl_driver_ended())
            return false;
    }
}

void *zl_begin(enum zl_opcode opcode, zl_context *context, size_t bytes, bool call)
{
    uint32_t units = (uint32_t)((bytes + ZL_UNIT - 1) / ZL_UNIT);
    uint16_t slot = call ? take_slot() : ZL_POSTED;
    uint64_t rest, needed;
    struct zl_header *header;

    pthread_mutex_lock(&lock);
    rest = RING_UNITS - head % RING_UNITS;
    needed = units <= rest ? units : rest + units;
    if (atomic_load_explicit(&zl_state.dead, memory_order_relaxed) ||
        (RING_UNITS - (head - known_tail) < needed && !wait_for_room(needed))) {
        pthread_mutex_unlock(&lock);
        if (call)
            give_slot(slot);
        return NULL;
    }
    if (units > rest) {                  /* opcode 0: skip to the ring's start */
        header = unit_at(head);
        *header = (struct zl_header){.slot = ZL_POSTED, .units = (uint32_t)rest};
        head += rest;
    }
    header = unit_at(head);
    header->opcode = (uint16_t)opcode;
    header->slot = slot;
    header->units = units;
    header->request = ++next_request;
    header->context = context ? context->handle : 0;
    return header;
}

static void publish(struct zl_header *header)
{
    struct zl_control *control = zl_state.control;

    head += header->units;
    /* Sequentially consistent: either we see that the driver sleeps, or it sees the new head before it does. */
    __atomic_store_n(&control->head, head, __ATOMIC_SEQ_CST);
    bool sleeps = __atomic_load_n(&control->driver_sleeps, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&lock);
    if (sleeps)
        futex_wake((uint32_t *)&control->head); /* little-endian: the low half */
}

void zl_post(struct zl_header *header, zl_context *context)
{
    if (context)
        atomic_fetch_add_explicit(&context->posted, 1, memory_order_relaxed);
    publish(header);
}

/* Returns false if the driver process ended instead. */
static bool wait_for_answer(struct zl_slot *slot)
{
    if (!single_processor())
        for (int i = 0; i < SPINS; i++) {
            if (load32(&slot->state) == ZL_SLOT_DONE)
                return true;
            pause_briefly();
        }
    __atomic_store_n(&slot->sleeps, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&slot->state, __ATOMIC_SEQ_CST) != ZL_SLOT_DONE) {
        futex_wait(&slot->state, ZL_SLOT_PENDING, 50);
        if (load32(&slot->state) != ZL_SLOT_DONE && (atomic_load(&zl_state.dead) || zl_driver_ended()))
            return load32(&slot->state) == ZL_SLOT_DONE;
    }
    return true;
}

static CUresult take_tail(const struct zl_slot *slot, size_t reply_size, zl_tail *tail)
{
    const uint8_t *from = (const uint8_t *)(slot + 1) + reply_size;

    tail->data = NULL;
    tail->size = slot->tail_address ? slot->size : slot->size > reply_size ? slot->size - reply_size : 0;
    if (slot->tail_address)
        from = (const uint8_t *)(uintptr_t)slot->tail_address;
    if (tail->size) {
        tail->data = malloc(tail->size + 1);
        if (!tail->data) {
            tail->size = 0;
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        memcpy(tail->data, from, tail->size);
        ((char *)tail->data)[tail->size] = 0;
    }
    return CUDA_SUCCESS;
}

static void free_block(uint64_t address)
{
    struct zl_cmd_block_free *command = zl_begin(ZL_OP_block_free, NULL, sizeof *command, false);
    if (command) {
        command->address = address;
        zl_post(&command->header, NULL);
    }
}

CUresult zl_call(struct zl_header *header, void *reply, size_t reply_size, zl_tail *tail)
{
    uint16_t number = header->slot;
    struct zl_slot *slot = slot_at(number);
    CUresult result;
    uint64_t block = 0;

    slot->sleeps = 0;
    slot->request = header->request;
    slot->tail_address = 0;
    __atomic_store_n(&slot->state, ZL_SLOT_PENDING, __ATOMIC_RELEASE);
    publish(header);
    if (!wait_for_answer(slot)) {
        if (tail)
            *tail = (zl_tail){0};
        give_slot(number);
        return zl_gone();
    }
    result = (CUresult)slot->result;
    if (reply_size) {
        memset(reply, 0, reply_size);
        if (slot->size >= reply_size && !slot->tail_address)
            memcpy(reply, slot + 1, reply_size);
    }
    if (tail) {
        CUresult copied = take_tail(slot, reply_size, tail);
        block = slot->tail_address;
        if (result == CUDA_SUCCESS)
            result = copied;
    }
    __atomic_store_n(&slot->state, ZL_SLOT_FREE, __ATOMIC_RELEASE);
    give_slot(number);
    if (block)
        free_block(block);
    return result;
}

CUresult zl_payload_prepare(zl_payload *payload, const void *data, size_t size)
{
    *payload = (zl_payload){.data = data, .size = size};
    if (size > ZL_INLINE_BYTES) {
        struct zl_block_allocate_reply reply;
        CUresult result;
        struct zl_cmd_block_allocate *command = zl_begin(ZL_OP_block_allocate, NULL, sizeof *command, true);
        if (!command)
            return zl_gone();
        command->size = size;
        result = zl_call(&command->header, &reply, sizeof reply, NULL);
        if (result != CUDA_SUCCESS)
            return result;
        payload->address = reply.address;
        memcpy((void *)(uintptr_t)reply.address, data, size);
    }
    return CUDA_SUCCESS;
}

void zl_payload_release(zl_payload *payload)
{
    if (payload->address)
        free_block(payload->address);
}
