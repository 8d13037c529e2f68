/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A queue pair that behaves like Linux' rxe, as far as its peer can observe: an acknowledgement for
 * each packet that asks for one; AckReq with the last packet of a request and each 66th; at most
 * 128 packets unacknowledged; reads requested whole; one NAK until the expected packet comes;
 * duplicates acknowledged with the newest number, reads and atomics repeated from a ring of
 * max_dest_rd_atomic resources; the MSN ignored; RNR waits of whole jiffies. Written from a
 * description of rxe's behaviour, independent of contrib/roce/endpoint. Owns its machines. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "packet/psn.h"
#include "world.h"

enum {
    queue_depth = 64,
    fifo_depth = 2048,
    unacked_max = 128,
    ack_each = 66,
    resources = 16,
    jiffy = 4000000,
};

struct work {
    struct roce_request r;
    uint32_t first, packets; /* PSNs */
};

struct resource {
    bool valid, atomic;
    uint32_t first, n;
    uint64_t original, va;
    uint32_t rkey, length;
};

struct kernel {
    struct roce_attributes a;
    const struct roce_calls *calls;
    void *context;
    /* Requester. */
    struct work work[queue_depth];
    uint32_t head, tail, at; /* oldest, end, being sent */
    uint32_t una, psn, end;  /* oldest unacknowledged, next to send, next to assign */
    uint32_t top;            /* end of what was ever sent */
    uint32_t unasked;
    bool retrying;
    roce_time since, rnr_until;
    /* Responder. */
    uint32_t expected, msn;
    bool nak_sent;
    uint32_t offset, total;
    struct roce_reach cursor;
    struct resource resource[resources];
    uint32_t next_resource;
    /* Packets that wait to be sent. */
    uint32_t fifo_head, fifo_tail;
    uint16_t length[fifo_depth];
    uint8_t fifo[fifo_depth][ROCE_PACKET_MAX];
};

static void *kernel_open(const struct roce_attributes *a, const struct roce_calls *calls,
                         void *context)
{
    struct kernel *k = calloc(1, sizeof *k);

    k->a = *a;
    k->calls = calls;
    k->context = context;
    k->una = k->psn = k->end = k->top = a->send_psn;
    k->expected = a->receive_psn;
    return k;
}

static void kernel_close(void *m)
{
    free(m);
}

static uint32_t packets_of(const struct kernel *k, uint32_t length)
{
    return length ? (length + k->a.path_mtu - 1) / k->a.path_mtu : 1;
}

static bool answered(const struct roce_request *r)
{
    return r->kind >= ROCE_DO_READ;
}

static int kernel_post(void *m, const struct roce_request *r)
{
    struct kernel *k = m;
    struct work *w = &k->work[k->tail % queue_depth];

    if (k->tail - k->head == queue_depth)
        return 1;
    w->r = *r;
    w->first = k->end;
    w->packets = r->kind > ROCE_DO_READ ? 1 : packets_of(k, r->length);
    k->end = roce_psn_add(k->end, w->packets);
    k->tail++;
    return 0;
}

/* ---- requester: sending ---- */

static unsigned operation(const struct roce_request *r, bool first, bool last)
{
    unsigned base = r->kind == ROCE_DO_WRITE ? ROCE_WRITE_FIRST : ROCE_SEND_FIRST;

    if (answered(r))
        return r->kind == ROCE_DO_READ           ? ROCE_READ_REQUEST
               : r->kind == ROCE_DO_COMPARE_SWAP ? ROCE_COMPARE_SWAP
                                                 : ROCE_FETCH_ADD;
    if (!last)
        return base + !first;
    return base + (first ? 4u : 2u) + ((r->flags & ROCE_WITH_IMM) != 0);
}

static unsigned reads_outstanding(const struct kernel *k)
{
    unsigned n = 0;

    for (uint32_t i = k->head; i != k->at; i++)
        n += answered(&k->work[i % queue_depth].r);
    return n;
}

static bool may_send(const struct kernel *k, roce_time now)
{
    const struct work *w = &k->work[k->at % queue_depth];

    if (k->at == k->tail || now < k->rnr_until || roce_psn_diff(k->psn, k->una) >= unacked_max)
        return false;
    if ((w->r.flags & ROCE_FENCED) && reads_outstanding(k) > 0)
        return false;
    return !answered(&w->r) || reads_outstanding(k) < k->a.max_rd_atomic;
}

static size_t send_one(struct kernel *k, roce_time now, uint8_t *out)
{
    struct work *w = &k->work[k->at % queue_depth];
    uint32_t i = (uint32_t)roce_psn_diff(k->psn, w->first), offset = i * k->a.path_mtu;
    bool read = w->r.kind == ROCE_DO_READ, last = answered(&w->r) || i + 1 == w->packets;
    uint8_t payload[ROCE_MTU_MAX];
    struct roce_packet p = {
        .opcode = roce_opcode_of(k->a.transport, operation(&w->r, i == 0, last)),
        .pkey = 0xffff,
        .dest_qpn = k->a.dest_qpn,
        .psn = k->psn,
        .va = w->r.va + (read ? offset : 0),
        .rkey = w->r.rkey,
        .dma_length = w->r.length - (read ? offset : 0),
        .swap_add = w->r.swap_add,
        .compare = w->r.compare,
        .imm = w->r.imm,
        .payload = payload,
    };

    p.ack_request = last || ++k->unasked >= ack_each;
    if (p.ack_request)
        k->unasked = 0;
    if (!answered(&w->r)) {
        p.payload_length = last ? w->r.length - offset : k->a.path_mtu;
        k->calls->fetch(k->context, &w->r, offset, payload, p.payload_length);
    }
    if (k->psn == k->una)
        k->since = now;
    k->psn = read ? roce_psn_add(w->first, w->packets) : roce_psn_add(k->psn, 1);
    if (roce_psn_diff(k->psn, k->top) > 0)
        k->top = k->psn;
    if (k->psn == roce_psn_add(w->first, w->packets))
        k->at++;
    return roce_packet_build(&p, out, ROCE_PACKET_MAX);
}

static void rewind_to_una(struct kernel *k)
{
    k->psn = k->una;
    k->at = k->head;
}

static uint64_t timeout(const struct kernel *k)
{
    return roce_timeout_ns(k->a.timeout);
}

static size_t kernel_output(void *m, roce_time now, uint8_t *out)
{
    struct kernel *k = m;

    if (k->fifo_head != k->fifo_tail) {
        uint32_t i = k->fifo_head++ % fifo_depth;

        memcpy(out, k->fifo[i], k->length[i]);
        return k->length[i];
    }
    if (k->top != k->una && now >= k->rnr_until && now >= k->since + timeout(k)) {
        k->since = now;
        k->retrying = false;
        rewind_to_una(k);
    }
    return may_send(k, now) ? send_one(k, now, out) : 0;
}

static roce_time kernel_deadline(void *m)
{
    struct kernel *k = m;

    if (k->top == k->una)
        return ROCE_NEVER;
    return k->rnr_until > k->since ? k->rnr_until : k->since + timeout(k);
}

/* ---- requester: responses ---- */

static void advance(struct kernel *k, roce_time now, uint32_t to)
{
    if (roce_psn_diff(to, k->una) <= 0)
        return;
    k->una = to;
    k->since = now;
    k->retrying = false;
    k->rnr_until = 0;
    if (roce_psn_diff(k->psn, to) < 0)
        k->psn = to;
    while (k->head != k->tail) {
        struct work w = k->work[k->head % queue_depth];

        if (roce_psn_diff(roce_psn_add(w.first, w.packets), to) > 0)
            break;
        if (k->at == k->head)
            k->at++;
        k->head++;
        k->calls->complete(k->context, &w.r, ROCE_SUCCESS);
    }
}

/* Everything before `to`; a read or atomic without its response stops it. */
static bool acknowledge(struct kernel *k, roce_time now, uint32_t to)
{
    for (uint32_t i = k->head; i != k->tail; i++) {
        const struct work *w = &k->work[i % queue_depth];

        if (roce_psn_diff(w->first, to) >= 0)
            break;
        if (!answered(&w->r))
            continue;
        advance(k, now, roce_psn_diff(w->first, k->una) > 0 ? w->first : k->una);
        return k->una == to;
    }
    advance(k, now, to);
    return true;
}

static void retry(struct kernel *k)
{
    if (k->retrying)
        return;
    k->retrying = true;
    rewind_to_una(k);
}

static void response(struct kernel *k, roce_time now, const struct roce_packet *p)
{
    uint8_t kind = roce_opcode(p->opcode).kind, syndrome = p->syndrome & ROCE_SYNDROME_KIND;
    const struct work *w;
    uint32_t offset;

    if (roce_psn_diff(p->psn, k->una) < 0 || roce_psn_diff(p->psn, k->top) >= 0)
        return;
    if (kind == ROCE_KIND_ACK && syndrome == ROCE_SYNDROME_ACK) {
        if (!acknowledge(k, now, roce_psn_add(p->psn, 1)))
            retry(k);
        return;
    }
    if (!acknowledge(k, now, p->psn) ||
        (kind == ROCE_KIND_ACK && p->syndrome == ROCE_NAK_SEQUENCE)) {
        retry(k);
        return;
    }
    if (kind == ROCE_KIND_ACK) {
        k->rnr_until = now + (roce_rnr_ns(p->syndrome & 31) / jiffy + 1) * jiffy;
        rewind_to_una(k);
        return;
    }
    w = &k->work[k->head % queue_depth];
    offset = (uint32_t)roce_psn_diff(p->psn, w->first) * k->a.path_mtu;
    if (k->head == k->tail || !answered(&w->r))
        return;
    if (kind == ROCE_KIND_READ_RESPONSE)
        k->calls->store(k->context, &w->r, offset, p->payload, p->payload_length);
    else
        k->calls->store(k->context, &w->r, 0, &p->original, 8);
    advance(k, now, roce_psn_add(p->psn, 1));
}

/* ---- responder ---- */

static void respond(struct kernel *k, unsigned op, uint32_t psn, uint8_t syndrome,
                    const struct roce_packet *more)
{
    struct roce_packet p = {.opcode = roce_opcode_of(k->a.transport, op),
                            .pkey = 0xffff,
                            .dest_qpn = k->a.dest_qpn,
                            .psn = psn,
                            .syndrome = syndrome,
                            .msn = k->msn};
    uint32_t i = k->fifo_tail % fifo_depth;

    if (more) {
        p.payload = more->payload;
        p.payload_length = more->payload_length;
        p.original = more->original;
    }
    if (k->fifo_tail - k->fifo_head == fifo_depth)
        return;
    k->length[i] = (uint16_t)roce_packet_build(&p, k->fifo[i], ROCE_PACKET_MAX);
    k->fifo_tail++;
}

static void read_responses(struct kernel *k, uint32_t psn, uint64_t va, uint32_t rkey,
                           uint32_t length)
{
    uint32_t n = packets_of(k, length), mtu = k->a.path_mtu;

    for (uint32_t i = 0; i < n; i++) {
        uint8_t payload[ROCE_MTU_MAX];
        struct roce_packet more = {.payload = payload,
                                   .payload_length = i + 1 == n ? length - i * mtu : mtu};
        struct roce_reach r = {va + (uint64_t)i * mtu, more.payload_length, rkey, 0,
                               ROCE_ACCESS_READ};
        unsigned op = n == 1       ? ROCE_READ_RESPONSE_ONLY
                      : i == 0     ? ROCE_READ_RESPONSE_FIRST
                      : i + 1 == n ? ROCE_READ_RESPONSE_LAST
                                   : ROCE_READ_RESPONSE_MIDDLE;

        if (r.length)
            k->calls->read(k->context, &r, payload);
        respond(k, op, roce_psn_add(psn, i), 0x1f, &more);
    }
}

static void duplicate(struct kernel *k, const struct roce_packet *p)
{
    uint8_t kind = roce_opcode(p->opcode).kind;

    if (kind == ROCE_KIND_SEND || kind == ROCE_KIND_WRITE) {
        respond(k, ROCE_ACKNOWLEDGE, roce_psn_add(k->expected, ROCE_PSN_MASK), 0x1f, NULL);
        return;
    }
    for (unsigned i = 0; i < resources; i++) {
        const struct resource *s = &k->resource[i];

        if (!s->valid || !roce_psn_within(p->psn, s->first, s->n) ||
            s->atomic != (kind == ROCE_KIND_ATOMIC))
            continue;
        if (s->atomic)
            respond(k, ROCE_ATOMIC_ACKNOWLEDGE, p->psn, 0x1f,
                    &(struct roce_packet){.original = s->original});
        else if (p->va >= s->va && p->va + p->dma_length <= s->va + s->length)
            read_responses(k, p->psn, p->va, p->rkey, p->dma_length);
        return;
    }
}

static struct resource *take_resource(struct kernel *k, const struct roce_packet *p, uint32_t n)
{
    struct resource *s = &k->resource[k->next_resource++ % k->a.max_dest_rd_atomic % resources];

    *s = (struct resource){.valid = true,
                           .first = p->psn,
                           .n = n,
                           .va = p->va,
                           .rkey = p->rkey,
                           .length = p->dma_length};
    return s;
}

static bool execute_send(struct kernel *k, const struct roce_packet *p, struct roce_opcode o)
{
    bool write = o.kind == ROCE_KIND_WRITE, imm = (p->headers & ROCE_HAS_IMM) != 0;
    struct roce_message m = {.imm = p->imm, .with_imm = imm, .write = write};

    if ((!write && o.first) || (write && imm)) {
        if (k->calls->receive_take(k->context, 0) == ROCE_NOT_READY) {
            respond(k, ROCE_ACKNOWLEDGE, p->psn, 0x20 | k->a.min_rnr_timer, NULL);
            k->nak_sent = true;
            return false;
        }
    }
    if (o.first) {
        k->cursor = (struct roce_reach){p->va, p->dma_length, p->rkey, 0, ROCE_ACCESS_WRITE};
        k->offset = 0;
        k->total = p->dma_length;
    }
    if (write) {
        struct roce_reach r = k->cursor;

        r.length = p->payload_length;
        k->cursor.va += r.length;
        if (r.length)
            k->calls->write(k->context, &r, p->payload);
    } else if (p->payload_length) {
        k->calls->receive_fill(k->context, k->offset, p->payload, p->payload_length);
    }
    k->offset += p->payload_length;
    m.length = write ? k->total : k->offset;
    if (o.last && (!write || imm))
        k->calls->receive_done(k->context, &m);
    return true;
}

static void execute(struct kernel *k, const struct roce_packet *p)
{
    struct roce_opcode o = roce_opcode(p->opcode);
    uint32_t n = o.kind == ROCE_KIND_READ ? packets_of(k, p->dma_length) : 1;
    bool answers = o.kind == ROCE_KIND_READ || o.kind == ROCE_KIND_ATOMIC;
    struct roce_reach r = {p->va, 8, p->rkey, 0, ROCE_ACCESS_ATOMIC};

    if (!answers && !execute_send(k, p, o))
        return;
    k->nak_sent = false;
    k->expected = roce_psn_add(p->psn, n);
    k->msn = roce_psn_add(k->msn, o.last);
    if (o.kind == ROCE_KIND_READ) {
        take_resource(k, p, n);
        read_responses(k, p->psn, p->va, p->rkey, p->dma_length);
    } else if (o.kind == ROCE_KIND_ATOMIC) {
        struct resource *s = take_resource(k, p, 1);

        s->atomic = true;
        k->calls->atomic(k->context, &r, (p->opcode & 31) == ROCE_COMPARE_SWAP, p->swap_add,
                         p->compare, &s->original);
        respond(k, ROCE_ATOMIC_ACKNOWLEDGE, p->psn, 0x1f,
                &(struct roce_packet){.original = s->original});
    } else if (p->ack_request) {
        respond(k, ROCE_ACKNOWLEDGE, p->psn, 0x1f, NULL);
    }
}

static void kernel_input(void *m, roce_time now, const struct roce_packet *p, bool congested)
{
    struct kernel *k = m;
    int32_t ahead = roce_psn_diff(p->psn, k->expected);

    (void)congested;
    if (p->opcode == ROCE_CNP)
        return;
    if (roce_is_response(p->opcode)) {
        response(k, now, p);
    } else if (ahead < 0) {
        duplicate(k, p);
    } else if (ahead == 0) {
        execute(k, p);
    } else if (!k->nak_sent) {
        k->nak_sent = true;
        respond(k, ROCE_ACKNOWLEDGE, k->expected, ROCE_NAK_SEQUENCE, NULL);
    }
}

const struct machine machine_kernel = {"kernel",     kernel_open,   kernel_close,   kernel_post,
                                       kernel_input, kernel_output, kernel_deadline};
