/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Longs whose payload lies in the segment and is one piece: the write of the payload and the send
 * of the head behind it are one chain, for which the device is called once. The queue pair keeps
 * their order: the target gets the head when the payload is in its place (IBA 9.5). Only the write
 * has a completion, which frees the source; the head is unsignaled, as Shorts are. Tries the lock
 * of the connection; where anything is lacking it does nothing, and the caller posts both parts
 * itself. Owns nothing. */
#include "config.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/send_trace.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* A fenced write has a read behind it. A payload of several pieces may wait between them. */
static inline bool can_chain(const struct tk_conn *conn, const struct tk_outgoing *m)
{
    return m->nbytes - 1 < tk_verbs.put_from_max && !conn->is_fenced &&
           m->head_size <= tk_min(tk_verbs.inline_limit, tk_unsignaled_max) &&
           tk_is_registered(m->payload, m->nbytes);
}

/* The caller sends the head later, and finds out then whether it waits for a credit. */
static bool __attribute__((noinline)) no_credit(void)
{
    tk_lacks_credit = false;
    return false;
}

static inline bool take_credit(struct tk_conn *conn, const struct tk_outgoing *m)
{
    return m->head->kind != TK_REQUEST || tk_credit_take(conn) == TK_OK || no_credit();
}

/* Two slots, the credit of a request, and a work request for the write. NULL: nothing was taken. */
static inline struct tk_tx *take(struct tk_conn *conn, const struct tk_outgoing *m, int max)
{
    enum { slots = 2 };
    tk_if_unlikely(max == 0 || tk_conn_space(conn) < slots || !take_credit(conn, m)) return NULL;
    struct tk_tx *tx = tk_tx_take_plain(conn, m->source, IBV_WR_RDMA_WRITE, false);
    tk_if_unlikely(!tx && m->head->kind == TK_REQUEST) tk_credit_return(conn, 1);
    return tx;
}

static inline void trace(const struct tk_conn *conn, const struct tk_outgoing *m)
{
    if (tk_is_traced)
        tk_path_taken = 1 + tk_path_puts_segment;
    tk_rail_take(conn->rail, m->nbytes);
    tk_message_take(conn, m->head, 0, tk_path_puts_inline);
}

/* Logged in the order of the queue, which is that of the chain. */
static inline void log_both(struct tk_conn *conn, struct tk_tx *tx, const struct ibv_send_wr *wr,
                            size_t head_size)
{
    const struct tk_tx_entry_keys keys = {.local = tk_verbs.segment->local,
                                          .remote = tk_peers.keys[conn->peer->rank]};
    tk_tx_entry_plain(tx, wr->wr.rdma.remote_addr, wr->sg_list, IBV_WR_RDMA_WRITE, false, &keys);
    tk_tx_entry_unsignaled(conn, head_size);
}

static inline void __attribute__((always_inline))
post(struct tk_conn *conn, struct tk_tx *tx, const struct tk_outgoing *m, uintptr_t remote,
     bool is_logged)
{
    struct ibv_sge sge = {.addr = (uintptr_t)m->payload,
                          .length = (uint32_t)m->nbytes,
                          .lkey = tk_verbs.segment->local[conn->rail]};
    struct ibv_send_wr wr, *bad;
    wr.wr_id = (uintptr_t)tx;
    wr.next = &conn->unsignaled_wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = conn->peer->segment_key;
    tx->nbytes = sge.length;
    tx->covers = conn->unsignaled;
    conn->unsignaled = 0;
    tk_unsignaled_count(conn); /* the head */
    memcpy(conn->unsignaled_data.bytes, m->head, m->head_size);
    conn->unsignaled_sge.length = (uint32_t)m->head_size;
    if (is_logged)
        log_both(conn, tx, &wr, m->head_size);
    else
        tk_if_unlikely(tk_verbs.needs_more) tk_tx_name_queue(conn, &wr);
    int error = ibv_post_send(conn->qp, &wr, &bad);
    /* `bad` is either of them: each names the connection */
    tk_if_unlikely(error) tk_post_failed((struct tk_tx *)(uintptr_t)bad->wr_id, error);
}

static inline bool __attribute__((always_inline))
send_long(struct tk_peer *peer, struct tk_outgoing *m, uintptr_t remote, bool is_logged)
{
    struct tk_conn *conn = tk_primary(peer);
    if (!can_chain(conn, m) || !tk_trylock_free(&conn->lock))
        return false;
    struct tk_tx *tx = NULL;
    tk_if_likely(!(is_logged && tk_is_passed_over(conn, peer))) tx =
        take(conn, m, is_logged ? tk_verbs.logged_unsignaled_max : tk_verbs.unsignaled_max);
    tk_if_likely(tx)
    {
        tk_counter_add(&m->source->pending, 1);
        tk_credits_hand_over(conn, m->head);
        trace(conn, m);
        post(conn, tx, m, remote, is_logged);
    }
    tk_unlock(&conn->lock);
    return tx != NULL;
}

bool tk_verbs_send_long(struct tk_peer *peer, struct tk_outgoing *m, uintptr_t remote)
{
    return send_long(peer, m, remote, false);
}

bool tk_logged_send_long(struct tk_peer *peer, struct tk_outgoing *m, uintptr_t remote)
{
    return send_long(peer, m, remote, true);
}
