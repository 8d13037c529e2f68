/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The packets of a responder: the responses of reads and atomics, in the order of their requests,
 * followed by the one acknowledgement or NAK that is due. Acknowledgements are cumulative, so one
 * stands for all that arrived since the last. Owns the ring of answers and the results of atomics
 * (the resend window); the caller serializes. */
#include "config.h"

#include "endpoint/private.h"

static const uint64_t congestion_interval = 50000; /* ns between notifications, as on cards */

/* ---- the ring ---- */

bool roce_answer_room(const struct roce_responder *rx)
{
    return rx->tail - rx->head <= rx->mask;
}

void roce_answer_add(struct roce_endpoint *e, const struct roce_answer *a)
{
    struct roce_responder *rx = &e->rx;

    rx->answer[rx->tail++ & rx->mask] = *a;
    /* It acknowledges everything before it. */
    if (rx->reply == ROCE_REPLY_ACK)
        rx->reply = ROCE_REPLY_NONE;
}

bool roce_answer_pending(const struct roce_responder *rx, uint32_t first, uint32_t end)
{
    for (uint32_t i = rx->head; i != rx->tail; i++) {
        const struct roce_answer *a = &rx->answer[i & rx->mask];

        if (roce_psn_diff(first, a->next) >= 0 && roce_psn_diff(end, a->end) <= 0)
            return true;
    }
    return false;
}

void roce_answer_save(struct roce_responder *rx, uint32_t psn, uint64_t original)
{
    rx->saved[rx->save_next] = (struct roce_saved){psn, true, original};
    rx->save_next = (rx->save_next + 1) % rx->saves;
}

/* The latest with this PSN: there may be one of 2^24 packets ago. */
const struct roce_saved *roce_answer_saved(const struct roce_responder *rx, uint32_t psn)
{
    for (uint32_t back = 1; back <= rx->saves; back++) {
        const struct roce_saved *s = &rx->saved[(rx->save_next + rx->saves - back) % rx->saves];

        if (s->valid && s->psn == psn)
            return s;
    }
    return NULL;
}

/* ---- packets ---- */

static void begin(const struct roce_endpoint *e, unsigned operation, uint32_t psn,
                  struct roce_packet *p)
{
    memset(p, 0, sizeof *p);
    p->opcode = roce_opcode_of(e->a.transport, operation);
    p->pkey = e->a.pkey;
    p->migrated = true;
    p->dest_qpn = e->a.dest_qpn;
    p->psn = psn;
}

static unsigned read_operation(bool first, bool last)
{
    if (last)
        return first ? ROCE_READ_RESPONSE_ONLY : ROCE_READ_RESPONSE_LAST;
    return first ? ROCE_READ_RESPONSE_FIRST : ROCE_READ_RESPONSE_MIDDLE;
}

/* Writes the next packet of a read's response; 0: its memory is gone, and the responder has failed.
 * */
static size_t read_packet(struct roce_endpoint *e, struct roce_answer *a, uint8_t *out)
{
    uint32_t k = roce_psn_diff(a->next, a->first), offset = k * e->a.path_mtu;
    bool last = roce_psn_add(a->next, 1) == a->end;
    struct roce_reach piece = a->reach;
    struct roce_packet p;
    size_t headers;

    begin(e, read_operation(k == 0, last), a->next, &p);
    p.syndrome = ROCE_SYNDROME_ACK | ROCE_CREDITS_NONE;
    p.msn = a->msn;
    p.payload_length = last ? (uint32_t)a->reach.length - offset : e->a.path_mtu;
    headers = roce_packet_headers(&p, out);
    piece.va += offset;
    piece.length = p.payload_length;
    if (piece.length) {
        enum roce_status status = e->calls.read(e->context, &piece, out + headers);

        if (status != ROCE_SUCCESS) {
            e->rx.head = e->rx.tail;
            roce_responder_fail(
                e, status == ROCE_REMOTE_ACCESS ? ROCE_NAK_ACCESS : ROCE_NAK_OPERATION, a->next);
            return 0;
        }
    }
    memset(out + headers + p.payload_length, 0, roce_pad(p.payload_length));
    return headers + p.payload_length + roce_pad(p.payload_length);
}

static size_t atomic_packet(const struct roce_endpoint *e, const struct roce_answer *a,
                            uint8_t *out)
{
    struct roce_packet p;

    begin(e, ROCE_ATOMIC_ACKNOWLEDGE, a->next, &p);
    p.syndrome = ROCE_SYNDROME_ACK | ROCE_CREDITS_NONE;
    p.msn = a->msn;
    p.original = a->original;
    return roce_packet_headers(&p, out);
}

static size_t answer_packet(struct roce_endpoint *e, uint8_t *out)
{
    struct roce_responder *rx = &e->rx;
    struct roce_answer *a = &rx->answer[rx->head & rx->mask];
    size_t length = a->atomic ? atomic_packet(e, a, out) : read_packet(e, a, out);

    if (length == 0)
        return 0;
    a->next = roce_psn_add(a->next, 1);
    if (a->next == a->end)
        rx->head++;
    return length;
}

static uint8_t reply_syndrome(struct roce_endpoint *e, uint32_t *psn)
{
    struct roce_responder *rx = &e->rx;

    switch (rx->reply) {
    case ROCE_REPLY_ACK:
        e->counters.acks_sent++;
        *psn = roce_psn_add(rx->expected, ROCE_PSN_MASK);
        return ROCE_SYNDROME_ACK | ROCE_CREDITS_NONE;
    case ROCE_REPLY_FINAL:
        e->counters.naks_sent++;
        *psn = rx->expected;
        return rx->final;
    default:
        if (rx->syndrome == ROCE_NAK_SEQUENCE)
            e->counters.naks_sent++;
        else
            e->counters.rnr_sent++;
        *psn = rx->expected;
        return rx->syndrome;
    }
}

static size_t reply_packet(struct roce_endpoint *e, uint8_t *out)
{
    struct roce_packet p;
    uint32_t psn;
    uint8_t syndrome = reply_syndrome(e, &psn);

    begin(e, ROCE_ACKNOWLEDGE, psn, &p);
    p.syndrome = syndrome;
    p.msn = e->rx.msn;
    e->rx.reply = ROCE_REPLY_NONE;
    return roce_packet_headers(&p, out);
}

static size_t congestion_packet(struct roce_endpoint *e, roce_time now, uint8_t *out)
{
    struct roce_packet p;

    e->rx.congestion_due = false;
    e->rx.congestion_next = now + congestion_interval;
    e->counters.congestion_sent++;
    begin(e, 0, 0, &p);
    p.opcode = ROCE_CNP;
    p.becn = true;
    roce_packet_headers(&p, out);
    memset(out + ROCE_BTH_BYTES, 0, ROCE_CNP_BYTES);
    return ROCE_BTH_BYTES + ROCE_CNP_BYTES;
}

bool roce_responder_ready(const struct roce_endpoint *e)
{
    const struct roce_responder *rx = &e->rx;

    return rx->on && (rx->congestion_due || rx->head != rx->tail || rx->reply != ROCE_REPLY_NONE);
}

size_t roce_responder_output(struct roce_endpoint *e, roce_time now, uint8_t *out)
{
    struct roce_responder *rx = &e->rx;
    size_t length = 0;

    if (!roce_responder_ready(e))
        return 0;
    if (rx->congestion_due)
        length = congestion_packet(e, now, out);
    else if (rx->head != rx->tail)
        length = answer_packet(e, out);
    if (length == 0 && rx->reply != ROCE_REPLY_NONE)
        length = reply_packet(e, out);
    e->counters.sent += length != 0;
    return length;
}
