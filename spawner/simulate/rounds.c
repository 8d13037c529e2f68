/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives: for each leader the library composes phases, and its algorithms list the sends and
 * receives of each round; messages go over the fabric as collective/engine.c sends them. Owns the
 * table of receives that wait for a message and messages that wait for their receive. */
#include "config.h"

#include "messages.h"
#include "world.h"

#include "topology/tree.h"

#include <stdlib.h>

/* `a` receives from `b`; `c` is the key: phase and tag. */
enum { EVENT_GO, EVENT_ARRIVES };

enum { header_bytes = 48 };

enum waits_for { NOTHING, A_MESSAGE, A_RECEIVE };

struct match {
    uint64_t ranks, key; /* from and to; phase and tag */
    enum waits_for state;
    uint64_t nbytes; /* of a send that waits for the receiver's announcement */
};

static struct {
    struct simulation *s;
    struct tk_coll_call call;
    struct match *at;
    uint64_t space, used;
    char *memory;
} rounds;

/* ---- the table */

static uint64_t hash(uint64_t ranks, uint64_t key)
{
    uint64_t h = ranks * UINT64_C(0x9e3779b97f4a7c15) ^ key * UINT64_C(0xc2b2ae3d27d4eb4f);
    h ^= h >> 31;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

static uint64_t place_of(uint64_t ranks, uint64_t key)
{
    uint64_t i = hash(ranks, key) & (rounds.space - 1);
    while (rounds.at[i].state && (rounds.at[i].ranks != ranks || rounds.at[i].key != key))
        i = (i + 1) & (rounds.space - 1);
    return i;
}

static bool table_grow(void)
{
    struct match *old = rounds.at;
    uint64_t space = rounds.space;
    rounds.space = space ? 2 * space : 4096;
    rounds.at = calloc(rounds.space, sizeof(*rounds.at));
    if (!rounds.at) {
        rounds.at = old;
        rounds.space = space;
        return false;
    }
    for (uint64_t i = 0; i < space; i++)
        if (old[i].state)
            rounds.at[place_of(old[i].ranks, old[i].key)] = old[i];
    free(old);
    return true;
}

/* Closes the gap that a removed entry leaves in its row. */
static void table_remove(uint64_t gap)
{
    uint64_t mask = rounds.space - 1;
    rounds.used--;
    for (uint64_t i = (gap + 1) & mask; rounds.at[i].state; i = (i + 1) & mask) {
        uint64_t home = hash(rounds.at[i].ranks, rounds.at[i].key) & mask;
        if (((i - home) & mask) < ((i - gap) & mask))
            continue;
        rounds.at[gap] = rounds.at[i];
        gap = i;
    }
    rounds.at[gap].state = NOTHING;
}

/* True: what is waited for was there, and is removed; its bytes. Otherwise it is entered. */
static bool meet(uint32_t from, uint32_t to, uint64_t key, enum waits_for state, uint64_t *nbytes)
{
    uint64_t ranks = (uint64_t)from << 32 | to;
    if (2 * rounds.used >= rounds.space && !table_grow()) {
        rounds.s->has_failed = true;
        return true;
    }
    uint64_t at = place_of(ranks, key);
    if (rounds.at[at].state && rounds.at[at].state != state) {
        if (state == A_RECEIVE)
            *nbytes = rounds.at[at].nbytes;
        table_remove(at);
        return true;
    }
    rounds.used++;
    rounds.at[at] = (struct match){ranks, key, state, *nbytes};
    return false;
}

/* ---- messages */

uint32_t sim_nbrhd_of_rank(const struct simulation *s, uint32_t rank)
{
    uint32_t low = 0, high = s->nbrhds;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (s->first[middle] <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t copying(const struct simulation *s, uint64_t nbytes)
{
    return nbytes * s->costs.copy_kib / 1024;
}

/* A message that waits for a credit keeps its sender in the round. */
static void message_send(struct simulation *s, uint32_t from, uint32_t to, uint64_t key,
                         uint64_t nbytes)
{
    const struct sim_message m = {.from = from,
                                  .to = to,
                                  .what = EVENT_ARRIVES,
                                  .head = header_bytes,
                                  .key = key,
                                  .nbytes = nbytes};
    s->members[from].outstanding += !sim_message_send(s, &m, s->leaders[from].clock);
}

static void post(struct simulation *s, uint32_t me, uint64_t phase, const struct sim_transfer *t)
{
    uint32_t other = sim_nbrhd_of_rank(s, t->other);
    uint64_t key = phase << 32 | t->tag, ready = key | tk_coll_ready_tag, nbytes = t->nbytes;
    bool is_large = nbytes > tk_coll_eager_max;
    if (t->is_send && !is_large) {
        message_send(s, me, other, key, nbytes);
    } else if (t->is_send) {
        if (meet(other, me, ready, A_MESSAGE, &nbytes))
            message_send(s, me, other, key, t->nbytes);
        else
            s->members[me].outstanding++;
    } else {
        if (is_large)
            message_send(s, me, other, ready, 0);
        if (!meet(other, me, key, A_MESSAGE, &nbytes))
            s->members[me].outstanding++;
    }
}

/* ---- a leader */

static uint8_t value_of(const struct tk_coll *coll)
{
    return coll->value == coll->buffers[0] ? 1 : coll->value == coll->buffers[1] ? 2 : 0;
}

/* The state of a collective after its rounds so far: composed anew, because so many leaders would
 * take too much memory. */
static struct tk_coll *restore(struct simulation *s, uint32_t me)
{
    static struct tk_op op;
    const struct sim_member *m = &s->members[me];
    struct tk_coll_call call = rounds.call;
    call.tm = sim_world_be(me);
    sim_captured.count = 0;
    tk_coll_start(&call, &op);
    struct tk_coll *coll = &sim_captured.coll;
    coll->phase = m->phase;
    coll->round = m->round;
    coll->stage = m->stage;
    if (m->value)
        coll->value = coll->buffers[m->value - 1];
    return coll;
}

static uint64_t inside(const struct simulation *s, uint32_t nbrhd)
{
    uint32_t size = s->first[nbrhd + 1] - s->first[nbrhd], depth = 0;
    for (uint32_t at = size - 1; at > 0; at = tk_tree_place(at, size).above)
        depth++;
    return depth * (tk_tree_fan * s->costs.flag + copying(s, rounds.call.nbytes));
}

/* One call of an algorithm. False: the collective is over. */
static bool turn(struct simulation *s, uint32_t me)
{
    struct sim_member *m = &s->members[me];
    struct tk_coll *coll = restore(s, me);
    if (m->phase >= coll->phase_count)
        return false;
    tk_coll_algorithm *next = coll->phases[m->phase].next;
    enum tk_coll_turn is_over = next ? next(coll) : TK_COLL_OVER;
    if (next && sim_world_is_node_local(next))
        s->leaders[me].clock += inside(s, me);
    m->stage = is_over == TK_COLL_OVER ? 0 : coll->stage;
    m->value = value_of(coll);
    uint64_t phase = m->phase;
    m->round++;
    if (is_over == TK_COLL_OVER) {
        m->phase++;
        m->round = 0;
    }
    for (uint32_t i = 0; i < sim_captured.count; i++)
        post(s, me, phase, &sim_captured.transfers[i]);
    return true;
}

static void member_advance(struct simulation *s, uint32_t me, uint64_t now)
{
    struct sim_leader *l = &s->leaders[me];
    l->clock = now > l->clock ? now : l->clock;
    while (s->members[me].outstanding == 0 && !s->has_failed && turn(s, me))
        continue;
}

static void has_sent(struct simulation *s, uint32_t nbrhd, uint64_t now)
{
    s->members[nbrhd].outstanding--;
    member_advance(s, nbrhd, now);
}

/* A message; or the announcement of a receiver, to a send that may wait for it. */
static void arrive(struct simulation *s, struct sim_event *e)
{
    uint64_t nbytes = 0;
    struct sim_leader *l = &s->leaders[e->a];
    if (!sim_message_came(s, e) || !meet(e->b, e->a, e->c, A_RECEIVE, &nbytes))
        return;
    if (e->c & tk_coll_ready_tag) {
        l->clock = e->time > l->clock ? e->time : l->clock;
        message_send(s, e->a, e->b, e->c & ~(uint64_t)tk_coll_ready_tag, nbytes);
    }
    s->members[e->a].outstanding--;
    member_advance(s, e->a, e->time + copying(s, nbytes));
}

static void collective_once(struct simulation *s)
{
    struct sim_event event;
    s->sent = has_sent;
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        s->members[n] = (struct sim_member){0};
        s->has_failed |= !sim_events_add(&s->events, s->leaders[n].clock, EVENT_GO, n, 0, 0);
    }
    while (!s->has_failed && sim_events_next(&s->events, &event))
        if (event.what == EVENT_GO)
            member_advance(s, event.a, event.time);
        else
            arrive(s, &event);
}

static void no_fold(const void *left, void *right, size_t count, const void *cdata)
{
    (void)left, (void)right, (void)count, (void)cdata;
}

void sim_collective(struct simulation *s, const struct sim_call *call)
{
    static const enum tk_coll_kind kinds[] = {[SIM_BROADCAST] = TK_COLL_BROADCAST,
                                              [SIM_REDUCE] = TK_COLL_REDUCE,
                                              [SIM_REDUCE_ALL] = TK_COLL_REDUCE_ALL};
    rounds.s = s;
    rounds.memory = calloc(2, call->nbytes);
    s->has_failed |= !rounds.memory;
    rounds.call = (struct tk_coll_call){.kind = kinds[call->kind],
                                        .dst = rounds.memory + call->nbytes,
                                        .src = rounds.memory,
                                        .nbytes = call->nbytes,
                                        .fold = {.fn = no_fold, .element = 1}};
    for (uint32_t i = 0; i < call->times && !s->has_failed; i++)
        collective_once(s);
    free(rounds.memory);
    free(rounds.at);
    rounds.at = NULL;
    rounds.space = rounds.used = 0;
}
