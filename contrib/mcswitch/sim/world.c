/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See world.h: the loop. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/hostile.h"
#include "sim/traffic.h"
#include "sim/world.h"

enum {
    patience_links = 15000, /* without the end of any broadcast */
    calm_links = 2000,      /* at the end, until nothing is in flight */
};

struct sim_world {
    const struct sim_options *o;
    struct sim_queue q;
    struct sim_net net;
    struct sim_ledger ledger;
    struct sim_member member[SIM_MEMBERS_MAX];
    struct sim_switches *switches;
    struct sim_traffic traffic;
    struct sim_hostile hostile;
    uint64_t events;
};

static void start(struct sim_world *w, const struct sim_options *o)
{
    w->o = o;
    sim_queue_start(&w->q, o->seed);
    sim_ledger_start(&w->ledger, o, &w->q);
    w->net = (struct sim_net){.o = o, .q = &w->q};
    for (uint32_t i = 0; i < o->members; i++)
        sim_member_start(&w->member[i], i, &w->ledger, &w->net);
    w->switches = sim_switches_open(o, &w->q, &w->net, &w->ledger, w->member);
    sim_traffic_start(&w->traffic, o, &w->q, &w->ledger, w->switches, w->member);
    sim_hostile_start(&w->hostile, o, &w->q, w->switches, w->member);
}

static void end(struct sim_world *w)
{
    sim_switches_close(w->switches);
    for (uint32_t i = 0; i < w->o->members; i++)
        sim_member_end(&w->member[i]);
    sim_ledger_end(&w->ledger);
    sim_queue_end(&w->q);
    free(w);
}

static void at_member(struct sim_world *w, struct sim_event *e)
{
    struct sim_member *m = &w->member[e->node];

    if (m->asleep_until > w->q.now) { /* its card keeps arriving frames */
        e->due = m->asleep_until;
        sim_queue_post(&w->q, *e);
        return;
    }
    if (e->kind == SIM_TIMER)
        sim_member_timer(m, e->port);
    else
        sim_member_frame(m, e->frame);
    sim_frame_free(&w->q, e->frame);
}

static void handle(struct sim_world *w, struct sim_event *e)
{
    w->events++;
    switch (e->kind) {
    case SIM_AT_SWITCH:
        sim_switches_frame(w->switches, e);
        sim_frame_free(&w->q, e->frame);
        break;
    case SIM_AT_MEMBER:
    case SIM_TIMER:
        at_member(w, e);
        break;
    case SIM_CONTROL:
        sim_switches_control(w->switches, e);
        break;
    default:
        sim_traffic_act(&w->traffic, e);
        sim_hostile_act(&w->hostile, w->traffic.posted);
    }
}

static bool hangs(struct sim_world *w)
{
    return w->q.now > w->traffic.progress + patience_links * SIM_LINK;
}

/* At the end lets frames in flight arrive, and checks that the numbers agree. */
static void calm_down(struct sim_world *w)
{
    roce_time until = w->q.now + calm_links * SIM_LINK;
    struct sim_event e;

    w->net.calm = true;
    while (w->ledger.violations == 0 && sim_queue_next(&w->q, &e)) {
        handle(w, &e);
        if (w->q.now > until)
            break;
    }
    sim_switches_check(w->switches);
}

static void count(struct sim_world *w, struct sim_outcome *out)
{
    out->violations = w->ledger.violations;
    out->done = w->ledger.done;
    out->failed = w->ledger.failed;
    out->links = out->done ? (double)w->ledger.time / (double)out->done / (double)SIM_LINK : 0;
    out->per_link = out->done ? (double)w->traffic.progress / (double)SIM_LINK / out->done : 0;
    for (uint32_t i = 0; i < w->o->members; i++) {
        struct roce_counters c;

        sim_member_counters(&w->member[i], &c);
        out->timeouts += c.timeouts;
        out->repeated += c.repeated;
        out->rnr += c.rnr;
        out->naks += c.naks_received;
        out->sent += c.sent;
    }
    out->traffic = w->traffic.count;
    out->hostile = w->hostile.sent;
    out->frames = w->net.sent;
    sim_switches_count(w->switches, &out->at);
}

static void judge(struct sim_world *w, struct sim_outcome *out)
{
    bool mortal = w->o->deaths || w->o->sleeps;

    if (!mortal && w->ledger.failed)
        sim_violation(&w->ledger, "%u broadcasts failed, though nobody died or slept",
                      w->ledger.failed);
    if (out->hang)
        snprintf(out->first, sizeof out->first, "hang: %u of %u broadcasts are over at %.0f links",
                 w->ledger.done + w->ledger.failed, w->o->broadcasts,
                 (double)w->q.now / (double)SIM_LINK);
    if (w->ledger.violations)
        snprintf(out->first, sizeof out->first, "%s", w->ledger.first);
}

void sim_run(const struct sim_options *o, struct sim_outcome *out)
{
    struct sim_world *w = calloc(1, sizeof *w);
    struct sim_event e;

    if (!w)
        abort();
    memset(out, 0, sizeof *out);
    start(w, o);
    while (w->ledger.violations == 0 && !sim_traffic_over(&w->traffic)) {
        if (!sim_queue_next(&w->q, &e) || hangs(w)) {
            out->hang = true;
            break;
        }
        handle(w, &e);
    }
    if (!out->hang)
        calm_down(w);
    judge(w, out);
    count(w, out);
    end(w);
}

bool sim_good(const struct sim_outcome *out)
{
    return out->violations == 0 && !out->hang;
}
