/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of kind_rma/. One lock guards all of the room: transfers, pieces, slots and
 * mappings. Handlers take it to record what came, the work after polls to go on. Transports send
 * and post under it without waiting, so their locks come after it. */
#ifndef TK_KIND_RMA_PRIVATE_H
#define TK_KIND_RMA_PRIVATE_H

#include "base/bits.h"
#include "base/lock.h"
#include "kind/kind.h"
#include "kind_rma/kind_path.h"
#include "kind_rma/kind_rma.h"
#include "memory/memory.h"
#include "message/message.h"

extern TK_HIDDEN tk_lock_t tk_kind_lock;

/* A get writes to local memory of a device that sees an HCA's writes only after a flush. A process
 * has no connection to itself for an RDMA read that would push the writes. */
static inline bool tk_kind_wants_flush_here(const struct tk_kind_transfer *k)
{
    return k->local && !k->t.rma.is_put && k->local->device->facts.needs_flush;
}

/* Whether the HCA accesses the local device memory directly: it is registered, and a get's writes
 * need no flush or the device's class can flush. */
static inline bool tk_kind_hca_moves(const struct tk_kind_transfer *k)
{
    const struct tk_region *home = k->t.rma.home;
    return k->local && home && home->handle &&
           (!tk_kind_wants_flush_here(k) || k->local->device->facts.can_flush);
}

/* ---- staging.c: slots, in memory that peers reach. There are two pools. A slot for our own
 * transfers waits for grants by others. A slot that we granted waits only for its initiator, which
 * already holds all else that it needs. So no cycle of waits can form. ---- */

/* Called when a kind is created: allocates the staging buffers. TK_FAIL: no memory, already
 * logged. */
enum tk_status tk_kind_staging_open(void);
/* Fills in the record of the staging buffers, to be published with device segments; false: no
 * staging buffers exist. */
bool tk_kind_staging_bound(struct tk_bound *bound);

struct tk_kind_slot {
    struct tk_kind_slot *next;
    char *data;
};

struct tk_kind_staging {
    struct tk_area area;
    struct tk_region region;
    bool is_open;
    size_t slot_size;
    uint32_t granted_count;     /* slots for others; they come first in the area */
    struct tk_kind_slot *own;   /* the free ones */
    struct tk_kind_slot *slots; /* all of ours */
};
extern TK_HIDDEN struct tk_kind_staging tk_kind_staging;

/* NULL: none is free now. */
struct tk_kind_slot *tk_kind_slot_take(void);
void tk_kind_slot_give(struct tk_kind_slot *slot);

static inline char *tk_kind_granted_data(uint32_t number)
{
    return (char *)tk_kind_staging.area.base + number * tk_kind_staging.slot_size;
}

/* Bytes of a slot, of all ranks. */
size_t tk_kind_slot_size(void);

/* The address of the same slot in a peer's memory, from the record that it published: all ranks
 * divide their memory alike. 0: the peer has no such slot. */
uintptr_t tk_kind_granted_address(const struct tk_bound *theirs, uint32_t number);

/* ---- kind_copy.c: copies by devices. A failure ends the job, as data would be wrong. ---- */

/* Counts copies in flight. No event reports their end: waiters must poll. */
extern TK_HIDDEN unsigned tk_kind_copies;

/* False: the device's queue is full. */
bool tk_kind_copy_start(struct tk_kind_copy *copy);
bool tk_kind_copy_done(struct tk_kind_copy *copy);
/* A copy has failed: the job ends, and no copy completes any more. */
bool tk_kind_copy_has_failed(void);
/* Flushes: makes what HCAs wrote visible to the device. False: it failed, and the job ends. */
bool tk_kind_copy_flush(struct tk_kind_device *device);
/* The first returns how many references to the device this layer holds; the second unpins the
 * staging memory and drops them. */
unsigned tk_kind_copy_holds(const struct tk_kind_device *device);
void tk_kind_copy_release(struct tk_kind_device *device);

/* ---- kind_ipc.c: memory of neighbours' devices ---- */

struct tk_kind_mapping {
    uintptr_t offset; /* owner's address + offset = address for copies here */
    struct tk_kind_device *device;
};

/* NULL: it can't be mapped; this is logged once. Valid until the record is replaced. */
const struct tk_kind_mapping *tk_kind_ipc_find(uint32_t rank, const struct tk_bound *bound);
/* Undoes the mappings made by the function above. */
unsigned tk_kind_ipc_holds(const struct tk_kind_device *device);
void tk_kind_ipc_release(struct tk_kind_device *device);

/* ---- messages ---- */

enum tk_kind_ask_what {
    TK_KIND_ASK_PUT, /* a slot for a put; the data may come with it */
    TK_KIND_ASK_GET, /* the data in a slot, or with the answer */
    TK_KIND_COPY_IN, /* the slot is filled */
    TK_KIND_RELEASE  /* the slot was read */
};

struct tk_kind_ask {
    uint32_t what;
    uint32_t piece; /* of the initiator, to be returned */
    uint32_t slot;  /* COPY_IN, RELEASE */
    uint32_t endpoint;
    uint64_t at, nbytes;
    uint32_t row, pitch; /* of the device memory; row 0: one range */
};

enum tk_kind_answer_what {
    TK_KIND_GRANT, /* put: the slot is yours */
    TK_KIND_DONE,  /* put: the data is in its place */
    TK_KIND_READY, /* get: the data is in the slot */
    TK_KIND_DATA   /* get: here it is */
};

struct tk_kind_answer {
    uint32_t what;
    uint32_t piece;
    uint32_t slot;
    uint32_t reserved;
};

enum {
    tk_kind_ask_args = sizeof(struct tk_kind_ask) / sizeof(int32_t),
    tk_kind_answer_args = sizeof(struct tk_kind_answer) / sizeof(int32_t),
    /* Data in a message is copied twice, but saves two messages. It fits into the receive buffers
     * of a shared queue with the default of GASNET_RBUF_SIZE. */
    tk_kind_eager_max = 4096 - 64
};

/* The same for both directions: initiator and target must agree on which data travels in
 * messages. */
static inline size_t tk_kind_eager(void)
{
    return tk_min(tk_kind_eager_max, tk_medium_max(tk_kind_ask_args));
}

/* ---- own.c ---- */

_Noreturn void tk_kind_nonsense(const struct tk_peer *from, const char *what);

/* The device memory of our endpoint; NULL: it has none. */
const struct tk_kind_memory *tk_kind_memory_of(uint32_t endpoint);

/* Requires the lock. Releases this layer's references to the device if only the caller has another
 * one. */
void tk_kind_release(struct tk_kind_device *device);

/* ---- kind_piece.c: transfers of ours, cut into pieces. All with the lock held. ---- */

/* How a transfer travels, decided before it begins. */
struct tk_kind_plan {
    enum tk_kind_path path;
    uintptr_t shift; /* BY_COPY, BY_IPC: remote address + shift = address here */
    struct tk_kind_device *remote_device; /* where the device copies; NULL: host memory. BY_IPC: the
                                             library chose it, so the plan counts it */
};

/* Releases the plan when it, or its transfer, is over. */
static inline void tk_kind_plan_end(const struct tk_kind_plan *plan)
{
    if (plan->path != TK_KIND_BY_IPC)
        return;
    tk_kind_release(plan->remote_device);
    tk_kind_device_put(plan->remote_device);
}

/* TK_BUSY: the transfer is immediate and was not started. Otherwise the operation counts it. */
enum tk_status tk_kind_transfer_begin(const struct tk_kind_transfer *k,
                                      const struct tk_kind_plan *plan, struct tk_op *op,
                                      tk_counter_t *sources);
/* No transfer waits to be cut, so the next one begins at once. */
bool tk_kind_pieces_has_space(void);
void tk_kind_answered(struct tk_arrival *arrival);
/* Returns whether it made progress; *lacks: a transport or a device's queue was full. */
bool tk_kind_pieces_progress(bool *lacks);

/* ---- kind_serve.c: the target's side. All with the lock held. ---- */

void tk_kind_asked(struct tk_arrival *arrival);
bool tk_kind_serve_progress(bool *lacks);
/* After the staging memory is open. */
enum tk_status tk_kind_serve_open(void);

#endif
