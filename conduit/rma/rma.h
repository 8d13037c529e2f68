/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Put and get. Any local memory, any size, any alignment. Thread-safe in PAR. */
#ifndef TK_RMA_H
#define TK_RMA_H

#include "event/event.h"
#include "gasnetex.h"
#include "peer/peer.h"
#include "progress/progress.h"
#include "transport/transport.h"

struct tk_transfer {
    struct tk_peer *peer;
    struct tk_rma rma; /* remote, local, nbytes, is_put; the rest is filled in here */
    bool immediate;
    gex_Flags_t flags; /* of a put below; `immediate` is taken from it */
};

/* 0, or 1 when nothing was done (immediate only). */
int tk_transfer_blocking(struct tk_transfer *t);

/* lc_opt: GEX_EVENT_NOW, GEX_EVENT_DEFER (gets: that one) or where to store the leaf. */
gex_Event_t tk_transfer_start(struct tk_transfer *t, gex_Event_t *lc_opt);

/* Counts in the calling thread's implicit operations. lc_opt: GEX_EVENT_NOW, GEX_EVENT_DEFER (gets:
 * that one) or GEX_EVENT_GROUP. 0, or 1 when nothing was done (immediate only). */
int tk_transfer_implicit(struct tk_transfer *t, gex_Event_t *lc_opt);

/* The rest of the functions below, when the transport did not take the put at once, or there is
 * nothing to put. */
int tk_put_blocking_any(struct tk_transfer *t);
gex_Event_t tk_put_start_any(struct tk_transfer *t, gex_Event_t *lc_opt);
int tk_put_implicit_any(struct tk_transfer *t, gex_Event_t *lc_opt);
gex_Event_t tk_put_nothing(gex_Event_t *lc_opt);

/* All that matters of a put; the rest of t is filled in when the transport does not take it at
 * once. */
static inline void tk_put_note(struct tk_transfer *t, struct tk_peer *peer, void *remote,
                               const void *local, size_t nbytes, gex_Flags_t flags)
{
    t->peer = peer;
    t->rma.remote = (uintptr_t)remote;
    t->rma.local = (char *)local;
    t->rma.nbytes = nbytes;
    t->flags = flags;
}

/* op->pending is 1 or more. */
static inline bool tk_put_at_once(struct tk_transfer *t, struct tk_op *op)
{
    t->rma.op = op;
    return t->peer->transport->put(t->peer, &t->rma) == TK_OK;
}

/* Puts, inline for the sake of small ones. */

static inline int tk_put_blocking(struct tk_peer *peer, void *remote, const void *local,
                                  size_t nbytes, gex_Flags_t flags)
{
    struct tk_transfer t;
    struct tk_op op;
    if (nbytes == 0)
        return 0;
    tk_put_note(&t, peer, remote, local, nbytes, flags);
    tk_counter_set(&op.pending, 1);
    tk_if_unlikely(!tk_put_at_once(&t, &op)) return tk_put_blocking_any(&t);
    tk_wait_done(&op);
    return 0;
}

static inline gex_Event_t tk_put_start(struct tk_peer *peer, void *remote, const void *local,
                                       size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    struct tk_transfer t;
    tk_if_unlikely(nbytes == 0) return tk_put_nothing(lc_opt);
    tk_put_note(&t, peer, remote, local, nbytes, flags);
    struct tk_op *op = tk_op_take();
    tk_counter_set(&op->pending, 1);
    tk_if_unlikely(!tk_put_at_once(&t, op)) return tk_put_start_any(&t, lc_opt);
    if (lc_opt != GEX_EVENT_NOW && lc_opt != GEX_EVENT_DEFER)
        *lc_opt = GEX_EVENT_INVALID;
    return tk_event_of(op);
}

static inline int tk_put_implicit(struct tk_peer *peer, void *remote, const void *local,
                                  size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    struct tk_transfer t;
    if (nbytes == 0)
        return 0;
    tk_put_note(&t, peer, remote, local, nbytes, flags);
    struct tk_op *op = tk_nbi_op(TK_NBI_PUT);
    tk_counter_add(&op->pending, 1);
    tk_if_unlikely(!tk_put_at_once(&t, op)) return tk_put_implicit_any(&t, lc_opt);
    return 0;
}

#endif
