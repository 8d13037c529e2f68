/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See tx.h: handles the completion of a work request. No lock. */
#include "config.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/copy.h"
#include "firehose/find.h"
#include "firehose/firehose.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

void tk_tx_more(struct tk_tx *tx, struct ibv_send_wr *wr, const struct tk_tx_entry_keys *keys)
{
    if (tk_verbs.failover_enabled)
        tk_tx_entry_work(tx, wr, keys);
    else
        tk_tx_name_queue(tx->conn, wr);
}

void tk_bounces_give(struct tk_buffer *first, unsigned count)
{
    struct tk_pool_item *last = &first->item;
    while (--count > 0)
        last = last->next;
    tk_pool_give_all(&tk_verbs.bounce_pool, &first->item, last);
}

static void __attribute__((noinline)) complete_general(struct tk_tx *tx)
{
    struct tk_op *op = tx->op;
    if (tx->is_held)
        tk_firehose_put(tx->held);
    else if (tx->get_to)
        tk_copy_large(tx->get_to, tx->bounce->data, tx->nbytes);
    tk_counter_t *sources = tx->sources;
    tk_tx_give(tx);
    if (!op)
        return;
    if (sources)
        tk_counter_add(sources, -1);
    /* Last: a thread that sees zero may free the operation. */
    tk_counter_add(&op->pending, -1);
}

static void __attribute__((noinline)) complete_plain(struct tk_tx *tx)
{
    tk_tx_complete_plain(tk_lane_of(tx->conn), tx);
}

static void __attribute__((noinline)) complete_last_held(struct tk_tx *tx)
{
    tk_firehose_put(tx->held);
    complete_plain(tx);
}

/* Entered by tail jumps from the functions above, which need save no registers for them. */
void tk_tx_complete(struct tk_tx *tx)
{
    if (tx->kind == TK_TX_GENERAL)
        complete_general(tx);
    else if (tx->kind == TK_TX_HELD && !tk_firehose_put_found(tx->held))
        complete_last_held(tx);
    else if (tk_is_only_thread())
        tk_tx_complete_at_once(tk_lane_of(tx->conn), tx, true);
    else
        tk_if_unlikely(!tk_tx_complete_at_once(tk_lane_of(tx->conn), tx, false)) complete_plain(tx);
}

void tk_tx_post_nothing(struct tk_tx *tx)
{
    static const uint32_t no_keys[tk_conns_max];
    const struct tk_tx_entry_keys keys = {.local = no_keys, .remote = no_keys};
    struct ibv_send_wr wr;
    wr.sg_list = NULL;
    wr.num_sge = 0;
    wr.wr.rdma.remote_addr = 0;
    wr.wr.rdma.rkey = 0;
    tx->nbytes = 0;
    tk_tx_post_more(tx, &wr, IBV_WR_RDMA_WRITE, 0, tk_verbs.failover_enabled, &keys);
}
