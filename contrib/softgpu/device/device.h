/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The software accelerator behind the interfaces of CUDA and HIP: contexts, memory, streams. One
 * lock, sgpu_lock, protects all of it; functions whose comment does not say otherwise are called
 * with it held, and only operations run without it. The files from top to bottom: context; event
 * copy alloc host ipc export vmm peermem; stream; execute memory; storage; weak bar; state. */
#ifndef SGPU_DEVICE_H
#define SGPU_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "contrib/softgpu/fault/fault.h"
#include "contrib/softgpu/support/softgpu_settings.h"
#include "contrib/softgpu/support/status.h"

/* ---- state.c ---- */
extern struct sgpu_config sgpu_config;
extern pthread_mutex_t sgpu_lock;

/* Reads the options, once; called without the lock. A mistake in them ends the process with status
 * 2. NO_DEVICE, or NOT_INITIALIZED in a child that fork() made. */
int sgpu_start(void);
/* OK, or why no call can succeed now. */
int sgpu_started(void);
void sgpu_enter(void);
/* Unlocks; returns status, for "return sgpu_leave(...)". */
int sgpu_leave(int status);
/* Checks in a call that needs the device whether it is lost. */
int sgpu_device_check(int device);
bool sgpu_device_exists(int device);
/* Checks for another kind of fault in a call; sleeps for its delay without the lock. */
int sgpu_fault_call(enum sgpu_fault_kind kind, int device);
uint64_t sgpu_round(uint64_t length); /* to whole pages */
/* A number that is never used twice in a process */
uint64_t sgpu_next_id(void);

/* ---- context.c ---- */
struct sgpu_context {
    struct sgpu_context *next;
    struct sgpu_stream *legacy; /* the NULL stream */
    uint64_t id;
    int device;
    unsigned flags, retained; /* of a primary context */
    bool primary, alive;
    int failed;     /* the error of an asynchronous operation */
    uint32_t peers; /* devices whose access was enabled */
};

struct sgpu_context *sgpu_context_create(int device, unsigned flags);
struct sgpu_context *sgpu_context_primary(int device);
int sgpu_context_retain(int device, struct sgpu_context **out);
int sgpu_context_release(int device);
/* Destroys it: waits for its streams and frees its memory. */
void sgpu_context_end(struct sgpu_context *c);
bool sgpu_context_known(const struct sgpu_context *c);
/* OK when work can be given to it. */
int sgpu_context_check(struct sgpu_context *c);

/* ---- storage.c ---- */
/* Bytes of a device. They lie in a memfd, which is mapped here at an address that clients never
 * see. A page behind them names their owner. */
struct sgpu_storage {
    unsigned refs;
    int device;
    int fd;
    bool foreign;    /* of another process */
    uint64_t length; /* whole pages */
    uint64_t nonce;
    uint8_t *view;
    /* weak-order: what was exported, and its state at the last flush; weak.c */
    int shadow_fd;
    uint8_t *shadow, *flushed;
    struct sgpu_storage *next_shadowed;
};

/* NULL: the device or the host is out of memory. */
struct sgpu_storage *sgpu_storage_create(int device, uint64_t length);
/* Bytes of a device that this process has */
uint64_t sgpu_storage_used(int device);
/* Opens another process's storage; NULL: it is gone, or does not match the handle. */
struct sgpu_storage *sgpu_storage_open(pid_t pid, int fd, uint64_t nonce, uint64_t length);
void sgpu_storage_put(struct sgpu_storage *s);

/* ---- bar.c ---- */
/* Opens a file description of bytes of `file` whose position is the offset, and counts them against
 * the BAR of the storage's device while it is open or mapped. Negative: -errno. */
int sgpu_bar_export(const struct sgpu_storage *s, int file, uint64_t offset, uint64_t length);
uint64_t sgpu_bar_used(int device);
/* Stops counting; open descriptors and mappings stay valid. */
void sgpu_bar_forget(const struct sgpu_storage *s);

/* ---- weak.c ---- */
/* Makes the copy that is exported instead of the memory. */
bool sgpu_weak_export(struct sgpu_storage *s);
/* Device-side writes go to both. Called without the lock, by copy.c. */
void sgpu_weak_written(struct sgpu_storage *s, uint64_t offset, uint64_t length);
/* Before a device-side read, without the lock: a flush, if an HCA has read since the last one. */
void sgpu_weak_reading(void);
/* Flushes: makes what HCAs have written visible to a device; -1: to all devices. */
void sgpu_weak_flush(int device);
void sgpu_weak_forget(struct sgpu_storage *s);

/* ---- memory.c ---- */
enum sgpu_memory_kind {
    SGPU_DEVICE,
    SGPU_IPC,    /* memory of another process */
    SGPU_MAPPED, /* cuMemMap */
    SGPU_PINNED, /* host memory that the library allocated */
    SGPU_REGISTERED,
};

struct sgpu_memory {
    uint64_t address;
    uint64_t size;                /* as the client asked */
    uint64_t length;              /* of the reservation, whole pages */
    struct sgpu_storage *storage; /* NULL: host memory */
    uint64_t offset;              /* in storage */
    struct sgpu_context *context; /* NULL for cuMemMap's */
    enum sgpu_memory_kind kind;
    int device;
    unsigned refs;   /* of the table and of operations */
    unsigned opened; /* how often an IPC handle was opened */
    unsigned flags;
    uint64_t id;
    bool sync_memops, accessible;
    bool rdma; /* may be exported */
};

bool sgpu_memory_on_device(const struct sgpu_memory *m);
/* Reserves addresses that no CPU can access. 0: none are left. */
enum { SGPU_ALIGNMENT = 65536 }; /* of memory that the library places */
uint64_t sgpu_reserve(uint64_t length, uint64_t alignment);
/* Frees addresses, but keeps them reserved for a while, so that stale pointers fault. */
void sgpu_unreserve(uint64_t address, uint64_t length);
/* Adds a range to the table; NULL: no memory. */
struct sgpu_memory *sgpu_memory_add(const struct sgpu_memory *range);
void sgpu_memory_remove(struct sgpu_memory *m);
void sgpu_memory_put(struct sgpu_memory *m);
/* The memory that contains `address`; NULL: none. */
struct sgpu_memory *sgpu_memory_find(uint64_t address);
/* Does all of [address, address + length) lie in it? */
bool sgpu_memory_holds(const struct sgpu_memory *m, uint64_t address, uint64_t length);
bool sgpu_memory_overlaps(uint64_t address, uint64_t length);
/* Was it device memory until recently, and freed since? */
bool sgpu_memory_was_freed(uint64_t address);
/* The next range after `m` by address; m NULL: the first. Returns NULL after the last. */
struct sgpu_memory *sgpu_memory_next(const struct sgpu_memory *m);

/* ---- alloc.c ---- */
int sgpu_memory_alloc(struct sgpu_context *c, uint64_t size, uint64_t *address);
/* Waits for the work of the device first. */
int sgpu_memory_free(uint64_t address);
void sgpu_memory_end(const struct sgpu_context *c);

/* ---- host.c ---- */
int sgpu_host_alloc(struct sgpu_context *c, uint64_t size, unsigned flags, void **out);
int sgpu_host_free(void *address);
int sgpu_host_register(struct sgpu_context *c, void *address, uint64_t size, unsigned flags);
int sgpu_host_unregister(void *address);

/* ---- stream.c ---- */
enum sgpu_op_kind { SGPU_OP_MARK, SGPU_OP_COPY, SGPU_OP_SET, SGPU_OP_CALL };

struct sgpu_op {
    enum sgpu_op_kind kind;
    unsigned refs;
    bool done;
    int status;
    bool waited_for; /* its caller gets the status; the context keeps only fatal errors */
    struct sgpu_context *context;
    struct sgpu_op *next;   /* in the queue */
    struct sgpu_op **after; /* operations that must be done before */
    unsigned after_count;
    uint64_t finished; /* ns */
    uint64_t delay;    /* ns */
    int fault;         /* fails with that when it runs */
    /* copy and set; if the call copied its source, `from` points to that copy */
    uint8_t *to;
    const uint8_t *from;
    uint64_t length;                     /* of a row */
    uint64_t rows, to_pitch, from_pitch; /* copy: 1 row unless it is two-dimensional */
    void *taken;
    struct sgpu_memory *target, *source;
    uint64_t target_offset;
    uint32_t value;
    unsigned width; /* of value, in bytes */
    void (*call)(void *);
    void *argument;
};

enum { SGPU_STREAM_NON_BLOCKING = 1 };

struct sgpu_stream;
int sgpu_stream_create(struct sgpu_context *c, unsigned flags, struct sgpu_stream **out);
/* Work already queued still runs. */
void sgpu_stream_destroy(struct sgpu_stream *s);
/* The handles 0, 1 and 2 (legacy, of the thread) are the context's NULL stream. NULL: no such
 * stream of this context. */
struct sgpu_stream *sgpu_stream_resolve(struct sgpu_context *c, const void *handle);
unsigned sgpu_stream_flags(const struct sgpu_stream *s);
/* OK, NOT_READY, or an error of the context */
int sgpu_stream_query(struct sgpu_stream *s);
int sgpu_stream_wait(struct sgpu_stream *s);
/* Waits for all work of a context, or of a device (NULL: every context of it). */
int sgpu_streams_wait(struct sgpu_context *c);
void sgpu_device_wait(int device);
void sgpu_streams_end(struct sgpu_context *c);
/* Queues the operation after the stream's earlier ones, and after `event` if that is not NULL; the
 * caller keeps its reference. */
int sgpu_stream_submit(struct sgpu_stream *s, struct sgpu_op *op, struct sgpu_op *event);
/* The same, and waits for the operation; returns its status. */
int sgpu_stream_run(struct sgpu_stream *s, struct sgpu_op *op);
struct sgpu_op *sgpu_op_create(enum sgpu_op_kind kind);
struct sgpu_op *sgpu_op_get(struct sgpu_op *op);
void sgpu_op_put(struct sgpu_op *op);
void sgpu_op_wait(struct sgpu_op *op);
/* Does this thread execute a function of the client for a stream? */
bool sgpu_in_callback(void);

/* ---- execute.c; called without the lock ---- */
void sgpu_op_execute(struct sgpu_op *op);

/* ---- event.c ---- */
struct sgpu_event;
int sgpu_event_create(struct sgpu_context *c, unsigned flags, struct sgpu_event **out);
void sgpu_event_destroy(struct sgpu_event *e);
/* NULL: there is no such event. */
struct sgpu_event *sgpu_event_find(const void *handle);
struct sgpu_context *sgpu_event_context(const struct sgpu_event *e);
/* The stream belongs to the event's context. */
int sgpu_event_record(struct sgpu_event *e, struct sgpu_stream *s);
int sgpu_event_query(struct sgpu_event *e);
int sgpu_event_wait(struct sgpu_event *e);
int sgpu_event_elapsed(struct sgpu_event *from, struct sgpu_event *to, float *ms);
int sgpu_stream_wait_event(struct sgpu_stream *s, struct sgpu_event *e);
void sgpu_events_end(const struct sgpu_context *c);

/* ---- copy.c ---- */
enum sgpu_direction {
    SGPU_HTOD,
    SGPU_DTOH,
    SGPU_DTOD,
    SGPU_HTOH,
    SGPU_ANY,
    SGPU_UNSTAGED, /* any direction; asynchronous to pageable memory too */
};

/* s NULL: the synchronous form, in the NULL stream. As on real devices it may return before the end
 * if no host memory takes part. */
int sgpu_copy(struct sgpu_context *c, struct sgpu_stream *s, uint64_t to, uint64_t from,
              uint64_t length, enum sgpu_direction direction);
/* The same in two dimensions: rows of `width` bytes; pitches are at least `width`. */
struct sgpu_rows {
    uint64_t width, count, to_pitch, from_pitch;
};
int sgpu_copy_rows(struct sgpu_context *c, struct sgpu_stream *s, uint64_t to, uint64_t from,
                   const struct sgpu_rows *rows, enum sgpu_direction direction);
int sgpu_set(struct sgpu_context *c, struct sgpu_stream *s, uint64_t to, uint32_t value,
             unsigned width, uint64_t count);
int sgpu_call(struct sgpu_stream *s, void (*call)(void *), void *argument);

/* ---- export.c ---- */
/* A descriptor of exactly [address, address + length), as common/dmabuf_standin.h describes it;
 * dma-bufs are of whole pages. */
int sgpu_export(uint64_t address, uint64_t length, bool dmabuf, int *fd);

/* ---- vmm.c ---- */
enum { SGPU_GRANULARITY = 2 << 20 };
int sgpu_vmm_reserve(uint64_t size, uint64_t alignment, uint64_t *address);
int sgpu_vmm_unreserve(uint64_t address, uint64_t size);
int sgpu_vmm_create(int device, uint64_t size, bool rdma, uint64_t *handle);
int sgpu_vmm_release(uint64_t handle);
int sgpu_vmm_map(uint64_t address, uint64_t size, uint64_t handle);
int sgpu_vmm_unmap(uint64_t address, uint64_t size);
int sgpu_vmm_access(uint64_t address, uint64_t size, bool accessible);

/* ---- ipc.c ---- */
enum { SGPU_IPC_SIZE = 64 };
int sgpu_ipc_make(uint64_t address, void *handle);
int sgpu_ipc_open(struct sgpu_context *c, const void *handle, uint64_t *address);
int sgpu_ipc_close(uint64_t address);

#endif
