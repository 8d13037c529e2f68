/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Put and get. Any local memory, any size, any alignment. Thread-safe in PAR. */
#ifndef TK_RMA_H
#define TK_RMA_H

#include "event/event.h"
#include "event/nbi_now.h"
#include "gasnetex.h"
#include "peer/peer.h"
#include "progress/progress.h"
#include "transport/transport.h"

struct tk_transfer {
    struct tk_peer *peer;
    struct tk_rma rma; /* op, sources, copy_source and is_lent are set by the functions below */
};

/* 0, or 1 if nothing was done (immediate only). */
int tk_transfer_blocking(struct tk_transfer *t);

/* lc_opt: GEX_EVENT_NOW, GEX_EVENT_DEFER (always, for gets) or where to store the leaf. */
gex_Event_t tk_transfer_start(struct tk_transfer *t, gex_Event_t *lc_opt);

/* Counted among the calling thread's implicit operations. lc_opt: GEX_EVENT_NOW, GEX_EVENT_DEFER
 * (always, for gets) or GEX_EVENT_GROUP. 0, or 1 if nothing was done (immediate only). */
int tk_transfer_implicit(struct tk_transfer *t, gex_Event_t *lc_opt);

/* ---- Puts and gets between endpoints 0: inline, for small ones; is_put is a constant ---- */

/* The arguments, in case the transport does not accept the transfer at once. It almost always does:
 * storing them costs less than saving, setting and restoring registers. */
struct tk_asked {
    struct tk_peer *peer;
    uintptr_t remote;
    void *local;
    size_t nbytes;
};

/* The slow start: the transport did not accept the transfer at once, or there is nothing to move.
 * `op` counts one piece of it; the caller no longer uses it. */
int tk_blocking_slowly(const struct tk_asked *asked, bool is_put, gex_Flags_t flags);
gex_Event_t tk_start_slowly(const struct tk_asked *asked, bool is_put, struct tk_op *op,
                            gex_Event_t *lc_opt, gex_Flags_t flags);
int tk_implicit_slowly(const struct tk_asked *asked, bool is_put, struct tk_op *op,
                       gex_Event_t *lc_opt, gex_Flags_t flags);

/* The original arguments are passed on: read from `asked` they would be loaded again. */
static inline bool tk_at_once(bool is_put, struct tk_peer *peer, struct tk_op *op, void *remote,
                              const void *local, size_t nbytes, struct tk_asked *asked)
{
    const struct tk_transport *transport = tk_peer_transport(peer);
    *asked = (struct tk_asked){peer, (uintptr_t)remote, (void *)local, nbytes};
    tk_keep_in_memory(*asked);
    return is_put ? transport->rma.put(peer, op, (uintptr_t)remote, local, nbytes)
                  : transport->rma.get(peer, op, (uintptr_t)remote, (void *)local, nbytes);
}

static inline int tk_blocking(bool is_put, struct tk_peer *peer, void *remote, const void *local,
                              size_t nbytes, gex_Flags_t flags)
{
    struct tk_op op;
    struct tk_asked asked;
    tk_counter_set(&op.pending, 1);
    tk_keep_in_memory(flags);
    tk_if_unlikely(!tk_at_once(is_put, peer, &op, remote, local, nbytes,
                               &asked)) return tk_blocking_slowly(&asked, is_put, flags);
    tk_wait_posted(&op.pending);
    return 0;
}

static inline gex_Event_t tk_start(bool is_put, struct tk_peer *peer, void *remote,
                                   const void *local, size_t nbytes, gex_Event_t *lc_opt,
                                   gex_Flags_t flags)
{
    struct tk_op *op = tk_op_take_with(1);
    struct tk_asked asked;
    tk_keep_in_memory(lc_opt);
    tk_if_unlikely(!tk_at_once(is_put, peer, op, remote, local, nbytes,
                               &asked)) return tk_start_slowly(&asked, is_put, op, lc_opt, flags);
    if (is_put && lc_opt != GEX_EVENT_NOW && lc_opt != GEX_EVENT_DEFER)
        *lc_opt = GEX_EVENT_INVALID;
    return tk_event_of(op);
}

static inline int tk_implicit(bool is_put, struct tk_peer *peer, void *remote, const void *local,
                              size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    struct tk_op *op = tk_nbi_op(is_put ? TK_NBI_PUT : TK_NBI_GET);
    struct tk_asked asked;
    tk_op_add_piece(op);
    tk_if_unlikely(!tk_at_once(is_put, peer, op, remote, local, nbytes,
                               &asked)) return tk_implicit_slowly(&asked, is_put, op, lc_opt,
                                                                  flags);
    return 0;
}

#endif
