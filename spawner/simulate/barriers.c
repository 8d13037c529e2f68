/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers of all processes: inside neighbourhoods by the tree of tree.h, between their leaders by
 * the steps of leaders.h. */
#include "config.h"

#include "simulation.h"

#include "topology/leaders.h"
#include "topology/tree.h"

enum { EVENT_ENTER, EVENT_CAME };

/* Of a message of the library: header and arguments. */
enum { message_bytes = 32 };

struct barrier {
    struct simulation *s;
    bool by_tree;
    uint64_t end;
};

/* Times that a value is handed on inside a neighbourhood, from the last rank to the first. */
static uint32_t depth_of(uint32_t size)
{
    uint32_t depth = 0;
    for (uint32_t at = size - 1; at > 0; at = tk_tree_place(at, size).above)
        depth++;
    return depth;
}

static uint32_t size_of(const struct simulation *s, uint32_t nbrhd)
{
    return s->first[nbrhd + 1] - s->first[nbrhd];
}

/* A parent looks at each of its children in turn. */
uint64_t sim_inside(const struct simulation *s, uint32_t nbrhd)
{
    uint32_t size = size_of(s, nbrhd);
    uint64_t most = size - 1 < tk_tree_fan ? size - 1 : tk_tree_fan;
    return size > 1 ? depth_of(size) * most * s->costs.flag : 0;
}

static void barrier_send(struct barrier *b, uint32_t from, const struct tk_leaders_step *step,
                         uint64_t now)
{
    struct simulation *s = b->s;
    struct sim_leader *l = &s->leaders[from];
    uint64_t ready = sim_connect(s, from, step->to, now);
    uint64_t leaves = sim_compute(s, s->host_of[from], ready, s->costs.message);
    uint64_t comes =
        sim_fabric_send(&s->fabric, s->host_of[from], s->host_of[step->to], leaves, message_bytes);
    l->sent++;
    l->bytes += message_bytes;
    l->clock = leaves;
    s->has_failed |= !sim_events_add(&s->events, comes, EVENT_CAME, step->to, step->to_step, 0);
}

static void advance(struct barrier *b, uint32_t nbrhd, uint64_t now)
{
    struct simulation *s = b->s;
    struct sim_leader *l = &s->leaders[nbrhd];
    struct tk_leaders steps;
    tk_leaders_plan(&steps, nbrhd, s->nbrhds, true);
    unsigned end = b->by_tree && steps.tree ? steps.tree : steps.all;
    l->clock = now > l->clock ? now : l->clock;
    for (; l->step < end; l->step++, l->has_sent = false) {
        const struct tk_leaders_step *step = &steps.steps[l->step];
        if (step->sends && !l->has_sent)
            barrier_send(b, nbrhd, step, l->clock);
        l->has_sent = true;
        if (step->awaits && !(l->received >> l->step & 1))
            return;
    }
    b->end = l->clock > b->end ? l->clock : b->end;
}

static void begin(struct barrier *b)
{
    struct simulation *s = b->s;
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        struct sim_leader *l = &s->leaders[n];
        struct tk_leaders steps;
        tk_leaders_plan(&steps, n, s->nbrhds, true);
        b->by_tree = b->by_tree && steps.tree;
        l->step = (uint16_t)(b->by_tree ? 0 : steps.tree);
        l->received = 0;
        l->has_sent = false;
        l->clock = sim_compute(s, s->host_of[n], l->clock, (size_of(s, n) - 1) * s->costs.flag);
        l->clock += sim_inside(s, n);
        s->has_failed |= !sim_events_add(&s->events, l->clock, EVENT_ENTER, n, 0, 0);
    }
}

static void run(struct simulation *s, bool by_tree)
{
    struct barrier b = {.s = s, .by_tree = by_tree};
    struct sim_event event;
    begin(&b);
    while (sim_events_next(&s->events, &event)) {
        struct sim_leader *l = &s->leaders[event.a];
        uint64_t now = event.time;
        if (event.what == EVENT_CAME) {
            l->received |= UINT64_C(1) << event.b;
            l->came++;
            now = sim_compute(s, s->host_of[event.a], now, s->costs.message);
            if (l->step != event.b || !l->has_sent)
                continue;
        }
        advance(&b, event.a, now);
    }
    for (uint32_t n = 0; n < s->nbrhds; n++)
        s->leaders[n].clock += sim_inside(s, n);
}

/* ---- mistakes, to show that the results tell them */

static void plant_send(struct barrier *b, uint32_t from, uint32_t to)
{
    struct simulation *s = b->s;
    struct sim_event event = {.time = 0};
    const struct tk_leaders_step step = {.to = to, .sends = true};
    barrier_send(b, from, &step, s->leaders[from].clock);
    sim_events_next(&s->events, &event);
    s->leaders[to].came++;
    uint64_t now = s->leaders[to].clock > event.time ? s->leaders[to].clock : event.time;
    s->leaders[to].clock = sim_compute(s, s->host_of[to], now, s->costs.message);
}

/* All send to the first leader, and that to all. */
static void plant_gather(struct simulation *s)
{
    struct barrier b = {.s = s};
    for (uint32_t n = 1; n < s->nbrhds; n++)
        plant_send(&b, n, 0);
    for (uint32_t n = 1; n < s->nbrhds; n++)
        plant_send(&b, 0, n);
}

static void plant_connect(struct simulation *s)
{
    for (uint32_t from = 0; from < s->nbrhds; from++)
        for (uint32_t to = from + 1; to < s->nbrhds; to++)
            s->leaders[from].clock = sim_connect(s, from, to, s->leaders[from].clock);
}

void sim_barrier(struct simulation *s, uint32_t number)
{
    struct tk_leaders steps;
    if (s->in.plants_connect)
        plant_connect(s);
    if (s->in.plants_gather) {
        plant_gather(s);
        return;
    }
    tk_leaders_plan(&steps, 0, s->nbrhds, true);
    run(s, tk_leaders_use_tree(&steps, number));
}
