/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Put and get. Any local memory, any size, any alignment. Thread-safe in PAR. */
#ifndef TK_RMA_H
#define TK_RMA_H

#include "gasnetex.h"
#include "peer/peer.h"
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

#endif
