/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives among those members of a team that share memory: barriers, reductions and broadcasts
 * by flags and slots in that memory, without messages. Each is a small state machine: started once,
 * stepped until it is done, never waiting. Any number may be in flight on a team, stepped in any
 * order.
 *
 * Each member owns a channel in memory that the others map, and it alone writes there: a ring of
 * slots. Each operation takes a ticket, in the same order on all members, and the slot that the
 * ticket names. Words in a slot only grow (ticket in the upper half, progress in the lower), are
 * never reset, and a reader waits until a word has reached what it expects; so later operations do
 * not confuse a member that is late. A slot is used again when all members have retired the
 * operation that used it.
 *
 * Locking: the caller has one lock for each team, held in all calls below unless documented
 * otherwise. Words are stored with release after the data that they announce, and loaded with
 * acquire before that data is read. */
#ifndef TK_LOCAL_H
#define TK_LOCAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/status.h"

/* arg2_and_out[i] = arg1[i] op arg2_and_out[i]; gex_Coll_ReduceFn_t. Operations commute. */
typedef void tk_local_fn(const void *arg1, void *arg2_and_out, size_t count, const void *cdata);

enum {
    tk_local_inline = 48,      /* bytes that travel in the line of a flag */
    tk_local_buffer = 16384,   /* bytes of a slot, and of the largest element that can be reduced */
    tk_local_slots = 16,       /* operations of a team that proceed at a time; others wait */
    tk_local_flat = 8,         /* up to this many members each reads the lines of all */
    tk_local_all_small = 1024, /* bytes that each member reduces itself, if members are few */
    tk_local_blob_size = 16
};

/* A member's contribution to a team that is being created: part of the team's blob. Zero: no
 * channel. */
struct tk_local_blob {
    uint64_t channel; /* number plus 1 */
    uint64_t base;    /* where its words begin */
};
_Static_assert(sizeof(struct tk_local_blob) == tk_local_blob_size, "part of a team's blob");

struct tk_local_channel;

struct tk_local_member {
    struct tk_local_channel *at; /* NULL: not mapped yet */
    uint64_t base;
    uint32_t nbrhd_index, rank; /* in the neighbourhood; in the job */
    uint32_t channel;
};

/* Our part of a team. */
struct tk_local {
    struct tk_local_member *members; /* all of them, including ourselves */
    uint32_t count, me;
    uint32_t next;     /* tickets given out */
    uint32_t safe;     /* tickets below this find their slot free */
    uint32_t retired;  /* all tickets below this are retired here */
    uint64_t finished; /* bit i: ticket `retired` + i is retired */
    bool usable;
};

/* ---- teams ---- */

/* Takes a channel of ours for a team about to be created: *blob goes to all members. Thread-safe,
 * as is the next. */
void tk_local_offer(struct tk_local_blob *blob);

/* Called if the team is not created: frees the channel. */
void tk_local_withdraw(const struct tk_local_blob *blob);

/* With the blobs of all members. `jobranks` lists the members that share memory with us, ourselves
 * at `me`, in the same order on all of them; blobs[i] comes from jobranks[i]. If any member had no
 * channel left, tk_local_usable() is false on all, and our channel is free again. The team of all
 * processes passes NULL for blobs, once: channel 0 is kept for it. */
void tk_local_open(struct tk_local *local, const uint32_t *jobranks, uint32_t count, uint32_t me,
                   const struct tk_local_blob *const *blobs);

/* The memory that a team of this many neighbours takes. */
static inline size_t tk_local_members_bytes(size_t count)
{
    return count * sizeof(struct tk_local_member);
}

/* Called after the last operation here. Other members may still be in a barrier that we have left,
 * but in no other operation. */
void tk_local_close(struct tk_local *local);

/* Whether the operations below can be used; if not, callers use messages. True where we are the
 * only member: then all operations are done when started. The same on all members. */
static inline bool tk_local_usable(const struct tk_local *local)
{
    return local->usable;
}

/* Elements of this size can be reduced here. */
static inline bool tk_local_reducible(size_t element)
{
    return element <= tk_local_buffer;
}

/* The member whose word an operation waits for, for the record of waits. */
struct tk_wait_rows;
struct tk_local_op;
void tk_local_missing(const struct tk_local_op *op, struct tk_wait_rows *rows, uint32_t sequence,
                      uint64_t team);

/* ---- operations ---- */

/* One in flight; the caller's memory, which must stay where it is. All of it is local.c's. */
struct tk_local_op {
    const _Atomic uint64_t *awaited; /* the word that the operation waits for, and */
    uint64_t target;                 /* what it must reach; awaited NULL: nothing */
    bool (*advance)(struct tk_local_op *op);
    void (*then)(struct tk_local_op *op); /* sets up the second half; NULL: no second half */
    struct tk_local *local;
    uint32_t ticket;
    uint32_t root;
    uint32_t place;      /* ours in the tree whose root has 0 */
    uint32_t first, end; /* places of the members below us */
    uint32_t at;         /* the one next to be looked at */
    uint32_t piece;      /* next */
    uint32_t pieces;     /* in all */
    uint32_t areas;      /* pieces that the buffer of a slot holds */
    size_t piece_size;
    size_t nbytes;
    size_t element, count;
    char *destination;
    const char *source;
    tk_local_fn *fn;
    const void *cdata;
};

/* An operation's tickets, consecutive; taken when the client starts the collective, under the lock,
 * because the order of tickets must be the same on all members. An operation may be started later
 * than that, but it must be started: the others wait for it. Their number is the same on all
 * members. */
static inline uint32_t tk_local_take_tickets(struct tk_local *local, uint32_t count)
{
    uint32_t first = local->next;
    local->next += count;
    return first;
}

/* Tickets for tk_local_meet() and tk_local_reduce_to_all(); all others take one. */
static inline uint32_t tk_local_meet_tickets(const struct tk_local *local)
{
    return local->count <= tk_local_flat ? 1 : 2;
}

static inline uint32_t tk_local_to_all_tickets(const struct tk_local *local, size_t nbytes)
{
    return local->count <= tk_local_flat && nbytes <= tk_local_all_small ? 1 : 2;
}

/* Barrier of all members: done when all have started it. */
void tk_local_meet(struct tk_local_op *op, struct tk_local *local, uint32_t ticket);

/* Halves of a barrier. Done at `to` when all have started it; elsewhere earlier. */
void tk_local_gather(struct tk_local_op *op, struct tk_local *local, uint32_t ticket, uint32_t to);

/* Done when `from` has started it. */
void tk_local_release(struct tk_local_op *op, struct tk_local *local, uint32_t ticket,
                      uint32_t from);

/* `nbytes` from `from` to all others: `source` is used only there, `destination` only elsewhere.
 * May be 0. Done at `from` when the source may be changed; elsewhere when the bytes have
 * arrived. */
void tk_local_broadcast(struct tk_local_op *op, struct tk_local *local, uint32_t ticket,
                        uint32_t from, void *destination, const void *source, size_t nbytes);

struct tk_local_reduction {
    void *destination; /* may be the source */
    const void *source;
    size_t element; /* bytes; tk_local_reducible() */
    size_t count;
    tk_local_fn *fn;
    const void *cdata;
};

/* The result is in the destination of `to`; others need no destination. Done when the source may be
 * changed and, at `to`, the result is there. The order in which members are combined depends on
 * `to` and the number of members alone. */
void tk_local_reduce(struct tk_local_op *op, struct tk_local *local, uint32_t ticket, uint32_t to,
                     const struct tk_local_reduction *how);

/* All destinations get the same bits. */
void tk_local_reduce_to_all(struct tk_local_op *op, struct tk_local *local, uint32_t ticket,
                            const struct tk_local_reduction *how);

/* Whether a step would do anything; for threads about to sleep. Every change that it depends on
 * rings the doorbell (tk_neighbour_wake). Without the lock the answer may be out of date, which is
 * harmless as long as the operation is not stepped meanwhile. */
static inline bool tk_local_is_due(const struct tk_local_op *op)
{
    return !op->awaited ||
           (int64_t)(atomic_load_explicit((_Atomic uint64_t *)op->awaited, memory_order_acquire) -
                     op->target) >= 0;
}

/* Does what can be done now; true: the operation is done, and must not be stepped again. */
static inline bool tk_local_step(struct tk_local_op *op)
{
    return tk_local_is_due(op) && op->advance(op);
}

#endif
