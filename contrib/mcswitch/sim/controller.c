/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See switches.h: the controller. It joins members to the group, repairs receivers that the
 * switches report as dirty, and checks the switches' numbers (I4: without a holder an RQP expects
 * what its VSQP will send). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "endpoint/private.h"
#include "sim/fabric.h"

enum { repair_links = 20, plain_rkey = 7 };

/* ---- input of the switches ---- */

static struct mcsw_sender sender_of(const struct sim_switches *s, uint32_t member)
{
    const struct sim_member *m = &s->member[member];
    struct mcsw_sender out = {
        .port = member, .qpn = m->side[SIM_SQP].a.qpn, .psn = m->side[SIM_SQP].a.send_psn};

    memcpy(out.ip, m->ip, sizeof m->ip);
    memcpy(out.mac, m->mac, sizeof m->mac);
    return out;
}

static struct mcsw_receiver receiver_of(const struct sim_switches *s, uint32_t member)
{
    const struct sim_member *m = &s->member[member];
    struct mcsw_receiver out = {.port = sim_rank_of(s, member),
                                .qpn = m->side[SIM_RQP].a.qpn,
                                .psn = m->side[SIM_RQP].a.receive_psn,
                                .base = sim_base(0, member),
                                .rkey = sim_rkey(0, member)};

    memcpy(out.ip, m->ip, sizeof m->ip);
    memcpy(out.mac, m->mac, sizeof m->mac);
    return out;
}

/* Describe a leaf to the root, and the root to a leaf. */
static struct mcsw_receiver leaf_receiver(const struct sim_switches *s, uint32_t leaf, uint32_t psn)
{
    struct mcsw_receiver out = {.port = s->o->members + leaf,
                                .qpn = mcsw_qpn(SIM_LEAF_GROUP, 0),
                                .psn = psn,
                                .rkey = plain_rkey};

    memcpy(out.ip, s->core[1 + leaf].requests, 4);
    memcpy(out.mac, s->core[1 + leaf].mac, 6);
    return out;
}

static struct mcsw_sender root_sender(const struct sim_switches *s, uint32_t leaf, uint32_t psn)
{
    struct mcsw_sender out = {
        .port = SIM_UPLINK, .qpn = mcsw_qpn(SIM_ROOT_GROUP, leaf), .psn = psn};

    memcpy(out.ip, s->core[0].copies, 4);
    memcpy(out.mac, s->core[0].mac, 6);
    return out;
}

static void connect_side(struct sim_switches *s, uint32_t member, enum sim_side_name side)
{
    const struct sim_core *c = side == SIM_SQP ? &s->core[0] : sim_core_of(s, member);
    uint32_t rank = side == SIM_SQP ? member : sim_rank_of(s, member);
    struct sim_wire w = {.node = (uint16_t)c->index, .port = (uint16_t)rank};

    memcpy(w.ip, side == SIM_SQP ? c->requests : c->copies, 4);
    memcpy(w.mac, c->mac, 6);
    sim_member_connect(&s->member[member], side, mcsw_qpn(sim_group_of(c), rank), &w);
}

/* ---- join ---- */

static void create(struct sim_core *c, const struct mcsw_sender *senders, unsigned n_senders,
                   const struct mcsw_receiver *receivers, unsigned n_receivers)
{
    struct mcsw_group_config g = {.key = c->s->group.key,
                                  .ip_version = 4,
                                  .senders = n_senders,
                                  .receivers = n_receivers,
                                  .sender = senders,
                                  .receiver = receivers,
                                  .leaf = c->index != 0};

    if (!mcsw_create(c->w, sim_group_of(c), &g))
        sim_violation(c->s->ledger, "switch %u does not create its group", c->index);
}

static uint32_t some_psn(struct sim_switches *s)
{
    return sim_below(s->q, 2) ? 0xffffff - sim_below(s->q, 32) : sim_random(s->q) & ROCE_PSN_MASK;
}

static void join_leaf(struct sim_switches *s, uint32_t leaf, uint32_t psn)
{
    struct mcsw_receiver receivers[SIM_RANKS];
    struct mcsw_sender root = root_sender(s, leaf, psn);
    unsigned n = 0;

    for (uint32_t i = leaf * s->group.leaf; i < s->o->members && n < s->group.leaf; i++)
        receivers[n++] = receiver_of(s, i);
    create(&s->core[1 + leaf], &root, 1, receivers, n);
}

void sim_controller_join(struct sim_switches *s)
{
    struct mcsw_sender *senders = calloc(s->o->members, sizeof *senders);
    struct mcsw_receiver receivers[SIM_RANKS];
    uint32_t n = s->leaves ? s->leaves : s->o->members;

    if (!senders)
        abort();
    for (uint32_t i = 0; i < s->o->members; i++)
        senders[i] = sender_of(s, i);
    for (uint32_t i = 0; i < n; i++)
        receivers[i] = s->leaves ? leaf_receiver(s, i, some_psn(s)) : receiver_of(s, i);
    create(&s->core[0], senders, s->o->members, receivers, n);
    for (uint32_t i = 0; i < s->leaves; i++)
        join_leaf(s, i, receivers[i].psn);
    for (uint32_t i = 0; i < s->o->members; i++) {
        connect_side(s, i, SIM_SQP);
        connect_side(s, i, SIM_RQP);
    }
    free(senders);
}

/* ---- repairs ---- */

static void later(struct sim_switches *s, uint32_t what, uint32_t node)
{
    sim_queue_post(s->q, (struct sim_event){
                             .due = s->q->now + sim_below(s->q, repair_links * (uint32_t)SIM_LINK),
                             .kind = SIM_CONTROL,
                             .node = (uint16_t)node,
                             .value = what});
}

static void dirty_member(struct sim_switches *s, uint32_t member)
{
    if (!s->repairing[member])
        later(s, SIM_REPAIR, member);
    s->repairing[member] = true;
}

void sim_controller_notify(void *core, uint32_t group, unsigned rank, enum mcsw_event event)
{
    struct sim_core *c = core;
    struct sim_switches *s = c->s;

    (void)group;
    if (event == MCSW_FENCED) {
        s->expelled[rank] = true;
        s->ledger->life[rank]++;
    } else if (c->index || !s->leaves) {
        dirty_member(s, c->index ? (c->index - 1) * s->group.leaf + rank : rank);
    } else if (!s->relinking[rank]) {
        s->relinking[rank] = true;
        later(s, SIM_RELINK, rank);
    }
}

/* Resets the connection between the root and a leaf at both ends. */
static void relink(struct sim_switches *s, uint32_t leaf)
{
    struct mcsw_receiver receiver;
    struct mcsw_sender sender;
    uint32_t psn;

    s->relinking[leaf] = false;
    memset(&s->view, 0, sizeof s->view);
    mcsw_view(s->core[0].w, SIM_ROOT_GROUP, &s->view);
    psn = (s->view.receiver[leaf].psn_out + (1 << 22) + sim_below(s->q, 1 << 22)) & ROCE_PSN_MASK;
    receiver = leaf_receiver(s, leaf, psn);
    sender = root_sender(s, leaf, psn);
    s->repairs++;
    if (!mcsw_register(s->core[1 + leaf].w, SIM_LEAF_GROUP, 0, &sender) ||
        !mcsw_repair(s->core[0].w, SIM_ROOT_GROUP, leaf, &receiver))
        sim_violation(s->ledger, "leaf %u cannot be linked anew", leaf);
}

void sim_switches_repair(struct sim_switches *s, uint32_t member)
{
    struct sim_core *c = sim_core_of(s, member);
    struct mcsw_receiver r;

    s->repairs++;
    sim_member_open_far(&s->member[member]);
    r = receiver_of(s, member);
    if (!mcsw_repair(c->w, sim_group_of(c), sim_rank_of(s, member), &r))
        sim_violation(s->ledger, "member %u cannot be repaired", member);
    connect_side(s, member, SIM_RQP);
}

/* Bases set by a control are lost with the RQP: a repaired one has the bases of the set-up. */
void sim_controller_act(struct sim_switches *s, const struct sim_event *e)
{
    if (e->value == SIM_RELINK) {
        relink(s, e->node);
        return;
    }
    s->repairing[e->node] = false;
    if (!s->member[e->node].dead)
        sim_switches_repair(s, e->node);
}

void sim_switches_register(struct sim_switches *s, uint32_t member)
{
    struct mcsw_sender sender;

    sim_member_open(&s->member[member], SIM_SQP);
    sender = sender_of(s, member);
    if (!mcsw_register(s->core[0].w, SIM_ROOT_GROUP, member, &sender))
        sim_violation(s->ledger, "member %u cannot be registered", member);
    s->expelled[member] = false;
    connect_side(s, member, SIM_SQP);
}

void sim_switches_mark(struct sim_switches *s, uint32_t member)
{
    struct sim_core *c = sim_core_of(s, member);

    mcsw_mark(c->w, sim_group_of(c), sim_rank_of(s, member));
}

bool sim_switches_expelled(const struct sim_switches *s, uint32_t member)
{
    return s->expelled[member];
}

/* ---- checks of the switches ---- */

static const struct mcsw_view *look(struct sim_core *c)
{
    memset(&c->s->view, 0, sizeof c->s->view);
    if (!mcsw_view(c->w, sim_group_of(c), &c->s->view))
        sim_violation(c->s->ledger, "switch %u has no group", c->index);
    return &c->s->view;
}

uint32_t sim_switches_expected(struct sim_switches *s, uint32_t member)
{
    return look(sim_core_of(s, member))->receiver[sim_rank_of(s, member)].psn_out;
}

static void check_member(struct sim_core *c, const struct mcsw_view *v, uint32_t rank)
{
    struct sim_switches *s = c->s;
    uint32_t member = c->index ? (c->index - 1) * s->group.leaf + rank : rank;
    const struct sim_member *m = &s->member[member];
    uint32_t expected = m->side[SIM_RQP].e->rx.expected;

    if (!m->dead && v->receiver[rank].psn_out != expected)
        sim_violation(s->ledger, "I4: nobody holds, member %u expects %#x, its VSQP sends %#x",
                      member, expected, v->receiver[rank].psn_out);
}

static void check_leaf(struct sim_switches *s, const struct mcsw_view *v, uint32_t leaf)
{
    mcsw_view(s->core[1 + leaf].w, SIM_LEAF_GROUP, &s->before);
    if (v->receiver[leaf].psn_out != s->before.sender[0].epsn)
        sim_violation(s->ledger, "I4: nobody holds, leaf %u expects %#x, the root sends %#x", leaf,
                      s->before.sender[0].epsn, v->receiver[leaf].psn_out);
}

/* The root always holds a leaf; all: nothing is in flight, so a leaf's numbers must agree, too. */
void sim_controller_check(struct sim_core *c, bool all)
{
    const struct mcsw_view *v = look(c);

    if (c->index == 0 ? v->holder != MCSW_NOBODY : !all)
        return;
    for (uint32_t i = 0; i < v->receivers; i++) {
        if (v->receiver[i].dirty)
            continue;
        if (c->s->leaves && c->index == 0)
            check_leaf(c->s, v, i);
        else
            check_member(c, v, i);
    }
}

void sim_switches_check(struct sim_switches *s)
{
    for (uint32_t i = 0; i <= s->leaves; i++)
        sim_controller_check(&s->core[i], true);
}
