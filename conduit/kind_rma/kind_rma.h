/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets of which at least one end is memory of a device. The CPU never loads from or stores
 * to such memory. Each transfer is cut into pieces; a piece passes through the stages that its path
 * needs (kind_path.h). Progress of pieces is made by any poll. Thread-safe in PAR. */
#ifndef TK_KIND_RMA_H
#define TK_KIND_RMA_H

#include "gasnetex.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "rma/rma.h"
#include "settings/settings.h"
#include "stats/stats.h"

struct tk_kind_memory;

/* Rows of rma.nbytes each, at most tk_kind_row_max(), at equal distances on each side: at least the
 * length of a row, at most tk_kind_pitch_max. count 0 or 1: one range. */
struct tk_kind_rows {
    size_t count, local_pitch, remote_pitch;
};

/* One transfer. t->rma has peer, remote, local, nbytes, is_put, immediate and, as is_pair is set,
 * endpoint, remote_keys and home. */
struct tk_kind_transfer {
    struct tk_transfer t;
    const struct tk_kind_memory *local; /* NULL: host memory */
    const struct tk_bound_kind *remote; /* NULL: host memory */
    struct tk_kind_rows rows;           /* only of tk_kind_post() */
};

/* Fast path for a put over the network to registered device memory whose source the HCA reads in
 * place: the same decision as kind_path.c, in few instructions. True: it is an ordinary transfer,
 * and counted. False: the caller uses the functions below. */
static inline bool tk_kind_is_plain_put(struct tk_kind_transfer *k)
{
    struct tk_rma *rma = &k->t.rma;
    if (!rma->is_put || !k->remote || !k->remote->is_registered ||
        (k->local && !rma->home->handle) || rma->nbytes == 0 || tk_settings.verboseenv ||
        tk_peer_transport(k->t.peer)->reach != TK_REACH_NETWORK)
        return false;
    rma->is_on_device = k->local != NULL;
    rma->wants_flush = k->remote->needs_flush;
    tk_count_transfer(tk_path_kind_hca, tk_counter_kind_bytes, rma->nbytes);
    return true;
}

/* Like tk_transfer_blocking(), _start() and _implicit(). */
int tk_kind_blocking(struct tk_kind_transfer *k);
gex_Event_t tk_kind_start(struct tk_kind_transfer *k, gex_Event_t *lc_opt);
int tk_kind_implicit(struct tk_kind_transfer *k, gex_Event_t *lc_opt);

/* Starts a part of an operation, at least one byte; polls advance it. It is counted in op->pending
 * and, if it is a put, in *sources (may be NULL). The queue has no limit, so a caller with many
 * parts asks for space before each. */
bool tk_kind_has_space(void);
size_t tk_kind_row_max(void);
void tk_kind_post(struct tk_kind_transfer *k, struct tk_op *op, tk_counter_t *sources);

#endif
