/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All connections to one rank: they are made, connected and closed together. Owns tk_verbs.conns_of
 * and .nobody, which stands for ranks without connections. It has no queue pair and no space, so
 * checks for space and loops over ranks need no special case. Single-threaded at start-up and exit,
 * with the lock of demands (demand.c) in between. Closed connections keep their entries, held:
 * another thread may have loaded the pointer before. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "stats/table.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/connect.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/data/ack.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/credit_loan_messages.h"
#include "transport/verbs/data/queues.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/data/stripe.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover_group.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs_state.h"

static struct tk_conn *conns_allocate(void)
{
    size_t size = tk_conns_bytes(tk_verbs.conns_pp);
    struct tk_conn *conns = aligned_alloc(TK_CACHE_LINE, size);
    if (!conns) {
        tk_log_error("out of memory for %u connections", tk_verbs.conns_pp);
        return NULL;
    }
    memset(conns, 0, size);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_lock_init(&conns[k].lock);
    return conns;
}

enum tk_status tk_nobody_open(void)
{
    tk_verbs.nobody = conns_allocate();
    tk_verbs.conns_of = malloc(tk_conns_of_bytes(tk_peers.size));
    tk_verbs.kind_of = calloc(1, tk_kinds_bytes(tk_peers.size));
    if (!tk_verbs.nobody || !tk_verbs.conns_of || !tk_verbs.kind_of) {
        tk_log_error("out of memory for a table of %u ranks", tk_peers.size);
        return TK_FAIL;
    }
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_verbs.nobody[k].rail = k % tk_verbs.rail_count;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        tk_verbs.conns_of[r] = tk_verbs.nobody;
    return TK_OK;
}

/* Adds posted buffers to the list `posted`, unless that is NULL. */
TK_FIRST_USE static enum tk_status fill(struct tk_conn *conn, struct tk_pool_item **posted)
{
    while (conn->rx_extra < tk_cm_first_buffers(conn) - conn->held_credits) {
        struct tk_buffer *buffer = tk_recv_buffer_take(tk_rail_of(conn));
        if (!buffer)
            return TK_FAIL;
        tk_recv_post(conn, buffer);
        if (posted) {
            buffer->item.next = *posted;
            *posted = &buffer->item;
        }
    }
    return TK_OK;
}

TK_FIRST_USE enum tk_status tk_pair_fill(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (fill(&conns[k], NULL) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

void tk_pair_drop(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_conn_close(&conns[k]);
    if (conns->peer && tk_conns_to(conns->peer->rank) == conns)
        return;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_tx_log_close(&conns[k]);
    free(conns);
}

TK_FIRST_USE static void pair_count(uint32_t rank, int by)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_rail *rail = &tk_verbs.rails[k % tk_verbs.rail_count];
        rail->conns_open += (uint32_t)by;
        rail->primaries += k == tk_primary_number(rank) ? (uint32_t)by : 0;
    }
}

TK_FIRST_USE static enum tk_status pool_fit(struct tk_rail *rail)
{
    return tk_recv_pool_fit(rail, tk_recv_buffers_wanted(rail->conns_open, rail->primaries));
}

/* The number of receive buffers that the rail wants with one more peer, if there can be one. */
static unsigned buffers_ahead(const struct tk_rail *rail)
{
    uint32_t most = tk_verbs_peers_at_once(tk_verbs.peers, tk_verbs.conns_pp, false);
    uint32_t each = tk_verbs_conns_on(tk_verbs.conns_pp, tk_verbs.rail_count,
                                      (uint32_t)(rail - tk_verbs.rails));
    uint32_t conns = (uint32_t)tk_min(rail->conns_open + each, most * each);
    uint32_t primaries = (uint32_t)tk_min(rail->primaries + 1, rail->peers);
    return tk_recv_buffers_wanted(conns, (uint32_t)tk_min(primaries, most));
}

enum tk_status tk_pair_make_ahead(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count && !tk_srq_in_use(); i++)
        if (tk_recv_pool_fit(&tk_verbs.rails[i], buffers_ahead(&tk_verbs.rails[i])) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

TK_FIRST_USE static enum tk_status make_space(void)
{
    if (tk_verbs.is_static)
        return TK_OK;
    for (uint32_t i = 0; i < tk_verbs.rail_count && !tk_srq_in_use(); i++)
        if (pool_fit(&tk_verbs.rails[i]) != TK_OK)
            return TK_FAIL;
    if (tk_queues_fit() != TK_OK)
        return TK_FAIL;
    return tk_srq_in_use() ? tk_srqs_fit() : TK_OK;
}

/* Buffers of the shared queue that receives the rank's messages. */
TK_FIRST_USE static enum tk_status pair_reserve(struct tk_conn *conns, uint32_t rank)
{
    struct tk_conn *conn = &conns[tk_primary_number(rank)];
    if (!conn->peer)
        conn->rail = tk_primary_number(rank) % tk_verbs.rail_count;
    enum tk_reserve_result answer = tk_srq_in_use() ? tk_srq_reserve(conns, conn) : TK_RESERVE_OK;
    if (answer == TK_RESERVE_OK)
        return TK_OK;
    if (answer == TK_RESERVE_BUSY) {
        tk_loan_reclaim(conn);
        return TK_BUSY;
    }
    tk_log_error("no receive buffers are left for rank %u: raise GASNET_RBUF_COUNT (%lld)", rank,
                 (long long)tk_settings.rbuf_count);
    return TK_FAIL;
}

/* ---- one for the next peer ---- */

static uint32_t space_ahead;              /* peers that have space, including the next one */
static struct tk_pool_item *posted_ahead; /* receive buffers of tk_conns.ahead */

static bool may_open_ahead(void)
{
    return !tk_conns.ahead && !tk_verbs.cm && !tk_xrc_in_use() &&
           tk_verbs_makes_ahead(tk_verbs.peers, tk_verbs.rails[0].conns_open, tk_verbs.conns_pp);
}

/* Makes space for the queue pair that is made for the next peer. With shared queues only completion
 * queues must grow. */
static bool make_space_ahead(void)
{
    uint32_t rank = tk_peers.me; /* any rank will do: each has one connection */
    if (tk_srq_in_use())
        return tk_queues_fit() == TK_OK;
    pair_count(rank, 1);
    space_ahead = tk_verbs.rails[0].conns_open;
    enum tk_status status = make_space();
    pair_count(rank, -1);
    return status == TK_OK;
}

TK_FIRST_USE static bool has_space_ahead(void)
{
    return tk_verbs.rails[0].conns_open <= space_ahead;
}

/* Nothing comes over it before it is connected, so it may be dropped at any time. Destroying a
 * queue pair does not return its posted buffers, so they are given back here. */
static void drop_ahead(struct tk_conn *conn)
{
    struct tk_rail *rail = tk_rail_of(conn);
    tk_pair_drop(conn);
    while (posted_ahead) {
        struct tk_pool_item *item = posted_ahead;
        posted_ahead = item->next;
        tk_pool_give(&rail->recv_pool, (struct tk_buffer *)(void *)item);
    }
}

void tk_pair_open_ahead(void)
{
    struct tk_conn *conn = may_open_ahead() ? conns_allocate() : NULL;
    if (!conn)
        return;
    posted_ahead = NULL;
    if (make_space_ahead() && tk_conn_open_ahead(conn) &&
        (tk_srq_in_use() || fill(conn, &posted_ahead) == TK_OK))
        tk_conns.ahead = conn;
    else
        drop_ahead(conn);
}

/* False if the rank has entries from an earlier connection: other threads may hold pointers to
 * those. */
TK_FIRST_USE bool tk_pair_is_ahead_for(uint32_t rank)
{
    return tk_conns.ahead && tk_conns_to(rank) == tk_verbs.nobody &&
           tk_conn_suits(tk_conns.ahead, rank);
}

/* A queue pair is tied to its completion queue, that of another lane here. If this peer used it,
 * the order of connecting would decide whether threads with different peers share a lane. It is
 * dropped, not kept for a rank of its lane, because this peer needs its receive buffers. */
TK_FIRST_USE static void drop_unsuited(uint32_t rank)
{
    if (!tk_conns.ahead || tk_conn_suits(tk_conns.ahead, rank))
        return;
    drop_ahead(tk_conns.ahead);
    tk_conns.ahead = NULL;
}

/* TK_BUSY: the queue pair stays, for this peer or another. */
TK_FIRST_USE static enum tk_status take_ahead(uint32_t rank, struct tk_conn **conns)
{
    enum tk_status status = pair_reserve(tk_conns.ahead, rank);
    if (status != TK_OK)
        return status;
    *conns = tk_conns.ahead;
    tk_conns.ahead = NULL;
    posted_ahead = NULL; /* now owned by the connection */
    tk_conn_give(*conns, tk_peer(rank));
    return TK_OK;
}

/* ---- opening ---- */

static enum tk_status pair_open_all(struct tk_conn *conns, uint32_t rank)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (tk_conn_open(&conns[k], tk_peer(rank), k, k == tk_primary_number(rank)) != TK_OK)
            return TK_FAIL;
    if (tk_verbs.failover_enabled && tk_conns.demand)
        tk_failover_group_open(conns);
    return TK_OK;
}

/* Reuses the entries of an earlier connection, if any: other threads may hold pointers to them. */
static struct tk_conn *places_for(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    return conns == tk_verbs.nobody ? conns_allocate() : conns;
}

static enum tk_status make_anew(uint32_t rank, struct tk_conn **conns)
{
    if (!(*conns = places_for(rank)))
        return TK_FAIL;
    enum tk_status status = pair_reserve(*conns, rank);
    if (status == TK_OK)
        status = pair_open_all(*conns, rank);
    if (status != TK_OK)
        tk_pair_drop(*conns);
    return status;
}

TK_FIRST_USE enum tk_status tk_pair_open(uint32_t rank, struct tk_conn **conns)
{
    pair_count(rank, 1);
    bool is_ahead = tk_pair_is_ahead_for(rank), has_space = is_ahead && has_space_ahead();
    enum tk_status status = has_space ? TK_OK : make_space();
    if (status == TK_OK) {
        tk_conns.expected = (rank + 1) % tk_peers.size;
        drop_unsuited(rank);
        status = is_ahead ? take_ahead(rank, conns) : make_anew(rank, conns);
    }
    if (status != TK_OK)
        pair_count(rank, -1);
    return status;
}

enum tk_status tk_pair_open_for_atomics(struct tk_peer *peer)
{
    struct tk_conn *conn = conns_allocate();
    if (!conn)
        return TK_FAIL;
    conn->is_for_atomics = true; /* before other threads see its queue pair */
    if (tk_conn_open(conn, peer, 0, false) != TK_OK) {
        tk_pair_drop(conn);
        return TK_FAIL;
    }
    __atomic_store_n(&tk_verbs.conns_of[peer->rank], conn, __ATOMIC_RELEASE);
    return TK_OK;
}

TK_FIRST_USE void tk_pair_publish(uint32_t rank, struct tk_conn *conns)
{
    __atomic_store_n(&tk_verbs.conns_of[rank], conns, __ATOMIC_RELEASE);
    __atomic_store_n(&tk_peer(rank)->connection, conns + tk_primary_number(rank), __ATOMIC_RELEASE);
}

TK_FIRST_USE static void set_for_good(struct tk_conn *conn, bool is_fenced, uint32_t rate_mbps)
{
    conn->takes_small = tk_verbs.kind_of[conn->peer->rank] & TK_RANK_SMALL;
    conn->is_fenced = is_fenced;
    conn->short_put_max = is_fenced ? 0 : tk_min(tk_verbs.inline_limit, tk_small_put_max);
    tk_stripe_open(conn, rate_mbps);
}

/* Takes its lock: another thread may just have found a port dead. */
TK_FIRST_USE static enum tk_status connect_one(struct tk_conn *conn,
                                               const struct tk_port_address *to, const uint32_t *qp)
{
    tk_lock(&conn->lock);
    enum tk_status status = tk_conn_connect(conn, to, qp);
    if (status == TK_OK && conn->tx_log)
        tk_failover_group_connected(conn);
    tk_unlock(&conn->lock);
    return status;
}

TK_FIRST_USE enum tk_status tk_pair_connect(struct tk_conn *conns, const uint32_t *qps, int credits)
{
    uint32_t rank = conns->peer->rank;
    bool is_fenced = tk_verbs.kind_of[rank] & TK_RANK_FENCED;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_conn *conn = &conns[k];
        const struct tk_port_address *to = tk_address_of(rank, conn->rail);
        if (!conn->cost) /* a used entry keeps it: another thread may be reading */
            set_for_good(conn, is_fenced, to->rate_mbps);
        if (k == tk_primary_number(rank))
            tk_loan_open(conn, credits); /* first: messages may come as soon as it is connected */
        if (connect_one(conn, to, qps ? qps + k : NULL) != TK_OK)
            return TK_FAIL;
    }
    return TK_OK;
}

/* ---- closing, where others need the space more ---- */

TK_FIRST_USE static void release(struct tk_conn *conn)
{
    if (conn->loan)
        tk_loan_release(conn);
    tk_conn_release(conn);
}

TK_FIRST_USE void tk_pair_release(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        tk_lock(&conns[k].lock);
        if (conns[k].is_held)
            release(&conns[k]);
        tk_unlock(&conns[k].lock);
    }
    if (tk_verbs.failover_enabled)
        tk_failover_group_thaw(conns->peer->rank);
}

/* The credits prove that unsignaled messages have arrived, but their acknowledgements may have not:
 * the device would repeat the messages to a queue pair that is gone. So this posts a write of 0
 * bytes behind them; its completion covers them. */
static void flush_quiet(struct tk_conn *conn)
{
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (tx)
        tk_tx_post_nothing(tx);
}

/* All work requests have completed, so the device no longer reads these buffers. */
static void give_unsignaled_bounces(struct tk_conn *conn)
{
    if (conn->unsignaled_tx.more_bounces > 0)
        tk_bounces_give(conn->unsignaled_tx.bounce, conn->unsignaled_tx.more_bounces);
    conn->unsignaled_tx.more_bounces = 0;
}

static bool is_idle(struct tk_conn *conn)
{
    bool has_quiet = conn->unsignaled > 0;
    if (tk_conn_space(conn) != tk_verbs.depth_pp - conn->unsignaled)
        return false;
    if (has_quiet)
        flush_quiet(conn);
    else
        give_unsignaled_bounces(conn);
    return !has_quiet;
}

static bool hold_if_idle(struct tk_conn *conn)
{
    if (conn->is_held || conn->is_for_atomics || tk_counter_read(&conn->broken) || conn->ack_due ||
        tk_counter_read(&conn->reserved) > 0 || tk_counter_read(&conn->rndv_count) > 0 ||
        tk_conn_is_moving(conn) || (tk_conn_is_live(conn) && !is_idle(conn)))
        return false;
    if (conn->loan && conn == tk_primary(conn->peer) && !tk_loan_hold(conn))
        return false;
    tk_conn_hold(conn);
    return true;
}

bool tk_pair_freeze(struct tk_conn *conns)
{
    tk_rndv_reclaim();
    bool all = !tk_verbs.failover_enabled || tk_failover_group_freeze(conns->peer->rank);
    if (!all)
        return false;
    for (uint32_t k = 0; k < tk_verbs.conns_pp && all; k++) {
        tk_lock(&conns[k].lock);
        all = hold_if_idle(&conns[k]);
        tk_unlock(&conns[k].lock);
    }
    if (!all)
        tk_pair_release(conns);
    return all;
}

/* Credits of the peer that we have in use. Credits that we gave back count as the peer's, whether
 * it knows that yet or not. */
static int credits_out(struct tk_conn *conns)
{
    struct tk_conn *primary = tk_primary(conns->peer);
    tk_lock(&primary->lock);
    int ours = primary->rx_base - tk_notice_buffers() - tk_verbs.credits_pp;
    if (primary->loan)
        ours = primary->loan->borrower.limit - primary->loan->borrower.given;
    tk_unlock(&primary->lock);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        tk_lock(&conns[k].lock);
        ours -= conns[k].credits + conns[k].held_credits;
        tk_unlock(&conns[k].lock);
    }
    return ours;
}

/* Bounded messages take no credit either; without failover only the primary carries them. */
static void add_bounded(struct tk_conn *conns, struct tk_pair_balance *balance)
{
    struct tk_conn *primary = tk_primary(conns->peer);
    tk_lock(&primary->lock);
    if (primary->loan) {
        balance->out += (int)primary->loan->bounded_sent;
        balance->owed += (int)primary->loan->bounded_came;
    }
    tk_unlock(&primary->lock);
}

/* An exit notice takes no credit, but counts as one here, because it must not be lost either. It
 * may have been sent over an earlier primary. `out` of an end is never less than `owed` of the
 * other one, in credits, in notices and in bounded messages: so equal sums are equal in each. */
struct tk_pair_balance tk_pair_balance(struct tk_conn *conns)
{
    struct tk_pair_balance balance = {.out = credits_out(conns)};
    int control_expected = 0;
    bool has_sent_control = false;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        tk_lock(&conns[k].lock);
        balance.owed += conns[k].credits_to_return;
        control_expected += conns[k].control_expected;
        has_sent_control |= conns[k].has_sent_control;
        tk_unlock(&conns[k].lock);
    }
    balance.out += has_sent_control;
    balance.owed += !control_expected;
    add_bounded(conns, &balance);
    return balance;
}

/* Puts the queue pair into ERR; with the connection's lock. */
static int end_queue_pair(struct tk_conn *conn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (!conn->tx_log)
        return ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
    if (tk_conn_is_open(conn))
        tk_conn_close_end(conn);
    return 0;
}

void tk_pair_shut(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_conn *conn = &conns[k];
        tk_lock(&conn->lock);
        conn->is_closing = true;
        tk_conn_hold_credits(conn);
        int error = end_queue_pair(conn);
        tk_unlock(&conn->lock);
        if (error)
            tk_panic("closing queue pair %u to rank %u failed with error %d", conn->qp->qp_num,
                     conn->peer->rank, error);
    }
}

/* The device of an iWARP port also flushes buffers when the other end gives up a connection that is
 * not open yet. */
bool tk_pair_flushed(struct tk_buffer *buffer)
{
    struct tk_conn *conn = buffer->conn;
    tk_lock(&conn->lock);
    bool is_flushed = conn->is_closing || (conn->is_held && tk_cm_greets());
    conn->rx_extra -= is_flushed;
    tk_unlock(&conn->lock);
    if (is_flushed)
        tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
    return is_flushed;
}

/* 0 for a shared queue: it is closed only when all messages of the other end were taken, so nothing
 * more comes except a greeting (tk_srq_leave()). Also 0 if the connection was drained before. */
static int posted_on(struct tk_conn *conn)
{
    if (conn->loan || tk_counter_read(&conn->state) >= TK_DRAINED)
        return 0;
    int posted = tk_credit_buffers_posted(conn);
    return tk_conn_is_open(conn) ? posted : posted - tk_space_closed;
}

/* Only a greeting may still be in flight; it uses space that a held connection does not offer
 * otherwise. */
static bool is_shut(struct tk_conn *conns)
{
    int posted = 0;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        tk_lock(&conns[k].lock);
        posted += posted_on(&conns[k]);
        posted -= tk_cm_greets() ? tk_conn_space(&conns[k]) : 0;
        tk_unlock(&conns[k].lock);
    }
    return posted == 0;
}

/* Credits that the other end held back return to this process, and those that we held back need no
 * ACK. */
static void end_all(struct tk_conn *conns)
{
    uint32_t rank = conns->peer->rank;
    tk_credit_total_give(credits_out(conns));
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        tk_lock(&conns[k].lock);
        tk_ack_forget(&conns[k]);
        conns[k].credits_to_return = 0; /* a batch of another thread may still have recorded them */
        tk_conn_close(&conns[k]);
        tk_unlock(&conns[k].lock);
    }
    pair_count(rank, -1);
}

bool tk_pair_end(struct tk_conn *conns)
{
    if (!is_shut(conns))
        return false;
    if (!tk_verbs.failover_enabled) {
        end_all(conns);
        return true;
    }
    if (!tk_failover_group_end(conns))
        return false;
    end_all(conns);
    /* The next connections start with the same primary as the first ones. */
    tk_primary_set(conns + tk_primary_number(conns->peer->rank));
    tk_failover_group_ended();
    return true;
}

/* ---- end ---- */

void tk_pair_close(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    if (conns == tk_verbs.nobody)
        return;
    tk_verbs.conns_of[rank] = tk_verbs.nobody;
    tk_pair_drop(conns);
}
