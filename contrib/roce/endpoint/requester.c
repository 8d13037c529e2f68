/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes the packets of requests: where a message is cut, what may be sent now, and which packets
 * ask for an acknowledgement. Owns nothing but the cursor `send`; the caller serializes. */
#include "config.h"

#include "endpoint/private.h"

/* Numbers that the next packet fills: a read request fills those of its responses. A long read is
 * requested in pieces on a fixed grid, so that one repeated from its middle stays inside of what
 * the responder knows, and never asks for more than the window. */
static uint64_t numbers_of(const struct roce_endpoint *e, const struct roce_entry *r, uint64_t k)
{
    uint64_t to_grid, rest = r->packets - k;

    if (r->r.kind != ROCE_DO_READ)
        return 1;
    to_grid = e->a.read_packets - k % e->a.read_packets;
    return to_grid < rest ? to_grid : rest;
}

static bool reads_allow(struct roce_endpoint *e, const struct roce_entry *r)
{
    struct roce_queue *q = &e->tx.q;
    uint64_t sent, done;

    done = roce_pieces_at(e, roce_entry_at(q, q->head), q->una, false);
    /* A fence counts what was posted before it, sent or not. */
    if ((r->r.flags & ROCE_FENCED) && q->next == r->first && r->requests > done)
        return false;
    /* If nothing is in flight nothing is outstanding, even if the oldest request is half done. */
    if (!roce_is_answered(&r->r) || q->next == q->una)
        return true;
    sent = roce_pieces_at(e, r, q->next, true);
    return sent - done < e->a.max_rd_atomic;
}

static bool may_send(struct roce_endpoint *e)
{
    struct roce_queue *q = &e->tx.q;
    const struct roce_entry *r = roce_entry_at(q, q->send);
    uint64_t n, bytes;

    if (q->send == q->tail || q->next >= e->tx.broken_at)
        return false;
    if (e->tx.paused && q->next == r->first && q->next >= q->high)
        return false;
    if (!roce_connected(e))
        return true;
    n = numbers_of(e, r, q->next - r->first);
    bytes = roce_bytes_at(e, r, q->next + n) - roce_bytes_at(e, r, q->next);
    return roce_window_open(e, n, bytes) && reads_allow(e, r);
}

bool roce_requester_ready(struct roce_endpoint *e)
{
    return e->tx.on && !e->failed && !e->tx.stuck && !e->tx.timer.rnr_waiting && may_send(e);
}

/* ---- one packet ---- */

static unsigned send_operation(const struct roce_request *r, bool first, bool last)
{
    if (!last)
        return first ? ROCE_SEND_FIRST : ROCE_SEND_MIDDLE;
    if (r->flags & ROCE_WITH_INVALIDATE)
        return first ? ROCE_SEND_ONLY_INVALIDATE : ROCE_SEND_LAST_INVALIDATE;
    if (r->flags & ROCE_WITH_IMM)
        return first ? ROCE_SEND_ONLY_IMM : ROCE_SEND_LAST_IMM;
    return first ? ROCE_SEND_ONLY : ROCE_SEND_LAST;
}

static unsigned write_operation(const struct roce_request *r, bool first, bool last)
{
    if (!last)
        return first ? ROCE_WRITE_FIRST : ROCE_WRITE_MIDDLE;
    if (r->flags & ROCE_WITH_IMM)
        return first ? ROCE_WRITE_ONLY_IMM : ROCE_WRITE_LAST_IMM;
    return first ? ROCE_WRITE_ONLY : ROCE_WRITE_LAST;
}

static unsigned operation_of(const struct roce_request *r, bool first, bool last)
{
    switch (r->kind) {
    case ROCE_DO_SEND:
        return send_operation(r, first, last);
    case ROCE_DO_WRITE:
        return write_operation(r, first, last);
    case ROCE_DO_READ:
        return ROCE_READ_REQUEST;
    case ROCE_DO_COMPARE_SWAP:
        return ROCE_COMPARE_SWAP;
    default:
        return ROCE_FETCH_ADD;
    }
}

/* Packet number k of a request; n: how many numbers it fills. */
static void describe(const struct roce_endpoint *e, const struct roce_entry *entry, uint64_t k,
                     uint64_t n, struct roce_packet *p)
{
    const struct roce_request *r = &entry->r;
    bool last = k + n == entry->packets;
    uint64_t offset = k * e->a.path_mtu;

    memset(p, 0, sizeof *p);
    p->opcode = roce_opcode_of(e->a.transport, operation_of(r, k == 0, last));
    p->psn = roce_psn_add(e->a.send_psn, (uint32_t)(entry->first + k));
    p->pkey = e->a.pkey;
    p->migrated = true;
    p->dest_qpn = e->a.dest_qpn;
    p->srqn = r->srqn;
    p->va = r->va;
    p->rkey = r->rkey;
    p->dma_length = r->length;
    p->swap_add = r->swap_add;
    p->compare = r->compare;
    p->imm = p->invalidate = r->imm;
    p->solicited = last && (r->flags & ROCE_SOLICITED);
    if (r->kind == ROCE_DO_READ) {
        uint64_t end = (k + n) * e->a.path_mtu;

        p->va += offset;
        p->dma_length = (uint32_t)((end < r->length ? end : r->length) - offset);
    } else if (!roce_is_answered(r)) {
        p->payload_length = roce_payload_at(e, entry, k);
    }
    if (e->a.transport == ROCE_UD) {
        p->dest_qpn = r->dest_qpn;
        p->qkey = r->qkey;
        p->src_qpn = e->a.qpn;
    }
}

/* The buffers cannot be read: the request fails when those before it are complete. */
static size_t broken(struct roce_endpoint *e, const struct roce_entry *r, enum roce_status status)
{
    e->tx.broken = status;
    e->tx.broken_at = r->first;
    if (e->tx.q.una >= r->first)
        roce_requester_fail(e, status);
    return 0;
}

static void ask(struct roce_endpoint *e, roce_time now, uint8_t *out, const struct roce_entry *r,
                uint64_t number, bool repeated)
{
    bool asks = roce_is_answered(&r->r);

    e->tx.unasked = asks ? 0 : e->tx.unasked + 1;
    /* Often enough to keep the window moving, and whenever nothing follows at once. */
    if (!asks && (e->tx.unasked >= e->a.ack_every || !may_send(e))) {
        asks = true;
        out[8] |= 0x80;
        e->tx.unasked = 0;
    }
    /* A repeated packet gives no round-trip time: the answer may be to either copy. */
    roce_timer_sent(e, now, number, asks && !repeated);
}

static size_t make(struct roce_endpoint *e, roce_time now, uint8_t *out)
{
    struct roce_queue *q = &e->tx.q;
    struct roce_entry *r = roce_entry_at(q, q->send);
    uint64_t number = q->next, k = number - r->first, n = numbers_of(e, r, k);
    enum roce_status status = ROCE_SUCCESS;
    bool repeated = number < q->high;
    struct roce_packet p;
    size_t length;
    uint8_t pad;

    describe(e, r, k, n, &p);
    length = roce_packet_headers(&p, out);
    pad = roce_pad(p.payload_length);
    if (p.payload_length)
        status = e->calls.fetch(e->context, &r->r, (uint32_t)(k * e->a.path_mtu), out + length,
                                p.payload_length);
    if (status != ROCE_SUCCESS)
        return broken(e, r, status);
    memset(out + length + p.payload_length, 0, pad);
    e->counters.sent++;
    e->counters.repeated += repeated;
    e->tx.shown = r->r;
    roce_queue_sent(q, n);
    if (roce_connected(e))
        ask(e, now, out, r, number, repeated);
    else /* nobody answers: what was sent is done */
        roce_queue_advance(e, q->next);
    return length + p.payload_length + pad;
}

size_t roce_requester_output(struct roce_endpoint *e, roce_time now, uint8_t *out)
{
    const struct roce_entry *r;

    if (!e->tx.on || e->failed || e->tx.stuck)
        return 0;
    if (roce_connected(e))
        roce_timer_check(e, now);
    r = roce_entry_at(&e->tx.q, e->tx.q.send);
    if (e->tx.q.send != e->tx.q.tail && roce_is_answered(&r->r) && e->a.max_rd_atomic == 0)
        return broken(e, r, ROCE_LOCAL_OPERATION);
    return roce_requester_ready(e) ? make(e, now, out) : 0;
}
