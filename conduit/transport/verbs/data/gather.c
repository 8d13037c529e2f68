/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets between one range of remote memory and several of local memory, in one work request
 * with a scatter/gather list. The connection's lock guards its send queue.
 *
 * Only with one queue pair to each peer: an entry of the log by which failover repeats transfers
 * has one range of local memory (tx_log.h). */
#include "config.h"

#include "base/atomic.h"
#include "base/lock.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

unsigned tk_verbs_gather_max(const struct tk_region *home, const void *at, size_t nbytes)
{
    if (tk_verbs.conns_pp != 1 || !tk_local_keys(home, at, nbytes))
        return 0;
    return tk_verbs.list_max > 2 ? (unsigned)tk_verbs.list_max : 0;
}

enum tk_status tk_verbs_gather(struct tk_peer *peer, const struct tk_gather *g)
{
    struct ibv_sge list[tk_gather_max];
    struct ibv_send_wr wr;
    struct tk_conn *conn = tk_primary(peer);
    tk_lock(&conn->lock);
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (tx) {
        uint32_t nbytes = 0;
        for (unsigned i = 0; i < g->count; i++) {
            const uint32_t *keys = tk_local_keys(g->home, g->pieces[i].at, g->pieces[i].nbytes);
            list[i].addr = (uintptr_t)g->pieces[i].at;
            list[i].length = (uint32_t)g->pieces[i].nbytes;
            list[i].lkey = keys[conn->rail];
            nbytes += list[i].length;
        }
        wr.sg_list = list;
        wr.num_sge = (int)g->count;
        wr.wr.rdma.remote_addr = g->remote;
        wr.wr.rdma.rkey = g->remote_keys[conn->rail];
        tx->nbytes = nbytes;
        tk_rail_take(conn->rail, nbytes);
        tx->op = g->op;
        tk_counter_add(&g->op->pending, 1);
        tx->sources = g->is_put ? g->sources : NULL;
        if (tx->sources)
            tk_counter_add(tx->sources, 1);
        tk_tx_post_more(tx, &wr, g->is_put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0,
                        tk_verbs.needs_more, NULL);
    }
    tk_unlock(&conn->lock);
    return tx ? TK_OK : TK_BUSY;
}
