/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pending work other than messages and transfers: connections to move and ACKs that found no space.
 * Also the report of peers that return no credits. Takes the connections' locks. */
#include "config.h"

#include <stdio.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/report.h"
#include "base/wait_record.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/data/ack.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/credit_loan_messages.h"
#include "transport/verbs/data/housekeeping.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/failover/async_events.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

/* Is the rank connected for messages? If a connection carries atomics only, the peer's private
 * pointer is not ours. */
static bool is_linked(uint32_t rank)
{
    const struct tk_conn *conn = tk_conns_to(rank);
    return rank != tk_peers.me && __atomic_load_n(&conn->qp, __ATOMIC_RELAXED) &&
           !conn->is_for_atomics;
}

void tk_acks_send(void)
{
    if (tk_verbs.failover_enabled && tk_counter_read(&tk_verbs.pending_work) > tk_demand_pending())
        tk_failover_step();
    tk_demand_step();
    for (uint32_t r = 0; r < tk_peers.size && tk_work_besides_rndv() > tk_demand_pending(); r++)
        if (is_linked(r)) {
            tk_ack_retry(tk_primary(tk_peer(r)));
            if (tk_srq_in_use())
                tk_loan_retry(tk_peer(r));
        }
}

static void tell_stall(const struct tk_conn *conn, double seconds)
{
    char text[96];
    if (conn->credits == 0)
        snprintf(text, sizeof(text), "all %d credits are out; it has not polled",
                 conn->loan ? conn->loan->borrower.limit : tk_verbs.credits_pp);
    else
        snprintf(text, sizeof(text),
                 "all credits of this process are out (GASNET_AM_CREDITS_TOTAL)");
    tk_log_warn("waiting %.0f s to send active messages to rank %u (%s, pid %d): %s "
                "(GASNET_AM_STALL_SECONDS=0 silences this)",
                seconds, conn->peer->rank, conn->peer->host, conn->peer->pid, text);
}

/* Each credit in use is an unanswered request. */
static void describe_conn(struct tk_wait_rows *rows, struct tk_conn *conn)
{
    if (!tk_trylock(&conn->lock))
        return;
    int limit = conn->loan ? conn->loan->borrower.limit : tk_verbs.credits_pp;
    int out = limit - conn->credits;
    if (out > 0 && !conn->is_held)
        tk_wait_row_add(rows, conn->credits == 0 ? TK_REASON_CREDIT : TK_REASON_UNANSWERED,
                        conn->peer->rank, (uint64_t)out, (uint64_t)tk_verbs.slack);
    tk_unlock(&conn->lock);
}

void tk_verbs_describe_waits(struct tk_wait_rows *rows)
{
    tk_demand_describe_waits(rows);
    for (uint32_t r = 0; tk_verbs.conns_of && r < tk_peers.size; r++)
        if (is_linked(r))
            describe_conn(rows, tk_primary(tk_peer(r)));
}

void tk_verbs_report_stall(void)
{
    if (tk_verbs.failover_enabled || tk_srq_in_use())
        tk_events_look();
    else
        tk_events_read(); /* of changed GIDs */
    /* Nothing else polls for an unsignaled message that failed: a shared queue flushes no receives,
     * and not all devices raise an event. */
    if (tk_srq_in_use())
        tk_lanes_reap();
    uint64_t now = tk_now(), limit = (uint64_t)(tk_settings.am_stall_seconds * 1e9);
    tk_demand_report_stall(now, limit);
    for (uint32_t r = 0; tk_verbs.conns_of && limit && r < tk_peers.size; r++) {
        struct tk_conn *conn = is_linked(r) ? tk_primary(tk_peer(r)) : NULL;
        if (!conn || !tk_trylock(&conn->lock))
            continue;
        bool is_starved = conn->credits == 0 || tk_counter_read(&tk_verbs.credits_total) == 0;
        if (conn->starved_since == tk_starved_unseen)
            conn->starved_since = now;
        if (is_starved && conn->starved_since && now - conn->starved_since > limit) {
            tell_stall(conn, (double)(now - conn->starved_since) / 1e9);
            conn->starved_since = now;
        }
        tk_unlock(&conn->lock);
    }
}
