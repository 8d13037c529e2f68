/* SPDX-License-Identifier: BSD-3-Clause */
/* See messages.h. Owns the messages that wait for a credit: each leader has a list of them, which
 * is short, because a leader waits for its partners of a few rounds at most. */
#include "config.h"

#include "messages.h"

#include "connections.h"
#include "demand.h"

#include "settings/settings.h"
#include "start/plan.h"
#include "transport/verbs/data/credit_rules.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs.h"

#include <stdlib.h>

/* Kinds of events after those of owners. `c` of a loan: credits, and above 16 bits those that are
 * given back. The kind of a message has above it the credits that it carries, and whether it
 * follows another one. */
enum {
    PART = SIM_KINDS_OF_OWNERS, /* of a payload in several messages */
    ACK,
    ACK_MORE, /* a credit that the last ACK returns in addition */
    LOAN_REQUEST,
    LOAN_GRANT,
    LOAN_RECLAIM,
    LOAN_RETURN
};
enum { carried_shift = 8, follows_shift = 16, given_shift = 16 };

/* Bytes of messages without payload: a header, with the arguments of a loan; a request to read, and
 * the offer of it (rendezvous.h). */
enum { ack_bytes = 8, loan_bytes = 20, read_bytes = 16, offer_bytes = 48 };

struct sim_waiting {
    struct sim_message m;
    uint64_t sent;
    uint32_t next; /* its place plus 1; 0: none */
};

void sim_messages_open(struct simulation *s)
{
    struct tk_job_shape shape;
    tk_plan_shape(&shape, s->in.ranks, s->in.hosts);
    shape.is_static = false;
    if (tk_shape_peers(&shape) == 0)
        return;
    s->conns = shape.conns;
    s->connections_max = (uint32_t)tk_settings.connect_max / shape.conns;
    s->is_shared = tk_verbs_shares(&shape, (int)s->in.srq, &s->limits, &s->plan);
    s->credits =
        tk_verbs_credits_find(&s->limits, s->is_shared ? &s->plan : NULL, tk_shape_peers(&shape));
    if (tk_verbs_fails_over(shape.conns))
        s->credits.batch_slack = 0; /* its polls handle one message at a time */
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        s->leaders[n].credits_total = s->credits.total;
        s->leaders[n].pass = s->leaders[n].passes = 1;
        s->leaders[n].lender = (struct tk_lender){
            .base = s->plan.base, .most = s->limits.credits_pp, .notices = s->plan.notices};
    }
}

void sim_messages_close(struct simulation *s)
{
    free(s->waiting);
    s->waiting = NULL;
}

/* Where a queue has no space for the connection's own credits, a real rank waits until others have
 * returned theirs; here it has them at once. */
void sim_messages_connect(struct simulation *s, uint32_t nbrhd, struct sim_end *end)
{
    struct sim_leader *l = &s->leaders[nbrhd];
    end->credits = s->credits.base;
    end->returned = 0;
    if (!s->is_shared)
        return;
    int capacity = tk_loan_stock(&s->plan, (int)l->connections).capacity;
    l->lender.capacity = capacity > l->lender.capacity ? capacity : l->lender.capacity;
    if (tk_lender_reserve(&l->lender, &end->account) != TK_RESERVE_OK) {
        end->account = (struct tk_account){.granted = l->lender.base};
        l->lender.promised += l->lender.base + l->lender.notices;
    }
    tk_borrower_open(&end->borrower, s->plan.base, s->limits.credits_pp);
}

/* ---- sending */

static uint8_t kind_on_wire(const struct simulation *s, uint32_t kind)
{
    if (kind == SIM_BOUNDED && s->is_shared && s->plan.bounded > 0)
        return TK_BOUNDED;
    return kind == ACK ? TK_ACK : kind > ACK ? TK_LOAN : TK_REQUEST;
}

static uint64_t copying(const struct simulation *s, uint64_t nbytes)
{
    return nbytes * s->costs.copy_kib / 1024;
}

/* A message that is larger than the buffers of a shared queue is offered, and read by its
 * receiver. */
static uint64_t cross(struct simulation *s, uint32_t from, uint32_t to, uint64_t now,
                      uint64_t nbytes)
{
    uint32_t a = s->host_of[from], b = s->host_of[to];
    if (!s->is_shared || nbytes <= tk_verbs_shared_buffer(false))
        return sim_fabric_send(&s->fabric, a, b, now, nbytes);
    now = sim_fabric_send(&s->fabric, a, b, now, offer_bytes);
    now = sim_fabric_send(&s->fabric, b, a, now, read_bytes);
    return sim_fabric_send(&s->fabric, a, b, now, nbytes);
}

/* One message, whatever it takes. Returns when its sender has posted it. */
static uint64_t post(struct simulation *s, struct sim_end *end, const struct sim_message *m,
                     bool follows, uint64_t now)
{
    int carried = tk_credit_carried(kind_on_wire(s, m->what), end->to_return);
    end->to_return -= carried;
    if (carried) {
        end->returned = carried;
        end->is_acked = false;
    }
    end->bounded_sent += kind_on_wire(s, m->what) == TK_BOUNDED;
    end->is_quiet = true;
    uint64_t bytes = m->nbytes + m->head;
    uint64_t leaves =
        sim_compute(s, s->host_of[m->from], now, s->costs.message + copying(s, m->nbytes));
    uint64_t comes = cross(s, m->from, m->to, leaves, bytes);
    s->leaders[m->from].bytes += bytes;
    uint32_t what =
        m->what | (uint32_t)carried << carried_shift | (uint32_t)follows << follows_shift;
    s->has_failed |= !sim_events_add(&s->events, comes, what, m->to, m->from, m->key);
    return leaves;
}

static bool credit_take(struct simulation *s, struct sim_leader *l, struct sim_end *end)
{
    if (!tk_credit_suffices(end->credits, 0) ||
        (s->credits.is_total_bound && l->credits_total == 0))
        return false;
    end->credits--;
    l->credits_total--;
    return true;
}

/* ---- passes: a leader handles what a poll has found, and posts messages until it has to wait. A
 * leader that waits takes in one poll what a pass of another one has sent to it: both messages of
 * a leader that sends its part of a reduction and begins the next collective, or all parts of a
 * payload. What it posts then is of one pass again. */

static void pass_begin(struct sim_leader *l)
{
    l->pass = ++l->passes;
}

static void pass_take(struct sim_leader *l, struct sim_end *end, bool follows)
{
    if (!follows)
        pass_begin(l);
    else
        l->pass = end->taken_in;
    end->taken_in = l->pass;
}

/* Does this message follow another of the same pass to the same leader? */
static bool pass_sends(const struct sim_leader *l, struct sim_end *end)
{
    bool follows = end->sent_in == l->pass;
    end->sent_in = l->pass;
    return follows;
}

/* As many messages of the payload as there are credits for. True: all of them. */
static bool send_on(struct simulation *s, const struct sim_message *m, uint64_t *sent, uint64_t now)
{
    struct sim_leader *l = &s->leaders[m->from];
    struct sim_connection *c = sim_connection(s, m->from, m->to);
    struct sim_end *end = &c->ends[sim_end_of(m->from, m->to)];
    bool is_last;
    if (s->connections_max && !sim_demand_use(s, m->from, m->to, now))
        return false;
    do {
        struct sim_message part = *m;
        if (kind_on_wire(s, m->what) == TK_REQUEST && !credit_take(s, l, end)) {
            l->waits += *sent == 0;
            if (s->is_shared && end->credits == 0)
                tk_borrower_starves(&end->borrower);
            return false;
        }
        is_last = m->nbytes - *sent <= TK_MAX_MEDIUM;
        part.nbytes = is_last ? m->nbytes - *sent : TK_MAX_MEDIUM;
        part.what = is_last ? m->what : PART;
        *sent += part.nbytes;
        l->sent++;
        now = post(s, end, &part, pass_sends(l, end), now);
        l->clock = now > l->clock ? now : l->clock;
    } while (!is_last);
    return true;
}

static bool wait_add(struct simulation *s, const struct sim_message *m, uint64_t sent)
{
    uint32_t at = s->waiting_free, *last = &s->leaders[m->from].waiting;
    if (!at && s->waiting_count == s->waiting_space) {
        uint32_t space = s->waiting_space ? 2 * s->waiting_space : 1024;
        struct sim_waiting *more = realloc(s->waiting, space * sizeof(*more));
        if (!more)
            return false;
        s->waiting = more;
        s->waiting_space = space;
    }
    if (at)
        s->waiting_free = s->waiting[at - 1].next;
    else
        at = ++s->waiting_count;
    s->waiting[at - 1] = (struct sim_waiting){*m, sent, 0};
    while (*last)
        last = &s->waiting[*last - 1].next;
    *last = at;
    return true;
}

bool sim_message_send(struct simulation *s, const struct sim_message *m, uint64_t now)
{
    uint64_t sent = 0;
    uint64_t ready = s->connections_max ? now : sim_connect(s, m->from, m->to, now);
    if (s->has_failed || send_on(s, m, &sent, ready))
        return true;
    s->has_failed |= !wait_add(s, m, sent);
    return false;
}

void sim_messages_retry(struct simulation *s, uint32_t nbrhd, uint64_t now)
{
    uint32_t *at = &s->leaders[nbrhd].waiting;
    if (*at)
        pass_begin(&s->leaders[nbrhd]);
    while (*at && !s->has_failed) {
        uint32_t place = *at;
        struct sim_waiting *w = &s->waiting[place - 1];
        if (!send_on(s, &w->m, &w->sent, now)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = s->waiting_free;
        s->waiting_free = place;
        s->sent(s, nbrhd, s->leaders[nbrhd].clock);
        at = &s->leaders[nbrhd].waiting; /* the list may have grown, and moved */
    }
}

/* ---- loans: credit_loan_messages.c */

static void loan_post(struct simulation *s, const struct sim_event *e, uint32_t kind, int count,
                      int given)
{
    struct sim_connection *c = sim_connection(s, e->a, e->b);
    const struct sim_message m = {.from = e->a,
                                  .to = e->b,
                                  .what = kind,
                                  .head = loan_bytes,
                                  .key = (uint64_t)given << given_shift | (uint64_t)count};
    post(s, &c->ends[sim_end_of(e->a, e->b)], &m, false, e->time);
    s->leaders[e->a].loans++;
}

/* Credits came to `e->a` from `e->b`. */
static void loan_step(struct simulation *s, const struct sim_event *e, struct sim_end *end)
{
    struct tk_loan_request request;
    end->credits -= tk_borrower_collect(&end->borrower, end->credits);
    if (!tk_borrower_requests(&end->borrower, end->credits, &request) ||
        !credit_take(s, &s->leaders[e->a], end))
        return;
    loan_post(s, e, LOAN_REQUEST, request.want, request.give);
    tk_borrower_requested(&end->borrower, &request);
}

static void credits_come(struct simulation *s, const struct sim_event *e, struct sim_end *end,
                         int credits)
{
    end->credits += credits;
    s->leaders[e->a].credits_total += credits;
    if (credits > 0 && s->is_shared && tk_borrower_is_busy(&end->borrower))
        loan_step(s, e, end);
}

/* From a few of the others that have borrowed. */
static void reclaim_some(struct simulation *s, const struct sim_event *e, int missing, int least)
{
    enum { victims_max = 4 };
    struct sim_leader *l = &s->leaders[e->a];
    int victims = 0;
    for (uint32_t i = 0; i < l->connections && victims < victims_max && missing > 0; i++) {
        const struct sim_event to = {
            .time = e->time, .a = e->a, .b = l->partners[l->next_victim++ % l->connections]};
        struct sim_end *end = &sim_connection(s, to.a, to.b)->ends[sim_end_of(to.a, to.b)];
        int count = tk_lender_reclaim(&l->lender, &end->account, least);
        if (count == 0)
            continue;
        victims++;
        missing -= count;
        if (credit_take(s, l, end))
            loan_post(s, &to, LOAN_RECLAIM, count, 0);
        else
            tk_lender_reclaim_end(&end->account);
    }
}

static void requested(struct simulation *s, const struct sim_event *e, struct sim_end *end,
                      int want, int give)
{
    struct tk_lender *lender = &s->leaders[e->a].lender;
    tk_lender_returned(lender, &end->account, give);
    int granted = tk_lender_grant(lender, &end->account, want);
    loan_post(s, e, LOAN_GRANT, granted, 0);
    if (granted < want)
        reclaim_some(s, e, want - granted, end->account.granted);
}

static void loan_came(struct simulation *s, const struct sim_event *e, struct sim_end *end)
{
    int count = (int)(e->c & UINT16_MAX), given = (int)(e->c >> given_shift);
    if (e->what == LOAN_REQUEST) {
        requested(s, e, end, count, given);
    } else if (e->what == LOAN_GRANT) {
        end->credits += count + 1;
        s->leaders[e->a].credits_total++;
        tk_borrower_granted(&end->borrower, count);
        loan_step(s, e, end);
    } else if (e->what == LOAN_RECLAIM) {
        end->credits -= tk_borrower_reclaimed(&end->borrower, count, end->credits, &given);
        loan_post(s, e, LOAN_RETURN, given, 0);
    } else {
        tk_lender_reclaim_end(&end->account);
        tk_lender_returned(&s->leaders[e->a].lender, &end->account, count);
        credits_come(s, e, end, 1);
    }
}

/* ---- receiving */

static void ack(struct simulation *s, struct sim_event *e, struct sim_end *end)
{
    const struct sim_message m = {.from = e->a, .to = e->b, .what = ACK, .head = ack_bytes};
    int returned = tk_credit_received(TK_ACK, end->to_return);
    s->leaders[e->a].acks++;
    e->time = post(s, end, &m, false, e->time);
    end->returned = returned;
    end->is_acked = true;
}

/* At the end of a batch one ACK returns its credits, before the receiver sends anything. Here it
 * may have returned those of the first messages already, because a later one is of the next call,
 * which was not simulated yet: then the same ACK or message returns this credit too, or an ACK is
 * sent that would have been due. */
static bool joins_batch(struct simulation *s, struct sim_event *e, struct sim_end *end)
{
    int returned = end->returned;
    if (returned == 0 || !tk_ack_may_be_left(returned, s->credits.batch_slack))
        return false;
    if (!end->is_acked && tk_ack_is_due(returned + 1, s->credits.slack))
        ack(s, e, end);
    else
        s->has_failed |=
            !sim_events_add(&s->events, e->time + 2 * s->in.latency, ACK_MORE, e->b, e->a, 0);
    end->returned = returned + 1;
    return true;
}

/* The handlers of the library's requests send no reply. */
static void owe(struct simulation *s, struct sim_event *e, struct sim_end *end, bool follows)
{
    if (follows && joins_batch(s, e, end))
        return;
    end->returned = 0;
    if (!tk_ack_is_due(++end->to_return, s->credits.slack))
        return;
    end->to_return--; /* the ACK itself returns one */
    ack(s, e, end);
}

/* A message of the library, or a part of one. */
static void request_came(struct simulation *s, struct sim_event *e, struct sim_end *end,
                         bool follows)
{
    pass_take(&s->leaders[e->a], end, follows);
    s->leaders[e->a].came++;
    if (kind_on_wire(s, e->what) == TK_REQUEST)
        owe(s, e, end, follows);
}

static void take(struct simulation *s, struct sim_event *e, struct sim_end *end)
{
    int carried = (int)(e->what >> carried_shift & UINT8_MAX);
    bool follows = e->what >> follows_shift;
    e->what &= (1u << carried_shift) - 1;
    if (e->what == ACK_MORE) {
        credits_come(s, e, end, 1);
        return;
    }
    e->time = sim_compute(s, s->host_of[e->a], e->time, s->costs.message);
    credits_come(s, e, end, tk_credit_received(kind_on_wire(s, e->what), carried));
    end->bounded_came += kind_on_wire(s, e->what) == TK_BOUNDED;
    if (e->what > ACK)
        loan_came(s, e, end);
    if (e->what < ACK)
        request_came(s, e, end, follows);
}

bool sim_message_came(struct simulation *s, struct sim_event *e)
{
    if (e->what == SIM_DATAGRAM || e->what == SIM_TIMER) {
        sim_demand_came(s, e);
        return false;
    }
    take(s, e, &sim_connection(s, e->a, e->b)->ends[sim_end_of(e->a, e->b)]);
    sim_messages_retry(s, e->a, e->time);
    return e->what < SIM_KINDS_OF_OWNERS;
}
