/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large transfers over all connections of a pair, and the reads behind puts.
 *
 * Each piece uses the connection that would finish first if all had begun together, so a connection
 * that is four times as fast carries four times as much. The counts are hints, which threads change
 * without a lock.
 *
 * An acknowledged write has reached the responder's device, not yet its memory (IBA 9.7.5): a rank
 * that is notified through another device may read too early. A read posted after it on the same
 * queue pair is answered after the write is in memory, since the device may not let one pass the
 * other (PCI Express 2.4.1). So a put to a host that uses several devices is complete when such
 * reads are. Other hosts do not need this: messages about the put, and reads of its data, come
 * through the same device. */
#include "config.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/stripe.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum {
    cost_unit = 256 /* of a byte on a connection as fast as the fastest port */
};

/* Connections of a rail share its rate. */
static uint32_t conns_on(uint32_t rail)
{
    uint32_t count = 0;
    for (uint32_t k = rail; k < tk_verbs.conns_pp; k += tk_verbs.rail_count)
        count++;
    return (uint32_t)tk_max(count, 1);
}

TK_FIRST_USE void tk_stripe_open(struct tk_conn *conn, uint32_t remote_rate)
{
    uint32_t own = tk_rail_of(conn)->address.rate_mbps, fastest = 1;
    uint32_t rate = (uint32_t)tk_max(1, tk_min(own, remote_rate));
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        fastest = (uint32_t)tk_max(fastest, tk_verbs.rails[i].address.rate_mbps);
    conn->cost = tk_max(1, (uint64_t)cost_unit * fastest * conns_on(conn->rail) / rate);
}

void tk_stripe_count(struct tk_conn *conn, size_t nbytes)
{
    __atomic_add_fetch(&conn->carried, nbytes * conn->cost, __ATOMIC_RELAXED);
}

void tk_stripe_uncount(struct tk_conn *conn, size_t nbytes)
{
    __atomic_sub_fetch(&conn->carried, nbytes * conn->cost, __ATOMIC_RELAXED);
}

struct tk_conn *tk_stripe_conn(const struct tk_peer *peer, size_t nbytes)
{
    struct tk_conn *conns = tk_conns_to(peer->rank), *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_conn *conn = &conns[k];
        uint64_t then = __atomic_load_n(&conn->carried, __ATOMIC_RELAXED) + nbytes * conn->cost;
        if (then >= least || tk_conn_space(conn) <= 0)
            continue;
        least = then;
        best = conn;
    }
    return best;
}

static void post(struct tk_tx *read, uint64_t remote, const uint32_t *remote_keys)
{
    uint32_t rail = read->conn->rail;
    struct ibv_sge sge = {.addr = (uintptr_t)tk_verbs.fence_sink->data,
                          .length = 1,
                          .lkey = tk_verbs.fence_sink->keys[rail]};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = remote_keys[rail];
    read->nbytes = sge.length;
    tk_tx_post(read, &wr, IBV_WR_RDMA_READ, 0, tk_verbs.fence_sink->keys, remote_keys);
}

static bool post_read(struct tk_conn *conn, const struct tk_peer *peer, const struct tk_rma *rma)
{
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (!tx)
        return false;
    tx->op = rma->op;
    tk_counter_add(&rma->op->pending, 1);
    post(tx, rma->remote, tk_remote_keys(peer, rma));
    return true;
}

/* Writes that a dead connection may have lost were repeated over the primary. If connections have
 * come back since, any of them may have been primary, so reads go over all. */
static void mind_returns(struct tk_rma_state *state)
{
    int32_t returns = tk_counter_read(&tk_verbs.returns);
    if (state->returns == returns)
        return;
    state->returns = returns;
    state->unfenced |= UINT64_MAX >> (64 - tk_verbs.conns_pp);
}

enum tk_status tk_fence(const struct tk_peer *peer, const struct tk_rma *rma,
                        struct tk_rma_state *state)
{
    while (state->unfenced) {
        mind_returns(state);
        struct tk_conn *conn = tk_conns_to(peer->rank) + __builtin_ctzll(state->unfenced);
        if (tk_conn_is_closed(conn))
            conn = tk_primary(peer);
        tk_lock(&conn->lock);
        bool is_same = state->returns == tk_counter_read(&tk_verbs.returns);
        bool is_posted = is_same && post_read(conn, peer, rma);
        tk_unlock(&conn->lock);
        if (is_same && !is_posted)
            return TK_BUSY;
        if (is_posted)
            state->unfenced &= state->unfenced - 1;
    }
    return TK_OK;
}
