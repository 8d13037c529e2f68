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
};

/* 0, or 1 when nothing was done (immediate only). */
int tk_transfer_blocking(struct tk_transfer *t);

/* lc_opt: GEX_EVENT_NOW, GEX_EVENT_DEFER (gets: that one) or where to store the leaf. */
gex_Event_t tk_transfer_start(struct tk_transfer *t, gex_Event_t *lc_opt);

/* Counts in the calling thread's implicit operations. lc_opt: GEX_EVENT_NOW, GEX_EVENT_DEFER (gets:
 * that one) or GEX_EVENT_GROUP. 0, or 1 when nothing was done (immediate only). */
int tk_transfer_implicit(struct tk_transfer *t, gex_Event_t *lc_opt);

/* What the functions below do with tk_asked when the transport did not take it at once, or there
 * is nothing to move. */
int tk_blocking_any(bool is_put, gex_Flags_t flags);
gex_Event_t tk_start_any(bool is_put, gex_Event_t *lc_opt, gex_Flags_t flags);
int tk_implicit_any(bool is_put, gex_Event_t *lc_opt, gex_Flags_t flags);

static inline bool tk_at_once(bool is_put, struct tk_peer *peer, void *remote, const void *local,
                              size_t nbytes, struct tk_op *op)
{
    const struct tk_transport *transport = peer->transport;
    return is_put ? transport->put(peer, op, (uintptr_t)remote, local, nbytes)
                  : transport->get(peer, op, (uintptr_t)remote, (void *)local, nbytes);
}

/* Puts and gets between endpoints 0, inline for the sake of small ones: is_put is a constant. */

static inline int tk_blocking(bool is_put, struct tk_peer *peer, void *remote, const void *local,
                              size_t nbytes, gex_Flags_t flags)
{
    struct tk_op op;
    tk_counter_set(&op.pending, 1);
    tk_if_unlikely(!tk_at_once(is_put, peer, remote, local, nbytes, &op))
    {
        return tk_blocking_any(is_put, flags);
    }
    tk_if_likely(!tk_op_done(&op)) tk_wait_served(&op.pending);
    return 0;
}

static inline gex_Event_t tk_start(bool is_put, struct tk_peer *peer, void *remote,
                                   const void *local, size_t nbytes, gex_Event_t *lc_opt,
                                   gex_Flags_t flags)
{
    struct tk_op *op = tk_op_take_with(1);
    tk_if_unlikely(!tk_at_once(is_put, peer, remote, local, nbytes, op))
    {
        return tk_start_any(is_put, lc_opt, flags);
    }
    if (is_put && lc_opt != GEX_EVENT_NOW && lc_opt != GEX_EVENT_DEFER)
        *lc_opt = GEX_EVENT_INVALID;
    return tk_event_of(op);
}

static inline int tk_implicit(bool is_put, struct tk_peer *peer, void *remote, const void *local,
                              size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    struct tk_op *op = tk_nbi_op(is_put ? TK_NBI_PUT : TK_NBI_GET);
    tk_counter_add(&op->pending, 1);
    tk_if_unlikely(!tk_at_once(is_put, peer, remote, local, nbytes, op))
    {
        return tk_implicit_any(is_put, lc_opt, flags);
    }
    return 0;
}

#endif
