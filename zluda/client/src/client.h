/* What the client's files share. Nothing here is visible outside of the library. */
#ifndef ZL_CLIENT_H
#define ZL_CLIENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define __CUDA_API_VERSION_INTERNAL /* every symbol by its own name */
#include "cuda.h"
#include "cudaProfiler.h"
#include "zl_protocol.h"

#include <stdatomic.h>
#include <stdbool.h>

#define ZL_EXPORT __attribute__((visibility("default")))
#define ZL_COLD __attribute__((cold, noinline))
#define ZL_LIKELY(x) __builtin_expect(!!(x), 1)

/* --- contexts, streams, events, modules: what the client itself must know of them ------------------------------- */

enum zl_kind { ZL_CONTEXT = 1, ZL_STREAM, ZL_EVENT, ZL_MODULE, ZL_FUNCTION, ZL_LIBRARY, ZL_KERNEL,
               ZL_ARRAY = 20, ZL_MIPMAPPED_ARRAY, ZL_POOL = 30, ZL_PHYSICAL,
               ZL_GRAPH, ZL_NODE, ZL_EXEC, ZL_OBJECT, ZL_LINK };

enum { ZL_LIMITS = 11 };

/* Attributes of a stream, see stream_attribute.c; `priority` is that of a default stream. */
typedef struct zl_stream_settings {
    CUaccessPolicyWindow window;
    CUsynchronizationPolicy policy;      /* 0: CU_SYNC_POLICY_AUTO */
    CUlaunchMemSyncDomainMap map;
    CUlaunchMemSyncDomain domain;
    int priority;
} zl_stream_settings;

typedef struct zl_context {
    uint64_t handle;
    CUdevice device;
    unsigned flags;
    unsigned api_version;
    uint32_t slot;                       /* of its sticky error in the control block */
    bool primary;
    _Atomic bool active;                 /* a primary context is not until it is retained */
    unsigned retained;
    _Atomic unsigned attached;           /* by cuCtxAttach, beside the one who made it */
    _Atomic uint64_t posted;             /* work ever posted, in any of its streams */
    _Atomic uint64_t settled;            /* value of `posted` up to which all of it is known to have finished */
    _Atomic bool non_blocking;           /* it has, or had, non-blocking streams */
    CUfunc_cache cache_config;
    size_t limits[ZL_LIMITS];
    uint64_t id;
    zl_stream_settings settings;         /* of the default stream */
    struct zl_context *lost;             /* links contexts whose driver process has ended */
} zl_context;

typedef struct zl_stream {
    zl_context *context;
    unsigned flags;
    int priority;
    uint64_t id;
    zl_stream_settings settings;
} zl_stream;

typedef struct zl_event {
    zl_context *context;
    unsigned flags;
} zl_event;

typedef struct zl_module {
    zl_context *context;
    struct zl_function_entry *functions; /* those asked for, so that a name gives the same handle again */
} zl_module;

typedef struct zl_parameter {
    uint32_t offset, size;
} zl_parameter;

typedef struct zl_function_entry {
    struct zl_function_entry *next;
    uint64_t handle;
    zl_context *context;
    CUmodule module;
    char *name;
    struct zl_function info;
    zl_parameter *parameters;
    struct zl_old_launch *old;           /* set by the deprecated calls */
    _Atomic uint32_t traced;             /* the trace (trace.c) in which its name is */
} zl_function_entry;

/* handles.c: tables from handles to objects. A handle that is not valid, or no longer, gives NULL. */
uint64_t zl_handle_new(enum zl_kind kind, void *object);
void *zl_handle_get(enum zl_kind kind, uint64_t handle);
void *zl_handle_remove(enum zl_kind kind, uint64_t handle);
/* Calls `visit` for each live handle of a kind; what it returns true for is removed. */
void zl_handle_each(enum zl_kind kind, bool (*visit)(uint64_t handle, void *object, void *argument), void *argument);

/* --- state ------------------------------------------------------------------------------------------------------ */

/* connect.c */
extern struct zl_state {
    uint8_t *shared;
    struct zl_control *control;
    struct zl_device *devices;
    uint32_t device_count;
    uint64_t window_base, window_size;
    int socket, driver, note;            /* descriptors: hand-shake socket, pidfd of the driver process, its death note */
    int window;                          /* and the window's file */
    uint32_t driver_process;
    bool initialised;                    /* cuInit has succeeded in this process or in the one it was forked from */
    _Atomic int dead;                    /* the CUresult that everything returns since the driver process ended */
} zl_state;
/* In a page that fork() wipes: 1 in the process that called cuInit, 0 in its children. */
extern struct zl_life { uint32_t alive; } *zl_life;

CUresult zl_initialise(void);
/* After the driver process has ended: starts another one. Nothing of before is valid there. */
CUresult zl_restart(void);
/* Whether the driver process has ended; then `zl_state.dead` is set and the reason is logged once. */
bool zl_driver_ended(void);
/* Under ZLUDA_LOG=debug, prints the stack that the fault handler of the driver process left, else says that it can.
   Whether there is one. */
bool zl_print_note(void) ZL_COLD;
/* What a call returns when the driver process is gone. */
CUresult zl_gone(void) ZL_COLD;

/* descriptors.c */
/* Moves a descriptor out of the way of the standard streams, which a host may have closed: what it prints must not end up
   in here. -1 stays. */
int zl_above_standard(int descriptor);
/* A file in memory, or -1. */
int zl_memory_file(const char *name, uint64_t size);
/* Sends a message with 1 to 4 descriptors. */
bool zl_send(int socket, const void *data, size_t size, const int *descriptors, size_t count);
/* Receives a message of `size` bytes; `descriptor` is the one that came with it, or as it was. */
bool zl_receive(int socket, void *data, size_t size, int *descriptor);

/* claim.c: a socket to the driver process that `zluda run` started ahead, or -1 if there is none for this process. */
int zl_claim_driver(void);

/* spawn.c: starts the driver process with one end of a socket as descriptor 3. Returns 0 or an errno; `message` says more. */
int zl_spawn_driver(int socket, char *message, size_t size);
/* The Python it is started with; "" if there is none. */
const char *zl_driver_python(void) ZL_COLD;
/* A driver's variables: the host's as they are now, but for those that steer its own Python and loader. To be freed;
   NULL without memory. */
char **zl_driver_environment(void);

/* logs.c: a message for cuLogs*, whose text need not end in NUL; in parts, a line each. */
void zl_logs_add(CUlogLevel level, const char *text, size_t length) ZL_COLD;
/* log.c: one line for cuLogs*, and on standard error if ZLUDA_LOG has the area `client` say so much; zl_log is for errors. */
enum zl_level { ZL_ERROR, ZL_WARNING, ZL_INFO, ZL_DEBUG };
bool zl_logs(enum zl_level level) ZL_COLD;
void zl_log(const char *format, ...) __attribute__((format(printf, 1, 2))) ZL_COLD;
void zl_log_at(enum zl_level level, const char *format, ...) __attribute__((format(printf, 2, 3))) ZL_COLD;
CUresult zl_not_supported(const char *symbol, const char *note) ZL_COLD;

/* --- entering --------------------------------------------------------------------------------------------------- */

/* thread.c */
typedef struct zl_thread {
    uint64_t *stack;                     /* handles of contexts, the current one last */
    uint32_t depth, capacity;
    uint64_t number;                     /* tells its per-thread streams from others' */
    bool has_streams;
    zl_stream_settings settings;         /* of its default stream */
    bool calling_back;                   /* it runs host functions, which must not call CUDA */
    CUstreamCaptureMode capture_mode;    /* of cuThreadExchangeStreamCaptureMode */
} zl_thread;

zl_thread *zl_thread_self(void);
/* A thread that is cancelled must not take a lock along: no cancellation point is one between these two. */
int zl_hold_cancellation(void);
void zl_allow_cancellation(int before);
static inline bool zl_alive(void)
{
    struct zl_life *life = __atomic_load_n(&zl_life, __ATOMIC_ACQUIRE);
    return ZL_LIKELY(life && __atomic_load_n(&life->alive, __ATOMIC_ACQUIRE));
}
/* Ready for calls at all: initialised, not forked, driver alive. */
CUresult zl_enter(void);
/* And with a usable current context. */
CUresult zl_enter_context(zl_context **context);
/* The current context whatever its state, or NULL. */
zl_context *zl_current(void);
CUresult zl_context_check(zl_context *context);

/* callback.c: around the start of a driver process in place of one that has ended. */
void zl_callback_hold(void);
void zl_callback_restarted(void);
void zl_callback_release(void);

/* death.c: remembers the kernel for messages. The ring is locked. */
void zl_note_launch(const zl_function_entry *function);

/* --- the ring (ring.c) ------------------------------------------------------------------------------------------ */

/* Locks the ring and gives room for a command of `bytes`, header filled in; NULL if the driver process is gone. Every
   zl_begin is followed at once by zl_post or zl_call, which unlock. */
void *zl_begin(enum zl_opcode opcode, zl_context *context, size_t bytes, bool call);
/* Empty, for another driver process. */
void zl_ring_reset(void);
/* Posts; counts as work of `context`, unless that is NULL. */
void zl_post(struct zl_header *header, zl_context *context);

typedef struct zl_tail {
    void *data;                          /* malloc'ed by zl_call when there is a tail; the caller frees it */
    size_t size;
} zl_tail;

/* Posts and waits for the answer: the fixed part into `reply`, what follows into `tail`. */
CUresult zl_call(struct zl_header *header, void *reply, size_t reply_size, zl_tail *tail);

/* Brings `size` bytes to the driver: `inlined` if they go behind the command, else in a block of the window. */
typedef struct zl_payload {
    const void *data;
    size_t size;
    uint64_t address;                    /* of the block, or 0 */
} zl_payload;
CUresult zl_payload_prepare(zl_payload *payload, const void *data, size_t size);
static inline size_t zl_payload_inline(const zl_payload *payload)
{
    return payload->address ? 0 : payload->size;
}
void zl_payload_release(zl_payload *payload);

/* --- memory (window.c, ranges.c) -------------------------------------------------------------------------------- */

bool zl_window_reserve(uint64_t base, uint64_t size);
void zl_window_release(uint64_t base, uint64_t size);
uint64_t zl_window_find(uint64_t most, uint64_t *size); /* reserves a place of at most so many bytes; 0: there is none */
bool zl_window_map(int memory, uint64_t base, uint64_t size);
/* Lets pages of the window show the bytes that are at `source`; `access` is PROT_*. */
bool zl_window_show(uint64_t address, uint64_t size, uint64_t source, int access);
static inline bool zl_in_window(uint64_t address)
{
    return address - zl_state.window_base < zl_state.window_size;
}

enum zl_range_kind { ZL_RANGE_DEVICE = 1, ZL_RANGE_HOST, ZL_RANGE_GLOBAL, ZL_RANGE_MANAGED, ZL_RANGE_REGISTERED, ZL_RANGE_VIRTUAL };
typedef struct zl_range {
    uint64_t base, size;
    enum zl_range_kind kind;
    unsigned flags;
    uint64_t context;                    /* handle; 0 for memory of a pool */
    uint64_t id;
    uint64_t module;                     /* of a global */
    uint64_t pool;                       /* handle, or 0 */
    CUdevice device;                     /* of memory of a pool */
    bool host;                           /* virtual memory that is the host's */
    bool sync_memops;                    /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
} zl_range;
void zl_range_add(zl_range range);
bool zl_range_find(uint64_t address, zl_range *range);
/* Takes out the range that starts at `base`, if it is of that kind. */
bool zl_range_remove(uint64_t base, enum zl_range_kind kind, zl_range *range);
/* Takes out what cuMemFree frees: device or managed memory, and any of a pool (`pools`). */
bool zl_range_remove_allocation(uint64_t base, bool pools, zl_range *range);
/* Enters a range if no byte of it is in another. */
bool zl_range_add_apart(zl_range range);
/* Sets `sync_memops` of the range that holds `address`; false if there is none. */
bool zl_range_set_sync(uint64_t address, bool sync);
/* Forgets everything: the driver process has ended. */
void zl_range_clear(void);
void zl_range_remove_context(uint64_t context);
void zl_range_remove_module(uint64_t module);
/* Whether `size` bytes from `address` lie in one range. */
bool zl_range_holds(uint64_t address, uint64_t size);

/* --- memory pools (pool.c) -------------------------------------------------------------------------------------- */

typedef struct zl_pool {
    unsigned place;                      /* what memory it has: the driver process knows the number */
    enum zl_range_kind range_kind;
    CUmemAllocationType type;
    CUmemLocation location;
    size_t max_size;
    bool is_default;
    uint64_t wire;                       /* its name in commands */
    _Atomic uint32_t granted;            /* by device: access given with cuMemPoolSetAccess */
} zl_pool;
void zl_pools_forget(void);              /* the driver process has ended */

/* --- virtual memory (virtual.c) --------------------------------------------------------------------------------- */

/* The reservation that holds an address, and whether something is mapped at it. */
bool zl_reservation_find(uint64_t address, uint64_t *base, uint64_t *size, bool *is_mapped);
void zl_virtual_forget(void);            /* the driver process has ended */

/* --- arrays (array.c, mipmap.c, format.c) ----------------------------------------------------------------------- */

enum { ZL_PLANES = 3 };

typedef struct zl_array {
    zl_context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    uint64_t address;                    /* of its storage: rows, then slices, one after another */
    size_t pitch;                        /* bytes a row */
    unsigned element;                    /* bytes; 0 if it is made of planes */
    unsigned planes;
    bool part;                           /* of a mipmapped or a planar array, which owns the storage */
    CUarray plane[ZL_PLANES];
} zl_array;

/* Checks a descriptor against the manual's table. */
CUresult zl_array_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, bool mipmapped);
size_t zl_array_rows(const zl_array *array); /* of a slice */
size_t zl_array_slices(const zl_array *array);
/* Makes an array and the handles of its planes. The storage is not allocated: `address` counts from its start, and
   `size` becomes what it takes. */
zl_array *zl_array_new(zl_context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, bool part, uint64_t *handle, size_t *size);
void zl_array_place(zl_array *array, uint64_t address); /* its storage starts there */
void zl_array_forget(uint64_t handle);                  /* the handles, not the storage */
/* Device memory that has no pointer. */
CUresult zl_storage_allocate(zl_context *context, size_t size, uint64_t *address);
CUresult zl_storage_free(zl_context *context, uint64_t address);

/* format.c */
typedef struct zl_plane {
    CUarray_format format;
    unsigned channels, narrower, lower;  /* shifts of width and height */
} zl_plane;

/* Bytes of an element and, of a planar format (where that is 0), its planes. Whether there is such a format. */
CUresult zl_format_find(CUarray_format format, unsigned channels, unsigned *element, const zl_plane **planes, unsigned *count);

/* --- copies (copy.c, box.c) ------------------------------------------------------------------------------------- */

/* Whether the bytes are all in one allocation (`device`), or all outside of the window. */
CUresult zl_place(uint64_t address, size_t size, bool *device);
bool zl_pinned(uint64_t address);
CUresult zl_copy_post(zl_context *context, CUstream stream, uint64_t destination, uint64_t source, size_t size);
CUresult zl_copy_write(zl_context *context, CUstream stream, uint64_t destination, const void *data, size_t size);
enum { ZL_TRAVELS_ALONG = 65536 };       /* bytes of an asynchronous copy from ordinary memory that go with the command */

/* One side of a 2D or 3D copy as a program describes it, in the units of CUDA_MEMCPY3D. */
typedef struct zl_operand {
    CUmemorytype type;
    uint64_t base;
    CUarray array;
    size_t x, y, z, pitch, rows;
} zl_operand;

typedef struct zl_box {
    size_t width, height, depth;         /* bytes, rows, slices */
} zl_box;

/* A copy that has been checked. */
typedef struct zl_box_copy {
    struct zl_side {
        uint64_t start;
        size_t pitch, rows;              /* bytes a row, rows a slice */
        bool device;
    } to, from;
    zl_box box;
} zl_box_copy;

/* When the source is read and when the call returns. */
enum zl_copy_mode {
    ZL_COPY_NOW,                         /* synchronous */
    ZL_COPY_ASYNC,                       /* ordinary memory may be read at once */
    ZL_COPY_IN_ORDER,                    /* asynchronous, and all memory is read in the stream's order */
};

/* Both sides of a copy as a program gives it. */
CUresult zl_copy_operands(const CUDA_MEMCPY3D *copy, zl_operand *to, zl_operand *from);
/* The copy itself, by this process. */
void zl_box_move(const zl_box_copy *copy);
/* The box must not be empty. */
CUresult zl_box_check(zl_context *context, const zl_operand *to, const zl_operand *from, zl_box box, zl_box_copy *copy);
CUresult zl_box_run(zl_context *context, const zl_box_copy *copy, CUstream stream, enum zl_copy_mode mode);
/* Both; an empty box is no error. */
CUresult zl_box_copy_all(zl_context *context, const zl_operand *to, const zl_operand *from, zl_box box, CUstream stream,
                         enum zl_copy_mode mode);

/* --- streams (stream.c) ----------------------------------------------------------------------------------------- */

/* The wire's name of a stream; `context` becomes the stream's own (a default stream is the given context's). */
CUresult zl_use_stream(CUstream stream, zl_context **context, uint64_t *wire);
/* The same where no context needs to be current but for a default stream. */
CUresult zl_use_any_stream(CUstream stream, zl_context **context, uint64_t *wire);
/* The event's handle; `context` becomes the event's if it is NULL. */
CUresult zl_use_event(CUevent event, zl_context **context, uint64_t *wire);
/* Waits until a synchronous copy may touch memory in this stream's order. */
CUresult zl_turn(zl_context *context, CUstream stream);
void zl_context_forget(zl_context *context); /* handles of everything in a context that is gone */

/* --- stream capture (capture_rules.c; capture.h has the rest) --------------------------------------------------- */

extern _Atomic unsigned zl_captures;     /* streams that are being captured in this process */
static inline bool zl_capturing(void)
{
    return atomic_load_explicit(&zl_captures, memory_order_relaxed);
}
/* For what names a stream and cannot be captured; what capture may not see (`capture = "unsafe"` in the specification);
   what waits for all of a context: an error, and the capture is invalid, or CUDA_SUCCESS. */
CUresult zl_capture_refuse_stream(CUstream stream, const zl_context *context);
CUresult zl_capture_unsafe(void);
CUresult zl_capture_conflict(const zl_context *context);

/* --- modules and functions (module.c, function.c) --------------------------------------------------------------- */

CUresult zl_module_function(zl_context *context, CUmodule module, const char *name, zl_function_entry **function);
/* Compiles and describes a function that is only known by name so far. */
CUresult zl_function_load(zl_function_entry *entry);
CUresult zl_module_names(CUmodule module, uint32_t *count, zl_tail *names);
void zl_module_forget_context(zl_context *context);
/* A CUfunction, or a CUkernel taken for one: its function in `context`. */
CUresult zl_function_use(zl_context *context, CUfunction function, zl_function_entry **entry);
CUresult zl_function_attribute(zl_function_entry *entry, CUfunction_attribute attribute, int *value);
CUresult zl_function_set(zl_function_entry *entry, CUfunction_attribute attribute, int value);
CUresult zl_kernel_function(zl_context *context, CUkernel kernel, zl_function_entry **entry);

/* occupancy.c: blocks per multiprocessor; 0 if such a block cannot run at all. */
int zl_active_blocks(const zl_function_entry *function, int block, size_t dynamic);
/* launch_old.c: what the deprecated calls have set for the function's next launch goes with it. */
void zl_launch_forget(zl_function_entry *function);
/* launch.c: what a launch and a kernel node have in common. `buffer` is the packed block, if `extra` has one. */
CUresult zl_launch_shape(const zl_function_entry *function, const unsigned grid[3], const unsigned block[3], unsigned shared);
CUresult zl_launch_arguments(const zl_function_entry *function, void **kernelParams, void **extra, const void **buffer);
void zl_launch_pack(const zl_function_entry *function, void **kernelParams, const void *buffer, uint8_t *arguments);

/* image.c: where an image starts behind its wrapper, and its size. It has `known` bytes, or 0 if nobody knows. */
CUresult zl_image_size(const void *image, size_t known, const void **start, size_t *size);
/* The fat binaries of relocatable device code in one image, to be freed; NULL if `image` is something else. */
CUresult zl_image_gather(const void *image, void **gathered, size_t *size);
CUresult zl_file_read(const char *name, void **data, size_t *size);

typedef struct zl_jit {
    unsigned optimisation;
    char *info, *error;
    size_t info_size, error_size;
    void **info_filled, **error_filled, **wall_time;
} zl_jit;
CUresult zl_jit_parse(unsigned count, CUjit_option *options, void **values, zl_jit *jit);
CUresult zl_module_load(zl_context *context, const void *image, const zl_jit *jit, CUmodule *module);
/* The same for an image whose size is known. */
CUresult zl_module_load_sized(zl_context *context, const void *image, size_t size, const zl_jit *jit, CUmodule *module);
/* The names of an image's kernels, without a context; fills the logs of `jit`. */
CUresult zl_image_names(const void *image, size_t size, const zl_jit *jit, uint32_t *count, zl_tail *names);
/* A managed variable, or a texture or surface reference: SPECIAL_* of spec/protocol.toml. */
CUresult zl_module_special(CUmodule module, uint32_t kind, const char *name, uint64_t *address, uint64_t *size);

/* --- devices ---------------------------------------------------------------------------------------------------- */

static inline bool zl_device_valid(CUdevice device)
{
    return device >= 0 && (uint32_t)device < zl_state.device_count;
}
static inline int zl_device_attribute(CUdevice device, CUdevice_attribute attribute)
{
    return zl_state.devices[device].attributes[attribute];
}
zl_context *zl_primary(CUdevice device); /* while it is active, else NULL */

#include "zl_bodies.h"

#endif
