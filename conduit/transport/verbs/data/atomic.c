/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomics of the device: fetch-and-add and compare-and-swap of 8 bytes. Owns the connections that
 * carry only atomics, to ranks of other transports and to ourselves; they are in the table of
 * connections and are closed with the others. The connection's lock guards its send queue.
 *
 * Only with one queue pair to each peer. With several, failover would have to know whether an
 * atomic whose completion was lost with its rail was executed: executing it twice is as wrong as
 * never. A put can be repeated, an addition can't. (The responder's device would answer a repeated
 * packet from its own memory, but only on the same queue pair, IBA 9.4.5.) So this file offers no
 * atomics with several queue pairs, and with one a lost connection ends the job. For the same
 * reason all operations on a word go through one device of its owner. */
#include "config.h"

#include "base/bits.h"
#include "base/lock.h"
#include "peer/peer.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/connect.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/data/atomic.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum { word_size = sizeof(uint64_t) };

void tk_atomics_allow(void)
{
    tk_verbs.remote_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    if (tk_verbs.conns_pp == 1 && tk_verbs.rails[0].address.atomics != IBV_ATOMIC_NONE)
        tk_verbs.remote_access |= IBV_ACCESS_REMOTE_ATOMIC;
}

static enum tk_atomic_scope scope_of(uint8_t cap)
{
    return cap == IBV_ATOMIC_GLOB  ? TK_ATOMIC_GLOBAL
           : cap == IBV_ATOMIC_HCA ? TK_ATOMIC_DEVICE
                                   : TK_ATOMIC_NONE;
}

void tk_atomics_agree(void)
{
    enum tk_atomic_scope least = TK_ATOMIC_GLOBAL;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct tk_peer_info *info = tk_peer_info_of(r);
        enum tk_atomic_scope scope = TK_ATOMIC_NONE;
        if (info->conns == 1 && info->rails == 1)
            scope = scope_of(tk_peer_info_rail(info, 0)->atomics);
        least = scope < least ? scope : least;
    }
    tk_verbs.atomics = least;
}

enum tk_atomic_scope tk_verbs_atomic_scope(void)
{
    return tk_verbs.atomics;
}

static void post(struct tk_tx *tx, const struct tk_device_atomic *a, struct ibv_sge *sge)
{
    struct ibv_send_wr wr;
    tx->nbytes = sge->length = word_size;
    tk_rail_take(tx->conn->rail, word_size);
    wr.sg_list = sge;
    wr.num_sge = 1;
    wr.wr.atomic.remote_addr = a->remote;
    wr.wr.atomic.rkey = a->remote_key;
    wr.wr.atomic.compare_add = a->operand;
    wr.wr.atomic.swap = a->swap;
    tk_tx_post_more(tx, &wr, a->is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
                    0, tk_verbs.needs_more, NULL);
}

/* The connection has no space or, on demand, does not exist yet: then begins to connect. For ranks
 * of other transports tk_verbs_atomic_open() does that. */
static enum tk_status __attribute__((noinline)) atomic_busy(struct tk_peer *peer)
{
    if (tk_is_verbs_peer(peer->rank))
        tk_demand_want(peer);
    return TK_BUSY;
}

/* The device cannot write to the address of the result, so this copies the previous value there. */
static enum tk_status __attribute__((noinline))
post_bounced(struct tk_peer *peer, struct tk_op *op, const struct tk_device_atomic *a)
{
    struct tk_conn *conn = tk_conns_to(peer->rank);
    tk_lock(&conn->lock);
    struct tk_tx *tx = tk_tx_take(conn, true);
    if (tx) {
        struct ibv_sge sge = {.addr = (uintptr_t)tx->bounce->data, .lkey = tx->bounce->keys[0]};
        tx->op = op;
        tx->get_to = a->result;
        post(tx, a, &sge);
    }
    tk_unlock(&conn->lock);
    return tx ? TK_OK : atomic_busy(peer);
}

/* Its lane has no free work request; another lane may have one. */
static enum tk_status __attribute__((noinline))
post_borrowed(struct tk_peer *peer, struct tk_op *op, const struct tk_device_atomic *a,
              struct ibv_sge *sge)
{
    struct tk_conn *conn = tk_conns_to(peer->rank);
    tk_lock(&conn->lock);
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (tx) {
        tx->op = op;
        post(tx, a, sge);
    }
    tk_unlock(&conn->lock);
    return tx ? TK_OK : atomic_busy(peer);
}

static inline bool __attribute__((always_inline))
post_plain(struct tk_conn *conn, struct tk_op *op, const struct tk_device_atomic *a,
           struct ibv_sge *sge, bool is_only)
{
    if (!is_only)
        tk_lock(&conn->lock);
    struct tk_tx *tx = tk_tx_take_plain(conn, op, IBV_WR_ATOMIC_FETCH_AND_ADD, is_only);
    tk_if_likely(tx) post(tx, a, sge);
    if (!is_only)
        tk_unlock(&conn->lock);
    return tx;
}

/* Without a result address the device writes to memory that no code reads. */
static bool find_place(const struct tk_device_atomic *a, struct ibv_sge *sge)
{
    uintptr_t result = (uintptr_t)a->result;
    sge->addr = result;
    tk_if_likely(result && result % word_size == 0 && tk_is_registered(a->result, word_size))
    {
        sge->lkey = tk_verbs.segment->local[0];
        return true;
    }
    sge->addr = (uintptr_t)tk_verbs.fence_sink->data;
    sge->lkey = tk_verbs.fence_sink->keys[0];
    return !result;
}

enum tk_status tk_verbs_atomic(struct tk_peer *peer, struct tk_op *op,
                               const struct tk_device_atomic *a)
{
    struct tk_conn *conn = tk_conns_to(peer->rank); /* one connection to each peer */
    struct ibv_sge sge;
    tk_if_unlikely(!find_place(a, &sge)) return post_bounced(peer, op, a);
    tk_if_likely(tk_is_only_thread() ? post_plain(conn, op, a, &sge, true)
                                     : post_plain(conn, op, a, &sge, false)) return TK_OK;
    return post_borrowed(peer, op, a, &sge);
}

/* Opens the memory for unwanted results: every member of a domain is at least its own peer, so this
 * runs before the first atomic. */
enum tk_status tk_verbs_atomic_open(struct tk_peer *peer, struct tk_atomic_end *ours)
{
    if (!tk_verbs.fence_sink && tk_fence_sink_open() != TK_OK)
        return TK_FAIL;
    if (tk_pair_open_for_atomics(peer) != TK_OK)
        return TK_FAIL;
    ours->address = tk_verbs.rails[0].address;
    ours->qp = tk_conns_to(peer->rank)->qp->qp_num;
    return TK_OK;
}

enum tk_status tk_verbs_atomic_connect(struct tk_peer *peer, const struct tk_atomic_end *theirs)
{
    return tk_conn_connect(tk_conns_to(peer->rank), &theirs->address, &theirs->qp);
}

void tk_verbs_atomic_ready(struct tk_peer *peer)
{
    struct tk_conn *conn = tk_conns_to(peer->rank);
    tk_lock(&conn->lock);
    tk_conn_release(conn);
    tk_unlock(&conn->lock);
}
