/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Failover: when a connection dies and its pair has others, nothing is lost and nothing is done
 * twice.
 *
 * Either end may notice first. It puts its queue pair into ERR, which stops traffic in both
 * directions, and waits until the device has flushed everything: the connection is drained, and the
 * number of messages that came over it is final. A notice carries that number to the other end,
 * over another connection of the pair; the receiver of a notice also closes its end. A rank that
 * has drained a connection and has the other end's notice knows the fate of all its work: a
 * reliable connection delivers in order, so all messages up to that number came, and so did the
 * puts before them. The rest, and all gets, are posted again in the same order over the primary
 * connection. Packets that are still in flight on the old one can't overtake that: both its ends
 * are closed.
 *
 * If the primary connection died, the open one with the lowest number becomes primary. Each end
 * posts its receive buffers there before it sends its notice. If one end knows of more dead
 * connections than the other, its notices report them: work posted over one of those is lost again,
 * and recovered in the same way. Until lost work is posted again the dead connection remains
 * primary and has no space: so new messages wait, and no other code needs to know. Credits move
 * along unchanged: each message arrives once, and returns the credits that it carried before.
 *
 * failover/control.c sends and receives notices, failover/reconnect.c reopens connections. One
 * thread at a time works on moves; that lock is taken before a connection's. No other code holds
 * the locks of two connections. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/async_events.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/control.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

struct tk_replay {
    struct tk_replay *next;
    struct tk_tx_entry entry;
};

enum tk_status tk_failover_open(void)
{
    if (!tk_verbs.failover_enabled)
        return TK_OK;
    tk_lock_init(&tk_verbs.deferred.lock);
    tk_verbs.pairs = calloc(1, tk_pairs_bytes(tk_peers.size));
    if (!tk_verbs.pairs) {
        tk_log_error("out of memory for %u pairs of ranks", tk_peers.size);
        return TK_FAIL;
    }
    for (uint32_t r = 0; r < tk_peers.size; r++)
        tk_verbs.pairs[r].next_primary = -1;
    return TK_OK;
}

static void drop_replay(struct tk_rank_pair *pair)
{
    struct tk_replay *first = pair->replay;
    pair->replay = first->next;
    free(first);
}

void tk_failover_close(void)
{
    for (uint32_t r = 0; tk_verbs.pairs && r < tk_peers.size; r++)
        while (tk_verbs.pairs[r].replay)
            drop_replay(&tk_verbs.pairs[r]);
    free(tk_verbs.pairs);
    tk_verbs.pairs = NULL;
}

/* The first connection to the peer, except `but`, that is live or may become live; NULL: none. */
static struct tk_conn *first_open(uint32_t rank, const struct tk_conn *but)
{
    struct tk_conn *conns = tk_conns_to(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (&conns[k] != but && tk_conn_is_open(&conns[k]))
            return &conns[k];
    return NULL;
}

/* ---- death ---- */

static void report_death(struct tk_conn *conn, const char *why)
{
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    char path[tk_path_text_size];
    tk_counter_add(&tk_rail_of(conn)->failures, 1);
    tk_count_rare(tk_counter_failovers);
    if (tk_is_leaving()) /* with GASNET_CATCH_EXIT=0 the peer may just be gone */
        return;
    tk_log_warn("%s:%u no longer reaches rank %u (%s): %s; what went over it goes over other "
                "ports (GASNET_IBV_FAILOVER=0 ends the job instead); path: %s",
                a->device, a->port, conn->peer->rank, conn->peer->host, why,
                tk_path_text(&tk_rail_of(conn)->address, tk_path_of(conn), path));
}

void tk_conn_give_up(struct tk_conn *conn, const char *why)
{
    tk_lock(&conn->lock);
    bool may_end = conn->tx_log && conn->tx_log->is_connected && tk_conn_is_open(conn);
    bool was_live = may_end && tk_conn_close_end(conn);
    tk_unlock(&conn->lock);
    if (was_live)
        report_death(conn, why);
}

/* What showed a failure: the completion of descriptor `tx`, that of a receive buffer (tx is NULL),
 * or an event. */
struct sign {
    const struct tk_tx *tx;
    bool is_event;
    const char *why;
};

/* Does the sign belong to a queue pair that was closed since? Closing does not wait for errors of
 * unsignaled messages. A thread that took such an error from the device may handle it after the
 * pair was closed for others, and even opened again; while the pair is being opened the connection
 * seems live, but has no queue pair yet. The caller holds the connection's lock until it has acted
 * on the sign: otherwise the sign would kill the next incarnation. */
static bool is_late(const struct tk_conn *conn, const struct sign *sign)
{
    return !tk_conn_is_open(conn) || !conn->tx_log->is_connected ||
           (sign->tx && tk_log_incarnation_is_over(sign->tx)) ||
           (sign->is_event && !__atomic_load_n(&conn->has_received_last, __ATOMIC_ACQUIRE));
}

/* Can another connection replace it? If not, marks the primary broken, so that work which waits
 * there for a replacement stops waiting. */
static bool can_be_replaced(const struct tk_conn *conn)
{
    if (conn->is_for_atomics || tk_counter_read(&conn->broken))
        return false;
    if (first_open(conn->peer->rank, conn))
        return true;
    struct tk_conn *primary = tk_primary(conn->peer);
    if (!tk_conn_is_live(primary))
        tk_counter_add(&primary->broken, 1);
    return false;
}

/* Closes the connection, so that another one replaces it. False: it is not closed, and its failure
 * ends the job, unless the job is leaving. A leaving job fails over too: the dead connection may
 * hold the message that releases a peer from its last barrier. */
static bool die(struct tk_conn *conn, const struct sign *sign)
{
    tk_lock(&conn->lock);
    bool is_news = !is_late(conn, sign);
    bool may_die = is_news && can_be_replaced(conn);
    bool was_live = may_die && tk_conn_close_end(conn);
    tk_unlock(&conn->lock);
    if (was_live)
        report_death(conn, sign->why);
    return !is_news || may_die;
}

bool tk_failover(struct tk_tx *tx, const struct ibv_wc *wc)
{
    struct tk_conn *conn = tx->conn;
    const struct sign sign = {.tx = tx, .why = ibv_wc_status_str(wc->status)};
    if (!tk_verbs.failover_enabled || !tk_is_failure(wc))
        return false;
    if (!die(conn, &sign))
        return false;
    if (tk_log_incarnation_names(tx))
        return true;
    tk_lock(&conn->lock);
    conn->tx_log->failed += 1 + tx->covers;
    tk_unlock(&conn->lock);
    return true;
}

bool tk_failover_receive(struct tk_conn *conn, const struct ibv_wc *wc)
{
    const struct sign sign = {.why = ibv_wc_status_str(wc->status)};
    return tk_is_failure(wc) && die(conn, &sign);
}

void tk_failover_broken(struct tk_conn *conn)
{
    const struct ibv_wc flushed = {.status = IBV_WC_WR_FLUSH_ERR};
    const struct sign sign = {.is_event = true, .why = ibv_wc_status_str(flushed.status)};
    if (!tk_verbs.failover_enabled || !die(conn, &sign))
        tk_recv_failed(conn, &flushed);
}

static bool lives_elsewhere(uint32_t rank, uint32_t rail)
{
    const struct tk_conn *conns = tk_conns_to(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (conns[k].rail != rail && tk_conn_is_open(&conns[k]))
            return true;
    return false;
}

void tk_failover_rail(uint32_t rail)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        struct tk_conn *conns = tk_conns_to(r);
        if (!__atomic_load_n(&conns->qp, __ATOMIC_RELAXED) || !lives_elsewhere(r, rail))
            continue;
        for (uint32_t k = rail; k < tk_verbs.conns_pp; k += tk_verbs.rail_count)
            tk_conn_give_up(&conns[k], "its port is down");
    }
}

/* ---- reports of the other end ---- */

static void failover_set_delivered(struct tk_conn *conn, uint32_t arrived)
{
    conn->tx_log->delivered = arrived;
    conn->tx_log->is_delivered_known = true;
}

/* About the connection's present incarnation here. */
static void take_news(const struct tk_notice *notice)
{
    if (notice->is_open) {
        tk_reconnect_answered(notice->conn);
        return;
    }
    if (tk_conn_is_open(notice->conn))
        tk_conn_give_up(notice->conn, "the other end has given it up");
    failover_set_delivered(notice->conn, notice->arrived);
}

/* The other end is one incarnation ahead: it has closed the incarnation that is open here, or was
 * last. */
static void take_news_of_next_incarnation(const struct tk_notice *notice)
{
    failover_set_delivered(notice->conn, notice->before);
    tk_reconnect_asked(notice->conn, notice->is_open);
}

void tk_notice_came(const struct tk_buffer *buffer, uint32_t size)
{
    struct tk_notice notice = tk_notice_parse(buffer, size);
    tk_lock(&tk_moves_lock);
    uint32_t ahead = notice.incarnation -
                     __atomic_load_n(&notice.conn->tx_log->incarnation.number, __ATOMIC_RELAXED);
    if (ahead == 0)
        take_news(&notice);
    else if (ahead == 1)
        take_news_of_next_incarnation(&notice);
    tk_unlock(&tk_moves_lock);
}

/* ---- work of the dead connection ---- */

/* Has the device flushed everything, and have all threads handled it? Does not wait for the last
 * unsignaled messages, which may never be flushed. */
static bool is_drained(struct tk_conn *conn)
{
    tk_lock(&conn->lock);
    int taken = tk_verbs.depth_pp - (tk_conn_space(conn) + tk_space_closed);
    bool is_sent = taken == tk_conn_unfinished(conn) + tk_counter_read(&conn->reserved);
    bool is_received = conn->loan || tk_credit_buffers_posted(conn) == tk_space_closed;
    tk_unlock(&conn->lock);
    return is_sent && is_received && (!conn->loan || tk_srq_is_drained(conn));
}

static struct tk_replay *replay_of(const struct tk_tx_entry *entry)
{
    struct tk_replay *replay = malloc(sizeof(*replay));
    if (!replay)
        tk_panic("out of memory for what is to be sent again (%zu bytes)", sizeof(*replay));
    replay->entry = *entry;
    return replay;
}

/* Completes the work, and gives its slots back. */
static void failover_complete(struct tk_conn *conn, struct tk_tx *tx)
{
    tk_lock(&conn->lock);
    conn->tx_log->failed -= 1 + tx->covers;
    tk_unlock(&conn->lock);
    tk_tx_complete(tx);
}

/* Adds lost work to the list of the pair. After draining no other thread reads this connection's
 * log. Its lost work goes to the front of the list: it was primary before the connections whose
 * work is in the list already. */
static void failover_settle(struct tk_conn *conn)
{
    struct tk_replay *list = NULL, **end = &list;
    uint32_t back = (uint32_t)tk_conn_unfinished(conn), before = conn->tx_log->sent;
    for (uint32_t i = back; i > 0; i--)
        before -= tk_tx_entry_back(conn, i)->opcode == IBV_WR_SEND;
    for (; back > 0; back--) {
        const struct tk_tx_entry *entry = tk_tx_entry_back(conn, back);
        bool has_come = (int32_t)(before - conn->tx_log->delivered) < 0;
        before += entry->opcode == IBV_WR_SEND;
        bool is_done = has_come && entry->opcode != IBV_WR_RDMA_READ;
        if (is_done || tk_tx_entry_as_notice(entry)) {
            if (entry->tx)
                failover_complete(conn, entry->tx);
        } else {
            *end = replay_of(entry);
            end = &(*end)->next;
        }
    }
    *end = tk_pair_of(conn)->replay;
    tk_pair_of(conn)->replay = list;
    tk_counter_leave(&conn->state, TK_SETTLED);
}

/* ---- the next primary ---- */

/* Credits of connections that were primary, or had begun to receive messages. */
static int credits_left(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    int sum = 0;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        tk_lock(&conns[k].lock);
        sum += conns[k].credits;
        tk_unlock(&conns[k].lock);
    }
    return sum;
}

/* Takes the buffer for an exit notice from the dead connection that has it; both keep a correct
 * count of posted buffers. */
static void take_over_control(struct tk_conn *next_primary)
{
    struct tk_conn *conns = tk_conns_to(next_primary->peer->rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_conn *dead = &conns[k];
        if (tk_conn_is_live(dead))
            continue;
        tk_lock(&dead->lock);
        int control = dead->control_expected;
        dead->control_expected -= control;
        dead->rx_extra += control;
        next_primary->control_expected += control;
        next_primary->rx_extra -= control;
        tk_unlock(&dead->lock);
    }
}

/* Posts the receive buffers that it will need; a shared queue has them already. */
static void make_ready(struct tk_conn *next_primary)
{
    if (next_primary->loan) {
        next_primary->is_ready = true;
        return;
    }
    int wanted =
        2 * tk_verbs.credits_pp - credits_left(next_primary->peer->rank) + tk_notice_buffers();
    tk_lock(&next_primary->lock);
    take_over_control(next_primary);
    wanted += next_primary->control_expected;
    while (tk_credit_buffers_posted(next_primary) < wanted &&
           tk_credit_post_buffer(next_primary) == TK_OK)
        continue;
    next_primary->is_ready = true;
    tk_unlock(&next_primary->lock);
}

/* NULL: there is none, or the primary connection is not drained yet, so that its credits are not
 * final. */
static struct tk_conn *find_next_primary(struct tk_rank_pair *pair, const struct tk_conn *primary)
{
    uint32_t rank = primary->peer->rank;
    struct tk_conn *conns = tk_conns_to(rank);
    if (tk_counter_read(&primary->state) < TK_DRAINED)
        return NULL;
    if (pair->next_primary < 0 || !tk_conn_is_live(&conns[pair->next_primary])) {
        struct tk_conn *first = first_open(rank, NULL);
        pair->next_primary = first ? (int)tk_conn_number(first) : -1;
        if (!first)
            return NULL;
    }
    if (!conns[pair->next_primary].is_ready)
        make_ready(&conns[pair->next_primary]);
    /* it can't be used while librdmacm connects it; then it becomes live or is given up */
    return tk_conn_is_live(&conns[pair->next_primary]) ? &conns[pair->next_primary] : NULL;
}

/* With both locks. */
static void take_over(struct tk_conn *next_primary, struct tk_conn *dead)
{
    next_primary->credits += dead->credits;
    next_primary->credits_to_return += dead->credits_to_return;
    if (dead->ack_due && next_primary->ack_due)
        tk_counter_add(&tk_verbs.pending_work, -1);
    next_primary->ack_due |= dead->ack_due;
    if (dead->loan) {
        next_primary->control_expected += dead->control_expected;
        dead->control_expected = 0;
    }
    dead->credits = dead->credits_to_return = 0;
    dead->ack_due = false;
}

/* Takes over from the other dead connections, too: messages may have come over one before it could
 * become primary. */
static void take_over_all(struct tk_conn *next_primary, const struct tk_conn *primary)
{
    struct tk_conn *conns = tk_conns_to(next_primary->peer->rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        if (&conns[k] == next_primary || &conns[k] == primary)
            continue;
        tk_lock(&conns[k].lock);
        take_over(next_primary, &conns[k]);
        tk_unlock(&conns[k].lock);
    }
}

/* Gives it the primary's receive buffers; those beyond that number count as extra. */
static void receive_as_primary(struct tk_conn *next_primary, const struct tk_conn *primary,
                               int posted)
{
    if (next_primary->loan) {
        next_primary->rx_extra = tk_verbs.credits_pp;
        return;
    }
    next_primary->rx_base = primary->rx_base;
    next_primary->rx_extra = posted - tk_credit_buffers_needed(next_primary);
    while (next_primary->rx_extra < 0 && tk_credit_post_buffer(next_primary) == TK_OK)
        continue;
}

static void switch_primary(struct tk_conn *next_primary, struct tk_conn *primary)
{
    tk_lock(&next_primary->lock);
    tk_lock(&primary->lock);
    int posted = tk_credit_buffers_posted(next_primary);
    take_over_all(next_primary, primary);
    take_over(next_primary, primary);
    tk_credit_queue_clear(next_primary);
    receive_as_primary(next_primary, primary, posted);
    tk_primary_set(next_primary);
    tk_unlock(&primary->lock);
    tk_unlock(&next_primary->lock);
    tk_pair_of(next_primary)->next_primary = -1;
}

/* ---- posting again ---- */

static void repost_tx(struct tk_conn *conn, const struct tk_tx_entry *entry, struct tk_tx *tx)
{
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = entry->is_inline ? 1 : entry->parts};
    sge[0] = (struct ibv_sge){.addr = (uintptr_t)entry->bytes, .length = entry->size[0]};
    for (int i = 0; i < wr.num_sge && !entry->is_inline; i++)
        sge[i] = (struct ibv_sge){
            .addr = entry->part[i], .length = entry->size[i], .lkey = entry->keys[i][conn->rail]};
    if (entry->opcode != IBV_WR_SEND) {
        wr.wr.rdma.remote_addr = entry->remote;
        wr.wr.rdma.rkey = entry->remote_keys[conn->rail];
    }
    tx->conn = conn;
    const uint32_t *local =
        wr.num_sge == 0 || entry->is_inline ? NULL : entry->keys[wr.num_sge - 1];
    tk_tx_post(tx, &wr, (enum ibv_wr_opcode)entry->opcode, entry->is_inline ? IBV_SEND_INLINE : 0,
               local, entry->remote_keys);
}

/* Posts it unsignaled again if possible: all descriptors may be waiting behind it. */
static bool repost_unsignaled(struct tk_conn *conn, const struct tk_tx_entry *entry)
{
    if (tk_logged_unsignaled_take(conn)) {
        memcpy(conn->unsignaled_data.bytes, entry->bytes, entry->size[0]);
        tk_unsignaled_post_logged(conn, entry->size[0]);
        return true;
    }
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (!tx)
        return false;
    tx->nbytes = entry->size[0];
    repost_tx(conn, entry, tx);
    return true;
}

/* Posts the entry over this connection, whose lock is held, with a new log entry. False: no space
 * now.
 */
static bool repost(struct tk_conn *conn, const struct tk_tx_entry *entry)
{
    if (!entry->tx)
        return repost_unsignaled(conn, entry);
    if (!tk_slot_take(conn))
        return false;
    repost_tx(conn, entry, entry->tx);
    return true;
}

/* ---- step by step ---- */

/* True when nothing is left. */
static bool replay_over(struct tk_conn *conn)
{
    struct tk_rank_pair *pair = tk_pair_of(conn);
    bool is_posted = true;
    tk_lock(&conn->lock);
    while (pair->replay && (is_posted = repost(conn, &pair->replay->entry)))
        drop_replay(pair);
    tk_unlock(&conn->lock);
    return is_posted;
}

static void entry_drained(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    if (tk_srq_in_use() && tk_counter_read(&tk_verbs.pairs[rank].moving) > 0)
        tk_events_read();
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (tk_counter_read(&conns[k].state) == TK_CLOSING && is_drained(&conns[k])) {
            conns[k].tx_log->notice_due = true;
            conns[k].is_ready = false;
            tk_notices_resend(&conns[k]);
            tk_counter_leave(&conns[k].state, TK_DRAINED);
        }
}

static void settle_delivered(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (tk_counter_read(&conns[k].state) == TK_DRAINED && conns[k].tx_log->is_delivered_known)
            failover_settle(&conns[k]);
}

/* A designated primary that failed has part of the lost work, and that part must be posted
 * first. */
static bool all_is_settled(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        int state = tk_counter_read(&conns[k].state);
        if (state == TK_CLOSING || state == TK_DRAINED)
            return false;
    }
    return true;
}

static bool all_is_reported(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (conns[k].tx_log->notice_due)
            return false;
    return true;
}

static void end_moves(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        if (tk_counter_read(&conns[k].state) != TK_SETTLED)
            continue;
        tk_counter_leave(&conns[k].state, TK_CLOSED);
        tk_counter_add(&tk_verbs.pairs[rank].moving, -1);
        tk_counter_add(&tk_verbs.pending_work, -1);
    }
}

static void give_up_unconnected(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (tk_counter_read(&conns[k].state) == TK_OPENING && tk_rail_of(&conns[k])->by_cm &&
            tk_cm_has_failed(&conns[k]))
            tk_conn_give_up(&conns[k], "librdmacm did not connect it");
}

static void step_pair(uint32_t rank)
{
    struct tk_rank_pair *pair = &tk_verbs.pairs[rank];
    struct tk_conn *primary = tk_primary(tk_peer(rank)), *goal = primary;
    entry_drained(rank);
    tk_reconnect_pass(rank);
    if (!tk_conn_is_live(primary))
        tk_reconnect_trust(rank);
    if (!first_open(rank, NULL)) {
        if (!tk_counter_read(&primary->broken))
            tk_conns_exhausted(tk_peer(rank));
        return;
    }
    if (!tk_conn_is_live(primary) && !(goal = find_next_primary(pair, primary)))
        return;
    tk_notices_send(rank, goal);
    settle_delivered(rank);
    if (goal != primary && !all_is_settled(rank))
        return;
    if (!replay_over(goal))
        return;
    if (goal != primary)
        switch_primary(goal, primary);
    if (all_is_reported(rank))
        end_moves(rank);
}

void tk_failover_step(void)
{
    if (!tk_trylock(&tk_moves_lock))
        return;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        struct tk_rank_pair *pair = &tk_verbs.pairs[r];
        if (__atomic_load_n(&pair->is_frozen, __ATOMIC_ACQUIRE))
            continue;
        if (pair->pending_work > 0 && tk_verbs.cm)
            give_up_unconnected(r);
        if (tk_counter_read(&pair->moving) > 0 || pair->pending_work > 0)
            step_pair(r);
        if (pair->pending_work > 0 && tk_counter_read(&pair->moving) == 0)
            tk_reconnect_step(r);
    }
    tk_unlock(&tk_moves_lock);
}
