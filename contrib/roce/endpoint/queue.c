/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The send queue of an end point: posted requests, the numbers of their packets, three cursors
 * (oldest, to be sent, end), and completion in order. Owns the ring; the end point's caller
 * serializes. */
#include "config.h"

#include <errno.h>

#include "endpoint/private.h"

static const uint32_t longest = UINT32_C(1) << 31;

static uint64_t packets_of(const struct roce_endpoint *e, uint32_t length)
{
    return length == 0 ? 1 : ((uint64_t)length + e->a.path_mtu - 1) / e->a.path_mtu;
}

uint32_t roce_payload_at(const struct roce_endpoint *e, const struct roce_entry *r, uint64_t k)
{
    return k + 1 == r->packets ? r->r.length - (uint32_t)k * e->a.path_mtu : e->a.path_mtu;
}

uint64_t roce_bytes_at(const struct roce_endpoint *e, const struct roce_entry *r, uint64_t number)
{
    uint64_t bytes = (number - r->first) * e->a.path_mtu;

    return r->bytes + (bytes < r->r.length ? bytes : r->r.length);
}

static uint64_t pieces_in(const struct roce_endpoint *e, const struct roce_entry *r,
                          uint64_t packets, bool up)
{
    uint32_t piece = r->r.kind == ROCE_DO_READ ? e->a.read_packets : 1;

    if (!roce_is_answered(&r->r))
        return 0;
    return (packets + (up ? piece - 1 : 0)) / piece;
}

uint64_t roce_pieces_at(const struct roce_endpoint *e, const struct roce_entry *r, uint64_t number,
                        bool up)
{
    return r->requests + pieces_in(e, r, number - r->first, up);
}

/* ---- completion ---- */

static void complete_head(struct roce_endpoint *e, enum roce_status status)
{
    struct roce_queue *q = &e->tx.q;
    struct roce_request r = roce_entry_at(q, q->head)->r;

    if (q->send == q->head)
        q->send++;
    q->head++;
    e->calls.complete(e->context, &r, status);
}

void roce_queue_advance(struct roce_endpoint *e, uint64_t to)
{
    struct roce_queue *q = &e->tx.q;

    q->una = to;
    while (q->head != q->tail) {
        const struct roce_entry *r = roce_entry_at(q, q->head);

        if (r->first + r->packets > to)
            break;
        complete_head(e, ROCE_SUCCESS);
    }
    /* An acknowledgement may overtake a cursor that was set back. */
    if (q->next < to)
        q->next = to;
}

void roce_queue_rewind(struct roce_queue *q)
{
    q->next = q->una;
    q->send = q->head;
}

void roce_queue_sent(struct roce_queue *q, uint64_t n)
{
    const struct roce_entry *r = roce_entry_at(q, q->send);

    q->next += n;
    if (q->next >= r->first + r->packets)
        q->send++;
    if (q->high < q->next)
        q->high = q->next;
}

void roce_queue_flush(struct roce_endpoint *e, enum roce_status first)
{
    struct roce_queue *q = &e->tx.q;
    enum roce_status status = first;

    if (q->flushing)
        return;
    q->flushing = true;
    for (; q->head != q->tail; status = ROCE_FLUSHED)
        complete_head(e, status);
    q->flushing = false;
    q->una = q->next = q->high = q->end.first;
    q->send = q->tail;
}

void roce_requester_fail(struct roce_endpoint *e, enum roce_status status)
{
    if (roce_connected(e)) {
        e->failed = true;
        roce_silence(e);
    } else {
        e->tx.stuck = true;
    }
    e->tx.broken_at = UINT64_MAX;
    roce_queue_flush(e, status);
    if (e->calls.event)
        e->calls.event(e->context, ROCE_EVENT_REQUESTER_ERROR);
}

/* ---- posting ---- */

static int refused(const struct roce_endpoint *e, const struct roce_request *r)
{
    if ((r->flags & ROCE_WITH_INVALIDATE) && (!roce_connected(e) || r->kind != ROCE_DO_SEND))
        return EINVAL;
    if (r->kind > ROCE_DO_FETCH_ADD || (e->a.transport == ROCE_UC && roce_is_answered(r)) ||
        (e->a.transport == ROCE_UD && r->kind != ROCE_DO_SEND))
        return EINVAL;
    if (r->kind > ROCE_DO_READ && r->length != sizeof(uint64_t))
        return EINVAL;
    if (r->length > longest || (e->a.transport == ROCE_UD && r->length > e->a.path_mtu))
        return EMSGSIZE;
    return 0;
}

int roce_post(struct roce_endpoint *e, const struct roce_request *r)
{
    struct roce_queue *q = &e->tx.q;
    struct roce_entry *slot = &q->entry[q->tail & q->mask];
    int error = refused(e, r);

    if (error == 0 && q->tail - q->head >= q->limit)
        error = ENOMEM;
    if (error != 0)
        return error;
    *slot = q->end;
    slot->r = *r;
    slot->packets = roce_is_answered(r) && r->kind != ROCE_DO_READ ? 1 : packets_of(e, r->length);
    q->end.first += slot->packets;
    q->end.bytes += r->length;
    q->end.requests += pieces_in(e, slot, slot->packets, true);
    q->tail++;
    if (e->failed || e->tx.stuck)
        roce_queue_flush(e, ROCE_FLUSHED);
    return 0;
}

uint32_t roce_posted(const struct roce_endpoint *e)
{
    return e->tx.q.tail - e->tx.q.head;
}
