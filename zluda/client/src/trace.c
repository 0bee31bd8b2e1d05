/* Records of the program's calls. Each thread writes into a file of its own, mapped and shared, so that what is written
   outlives the process however it ends; when one is full it takes the next. Nobody waits for a reader.

   Files are PROCESS-STARTED-SERIAL-SEQUENCE.calls in the folder ZLUDA_TRACE, and PROCESS-STARTED.process, which holds the
   command line and counts what is lost where no file can be made. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { RETRY = 1024 };                   /* records lost before a thread tries again to make a file */
enum { PROCESS_BYTES = 8192 };

_Atomic int zl_trace_on;

static char *folder;
static pthread_key_t key;

/* Wiped by fork: a child makes files of its own. */
static struct life { _Atomic uint32_t state; } *life;
enum { UNSTARTED, STARTING, STARTED };

static struct {
    struct zl_trace_file *file;          /* of the process */
    uint64_t started;
    uint32_t number;                     /* counts the processes that fork has made of this one, from 1 */
} process;

static _Atomic uint32_t threads;

static __thread struct thread {
    struct zl_trace_file *file;
    uint64_t used;
    uint32_t process, serial, sequence, skip; /* serial: of the thread in the process; its number may be used again */
} self __attribute__((tls_model("initial-exec")));

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Makes and maps a file whose blocks are all there: a store into a full disk would end the process. NULL with errno. */
static struct zl_trace_file *make_file(const char *name, size_t bytes)
{
    struct rlimit most;
    void *at = MAP_FAILED;
    int file, failed;

    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && most.rlim_cur < bytes) {
        errno = EFBIG;                   /* trying would end the process by SIGXFSZ */
        return NULL;
    }
    file = zl_above_standard(open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file < 0)
        return NULL;
    while ((failed = posix_fallocate(file, 0, (off_t)bytes)) == EINTR)
        ;
    errno = failed;
    if (!failed)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    failed = errno;
    close(file);
    if (at == MAP_FAILED)
        unlink(name);
    errno = failed;
    return at == MAP_FAILED ? NULL : at;
}

static void head(struct zl_trace_file *file, uint32_t thread, uint32_t sequence)
{
    file->started = process.started;
    file->process = (uint32_t)getpid();
    file->thread = thread;
    file->sequence = sequence;
    memcpy(file->identity, zl_trace_identity, sizeof file->identity);
    prctl(PR_GET_NAME, file->name);
    __atomic_store_n(&file->magic, ZL_TRACE_MAGIC, __ATOMIC_RELEASE);
}

static void start_process(void)
{
    char name[4352];
    ssize_t length;
    int command;

    process.number++;
    process.started = now();
    snprintf(name, sizeof name, "%s/%d-%llx.process", folder, (int)getpid(), (unsigned long long)process.started);
    process.file = make_file(name, PROCESS_BYTES);
    if (!process.file) {
        zl_log("cannot write a trace to ZLUDA_TRACE=%s, so there is none: %s", folder, strerror(errno));
        atomic_store(&zl_trace_on, 0);
        return;
    }
    command = zl_above_standard(open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
    length = command >= 0 ? read(command, process.file + 1, PROCESS_BYTES - sizeof *process.file) : 0;
    if (command >= 0)
        close(command);
    process.file->used = length > 0 ? (uint64_t)length : 0;
    head(process.file, 0, 0);
}

static bool ready(void)
{
    uint32_t state = atomic_load_explicit(&life->state, memory_order_acquire);

    if (ZL_LIKELY(state == STARTED))
        return zl_tracing();
    state = UNSTARTED;
    if (atomic_compare_exchange_strong(&life->state, &state, STARTING)) {
        int cancellable = zl_hold_cancellation();
        start_process();
        zl_allow_cancellation(cancellable);
        atomic_store_explicit(&life->state, STARTED, memory_order_release);
    } else {
        while (atomic_load_explicit(&life->state, memory_order_acquire) != STARTED)
            sched_yield();
    }
    return zl_tracing();
}

static void leave_file(void)
{
    if (!self.file)
        return;
    if (self.process == process.number)  /* else it is that of the thread which forked */
        __atomic_store_n(&self.file->closed, 1, __ATOMIC_RELEASE);
    munmap(self.file, ZL_TRACE_FILE_BYTES);
    self.file = NULL;
}

static void end_thread(void *unused)
{
    (void)unused;
    leave_file();
}

static bool next_file(void)
{
    char name[4352];
    struct zl_trace_file *file;

    if (self.process != process.number || !self.serial) {
        self.serial = atomic_fetch_add(&threads, 1) + 1;
        self.sequence = 0;
    }
    snprintf(name, sizeof name, "%s/%d-%llx-%u-%u.calls", folder, (int)getpid(), (unsigned long long)process.started,
             self.serial, self.sequence);
    file = make_file(name, ZL_TRACE_FILE_BYTES);
    if (!file)
        return false;
    leave_file();
    self.file = file;
    self.used = 0;
    self.process = process.number;
    head(file, (uint32_t)syscall(SYS_gettid), self.sequence++);
    pthread_setspecific(key, &self);
    return true;
}

/* Room for a record; NULL, and counted, if there is none. */
static ZL_COLD struct zl_trace_record *take_file(size_t bytes)
{
    int cancellable, before = errno;
    bool made = false;

    if (!self.skip && bytes <= ZL_TRACE_FILE_BYTES - sizeof *self.file) {
        cancellable = zl_hold_cancellation();
        made = next_file();
        zl_allow_cancellation(cancellable);
    }
    self.skip = made ? 0 : self.skip ? self.skip - 1 : RETRY;
    errno = before;
    if (made)
        return (struct zl_trace_record *)(self.file + 1);
    __atomic_fetch_add(&process.file->lost, 1, __ATOMIC_RELAXED);
    return NULL;
}

static struct zl_trace_record *begin(unsigned kind, unsigned index, uint64_t value, size_t content)
{
    struct zl_trace_record *record;
    size_t bytes = sizeof *record + (content + 7) / 8 * 8;

    if (!ready())
        return NULL;
    if (ZL_LIKELY(self.file && self.process == process.number &&
                  self.used + bytes <= ZL_TRACE_FILE_BYTES - sizeof *self.file))
        record = (struct zl_trace_record *)((uint8_t *)(self.file + 1) + self.used);
    else
        record = take_file(bytes);
    if (record)
        *record = (struct zl_trace_record){(uint16_t)kind, (uint16_t)index, (uint32_t)bytes, value};
    return record;
}

static void publish(const struct zl_trace_record *record)
{
    self.used += record->bytes;
    __atomic_store_n(&self.file->used, self.used, __ATOMIC_RELEASE);
}

void zl_trace_call(unsigned number, const uint64_t *words, unsigned count)
{
    struct zl_trace_record *record = begin(ZL_TRACE_CALL, number, now(), count * sizeof *words);
    if (record) {
        memcpy(record + 1, words, count * sizeof *words);
        publish(record);
    }
}

void zl_trace_value(unsigned index, const void *value, size_t size)
{
    struct zl_trace_record *record = value ? begin(ZL_TRACE_VALUE, index, size, size) : NULL;
    if (record) {
        memcpy(record + 1, value, size);
        publish(record);
    }
}

void zl_trace_text(unsigned index, const char *text)
{
    if (text)
        zl_trace_value(index, text, strnlen(text, ZL_TRACE_TEXT_BYTES));
}

void zl_trace_return(CUresult result)
{
    struct zl_trace_record *record = begin(ZL_TRACE_RETURN, (unsigned)result, now(), 0);
    if (record)
        publish(record);
}

static void name_kernel(const zl_function_entry *function)
{
    uint64_t count = function->info.parameters;
    size_t pairs = count * sizeof *function->parameters, length = strlen(function->name);
    struct zl_trace_record *record = begin(ZL_TRACE_KERNEL, 0, function->handle, sizeof count + pairs + length + 1);
    uint8_t *at = (uint8_t *)(record + 1);

    if (!record)
        return;
    memcpy(at, &count, sizeof count);
    if (pairs)
        memcpy(at + sizeof count, function->parameters, pairs);
    memcpy(at + sizeof count + pairs, function->name, length + 1);
    publish(record);
}

void zl_trace_launch(zl_function_entry *function, const uint8_t *arguments)
{
    struct zl_trace_record *record;

    if (!ready())
        return;
    if (atomic_exchange_explicit(&function->traced, process.number, memory_order_relaxed) != process.number)
        name_kernel(function);
    record = begin(ZL_TRACE_ARGUMENTS, 0, function->handle, function->info.parameter_bytes);
    if (record) {
        memcpy(record + 1, arguments, function->info.parameter_bytes);
        publish(record);
    }
}

/* Before anything of the program runs that calls the API. */
__attribute__((constructor)) static void begin_tracing(void)
{
    const char *wanted = secure_getenv("ZLUDA_TRACE");
    void *page = MAP_FAILED;

    if (!wanted || !*wanted)
        return;
    folder = realpath(wanted, NULL);
    if (folder)
        page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) < 0 ||
        (errno = pthread_key_create(&key, end_thread)) != 0) {
        zl_log("cannot write a trace to ZLUDA_TRACE=%s, so there is none: %s", wanted, strerror(errno));
        return;
    }
    life = page;
    atomic_store(&zl_trace_on, 1);
}
