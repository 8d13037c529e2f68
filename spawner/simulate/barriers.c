/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers of all processes: inside neighbourhoods by the tree of tree.h, between their leaders by
 * the steps of leaders.h. */
#include "config.h"

#include "connections.h"
#include "messages.h"

#include "topology/leaders.h"
#include "topology/tree.h"

enum { EVENT_ENTER, EVENT_CAME = SIM_BOUNDED };

/* Of a message of the library: header and arguments. */
enum { message_bytes = 32 };

static struct {
    bool by_tree;
} barrier;

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

static bool barrier_send(struct simulation *s, uint32_t from, const struct tk_leaders_step *step,
                         uint64_t now)
{
    const struct sim_message m = {.from = from,
                                  .to = step->to,
                                  .what = EVENT_CAME,
                                  .head = message_bytes,
                                  .key = step->to_step};
    return sim_message_send(s, &m, now);
}

static void advance(struct simulation *s, uint32_t nbrhd, uint64_t now)
{
    struct sim_leader *l = &s->leaders[nbrhd];
    struct tk_leaders steps;
    tk_leaders_plan(&steps, nbrhd, s->nbrhds, true);
    unsigned end = barrier.by_tree && steps.tree ? steps.tree : steps.all;
    l->clock = now > l->clock ? now : l->clock;
    for (; l->step < end && !l->is_sending; l->step++, l->has_sent = false) {
        const struct tk_leaders_step *step = &steps.steps[l->step];
        if (step->sends && !l->has_sent)
            l->is_sending = !barrier_send(s, nbrhd, step, l->clock);
        l->has_sent = true;
        if (l->is_sending || (step->awaits && !(l->received >> l->step & 1)))
            return;
    }
}

static void has_sent(struct simulation *s, uint32_t nbrhd, uint64_t now)
{
    s->leaders[nbrhd].is_sending = false;
    advance(s, nbrhd, now);
}

static void begin(struct simulation *s)
{
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        struct sim_leader *l = &s->leaders[n];
        struct tk_leaders steps;
        tk_leaders_plan(&steps, n, s->nbrhds, true);
        barrier.by_tree = barrier.by_tree && steps.tree;
        l->step = (uint16_t)(barrier.by_tree ? 0 : steps.tree);
        l->received = 0;
        l->has_sent = l->is_sending = false;
        l->clock = sim_compute(s, s->host_of[n], l->clock, (size_of(s, n) - 1) * s->costs.flag);
        l->clock += sim_inside(s, n);
        s->has_failed |= !sim_events_add(&s->events, l->clock, EVENT_ENTER, n, 0, 0);
    }
}

static void came(struct simulation *s, struct sim_event *event)
{
    struct sim_leader *l = &s->leaders[event->a];
    if (!sim_message_came(s, event))
        return;
    l->received |= UINT64_C(1) << event->c;
    if (l->step == event->c && l->has_sent)
        advance(s, event->a, event->time);
}

static void run(struct simulation *s, bool by_tree)
{
    struct sim_event event;
    barrier.by_tree = by_tree;
    s->sent = has_sent;
    begin(s);
    while (!s->has_failed && sim_events_next(&s->events, &event))
        if (event.what == EVENT_ENTER)
            advance(s, event.a, event.time);
        else
            came(s, &event);
    for (uint32_t n = 0; n < s->nbrhds; n++)
        s->leaders[n].clock += sim_inside(s, n);
}

/* ---- mistakes, to show that the results tell them */

static void nothing_waits(struct simulation *s, uint32_t nbrhd, uint64_t now)
{
    (void)s, (void)nbrhd, (void)now;
}

static void plant_send(struct simulation *s, uint32_t from, uint32_t to)
{
    struct sim_event event;
    const struct tk_leaders_step step = {.to = to, .sends = true};
    struct sim_leader *l = &s->leaders[to];
    barrier_send(s, from, &step, s->leaders[from].clock);
    while (sim_events_next(&s->events, &event))
        if (sim_message_came(s, &event))
            l->clock = event.time > l->clock ? event.time : l->clock;
}

/* All send to the first leader, and that to all. */
static void plant_gather(struct simulation *s)
{
    s->sent = nothing_waits;
    for (uint32_t n = 1; n < s->nbrhds; n++)
        plant_send(s, n, 0);
    for (uint32_t n = 1; n < s->nbrhds; n++)
        plant_send(s, 0, n);
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
