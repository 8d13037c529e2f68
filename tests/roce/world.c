/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See world.h. Owns the nodes and the packets in flight, one run at a time. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/bytes.h"
#include "packet/icrc.h"
#include "world.h"

enum {
    depth = 16,
    slots = 2 * depth, /* a slot is not written again while a read of it may be outstanding */
    flights = 4096,
    receive_depth = 8,
    key = 0x1234,
    counter_at = 64, /* offset in memory; slots follow */
    header = 128,
};

static const uint64_t patience = UINT64_C(4000) * 1000000000, base_va = UINT64_C(0x7f0012340000);

struct flight {
    roce_time due;
    uint64_t serial; /* packets due at the same time arrive in the order of sending */
    uint32_t to, length;
    bool marked;
    uint8_t bytes[ROCE_PACKET_MAX];
};

struct job {
    struct roce_request r;
    uint8_t *buffer;   /* source of a send, or destination of a read */
    uint8_t *expected; /* of a read */
    uint64_t original; /* expected of an atomic */
    uint32_t slot;
};

struct node {
    struct world *w;
    uint32_t index;
    const struct machine *machine;
    void *m;
    uint8_t *memory; /* counter, slots */
    struct job job[slots];
    uint32_t posted, completed, received, announced;
    uint64_t counter;      /* what the peer's counter will be after the posted atomics */
    uint32_t receives;     /* posted */
    roce_time receive_due; /* of the next one */
    bool receive_taken;
    uint8_t *receive;
    uint32_t receive_bytes;
};

struct world {
    const struct plan *plan;
    struct outcome *outcome;
    uint64_t random;
    roce_time now;
    struct node node[2];
    struct flight *flight;
    uint32_t flying;
    uint64_t flown;
};

uint32_t world_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(2685821657736338717)) >> 32);
}

static uint32_t below(struct world *w, uint32_t limit)
{
    return limit ? world_random(&w->random) % limit : 0;
}

__attribute__((format(printf, 2, 3))) static void wrong(struct world *w, const char *fmt, ...)
{
    va_list args;

    if (w->outcome->wrong[0])
        return;
    va_start(args, fmt);
    vsnprintf(w->outcome->wrong, sizeof w->outcome->wrong, fmt, args);
    va_end(args);
}

/* The bytes of a request: every one differs from its neighbours' and from other requests'. */
static uint8_t pattern(uint32_t node, uint32_t serial, uint32_t at)
{
    return (uint8_t)((serial * 2654435761u + node * 40503u + at * 2246822519u) >> 13 ^ at >> 8);
}

static bool is_pattern(const uint8_t *b, uint32_t length, uint32_t node, uint32_t serial)
{
    for (uint32_t i = 0; i < length; i++)
        if (b[i] != pattern(node, serial, i))
            return false;
    return true;
}

static uint32_t slot_bytes(const struct plan *p)
{
    return p->longest + 8;
}

static struct node *peer_of(struct node *n)
{
    return &n->w->node[1 - n->index];
}

/* ---- callbacks ---- */

static struct job *job_of(struct node *n, const struct roce_request *r)
{
    return &n->job[r->id % slots];
}

static enum roce_status fetch(void *context, const struct roce_request *r, uint32_t offset,
                              void *to, uint32_t length)
{
    struct node *n = context;

    if (offset + (uint64_t)length > r->length)
        wrong(n->w, "fetch outside of request %u", (unsigned)r->id);
    else
        memcpy(to, job_of(n, r)->buffer + offset, length);
    return ROCE_SUCCESS;
}

static enum roce_status store(void *context, const struct roce_request *r, uint32_t offset,
                              const void *from, uint32_t length)
{
    struct node *n = context;

    if (offset + (uint64_t)length > r->length)
        wrong(n->w, "store outside of request %u", (unsigned)r->id);
    else
        memcpy(job_of(n, r)->buffer + offset, from, length);
    return ROCE_SUCCESS;
}

static void verify(struct node *n, const struct job *j)
{
    uint32_t serial = (uint32_t)j->r.id;
    uint64_t original;

    if (j->r.kind == ROCE_DO_WRITE && n->w->plan->transport != ROCE_UC &&
        !is_pattern(peer_of(n)->memory + header + (size_t)j->slot * slot_bytes(n->w->plan),
                    j->r.length, n->index, serial))
        wrong(n->w, "write %u of node %u is not in place", serial, n->index);
    if (j->r.kind == ROCE_DO_READ && memcmp(j->buffer, j->expected, j->r.length) != 0)
        wrong(n->w, "read %u of node %u: wrong data", serial, n->index);
    if (j->r.kind > ROCE_DO_READ) {
        memcpy(&original, j->buffer, sizeof original);
        if (original != j->original)
            wrong(n->w, "atomic %u of node %u: %llu, expected %llu", serial, n->index,
                  (unsigned long long)original, (unsigned long long)j->original);
    }
}

static void complete(void *context, const struct roce_request *r, enum roce_status status)
{
    struct node *n = context;
    struct job *j = job_of(n, r);

    if (r->id != n->completed)
        wrong(n->w, "node %u: request %u completes, expected %u", n->index, (unsigned)r->id,
              n->completed);
    if (status != ROCE_SUCCESS)
        wrong(n->w, "node %u: request %u has status %d", n->index, (unsigned)r->id, (int)status);
    else
        verify(n, j);
    n->completed++;
    free(j->buffer);
    free(j->expected);
    j->buffer = j->expected = NULL;
}

static uint8_t *reach(struct node *n, const struct roce_reach *r)
{
    uint64_t size = header + (uint64_t)slots * slot_bytes(n->w->plan);

    if (r->rkey != key || r->va < base_va || r->length > size || r->va - base_va > size - r->length)
        return NULL;
    return n->memory + (r->va - base_va);
}

static enum roce_status check(void *context, const struct roce_reach *r)
{
    return reach(context, r) ? ROCE_SUCCESS : ROCE_REMOTE_ACCESS;
}

static enum roce_status write_memory(void *context, const struct roce_reach *r, const void *from)
{
    uint8_t *to = reach(context, r);

    if (to)
        memcpy(to, from, r->length);
    return to ? ROCE_SUCCESS : ROCE_REMOTE_ACCESS;
}

static enum roce_status read_memory(void *context, const struct roce_reach *r, void *to)
{
    uint8_t *from = reach(context, r);

    if (from)
        memcpy(to, from, r->length);
    return from ? ROCE_SUCCESS : ROCE_REMOTE_ACCESS;
}

static enum roce_status atomic(void *context, const struct roce_reach *r, bool compare_swap,
                               uint64_t swap_add, uint64_t compare, uint64_t *original)
{
    uint8_t *at = reach(context, r);
    uint64_t value;

    if (!at)
        return ROCE_REMOTE_ACCESS;
    memcpy(original, at, sizeof *original);
    value = compare_swap ? (*original == compare ? swap_add : *original) : *original + swap_add;
    memcpy(at, &value, sizeof value);
    return ROCE_SUCCESS;
}

static enum roce_status receive_take(void *context, uint32_t srqn)
{
    struct node *n = context;

    (void)srqn;
    if (n->receive_taken)
        wrong(n->w, "node %u: two receives taken for one message", n->index);
    if (n->receives == 0)
        return ROCE_NOT_READY;
    n->receives--;
    n->receive_taken = true;
    n->receive_bytes = 0;
    return ROCE_SUCCESS;
}

static enum roce_status receive_fill(void *context, uint32_t offset, const void *from,
                                     uint32_t length)
{
    struct node *n = context;

    if (offset + (uint64_t)length > n->w->plan->longest) {
        wrong(n->w, "node %u: a message longer than any", n->index);
        return ROCE_REMOTE_INVALID;
    }
    memcpy(n->receive + offset, from, length);
    n->receive_bytes = offset + length;
    return ROCE_SUCCESS;
}

/* Reliable messages come in order and once; others as the network delivers them, but whole. */
static void receive_done(void *context, const struct roce_message *m)
{
    struct node *n = context, *p = peer_of(n);
    bool reliable = n->w->plan->transport == ROCE_RC || n->w->plan->transport == ROCE_XRC;
    uint32_t serial = m->with_imm ? m->imm : 0;

    n->receive_taken = false;
    n->received++;
    if (!m->with_imm || serial >= p->posted || (reliable && serial < n->announced))
        wrong(n->w, "node %u: message %u, at least %u was expected", n->index, serial,
              n->announced);
    if (!m->write && !is_pattern(n->receive, m->length, p->index, serial))
        wrong(n->w, "node %u: message %u is damaged", n->index, serial);
    if (reliable && p->job[serial % slots].r.length != m->length)
        wrong(n->w, "node %u: message %u has %u bytes", n->index, serial, m->length);
    n->announced = serial + 1;
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

/* ---- what the nodes do ---- */

static uint32_t some_length(struct world *w)
{
    uint32_t mtu = w->plan->mtu, longest = w->plan->longest;

    switch (below(w, 4)) {
    case 0:
        return below(w, longest < 64 ? longest + 1 : 65);
    case 1: /* around the edges of packets */
        return (below(w, longest / mtu + 1) * mtu + below(w, 3)) % (longest + 1);
    default:
        return below(w, longest + 1);
    }
}

static void make_atomic(struct node *n, struct job *j)
{
    bool hit = below(n->w, 3) != 0;

    j->r.length = 8;
    j->r.va = base_va + counter_at;
    j->original = n->counter;
    j->r.swap_add = world_random(&n->w->random);
    j->r.compare = hit ? n->counter : n->counter + 1;
    if (j->r.kind == ROCE_DO_FETCH_ADD)
        n->counter += j->r.swap_add;
    else if (hit)
        n->counter = j->r.swap_add;
}

/* Of a slot that an earlier write filled, if it was one; else the sum is of nothing. */
static void make_read(struct node *n, struct job *j)
{
    uint32_t back = 1 + below(n->w, depth - 2), serial = n->posted - back;
    const struct job *written = &n->job[serial % slots];

    if (n->posted <= back || written->r.kind != ROCE_DO_WRITE) {
        j->r.kind = ROCE_DO_WRITE;
        return;
    }
    j->r.va = written->r.va;
    j->r.length = written->r.length;
    j->expected = malloc(j->r.length + 1);
    for (uint32_t i = 0; i < j->r.length; i++)
        j->expected[i] = pattern(n->index, serial, i);
}

static void choose_kind(struct node *n, struct job *j)
{
    uint32_t dice = below(n->w, 100);
    uint8_t transport = n->w->plan->transport;

    j->r.kind = dice < 35 ? ROCE_DO_WRITE : dice < 60 ? ROCE_DO_SEND : ROCE_DO_READ;
    if (dice >= 80)
        j->r.kind = dice < 90 ? ROCE_DO_FETCH_ADD : ROCE_DO_COMPARE_SWAP;
    if (transport == ROCE_UC && dice >= 60)
        j->r.kind = ROCE_DO_WRITE;
    if (transport == ROCE_UD)
        j->r.kind = ROCE_DO_SEND;
    if (j->r.kind == ROCE_DO_SEND || (j->r.kind == ROCE_DO_WRITE && below(n->w, 3) == 0))
        j->r.flags |= ROCE_WITH_IMM;
    if (below(n->w, 8) == 0)
        j->r.flags |= ROCE_FENCED;
}

static void post(struct node *n)
{
    struct job *j = &n->job[n->posted % slots];

    memset(j, 0, sizeof *j);
    j->slot = n->posted % slots;
    j->r.id = j->r.imm = n->posted;
    j->r.rkey = key;
    j->r.dest_qpn = 0x100 + (1 - n->index);
    j->r.qkey = 7;
    j->r.length = some_length(n->w);
    j->r.va = base_va + header + (uint64_t)j->slot * slot_bytes(n->w->plan);
    choose_kind(n, j);
    if (j->r.kind > ROCE_DO_READ)
        make_atomic(n, j);
    else if (j->r.kind == ROCE_DO_READ)
        make_read(n, j);
    j->buffer = calloc(1, j->r.length + 8);
    for (uint32_t i = 0; j->r.kind <= ROCE_DO_WRITE && i < j->r.length; i++)
        j->buffer[i] = pattern(n->index, n->posted, i);
    n->posted++;
    if (n->machine->post(n->m, &j->r) != 0)
        wrong(n->w, "node %u: request %u is refused", n->index, n->posted - 1);
}

static void act(struct node *n)
{
    uint32_t wanted = n->w->plan->one_way && n->index ? 0 : n->w->plan->requests;

    while (n->posted < wanted && n->posted - n->completed < depth && below(n->w, 4) != 0)
        post(n);
    if (n->receives >= receive_depth || n->w->now < n->receive_due)
        return;
    n->receives++;
    if (below(n->w, 1000) < n->w->plan->receives_late)
        n->receive_due = n->w->now + 1000 * (uint64_t)below(n->w, 2000);
}

/* ---- the network ---- */

static struct roce_path path_from(const struct node *n)
{
    struct roce_path p = {.version = 6, .source_port = 49152, .destination_port = ROCE_UDP_PORT};

    p.source[15] = (uint8_t)(1 + n->index);
    p.destination[15] = (uint8_t)(2 - n->index);
    return p;
}

static void fly(struct world *w, const struct flight *f)
{
    const struct trouble *t = &w->plan->trouble;
    struct flight *copy;

    if (w->flying == flights || below(w, 1000) < t->loss) {
        w->outcome->lost++;
        return;
    }
    copy = &w->flight[w->flying++];
    memcpy(copy, f, offsetof(struct flight, bytes) + f->length);
    copy->serial = w->flown++;
    copy->due = w->now + t->delay_ns;
    if (below(w, 1000) < t->late)
        copy->due += below(w, (uint32_t)t->late_ns);
    if (below(w, 1000) < t->damage)
        copy->bytes[below(w, copy->length)] ^= (uint8_t)(1 << below(w, 8));
    copy->marked = below(w, 1000) < t->mark;
}

static bool transmit(struct node *n)
{
    struct world *w = n->w;
    struct flight f;
    struct roce_path path = path_from(n);
    size_t length = n->machine->output(n->m, w->now, f.bytes);

    if (length == 0)
        return false;
    roce_put_icrc(f.bytes + length, roce_icrc(&path, f.bytes, length));
    f.to = 1 - n->index;
    f.length = (uint32_t)length + ROCE_ICRC_BYTES;
    w->outcome->packets++;
    fly(w, &f);
    if (below(w, 1000) < w->plan->trouble.doubling)
        fly(w, &f);
    return true;
}

static void arrive(struct world *w, uint32_t i)
{
    struct flight f;
    struct roce_path path;
    struct roce_packet p;
    struct node *n;
    uint32_t length;

    memcpy(&f, &w->flight[i], offsetof(struct flight, bytes) + w->flight[i].length);
    w->flying--;
    memmove(&w->flight[i], &w->flight[w->flying],
            offsetof(struct flight, bytes) + w->flight[w->flying].length);
    n = &w->node[f.to];
    path = path_from(peer_of(n));
    length = f.length - ROCE_ICRC_BYTES;
    if (roce_icrc(&path, f.bytes, length) != roce_get_icrc(f.bytes + length))
        return;
    if (roce_packet_parse(f.bytes, length, &p) == ROCE_GOOD)
        n->machine->input(n->m, w->now, &p, f.marked);
    else
        wrong(w, "a packet with a good ICRC does not parse");
}

static bool before(const struct flight *a, const struct flight *b)
{
    return a->due != b->due ? a->due < b->due : a->serial < b->serial;
}

static bool deliver(struct world *w)
{
    bool any = false;

    for (;; any = true) {
        uint32_t first = 0;

        for (uint32_t i = 1; i < w->flying; i++)
            if (before(&w->flight[i], &w->flight[first]))
                first = i;
        if (w->flying == 0 || w->flight[first].due > w->now)
            return any;
        arrive(w, first);
    }
}

static roce_time earliest(struct world *w)
{
    roce_time t = w->now + 10000000;

    for (uint32_t i = 0; i < w->flying; i++)
        t = w->flight[i].due < t ? w->flight[i].due : t;
    for (uint32_t i = 0; i < 2; i++) {
        struct node *n = &w->node[i];
        roce_time due = n->machine->deadline(n->m);

        t = due < t ? due : t;
        if (n->receives < receive_depth && n->receive_due > w->now && n->receive_due < t)
            t = n->receive_due;
    }
    return t > w->now ? t : w->now + 1;
}

/* ---- a run ---- */

static void open_node(struct world *w, uint32_t index)
{
    const struct plan *p = w->plan;
    struct node *n = &w->node[index];
    struct roce_attributes a = {
        .transport = p->transport,
        .qpn = 0x100 + index,
        .dest_qpn = 0x100 + (1 - index),
        .send_psn = p->start_psn + index,
        .receive_psn = p->start_psn + 1 - index,
        .path_mtu = p->mtu,
        .pkey = 0xffff,
        .qkey = 7,
        .access = ROCE_ACCESS_WRITE | ROCE_ACCESS_READ | ROCE_ACCESS_ATOMIC,
        .timeout = 14,
        .retry_count = 7,
        .retry_for_ever = true,
        .rnr_retry = 7,
        .min_rnr_timer = 1 + below(w, 12),
        .max_rd_atomic = (uint16_t)p->reads,
        .max_dest_rd_atomic = (uint16_t)p->reads,
        .requests = depth,
    };

    n->w = w;
    n->index = index;
    n->machine = p->machine[index];
    n->memory = calloc(1, header + (size_t)slots * slot_bytes(p));
    n->receive = calloc(1, p->longest + 1);
    n->m = n->machine->open(&a, &calls, n);
}

static void close_node(struct node *n)
{
    if (n->machine == &machine_endpoint)
        n->w->outcome->counters[n->index] = *roce_counters(n->m);
    n->w->outcome->completed[n->index] = n->completed;
    n->w->outcome->received[n->index] = n->received;
    n->machine->close(n->m);
    for (uint32_t i = 0; i < slots; i++) {
        free(n->job[i].buffer);
        free(n->job[i].expected);
    }
    free(n->memory);
    free(n->receive);
}

static bool finished(const struct world *w)
{
    uint32_t all = w->plan->requests;

    return w->node[0].completed == all && w->node[1].completed == (w->plan->one_way ? 0 : all) &&
           (w->plan->transport == ROCE_RC || w->plan->transport == ROCE_XRC || w->flying == 0);
}

static void check_counters(struct world *w)
{
    uint64_t counter;

    for (uint32_t i = 0; i < 2; i++) {
        memcpy(&counter, w->node[1 - i].memory + counter_at, sizeof counter);
        if (counter != w->node[i].counter)
            wrong(w, "the counter of node %u is not the sum of the atomics", 1 - i);
    }
}

void world_run(const struct plan *plan, struct outcome *outcome)
{
    struct world *w = calloc(1, sizeof *w);

    memset(outcome, 0, sizeof *outcome);
    w->plan = plan;
    w->outcome = outcome;
    w->random = plan->seed * 2 + 1;
    w->flight = calloc(flights, sizeof *w->flight);
    open_node(w, 0);
    open_node(w, 1);
    while (!finished(w) && !outcome->wrong[0]) {
        bool any = deliver(w);

        for (uint32_t i = 0; i < 2; i++) {
            act(&w->node[i]);
            for (uint32_t n = 1 + below(w, 8); n && transmit(&w->node[i]); n--)
                any = true;
        }
        if (!any)
            w->now = earliest(w);
        if (w->now > patience)
            wrong(w, "no progress: %u and %u of %u requests", w->node[0].completed,
                  w->node[1].completed, plan->requests);
    }
    if (!outcome->wrong[0])
        check_counters(w);
    outcome->time = w->now;
    close_node(&w->node[0]);
    close_node(&w->node[1]);
    free(w->flight);
    free(w);
}

/* ---- the end point as a machine ---- */

static void *open_endpoint(const struct roce_attributes *a, const struct roce_calls *c,
                           void *context)
{
    struct roce_endpoint *e = roce_open(a, c, context);

    roce_ready_to_receive(e, a);
    roce_ready_to_send(e, a);
    return e;
}

static void close_endpoint(void *m)
{
    roce_close(m);
}

static int post_endpoint(void *m, const struct roce_request *r)
{
    return roce_post(m, r);
}

static void input_endpoint(void *m, roce_time now, const struct roce_packet *p, bool congested)
{
    roce_input(m, now, p, congested);
}

static size_t output_endpoint(void *m, roce_time now, uint8_t *out)
{
    const struct roce_request *r;
    bool wants = roce_wants_output(m, now);
    size_t length = roce_output(m, now, out, &r);

    if (length && !wants)
        abort(); /* a caller that relies on roce_wants_output would have slept */
    return length;
}

static roce_time deadline_endpoint(void *m)
{
    return roce_deadline(m);
}

const struct machine machine_endpoint = {"end point",      open_endpoint,  close_endpoint,
                                         post_endpoint,    input_endpoint, output_endpoint,
                                         deadline_endpoint};
