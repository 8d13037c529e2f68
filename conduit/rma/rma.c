/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Put and get over any transport: posts all pieces, waiting for resources if there are none, then
 * waits for completion or returns an event. Only the posting thread tests an operation before all
 * its pieces are posted, so its counter may reach zero in between. Owns nothing, no lock. */
#include "config.h"

#include "event/event.h"
#include "event/nbi_now.h"
#include "progress/progress.h"
#include "rma/rma.h"

static enum tk_status post_all(struct tk_transfer *t, struct tk_op *op)
{
    t->rma.op = op;
    return tk_wait_rma(t->peer, &t->rma);
}

int tk_transfer_blocking(struct tk_transfer *t)
{
    struct tk_op op;
    if (!t->rma.immediate) /* which queries the current space: a poll would free some */
        tk_copy_take_turn();
    if (t->rma.nbytes == 0)
        return 0;
    tk_op_init(&op);
    if (post_all(t, &op) != TK_OK)
        return 1;
    tk_wait_done(&op);
    return 0;
}

static gex_Event_t nothing(gex_Event_t *lc_opt)
{
    if (lc_opt != GEX_EVENT_NOW && lc_opt != GEX_EVENT_DEFER)
        *lc_opt = GEX_EVENT_INVALID;
    return GEX_EVENT_INVALID;
}

static void await_source(const struct tk_transfer *t, const struct tk_op *op)
{
    if (!t->rma.copy_source)
        tk_source_look(&op->sources);
    tk_wait_source_free(op);
}

static void lend_or_copy(struct tk_transfer *t, const gex_Event_t *lc_opt)
{
    t->rma.is_lent = lc_opt == GEX_EVENT_NOW && tk_source_lend();
    t->rma.copy_source = lc_opt == GEX_EVENT_NOW && !t->rma.is_lent;
}

gex_Event_t tk_transfer_start(struct tk_transfer *t, gex_Event_t *lc_opt)
{
    if (t->rma.nbytes == 0)
        return nothing(lc_opt);
    struct tk_op *op = tk_op_take();
    lend_or_copy(t, lc_opt);
    t->rma.sources = lc_opt == GEX_EVENT_DEFER ? NULL : &op->sources;
    if (post_all(t, op) != TK_OK) {
        tk_op_give(op);
        return GEX_EVENT_NO_OP;
    }
    if (lc_opt == GEX_EVENT_NOW)
        await_source(t, op);
    else if (lc_opt != GEX_EVENT_DEFER && (*lc_opt = tk_leaf_of(op)) != GEX_EVENT_INVALID)
        return (gex_Event_t)op; /* even if complete by now: the leaf is valid as long as its root */
    return tk_event_of(op);
}

/* With GEX_EVENT_NOW only this put's source is waited for, not those of puts before it. */
int tk_transfer_implicit(struct tk_transfer *t, gex_Event_t *lc_opt)
{
    struct tk_op mine;
    if (t->rma.nbytes == 0)
        return 0;
    struct tk_op *op = tk_nbi_op(t->rma.is_put ? TK_NBI_PUT : TK_NBI_GET);
    tk_op_init(&mine);
    lend_or_copy(t, lc_opt);
    if (lc_opt != GEX_EVENT_DEFER)
        t->rma.sources = lc_opt == GEX_EVENT_NOW ? &mine.sources : &op->sources;
    if (post_all(t, op) != TK_OK)
        return 1;
    await_source(t, &mine);
    return 0;
}

/* ---- Slow start: the transport did not accept the transfer at once ---- */

static struct tk_transfer transfer(const struct tk_asked *asked, bool is_put, gex_Flags_t flags)
{
    return (struct tk_transfer){.peer = asked->peer,
                                .rma = {.remote = asked->remote,
                                        .local = asked->local,
                                        .nbytes = asked->nbytes,
                                        .is_put = is_put,
                                        .immediate = flags & GEX_FLAG_IMMEDIATE}};
}

/* A put too large for the work request, if its source need not be free on return: in one piece, in
 * place. `op` counts it. */
static bool put_from(const struct tk_asked *asked, struct tk_op *op)
{
    const struct tk_transport *transport = tk_peer_transport(asked->peer);
    return transport->rma.put_from &&
           transport->rma.put_from(asked->peer, op, asked->remote, asked->local, asked->nbytes);
}

int tk_blocking_slowly(const struct tk_asked *asked, bool is_put, gex_Flags_t flags)
{
    struct tk_op op;
    tk_counter_set(&op.pending, 1);
    if (is_put && put_from(asked, &op)) {
        tk_wait_done(&op);
        return 0;
    }
    struct tk_transfer t = transfer(asked, is_put, flags);
    return tk_transfer_blocking(&t);
}

gex_Event_t tk_start_slowly(const struct tk_asked *asked, bool is_put, struct tk_op *op,
                            gex_Event_t *lc_opt, gex_Flags_t flags)
{
    if (is_put && lc_opt == GEX_EVENT_DEFER && put_from(asked, op))
        return tk_event_of(op);
    struct tk_transfer t = transfer(asked, is_put, flags);
    tk_op_give(op);
    return tk_transfer_start(&t, lc_opt);
}

int tk_implicit_slowly(const struct tk_asked *asked, bool is_put, struct tk_op *op,
                       gex_Event_t *lc_opt, gex_Flags_t flags)
{
    if (is_put && lc_opt == GEX_EVENT_DEFER && put_from(asked, op))
        return 0;
    struct tk_transfer t = transfer(asked, is_put, flags);
    tk_counter_add(&op->pending, -1);
    return tk_transfer_implicit(&t, lc_opt);
}
