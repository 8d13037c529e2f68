/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See traffic.h. The value of an actor's event is its next action. */
#include "config.h"

#include <string.h>

#include "sim/control.h"
#include "sim/traffic.h"

enum { GO_ON, DIE, LIVE, SLEEP, BEGIN_ANEW };

enum {
    think_links = 4,    /* at most, between two broadcasts of a member */
    mishap_links = 8,   /* time from its beginning to a death or sleep */
    dead_links = 3000,  /* at most */
    anew_links = 20,    /* until the library notices that its queue pair failed */
    offset_room = 4096, /* where writes begin */
};

static void later(struct sim_actor *a, uint32_t what, roce_time in)
{
    sim_queue_post(a->t->q, (struct sim_event){.due = a->t->q->now + in,
                                               .kind = SIM_ACT,
                                               .node = (uint16_t)a->m->index,
                                               .value = what});
}

static roce_time some_links(struct sim_actor *a, uint32_t most)
{
    return sim_below(a->t->q, most * (uint32_t)SIM_LINK + 1);
}

/* ---- what is broadcast ---- */

static void choose_set(struct sim_actor *a, struct sim_broadcast *b)
{
    uint32_t members = a->t->o->members, wanted = 1 + sim_below(a->t->q, members - 1);

    /* A third goes to all others, as most real broadcasts do. */
    if (sim_below(a->t->q, 3) == 0)
        wanted = members;
    for (uint32_t i = 0; i < members; i++) {
        bool self = i == a->m->index, take = sim_below(a->t->q, members) < wanted;

        if (a->t->member[i].dead)
            continue; /* its peers may or may not know: see die() */
        if (self ? sim_below(a->t->q, 8) == 0 : take)
            sim_set_add(&b->to, i);
    }
    sim_ledger_posted(a->t->ledger, b);
    for (uint32_t i = a->m->index; b->receivers == 0; i++) {
        uint32_t next = (i + 1) % members;

        if (!a->t->member[next].dead)
            sim_set_add(&b->to, next);
        sim_ledger_posted(a->t->ledger, b);
    }
}

static uint32_t some_length(struct sim_actor *a)
{
    uint32_t mtu = a->t->o->mtu, packets = 1 + sim_below(a->t->q, a->t->o->packets);

    switch (sim_below(a->t->q, 4)) {
    case 0:
        return 4 + sim_below(a->t->q, 61);
    case 1: /* around the edges of packets */
        return packets * mtu - sim_below(a->t->q, 2) * (1 + sim_below(a->t->q, 4));
    default:
        return (packets - 1) * mtu + 4 + sim_below(a->t->q, mtu - 3);
    }
}

static void choose_messages(struct sim_actor *a, struct sim_broadcast *b)
{
    b->messages = 1 + sim_below(a->t->q, a->t->o->messages);
    for (uint32_t i = 0; i < b->messages; i++) {
        struct sim_message *g = &b->message[i];

        g->send = sim_below(a->t->q, 3) == 0;
        g->with_imm = sim_below(a->t->q, 3) == 0;
        g->length = g->with_imm && sim_below(a->t->q, 6) == 0 ? 0 : some_length(a);
        g->offset = sim_below(a->t->q, offset_room);
    }
}

static uint32_t packets_of(const struct sim_options *o, const struct sim_broadcast *b)
{
    uint32_t packets = 0;

    for (uint32_t i = 0; i < b->messages; i++)
        packets += b->message[i].length ? (b->message[i].length + o->mtu - 1) / o->mtu : 1;
    return packets;
}

/* ---- faults ---- */

static void mishap(struct sim_actor *a)
{
    struct sim_traffic *t = a->t;
    uint32_t victim = a->m->index;

    if (sim_chance(t->q, t->o->deaths)) {
        if (sim_below(t->q, 3) == 0)
            victim = sim_below(t->q, t->o->members);
        later(&t->actor[victim], DIE, some_links(a, mishap_links));
    } else if (sim_chance(t->q, t->o->sleeps)) {
        later(a, SLEEP, some_links(a, mishap_links));
    }
}

static void begin(struct sim_actor *a)
{
    struct sim_traffic *t = a->t;
    struct sim_broadcast *b;

    if (t->posted == t->o->broadcasts)
        return;
    t->posted++;
    b = sim_ledger_begin(t->ledger, a->m->index);
    choose_messages(a, b);
    choose_set(a, b);
    b->addresses = sim_below(t->q, 3) == 0;
    sim_control_build(sim_switches_group(t->switches), b, a->m, !a->holds);
    a->now = b;
    sim_member_post(a->m, b, SIM_IS_CONTROL);
    for (uint32_t i = 0; i < b->messages; i++)
        sim_member_post(a->m, b, i);
    t->count.controls++;
    t->count.packets += 1 + packets_of(t->o, b);
    t->count.copies += (uint64_t)b->receivers * (1 + packets_of(t->o, b));
    a->holds = sim_chance(t->q, t->o->keep);
    /* With the lock kept, the next set has to wait for the end of this one. */
    a->releasing = !a->holds;
    if (a->releasing)
        sim_member_post(a->m, b, SIM_IS_RELEASE);
    mishap(a);
    sim_member_pump(a->m);
}

static void release(struct sim_actor *a)
{
    if (!a->holds || a->releasing || a->broken || a->now)
        return;
    a->holds = false;
    a->releasing = true;
    sim_member_post(a->m, a->last, SIM_IS_RELEASE);
    sim_member_pump(a->m);
}

static void go_on(struct sim_actor *a)
{
    if (a->m->dead || a->broken || a->now || a->releasing)
        return;
    if (a->t->posted < a->t->o->broadcasts)
        begin(a);
    else
        release(a);
}

/* ---- completions: called by the end point, so they must not touch a queue pair ---- */

static void next_one(struct sim_actor *a)
{
    uint32_t who = a->m->index;

    if (a->t->o->alone && !a->holds) /* any member, but one at a time */
        who = sim_below(a->t->q, a->t->o->members);
    later(&a->t->actor[who], GO_ON, some_links(a, a->holds ? 1 : think_links));
}

static void failed(struct sim_actor *a)
{
    if (a->now)
        sim_ledger_close(a->t->ledger, a->now, true);
    a->t->progress = a->t->q->now;
    a->now = NULL;
    if (a->broken || a->m->dead)
        return;
    a->broken = true;
    later(a, BEGIN_ANEW, anew_links * SIM_LINK);
}

static void completed(struct sim_member *m, struct sim_broadcast *b, uint64_t id,
                      enum roce_status status)
{
    struct sim_actor *a = m->owner;

    if (status != ROCE_SUCCESS) {
        if (!a->broken && !sim_switches_expelled(a->t->switches, m->index) &&
            status != ROCE_RETRIES_EXCEEDED)
            sim_violation(a->t->ledger, "broadcast %u of member %u ends with status %d", b->id,
                          m->index, (int)status);
        failed(a);
        return;
    }
    if (b == a->now && id == b->messages - 1) {
        sim_ledger_close(a->t->ledger, b, false);
        a->t->progress = a->t->q->now;
        a->last = b;
        a->now = NULL;
        if (a->holds)
            next_one(a);
    }
    if (id == SIM_IS_RELEASE) {
        a->releasing = false;
        next_one(a);
    }
}

/* ---- deaths, sleep, and what follows ---- */

/* The program or its machine is gone. Its peers notice late: senders run out of retries, and then
 * mark it. */
static void die(struct sim_actor *a)
{
    struct sim_traffic *t = a->t;

    if (a->m->dead)
        return;
    t->count.deaths++;
    t->ledger->life[a->m->index]++;
    a->m->dead = true;
    failed(a);
    later(a, LIVE, some_links(a, dead_links));
}

static void begin_anew(struct sim_actor *a)
{
    struct sim_traffic *t = a->t;

    if (a->m->dead)
        return;
    t->count.anew++;
    t->ledger->life[a->m->index]++;
    a->broken = a->holds = a->releasing = false;
    a->now = NULL;
    /* Looks for the cause of the failure: a dead member must not be linked any more. */
    for (uint32_t i = 0; i < t->o->members; i++)
        if (t->member[i].dead)
            sim_switches_mark(t->switches, i);
    sim_switches_register(t->switches, a->m->index);
    later(a, GO_ON, some_links(a, think_links));
}

static void live(struct sim_actor *a)
{
    a->m->dead = false;
    sim_switches_mark(a->t->switches, a->m->index);
    sim_switches_repair(a->t->switches, a->m->index);
    begin_anew(a);
}

static void fall_asleep(struct sim_actor *a)
{
    roce_time lease = sim_switches_lease(a->t->switches);

    if (a->m->dead)
        return;
    a->t->count.sleeps++;
    a->m->asleep_until = a->t->q->now + lease / 2 + some_links(a, (uint32_t)(3 * lease / SIM_LINK));
    later(a, GO_ON, a->m->asleep_until - a->t->q->now);
}

void sim_traffic_act(struct sim_traffic *t, const struct sim_event *e)
{
    struct sim_actor *a = &t->actor[e->node];

    switch (e->value) {
    case DIE:
        die(a);
        break;
    case LIVE:
        live(a);
        break;
    case SLEEP:
        fall_asleep(a);
        break;
    case BEGIN_ANEW:
        begin_anew(a);
        break;
    default:
        go_on(a);
    }
    sim_member_pump(a->m);
}

void sim_traffic_start(struct sim_traffic *t, const struct sim_options *o, struct sim_queue *q,
                       struct sim_ledger *l, struct sim_switches *s, struct sim_member *members)
{
    memset(t, 0, sizeof *t);
    t->o = o;
    t->q = q;
    t->ledger = l;
    t->switches = s;
    t->member = members;
    for (uint32_t i = 0; i < o->members; i++) {
        t->actor[i].t = t;
        t->actor[i].m = &members[i];
        members[i].completed = completed;
        members[i].owner = &t->actor[i];
        if (i == 0 || !o->alone)
            later(&t->actor[i], GO_ON, some_links(&t->actor[i], think_links));
    }
}

bool sim_traffic_over(const struct sim_traffic *t)
{
    if (t->posted < t->o->broadcasts)
        return false;
    for (uint32_t i = 0; i < t->o->members; i++)
        if (t->actor[i].now || t->actor[i].holds || t->actor[i].releasing || t->actor[i].broken ||
            t->member[i].dead)
            return false;
    return true;
}
