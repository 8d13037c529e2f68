/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a reliable responder handles a request packet, by its PSN: the expected one is executed; one
 * too early gets a NAK, once, until the expected one arrives; a repeated one is acknowledged again,
 * a repeated read is read again and a repeated atomic gets its first result (specification 9.7.1,
 * 9.7.5). Owns nothing; the caller serializes. */
#include "config.h"

#include "endpoint/private.h"

static void refuse(struct roce_endpoint *e, enum roce_outcome outcome)
{
    uint8_t nak = outcome == ROCE_REFUSED_ACCESS    ? ROCE_NAK_ACCESS
                  : outcome == ROCE_REFUSED_INVALID ? ROCE_NAK_INVALID
                                                    : ROCE_NAK_OPERATION;

    roce_responder_fail(e, nak, e->rx.expected);
}

static void nak(struct roce_responder *rx, uint8_t syndrome)
{
    rx->reply = ROCE_REPLY_NAK;
    rx->syndrome = syndrome;
    rx->nak_sent = true;
}

static void executed(struct roce_endpoint *e, const struct roce_packet *p)
{
    struct roce_opcode o = roce_opcode(p->opcode);
    struct roce_responder *rx = &e->rx;

    if (rx->reply == ROCE_REPLY_NAK)
        rx->reply = ROCE_REPLY_NONE;
    rx->nak_sent = false;
    rx->expected = roce_psn_add(rx->expected,
                                o.kind == ROCE_KIND_READ ? roce_read_numbers(e, p->dma_length) : 1);
    if (o.last)
        rx->msn = roce_psn_add(rx->msn, 1);
    if (p->ack_request && (o.kind == ROCE_KIND_SEND || o.kind == ROCE_KIND_WRITE))
        rx->reply = ROCE_REPLY_ACK;
    if (!rx->established) {
        rx->established = true;
        if (e->calls.event)
            e->calls.event(e->context, ROCE_EVENT_ESTABLISHED);
    }
}

static void in_order(struct roce_endpoint *e, const struct roce_packet *p)
{
    enum roce_outcome outcome = roce_execute(e, p);

    switch (outcome) {
    case ROCE_DONE:
        executed(e, p);
        break;
    case ROCE_DROPPED:
        e->counters.drop_receive++;
        break;
    case ROCE_RNR:
        nak(&e->rx, (uint8_t)(ROCE_SYNDROME_RNR | (e->a.min_rnr_timer & ROCE_SYNDROME_VALUE)));
        break;
    default:
        refuse(e, outcome);
    }
}

/* ---- repeated requests ---- */

static void read_again(struct roce_endpoint *e, const struct roce_packet *p)
{
    struct roce_responder *rx = &e->rx;
    uint32_t n = roce_read_numbers(e, p->dma_length), end = roce_psn_add(p->psn, n);
    struct roce_reach reach = {p->va, p->dma_length, p->rkey, p->srqn, ROCE_ACCESS_READ};

    /* Never more than was requested before: later numbers belong to other requests. */
    if (n > ROCE_READ_LONGEST || roce_psn_diff(end, rx->expected) > 0 ||
        !(e->a.access & ROCE_ACCESS_READ) || !roce_answer_room(rx) ||
        roce_answer_pending(rx, p->psn, end))
        return;
    if (reach.length && e->calls.check(e->context, &reach) != ROCE_SUCCESS)
        return;
    roce_answer_add(
        e, &(struct roce_answer){
               .first = p->psn, .next = p->psn, .end = end, .msn = rx->msn, .reach = reach});
}

static void atomic_again(struct roce_endpoint *e, const struct roce_packet *p)
{
    struct roce_responder *rx = &e->rx;
    const struct roce_saved *saved = roce_answer_saved(rx, p->psn);
    uint32_t end = roce_psn_add(p->psn, 1);

    if (!saved || !roce_answer_room(rx) || roce_answer_pending(rx, p->psn, end))
        return;
    roce_answer_add(e, &(struct roce_answer){.first = p->psn,
                                             .next = p->psn,
                                             .end = end,
                                             .msn = rx->msn,
                                             .atomic = true,
                                             .original = saved->original});
}

static void again(struct roce_endpoint *e, const struct roce_packet *p)
{
    e->counters.duplicates++;
    switch (roce_opcode(p->opcode).kind) {
    case ROCE_KIND_READ:
        read_again(e, p);
        break;
    case ROCE_KIND_ATOMIC:
        atomic_again(e, p);
        break;
    default:
        if (e->rx.reply == ROCE_REPLY_NONE)
            e->rx.reply = ROCE_REPLY_ACK;
    }
}

static void too_early(struct roce_endpoint *e)
{
    e->counters.gaps++;
    if (!e->rx.nak_sent)
        nak(&e->rx, ROCE_NAK_SEQUENCE);
}

void roce_request_input(struct roce_endpoint *e, const struct roce_packet *p)
{
    int32_t ahead = roce_psn_diff(p->psn, e->rx.expected);

    /* The final NAK may have been lost; reads before it may still be asked for again. */
    if (e->rx.failed && ahead >= 0) {
        e->rx.reply = ROCE_REPLY_FINAL;
        return;
    }
    if (ahead == 0)
        in_order(e, p);
    else if (ahead < 0)
        again(e, p);
    else
        too_early(e);
}
