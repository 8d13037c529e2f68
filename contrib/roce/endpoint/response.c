/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a requester handles acknowledgements, NAKs and the responses of reads and atomics. Every
 * response acknowledges all packets before it, except reads and atomics whose own responses are
 * missing: these were lost and are requested again (specification 9.7.5.1.4). Owns nothing. */
#include "config.h"

#include "endpoint/private.h"

/* Retransmits from the oldest packet on, once: answers to the previous flight that are still under
 * way must not trigger it again. */
static void repeat_from_una(struct roce_endpoint *e)
{
    if (e->tx.rewound == e->tx.q.una)
        return;
    e->tx.rewound = e->tx.q.una;
    e->tx.timer.timing = false;
    roce_window_halve(e);
    roce_queue_rewind(&e->tx.q);
}

static void advance(struct roce_endpoint *e, roce_time now, uint64_t to)
{
    uint64_t moved = to - e->tx.q.una;

    if (to <= e->tx.q.una)
        return;
    roce_queue_advance(e, to);
    roce_window_acked(e, moved);
    roce_timer_progress(e, now);
    if (e->tx.rewound != UINT64_MAX && e->tx.rewound < to)
        e->tx.rewound = UINT64_MAX;
    /* A callback may have ended it. */
    if (!e->failed && e->tx.q.una >= e->tx.broken_at)
        roce_requester_fail(e, e->tx.broken);
}

/* Everything before `to` arrived. False: the response of an earlier read or atomic is missing. */
static bool acknowledge(struct roce_endpoint *e, roce_time now, uint64_t to)
{
    struct roce_queue *q = &e->tx.q;
    uint64_t limit = to;

    for (uint32_t i = q->head; i != q->tail; i++) {
        const struct roce_entry *r = roce_entry_at(q, i);

        if (r->first >= to)
            break;
        if (roce_is_answered(&r->r)) {
            limit = r->first > q->una ? r->first : q->una;
            break;
        }
    }
    advance(e, now, limit);
    return limit == to;
}

static void on_ack(struct roce_endpoint *e, roce_time now, uint64_t number)
{
    if (!acknowledge(e, now, number + 1) && !e->failed)
        repeat_from_una(e);
}

/* ---- NAKs ---- */

static enum roce_status status_of(uint8_t syndrome)
{
    switch (syndrome) {
    case ROCE_NAK_INVALID:
        return ROCE_REMOTE_INVALID;
    case ROCE_NAK_ACCESS:
        return ROCE_REMOTE_ACCESS;
    case ROCE_NAK_OPERATION:
        return ROCE_REMOTE_OPERATION;
    default:
        return ROCE_BAD_RESPONSE;
    }
}

static void on_nak(struct roce_endpoint *e, roce_time now, uint64_t number, uint8_t syndrome)
{
    bool all;

    e->counters.naks_received++;
    all = acknowledge(e, now, number);
    if (e->failed)
        return;
    if (syndrome == ROCE_NAK_SEQUENCE) {
        repeat_from_una(e);
        return;
    }
    /* It fails when the reads before it, if responses are missing, have been repeated. */
    if (e->tx.broken_at > number) {
        e->tx.broken_at = number;
        e->tx.broken = status_of(syndrome);
    }
    if (all)
        roce_requester_fail(e, e->tx.broken);
    else
        repeat_from_una(e);
}

static void on_rnr(struct roce_endpoint *e, roce_time now, uint64_t number, unsigned code)
{
    bool all = acknowledge(e, now, number);

    e->counters.rnr++;
    if (e->failed || e->tx.timer.rnr_waiting)
        return;
    if (!all)
        repeat_from_una(e);
    else if (!roce_timer_rnr(e, now, code))
        roce_requester_fail(e, ROCE_RNR_EXCEEDED);
    else
        roce_queue_rewind(&e->tx.q);
}

static void on_aeth(struct roce_endpoint *e, roce_time now, uint64_t number, uint8_t syndrome)
{
    switch (syndrome & ROCE_SYNDROME_KIND) {
    case ROCE_SYNDROME_ACK:
        on_ack(e, now, number);
        break;
    case ROCE_SYNDROME_RNR:
        on_rnr(e, now, number, syndrome & ROCE_SYNDROME_VALUE);
        break;
    case ROCE_SYNDROME_NAK:
        on_nak(e, now, number, syndrome);
        break;
    default: /* reserved */
        e->counters.drop_invalid++;
    }
}

/* ---- responses with data ---- */

/* Whether this number belongs to a read or an atomic. */
static bool asked(struct roce_endpoint *e, uint64_t number)
{
    struct roce_queue *q = &e->tx.q;

    for (uint32_t i = q->head; i != q->tail; i++) {
        const struct roce_entry *r = roce_entry_at(q, i);

        if (number < r->first + r->packets)
            return roce_is_answered(&r->r);
    }
    return false;
}

/* The entry whose response has this number, if it is the next one that is missing. */
static const struct roce_entry *awaited(struct roce_endpoint *e, roce_time now, uint64_t number)
{
    struct roce_queue *q = &e->tx.q;

    if (!acknowledge(e, now, number) && !e->failed)
        repeat_from_una(e);
    if (e->failed || q->una != number || q->head == q->tail)
        return NULL;
    return roce_entry_at(q, q->head);
}

static void on_read(struct roce_endpoint *e, roce_time now, uint64_t number,
                    const struct roce_packet *p)
{
    const struct roce_entry *r = awaited(e, now, number);
    enum roce_status status;
    uint64_t k;

    if (!r)
        return;
    k = number - r->first;
    if (r->r.kind != ROCE_DO_READ || p->payload_length != roce_payload_at(e, r, k)) {
        roce_requester_fail(e, ROCE_BAD_RESPONSE);
        return;
    }
    status = p->payload_length == 0
                 ? ROCE_SUCCESS
                 : e->calls.store(e->context, &r->r, (uint32_t)(k * e->a.path_mtu), p->payload,
                                  p->payload_length);
    if (status == ROCE_SUCCESS)
        advance(e, now, number + 1);
    else
        roce_requester_fail(e, status);
}

static void on_atomic(struct roce_endpoint *e, roce_time now, uint64_t number,
                      const struct roce_packet *p)
{
    const struct roce_entry *r = awaited(e, now, number);
    enum roce_status status;

    if (!r)
        return;
    if (r->r.kind == ROCE_DO_READ) {
        roce_requester_fail(e, ROCE_BAD_RESPONSE);
        return;
    }
    status = e->calls.store(e->context, &r->r, 0, &p->original, sizeof p->original);
    if (status == ROCE_SUCCESS)
        advance(e, now, number + 1);
    else
        roce_requester_fail(e, status);
}

void roce_response_input(struct roce_endpoint *e, roce_time now, const struct roce_packet *p)
{
    struct roce_queue *q = &e->tx.q;
    int32_t ahead = roce_psn_diff(p->psn, roce_psn_add(e->a.send_psn, (uint32_t)q->una));
    uint64_t number = q->una + (uint64_t)ahead;
    uint8_t kind = roce_opcode(p->opcode).kind;

    if (!e->tx.on || e->failed) {
        e->counters.drop_state++;
        return;
    }
    /* Data for a request that expects none: it would also acknowledge everything before it. */
    if (ahead < 0 || number >= q->high || (kind != ROCE_KIND_ACK && !asked(e, number))) {
        e->counters.stale++;
        return;
    }
    if (p->becn)
        roce_window_halve(e);
    switch (kind) {
    case ROCE_KIND_ACK:
        on_aeth(e, now, number, p->syndrome);
        break;
    case ROCE_KIND_READ_RESPONSE:
        on_read(e, now, number, p);
        break;
    default:
        on_atomic(e, now, number, p);
    }
}
