/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An end point as its user sees it: creation, the transitions of its queue pair, packets in and
 * out. Owns the memory of the end point; the caller serializes all calls for one. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "endpoint/private.h"

enum {
    default_requests = 64,
    default_window = 64,
    default_window_first = 4,
    default_bytes = 65536,
    default_ack = 16,
    default_pieces = 16,
    answers_spare = 2, /* as many repeated reads may wait as new ones */
};
static const uint64_t default_first = 20000000, default_least = 1000000;
static const uint16_t full_member = 0x8000;

static bool is_mtu(uint32_t mtu)
{
    return mtu >= 256 && mtu <= ROCE_MTU_MAX && (mtu & (mtu - 1)) == 0;
}

static bool sound(const struct roce_attributes *a)
{
    bool transport = a->transport == ROCE_RC || a->transport == ROCE_UC ||
                     a->transport == ROCE_UD || a->transport == ROCE_XRC;

    return transport && is_mtu(a->path_mtu) && a->max_rd_atomic <= ROCE_READS_MAX &&
           a->max_dest_rd_atomic <= ROCE_READS_MAX && a->requests <= UINT32_C(1) << 24;
}

static uint32_t power_of_two(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p *= 2;
    return p;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

static uint32_t at_most(uint32_t packets)
{
    return packets < ROCE_WINDOW_MAX ? packets : ROCE_WINDOW_MAX;
}

static void fill_tuning(struct roce_attributes *a, const struct roce_attributes *from)
{
    a->window_packets = at_most(or_default(from->window_packets, default_window));
    a->window_first = or_default(from->window_first, default_window_first);
    if (a->window_first > a->window_packets)
        a->window_first = a->window_packets;
    a->window_bytes = or_default(from->window_bytes, default_bytes);
    a->ack_every = or_default(from->ack_every, default_ack);
    a->read_packets = at_most(or_default(from->read_packets, default_pieces));
    a->repeat_first = from->repeat_first ? from->repeat_first : default_first;
    a->repeat_least = from->repeat_least ? from->repeat_least : default_least;
}

static bool allocate(struct roce_endpoint *e)
{
    struct roce_queue *q = &e->tx.q;

    q->limit = e->a.requests;
    q->mask = power_of_two(q->limit) - 1;
    q->entry = calloc(q->mask + 1, sizeof *q->entry);
    e->rx.saves = or_default(e->a.max_dest_rd_atomic, 1);
    e->rx.mask = power_of_two(e->rx.saves * answers_spare) - 1;
    e->rx.answer = calloc(e->rx.mask + 1, sizeof *e->rx.answer);
    e->rx.saved = calloc(e->rx.saves, sizeof *e->rx.saved);
    return q->entry && e->rx.answer && e->rx.saved;
}

struct roce_endpoint *roce_open(const struct roce_attributes *a, const struct roce_calls *calls,
                                void *context)
{
    struct roce_endpoint *e;

    if (!sound(a)) {
        errno = EINVAL;
        return NULL;
    }
    e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->a = *a;
    e->a.requests = or_default(a->requests, default_requests);
    fill_tuning(&e->a, a);
    e->calls = *calls;
    e->context = context;
    roce_timer_start(e);
    if (!allocate(e)) {
        roce_close(e);
        return NULL;
    }
    return e;
}

void roce_close(struct roce_endpoint *e)
{
    if (!e)
        return;
    free(e->tx.q.entry);
    free(e->rx.answer);
    free(e->rx.saved);
    free(e);
}

/* ---- transitions ---- */

void roce_ready_to_receive(struct roce_endpoint *e, const struct roce_attributes *a)
{
    e->a.dest_qpn = a->dest_qpn;
    e->a.path_mtu = a->path_mtu;
    e->a.pkey = a->pkey;
    /* The rings have the size of roce_open. */
    e->a.max_dest_rd_atomic =
        a->max_dest_rd_atomic < e->rx.saves ? a->max_dest_rd_atomic : (uint16_t)e->rx.saves;
    roce_adjust(e, a);
    e->rx.expected = a->receive_psn & ROCE_PSN_MASK;
    e->rx.on = true;
}

void roce_ready_to_send(struct roce_endpoint *e, const struct roce_attributes *a)
{
    e->a.send_psn = a->send_psn & ROCE_PSN_MASK;
    e->a.timeout = a->timeout & 31;
    e->a.retry_count = a->retry_count & 7;
    e->a.retry_for_ever = a->retry_for_ever;
    e->a.rnr_retry = a->rnr_retry & 7;
    e->a.max_rd_atomic = a->max_rd_atomic;
    roce_adjust(e, a);
    fill_tuning(&e->a, a);
    roce_timer_start(e);
    roce_window_start(e);
    e->tx.on = true;
}

void roce_adjust(struct roce_endpoint *e, const struct roce_attributes *a)
{
    e->a.access = a->access;
    e->a.min_rnr_timer = a->min_rnr_timer & ROCE_SYNDROME_VALUE;
    e->a.qkey = a->qkey;
}

void roce_pause(struct roce_endpoint *e, bool paused)
{
    e->tx.paused = paused;
}

bool roce_drained(const struct roce_endpoint *e)
{
    return e->tx.q.una >= e->tx.q.high;
}

void roce_fail(struct roce_endpoint *e)
{
    e->failed = true;
    roce_silence(e);
    roce_queue_flush(e, ROCE_FLUSHED);
}

void roce_resume(struct roce_endpoint *e)
{
    e->tx.stuck = false;
}

void roce_reset(struct roce_endpoint *e)
{
    struct roce_requester tx = {
        .q = {.entry = e->tx.q.entry, .mask = e->tx.q.mask, .limit = e->tx.q.limit}};
    struct roce_responder rx = {
        .answer = e->rx.answer, .mask = e->rx.mask, .saved = e->rx.saved, .saves = e->rx.saves};

    memset(rx.saved, 0, rx.saves * sizeof *rx.saved);
    e->tx = tx;
    e->rx = rx;
    e->failed = false;
    roce_timer_start(e);
}

/* ---- packets ---- */

static bool partition_meets(uint16_t a, uint16_t b)
{
    return ((a ^ b) & ~full_member & 0xffff) == 0 && ((a | b) & full_member);
}

/* Is the packet for this end point? Changes nothing. */
static bool acceptable(struct roce_endpoint *e, const struct roce_packet *p)
{
    bool cnp = p->opcode == ROCE_CNP;

    if (p->dest_qpn != e->a.qpn)
        e->counters.drop_qpn++;
    else if (!partition_meets(p->pkey, e->a.pkey))
        e->counters.drop_pkey++;
    else if (!cnp && roce_opcode_transport(p->opcode) != e->a.transport)
        e->counters.drop_transport++;
    else
        return true;
    return false;
}

static bool awaits_response(const struct roce_endpoint *e, uint32_t psn)
{
    const struct roce_queue *q = &e->tx.q;
    int32_t ahead = roce_psn_diff(psn, roce_psn_add(e->a.send_psn, (uint32_t)q->una));

    return e->tx.on && ahead >= 0 && q->una + (uint64_t)ahead < q->high;
}

bool roce_expects(const struct roce_endpoint *e, const struct roce_packet *p)
{
    if (!roce_connected(e) || e->failed || p->dest_qpn != e->a.qpn ||
        !partition_meets(p->pkey, e->a.pkey) || roce_opcode_transport(p->opcode) != e->a.transport)
        return false;
    if (roce_is_response(p->opcode))
        return awaits_response(e, p->psn);
    return e->rx.on && !e->a.initiator && p->psn == e->rx.expected;
}

static void request(struct roce_endpoint *e, roce_time now, const struct roce_packet *p,
                    bool congested)
{
    if (!e->rx.on || e->a.initiator || (e->failed && !e->rx.failed)) {
        e->counters.drop_state++;
        return;
    }
    if (roce_connected(e))
        roce_request_input(e, p);
    else if (e->a.transport == ROCE_UC)
        roce_unreliable_input(e, p);
    else
        roce_datagram_input(e, p);
    if (congested && e->a.transport != ROCE_UD && now >= e->rx.congestion_next)
        e->rx.congestion_due = true;
}

void roce_input(struct roce_endpoint *e, roce_time now, const struct roce_packet *p, bool congested)
{
    if (!acceptable(e, p))
        return;
    e->counters.received++;
    if (p->opcode == ROCE_CNP) {
        roce_congestion(e, now);
    } else if (roce_is_response(p->opcode)) {
        if (congested)
            roce_congestion(e, now);
        roce_response_input(e, now, p);
    } else {
        request(e, now, p, congested);
    }
}

size_t roce_output(struct roce_endpoint *e, roce_time now, uint8_t *out,
                   const struct roce_request **r)
{
    size_t length = roce_responder_output(e, now, out);

    *r = NULL;
    if (length == 0) {
        length = roce_requester_output(e, now, out);
        *r = length ? &e->tx.shown : NULL;
    }
    return length;
}

size_t roce_answer_output(struct roce_endpoint *e, roce_time now, uint8_t *out)
{
    return roce_responder_output(e, now, out);
}

size_t roce_request_output(struct roce_endpoint *e, roce_time now, uint8_t *out,
                           const struct roce_request **r)
{
    size_t length = roce_requester_output(e, now, out);

    *r = length ? &e->tx.shown : NULL;
    return length;
}

bool roce_only_acknowledges(struct roce_endpoint *e, roce_time now)
{
    const struct roce_responder *rx = &e->rx;

    return rx->on && !e->failed && rx->reply == ROCE_REPLY_ACK && !rx->congestion_due &&
           rx->head == rx->tail && !roce_requester_ready(e) && now < roce_deadline(e);
}

roce_time roce_deadline(const struct roce_endpoint *e)
{
    if (!e->tx.on || e->failed || !roce_connected(e))
        return ROCE_NEVER;
    return roce_timer_deadline(e);
}

bool roce_wants_output(struct roce_endpoint *e, roce_time now)
{
    return roce_responder_ready(e) || roce_requester_ready(e) || now >= roce_deadline(e);
}

void roce_congestion(struct roce_endpoint *e, roce_time now)
{
    (void)now;
    if (e->tx.on && roce_connected(e))
        roce_window_halve(e);
}

const struct roce_counters *roce_counters(const struct roce_endpoint *e)
{
    return &e->counters;
}

bool roce_failed(const struct roce_endpoint *e)
{
    return e->failed;
}
