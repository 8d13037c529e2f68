/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A malicious peer: bytes are read as a script of packets, requests, time and transitions for one
 * end point. Whatever arrives, only permitted memory is accessed, requests complete once and in
 * order, receives are taken one at a time and filled from their beginning, and a foreign packet
 * changes nothing. Owns one conversation at a time. */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/endpoint.h"
#include "fuzz/roce_targets.h"

enum {
    qpn = 0x11,
    peer = 0x22,
    key = 0x77,
    region = 1 << 16,
    receive_bytes = 8192,
    ranges_max = 512,
    output_max = 64, /* packets fetched in a row */
};

struct range {
    uint64_t va, end;
    uint8_t access;
};

struct talk {
    const uint8_t *data;
    size_t size;
    struct roce_endpoint *e;
    struct roce_attributes a;
    roce_time now;
    uint64_t posted, completed;
    bool flushing;
    bool taken;
    uint32_t filled;
    unsigned receives;
    struct range range[ranges_max];
    unsigned ranges;
    uint32_t psn; /* last seen in a packet of the end point */
};

/* The next byte of the script; 0 after its end. */
static uint8_t next(struct talk *t)
{
    if (t->size == 0)
        return 0;
    t->size--;
    return *t->data++;
}

static uint32_t number(struct talk *t)
{
    uint32_t low = next(t);

    return low < 128 ? low : (low & 127) << 8 | next(t);
}

/* ---- callbacks: the promises ---- */

static enum roce_status fetch(void *context, const struct roce_request *r, uint32_t offset,
                              void *to, uint32_t length)
{
    (void)context;
    fuzz_must(length <= ROCE_MTU_MAX && offset <= r->length && length <= r->length - offset);
    memset(to, 1, length);
    return r->imm % 16 == 15 ? ROCE_LOCAL_PROTECTION : ROCE_SUCCESS;
}

static enum roce_status store(void *context, const struct roce_request *r, uint32_t offset,
                              const void *from, uint32_t length)
{
    uint8_t *copy = malloc(length + 1u);

    (void)context;
    fuzz_must(copy && offset <= r->length && length <= r->length - offset);
    memcpy(copy, from, length); /* so that a sanitizer sees where from reaches */
    free(copy);
    return ROCE_SUCCESS;
}

static void complete(void *context, const struct roce_request *r, enum roce_status status)
{
    struct talk *t = context;

    fuzz_must(r->id == t->completed && t->completed < t->posted);
    fuzz_must(!t->flushing || status == ROCE_FLUSHED); /* nothing succeeds behind an error */
    t->flushing = status != ROCE_SUCCESS;
    t->completed++;
}

static enum roce_status check(void *context, const struct roce_reach *a)
{
    struct talk *t = context;

    fuzz_must(a->length != 0 || t->a.transport == ROCE_XRC);
    if (a->length == 0)
        return ROCE_SUCCESS;
    if (a->rkey != key || a->va > region || a->length > region - a->va)
        return ROCE_REMOTE_ACCESS;
    t->range[t->ranges++ % ranges_max] = (struct range){a->va, a->va + a->length, a->access};
    return ROCE_SUCCESS;
}

static bool was_allowed(const struct talk *t, const struct roce_reach *a)
{
    unsigned n = t->ranges < ranges_max ? t->ranges : ranges_max;

    for (unsigned i = 0; i < n; i++)
        if (t->range[i].access == a->access && a->va >= t->range[i].va &&
            a->length <= t->range[i].end - t->range[i].va &&
            a->va - t->range[i].va <= t->range[i].end - t->range[i].va - a->length)
            return true;
    return false;
}

static enum roce_status write_memory(void *context, const struct roce_reach *a, const void *from)
{
    uint8_t *copy = malloc(a->length);

    fuzz_must(was_allowed(context, a) && copy && a->length <= ROCE_MTU_MAX);
    memcpy(copy, from, a->length);
    free(copy);
    return ROCE_SUCCESS;
}

static enum roce_status read_memory(void *context, const struct roce_reach *a, void *to)
{
    struct talk *t = context;

    fuzz_must(was_allowed(t, a) && a->length <= ROCE_MTU_MAX);
    memset(to, 2, a->length);
    return next(t) == 255 ? ROCE_REMOTE_ACCESS : ROCE_SUCCESS;
}

static enum roce_status atomic(void *context, const struct roce_reach *a, bool compare_swap,
                               uint64_t swap_add, uint64_t compare, uint64_t *original)
{
    (void)compare_swap;
    fuzz_must(was_allowed(context, a) && a->length == 8 && a->va % 8 == 0);
    *original = swap_add ^ compare;
    return ROCE_SUCCESS;
}

static enum roce_status receive_take(void *context, uint32_t srqn)
{
    struct talk *t = context;

    (void)srqn;
    fuzz_must(!t->taken);
    if (t->receives == 0)
        return ROCE_NOT_READY;
    t->receives--;
    t->taken = true;
    t->filled = 0;
    return ROCE_SUCCESS;
}

static enum roce_status receive_fill(void *context, uint32_t offset, const void *from,
                                     uint32_t length)
{
    struct talk *t = context;
    static uint8_t receive[receive_bytes];

    /* From the beginning, or from where the last packet ended. */
    fuzz_must(t->taken && (offset == t->filled || offset == 0) && length <= ROCE_MTU_MAX);
    if (offset + length > receive_bytes) {
        t->taken = false;
        return ROCE_REMOTE_INVALID;
    }
    memcpy(receive + offset, from, length);
    t->filled = offset + length;
    return ROCE_SUCCESS;
}

static void receive_done(void *context, const struct roce_message *m)
{
    struct talk *t = context;

    fuzz_must(t->taken && (m->write || m->length == 0 || m->length == t->filled));
    t->taken = false;
}

static const struct roce_calls calls = {
    .fetch = fetch,
    .store = store,
    .complete = complete,
    .check = check,
    .write = write_memory,
    .read = read_memory,
    .atomic = atomic,
    .receive_take = receive_take,
    .receive_fill = receive_fill,
    .receive_done = receive_done,
};

/* ---- the script ---- */

static void begin(struct talk *t)
{
    static const uint8_t transports[] = {ROCE_RC, ROCE_RC, ROCE_UC, ROCE_UD, ROCE_XRC};
    uint8_t shape = next(t);

    t->a = (struct roce_attributes){
        .transport = transports[shape % 5],
        .qpn = qpn,
        .dest_qpn = peer,
        .send_psn = 0xfffff0,
        .receive_psn = 0xfffff0,
        .path_mtu = 256u << shape / 5 % 5,
        .pkey = 0xffff,
        .qkey = 7,
        .access = shape & 128 ? 7 : 3,
        .timeout = 10,
        .retry_count = 2,
        .rnr_retry = 3,
        .max_rd_atomic = 2,
        .max_dest_rd_atomic = 2,
        .requests = 8,
        .read_packets = 3,
    };
    t->e = roce_open(&t->a, &calls, t);
    fuzz_must(t->e != NULL);
    roce_ready_to_receive(t->e, &t->a);
    roce_ready_to_send(t->e, &t->a);
}

/* A packet of any kind, near the numbers that count; its payload is as long as the script says and
 * in memory of its own size. */
static void packet(struct talk *t, bool stranger)
{
    uint8_t opcode = next(t), flags = next(t);
    uint32_t length = flags & 1 ? t->a.path_mtu : number(t) % (ROCE_MTU_MAX + 1);
    uint8_t *bytes = malloc(ROCE_PACKET_MAX), *exact, *payload = calloc(1, length + 1u);
    struct roce_packet p = {.opcode = opcode,
                            .pkey = 0xffff,
                            .dest_qpn = stranger ? qpn + 1 : qpn,
                            .psn = ((flags & 2 ? t->psn : 0xfffff0) + number(t)) & 0xffffff,
                            .ack_request = flags & 4,
                            .becn = flags & 8,
                            .rkey = flags & 16 ? 0 : key,
                            .qkey = 7,
                            .va = number(t) * 8,
                            .dma_length = flags & 32 ? length : number(t),
                            .syndrome = next(t),
                            .payload = payload};
    size_t n;

    fuzz_must(bytes && payload);
    p.payload_length = roce_opcode(opcode).payload ? length : 0;
    n = roce_packet_build(&p, bytes, ROCE_PACKET_MAX);
    exact = malloc(n);
    fuzz_must(exact != NULL);
    memcpy(exact, bytes, n);
    if (roce_packet_parse(exact, n, &p) == ROCE_GOOD)
        roce_input(t->e, t->now, &p, flags & 64);
    free(exact);
    free(bytes);
    free(payload);
}

static void post(struct talk *t)
{
    struct roce_request r = {.id = t->posted,
                             .kind = next(t) % 5,
                             .flags = next(t) & 15,
                             .length = number(t),
                             .imm = next(t),
                             .dest_qpn = peer,
                             .qkey = 7};
    int error;

    if (r.kind > ROCE_DO_READ)
        r.length = 8;
    t->posted++;
    error = roce_post(t->e, &r);
    if (error != 0)
        t->posted--;
}

static void output(struct talk *t)
{
    const struct roce_request *r;
    struct roce_packet p;

    for (unsigned i = 0; i < output_max; i++) {
        uint8_t *out = malloc(ROCE_PACKET_MAX);
        size_t n;

        fuzz_must(out != NULL);
        n = roce_output(t->e, t->now, out, &r);
        fuzz_must(n == 0 || roce_packet_parse(out, n, &p) == ROCE_GOOD);
        if (n && !roce_is_response(p.opcode) && p.opcode != ROCE_CNP)
            t->psn = p.psn;
        free(out);
        if (n == 0)
            return;
    }
}

/* Must cause neither an answer nor a change of the counters of good packets. */
static void stranger(struct talk *t)
{
    uint64_t received = roce_counters(t->e)->received;
    unsigned ranges = t->ranges;

    packet(t, true);
    fuzz_must(roce_counters(t->e)->received == received && t->ranges == ranges);
}

static void transition(struct talk *t)
{
    switch (next(t) % 4) {
    case 0:
        roce_fail(t->e);
        fuzz_must(t->completed == t->posted);
        break;
    case 1:
        roce_reset(t->e);
        t->completed = t->posted;
        t->flushing = t->taken = false;
        roce_ready_to_receive(t->e, &t->a);
        roce_ready_to_send(t->e, &t->a);
        break;
    case 2:
        roce_pause(t->e, next(t) & 1);
        break;
    default:
        roce_resume(t->e);
        t->flushing = roce_failed(t->e);
    }
}

static void step(struct talk *t)
{
    switch (next(t) % 8) {
    case 0:
        post(t);
        break;
    case 1:
        t->now += (uint64_t)number(t) * 1000;
        break;
    case 2:
        t->now = roce_deadline(t->e) == ROCE_NEVER ? t->now : roce_deadline(t->e);
        break;
    case 3:
        t->receives = next(t);
        break;
    case 4:
        stranger(t);
        break;
    case 5:
        transition(t);
        break;
    default:
        packet(t, false);
    }
    output(t);
    fuzz_must(roce_posted(t->e) == t->posted - t->completed);
}

void fuzz_endpoint(const uint8_t *data, size_t size)
{
    struct talk *t = calloc(1, sizeof *t);

    fuzz_must(t != NULL);
    t->data = data;
    t->size = size;
    t->now = 1;
    begin(t);
    while (t->size)
        step(t);
    roce_fail(t->e);
    fuzz_must(t->completed == t->posted);
    roce_close(t->e);
    free(t);
}
