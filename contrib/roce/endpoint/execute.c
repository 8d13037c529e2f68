/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes request packets that arrived in order: checks the place of each in its message, its
 * rights and its length (specification 9.7.4.1), then moves the bytes. Owns the message that is
 * arriving; the caller serializes. */
#include "config.h"

#include "endpoint/private.h"

static enum roce_outcome refusal(enum roce_status status)
{
    switch (status) {
    case ROCE_SUCCESS:
        return ROCE_DONE;
    case ROCE_NOT_READY:
        return ROCE_RNR;
    case ROCE_REMOTE_ACCESS:
        return ROCE_REFUSED_ACCESS;
    case ROCE_REMOTE_INVALID:
        return ROCE_REFUSED_INVALID;
    default:
        return ROCE_REFUSED_OPERATION;
    }
}

void roce_execute_abort(struct roce_endpoint *e)
{
    e->rx.message = ROCE_KIND_NONE;
    e->rx.offset = 0;
}

static enum roce_outcome take(struct roce_endpoint *e, const struct roce_packet *p)
{
    enum roce_status status;

    if (e->rx.taken)
        return ROCE_DONE;
    status = e->calls.receive_take(e->context, p->srqn);
    e->rx.taken = status == ROCE_SUCCESS;
    return refusal(status);
}

static void deliver(struct roce_endpoint *e, const struct roce_packet *p, uint32_t length)
{
    struct roce_message m = {
        .length = length,
        .imm = p->headers & ROCE_HAS_IETH ? p->invalidate : p->imm,
        .src_qpn = p->src_qpn,
        .srqn = p->srqn,
        .write = roce_opcode(p->opcode).kind == ROCE_KIND_WRITE,
        .with_imm = (p->headers & ROCE_HAS_IMM) != 0,
        .with_invalidate = (p->headers & ROCE_HAS_IETH) != 0,
        .solicited = p->solicited,
    };

    e->rx.taken = false;
    e->calls.receive_done(e->context, &m);
}

/* ---- send ---- */

static enum roce_outcome execute_send(struct roce_endpoint *e, const struct roce_packet *p,
                                      const struct roce_opcode *o)
{
    struct roce_responder *rx = &e->rx;
    enum roce_outcome outcome;

    if (o->first) {
        outcome = take(e, p);
        if (outcome != ROCE_DONE)
            return outcome;
        rx->offset = 0;
    }
    if (p->payload_length) {
        outcome =
            refusal(e->calls.receive_fill(e->context, rx->offset, p->payload, p->payload_length));
        if (outcome != ROCE_DONE) {
            rx->taken = false; /* the caller has completed it */
            rx->spoiled = true;
            return outcome;
        }
    }
    rx->message = ROCE_KIND_SEND;
    rx->offset += p->payload_length;
    if (o->last) {
        deliver(e, p, rx->offset);
        rx->message = ROCE_KIND_NONE;
    }
    return ROCE_DONE;
}

/* ---- write ---- */

static enum roce_outcome allowed(struct roce_endpoint *e, const struct roce_reach *reach)
{
    if (!(e->a.access & reach->access))
        return ROCE_REFUSED_INVALID;
    /* The key of an empty request is not checked (9.7.4.1.2), an XRC queue is. */
    return reach->length || e->a.transport == ROCE_XRC ? refusal(e->calls.check(e->context, reach))
                                                       : ROCE_DONE;
}

static struct roce_reach reach_of(const struct roce_packet *p, uint64_t length, uint8_t access)
{
    return (struct roce_reach){p->va, length, p->rkey, p->srqn, access};
}

/* Whether the packet's payload is legal at its place in the message. */
static bool write_fits(const struct roce_packet *p, const struct roce_opcode *o, uint64_t left)
{
    return o->last ? p->payload_length == left : p->payload_length < left;
}

static enum roce_outcome write_payload(struct roce_endpoint *e, struct roce_reach *cursor,
                                       const struct roce_packet *p)
{
    struct roce_reach piece = *cursor;
    enum roce_outcome outcome;

    piece.length = p->payload_length;
    outcome = piece.length ? refusal(e->calls.write(e->context, &piece, p->payload)) : ROCE_DONE;
    cursor->va += piece.length;
    cursor->length -= piece.length;
    return outcome;
}

static enum roce_outcome execute_write(struct roce_endpoint *e, const struct roce_packet *p,
                                       const struct roce_opcode *o)
{
    struct roce_responder *rx = &e->rx;
    struct roce_reach cursor = rx->cursor;
    uint32_t total = o->first ? p->dma_length : rx->total;
    enum roce_outcome outcome = ROCE_DONE;

    if (o->first) {
        cursor = reach_of(p, p->dma_length, ROCE_ACCESS_WRITE);
        outcome = allowed(e, &cursor);
    }
    if (outcome == ROCE_DONE && !write_fits(p, o, cursor.length))
        outcome = ROCE_REFUSED_INVALID;
    if (outcome == ROCE_DONE && (p->headers & ROCE_HAS_IMM))
        outcome = take(e, p);
    if (outcome == ROCE_DONE)
        outcome = write_payload(e, &cursor, p);
    if (outcome != ROCE_DONE)
        return outcome;
    rx->message = o->last ? ROCE_KIND_NONE : ROCE_KIND_WRITE;
    rx->cursor = cursor;
    rx->total = total;
    if (p->headers & ROCE_HAS_IMM)
        deliver(e, p, total);
    return ROCE_DONE;
}

/* ---- read and atomic ---- */

uint32_t roce_read_numbers(const struct roce_endpoint *e, uint32_t length)
{
    return length == 0 ? 1 : (uint32_t)(((uint64_t)length + e->a.path_mtu - 1) / e->a.path_mtu);
}

static enum roce_outcome execute_read(struct roce_endpoint *e, const struct roce_packet *p)
{
    struct roce_reach reach = reach_of(p, p->dma_length, ROCE_ACCESS_READ);
    uint32_t n = roce_read_numbers(e, p->dma_length);
    enum roce_outcome outcome;

    if (e->a.max_dest_rd_atomic == 0 || n > ROCE_READ_LONGEST)
        return ROCE_REFUSED_INVALID;
    outcome = allowed(e, &reach);
    if (outcome != ROCE_DONE)
        return outcome;
    if (!roce_answer_room(&e->rx))
        return ROCE_DROPPED;
    roce_answer_add(e, &(struct roce_answer){.first = p->psn,
                                             .next = p->psn,
                                             .end = roce_psn_add(p->psn, n),
                                             .msn = roce_psn_add(e->rx.msn, 1),
                                             .reach = reach});
    return ROCE_DONE;
}

static enum roce_outcome execute_atomic(struct roce_endpoint *e, const struct roce_packet *p)
{
    struct roce_reach reach = reach_of(p, sizeof(uint64_t), ROCE_ACCESS_ATOMIC);
    bool compare_swap = (p->opcode & 31) == ROCE_COMPARE_SWAP;
    enum roce_outcome outcome;
    uint64_t original = 0;

    if (e->a.max_dest_rd_atomic == 0 || p->va % sizeof(uint64_t) != 0)
        return ROCE_REFUSED_INVALID;
    outcome = allowed(e, &reach);
    if (outcome != ROCE_DONE)
        return outcome;
    if (!roce_answer_room(&e->rx))
        return ROCE_DROPPED;
    outcome = refusal(
        e->calls.atomic(e->context, &reach, compare_swap, p->swap_add, p->compare, &original));
    if (outcome != ROCE_DONE)
        return outcome;
    roce_answer_save(&e->rx, p->psn, original);
    roce_answer_add(e, &(struct roce_answer){.first = p->psn,
                                             .next = p->psn,
                                             .end = roce_psn_add(p->psn, 1),
                                             .msn = roce_psn_add(e->rx.msn, 1),
                                             .atomic = true,
                                             .original = original});
    return ROCE_DONE;
}

/* ---- all ---- */

/* First packets begin messages, others continue the same kind; all but the last are full. */
static bool in_place(const struct roce_endpoint *e, const struct roce_packet *p,
                     const struct roce_opcode *o)
{
    uint32_t mtu = e->a.path_mtu;

    if (o->first ? e->rx.message != ROCE_KIND_NONE : e->rx.message != o->kind)
        return false;
    if (!o->last)
        return p->payload_length == mtu;
    return p->payload_length <= mtu && (o->first || p->payload_length != 0);
}

enum roce_outcome roce_execute(struct roce_endpoint *e, const struct roce_packet *p)
{
    struct roce_opcode o = roce_opcode(p->opcode);

    if (!in_place(e, p, &o))
        return ROCE_REFUSED_INVALID;
    switch (o.kind) {
    case ROCE_KIND_SEND:
        return execute_send(e, p, &o);
    case ROCE_KIND_WRITE:
        return execute_write(e, p, &o);
    case ROCE_KIND_READ:
        return execute_read(e, p);
    default:
        return execute_atomic(e, p);
    }
}
