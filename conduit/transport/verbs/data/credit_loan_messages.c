/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loans of credits. Four Shorts, which no handler sees:
 *
 *     REQUEST  sender to receiver: wants more credits, or gives credits back; takes a credit
 *     GRANT    the reply: number of further credits, perhaps 0; returns the credit of REQUEST
 *     RECLAIM  receiver to sender: asks for credits back; takes a credit of the receiver's own
 *     RETURN   the reply: number of credits that are given back now
 *
 * A later REQUEST gives back the credits of requests that are in flight.
 *
 * Credits belong to two ranks rather than to a connection: in a failover group the primary
 * connection carries these messages and counts credits, whichever connection a message came over.
 *
 * So each of these messages has a receive buffer, like all requests and replies. A peer that does
 * not poll keeps its credits, and no rank waits for it: a REQUEST gets what is available, and is
 * repeated later. Takes the connection's lock, then that of the queue. */
#include "config.h"

#include "base/atomic.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/report.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/credit_loan_messages.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/verbs_state.h"

enum loan_kind { LOAN_REQUEST, LOAN_GRANT, LOAN_RECLAIM, LOAN_RETURN, loan_kinds };
enum { KIND, COUNT, GIVEN, loan_args };

TK_FIRST_USE void tk_loan_open(struct tk_conn *conn, int base)
{
    tk_lock(&conn->lock);
    /* Replies need as many buffers as requests are in flight. */
    int fewer = conn->credits + conn->held_credits - base;
    conn->rx_base -= fewer;
    if (conn->held_credits > 0) {
        conn->held_credits -= fewer;
        conn->rx_extra += fewer;
    } else {
        conn->credits = base;
    }
    if (conn->loan)
        tk_borrower_open(&conn->loan->borrower, base, tk_verbs.credits_pp);
    tk_unlock(&conn->lock);
}

/* ---- sending, with the connection's lock ---- */

static bool post(struct tk_conn *conn, enum loan_kind kind, int count, int given)
{
    struct tk_short message = {
        .head = {.kind = TK_LOAN, .category = TK_SHORT, .nargs = loan_args},
        .args = {kind, count, given},
    };
    struct tk_outgoing out = {.head = &message.head, .head_size = tk_short_size(loan_args)};
    bool is_posted = tk_message_post(conn, &out) == TK_OK;
    if (is_posted)
        tk_count_rare(tk_counter_loan_messages);
    return is_posted;
}

static void set_pending(struct tk_conn *conn)
{
    struct tk_loan *loan = conn->loan;
    bool is_pending = loan->is_grant_due || loan->is_return_due || loan->is_request_due;
    tk_counter_add(&tk_verbs.pending_work, is_pending - loan->is_pending);
    loan->is_pending = is_pending;
}

/* A request that only wants more may wait for the next message. One that gives credits back is due
 * at once, because it may carry all credits that other senders wait for. */
static void request(struct tk_conn *conn)
{
    struct tk_borrower *b = &conn->loan->borrower;
    struct tk_loan_request message;
    conn->loan->is_request_due = false;
    if (!tk_borrower_requests(b, conn->credits, &message))
        return;
    if (!tk_credit_take_alone(conn, 0)) {
        conn->loan->is_request_due = message.give > 0;
    } else if (post(conn, LOAN_REQUEST, message.want, message.give)) {
        tk_borrower_requested(b, &message);
    } else {
        tk_credit_return(conn, 1);
        conn->loan->is_request_due = message.give > 0;
    }
}

void tk_loan_step(struct tk_conn *conn)
{
    conn->credits -= tk_borrower_collect(&conn->loan->borrower, conn->credits);
    request(conn);
    set_pending(conn);
}

static void answer(struct tk_conn *conn)
{
    struct tk_loan *loan = conn->loan;
    if (loan->is_grant_due)
        loan->is_grant_due = !post(conn, LOAN_GRANT, loan->granted, 0);
    if (loan->is_return_due)
        loan->is_return_due = !post(conn, LOAN_RETURN, loan->returned, 0);
    set_pending(conn);
}

void tk_loan_retry(const struct tk_peer *peer)
{
    struct tk_conn *conn = tk_primary_lock(peer);
    if (conn->loan && conn->loan->is_pending) {
        answer(conn);
        if (conn->loan->is_request_due)
            tk_loan_step(conn);
    }
    tk_unlock(&conn->lock);
}

/* ---- closing ---- */

/* A thread that has chosen this connection for a RECLAIM may be using it until is_reclaiming is
 * cleared; a held connection is not chosen. The credits show anything else in flight: a REQUEST or
 * RECLAIM is answered when its credit is back. */
bool tk_loan_hold(struct tk_conn *conn)
{
    struct tk_loan *loan = conn->loan;
    struct tk_srq *srq = tk_srq_lender(conn);
    if (loan->is_pending || loan->borrower.is_requesting)
        return false;
    tk_lock(&srq->lock);
    bool may = !loan->account.is_reclaiming;
    loan->is_held = may;
    tk_unlock(&srq->lock);
    return may;
}

void tk_loan_release(struct tk_conn *conn)
{
    struct tk_srq *srq = tk_srq_lender(conn);
    tk_lock(&srq->lock);
    conn->loan->is_held = false;
    tk_unlock(&srq->lock);
}

/* ---- calling back ---- */

/* The next connection from which credits can be reclaimed: for a connection that has `least`
 * credits or, if that is 0, for one that must be opened. With the queue's lock. */
static struct tk_conn *next_victim(struct tk_srq *srq, int least, int *count)
{
    const struct tk_srq_table *table = srq->table;
    for (uint32_t i = 0; i <= table->mask; i++) {
        struct tk_conn *conn = table->entries[srq->next_victim++ & table->mask].conn;
        if (!conn || !conn->loan || conn->loan->is_held)
            continue;
        struct tk_account *account = &conn->loan->account;
        *count = least > 0 ? tk_lender_reclaim(&srq->lender, account, least)
                           : tk_lender_reclaim_all(&srq->lender, account);
        if (*count > 0)
            return conn;
    }
    return NULL;
}

/* Does nothing without space or credit: the connection in need requests again. */
static void reclaim(struct tk_conn *conn, int count)
{
    struct tk_srq *srq = tk_srq_lender(conn);
    conn = tk_primary_lock(conn->peer);
    bool has_credit = tk_credit_take_alone(conn, 0);
    bool is_posted = has_credit && post(conn, LOAN_RECLAIM, count, 0);
    if (has_credit && !is_posted)
        tk_credit_return(conn, 1);
    tk_unlock(&conn->lock);
    if (is_posted)
        return;
    tk_lock(&srq->lock);
    tk_lender_reclaim_end(&conn->loan->account);
    tk_unlock(&srq->lock);
}

/* Reclaims from a few connections only, so that the cost of a message does not grow with their
 * number. */
static void reclaim_some(struct tk_srq *srq, int missing, int least)
{
    enum { victims_max = 4 };
    for (int i = 0; i < victims_max && missing > 0; i++) {
        int count = 0;
        tk_lock(&srq->lock);
        struct tk_conn *victim = next_victim(srq, least, &count);
        tk_unlock(&srq->lock);
        if (!victim)
            return;
        reclaim(victim, count);
        missing -= count;
    }
}

void tk_loan_reclaim(const struct tk_conn *conn)
{
    struct tk_srq *srq = tk_srq_lender(conn);
    reclaim_some(srq, srq->lender.base + srq->lender.notices, 0);
}

/* ---- receiving ---- */

static void requested(struct tk_conn *conn, int want, int give)
{
    struct tk_srq *srq = tk_srq_lender(conn);
    struct tk_account *account = &conn->loan->account;
    tk_lock(&srq->lock);
    tk_lender_returned(&srq->lender, account, give);
    int granted = tk_lender_grant(&srq->lender, account, want), has = account->granted;
    tk_unlock(&srq->lock);
    conn = tk_primary_lock(conn->peer);
    conn->loan->granted = granted;
    conn->loan->is_grant_due = true;
    answer(conn);
    tk_unlock(&conn->lock);
    if (granted < want)
        reclaim_some(srq, want - granted, has);
}

static void granted(struct tk_conn *conn, int count)
{
    conn = tk_primary_lock(conn->peer);
    conn->credits += count;
    tk_credit_return(conn, 1);
    tk_borrower_granted(&conn->loan->borrower, count);
    tk_loan_step(conn);
    tk_unlock(&conn->lock);
}

static void reclaimed(struct tk_conn *conn, int count)
{
    struct tk_loan *loan = conn->loan;
    conn = tk_primary_lock(conn->peer);
    conn->credits -= tk_borrower_reclaimed(&loan->borrower, count, conn->credits, &loan->returned);
    loan->is_return_due = true;
    answer(conn);
    tk_unlock(&conn->lock);
}

static void returned(struct tk_conn *conn, int count)
{
    struct tk_srq *srq = tk_srq_lender(conn);
    tk_lock(&srq->lock);
    tk_lender_reclaim_end(&conn->loan->account);
    tk_lender_returned(&srq->lender, &conn->loan->account, count);
    tk_unlock(&srq->lock);
    conn = tk_primary_lock(conn->peer);
    tk_credit_return(conn, 1);
    if (tk_borrower_is_busy(&conn->loan->borrower))
        tk_loan_step(conn);
    tk_unlock(&conn->lock);
}

void tk_loan_came(struct tk_conn *conn, const struct tk_short *message, size_t size)
{
    const int32_t *args = message->args;
    int most = tk_verbs.credits_pp;
    if (size != tk_short_size(loan_args) || message->head.nargs != loan_args || !conn->loan ||
        args[COUNT] < 0 || args[COUNT] > most || args[GIVEN] < 0 || args[GIVEN] > most)
        tk_wire_error(conn, "a malformed message about credits came");
    if (args[KIND] == LOAN_REQUEST)
        requested(conn, args[COUNT], args[GIVEN]);
    else if (args[KIND] == LOAN_GRANT)
        granted(conn, args[COUNT]);
    else if (args[KIND] == LOAN_RECLAIM)
        reclaimed(conn, args[COUNT]);
    else if (args[KIND] == LOAN_RETURN)
        returned(conn, args[COUNT]);
    else
        tk_wire_error(conn, "a malformed message about credits came");
}
