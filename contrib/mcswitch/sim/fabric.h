/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by switches.c (cores on cables) and controller.c. Owns the layout of struct sim_switches.
 * / */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include "core/core.h"
#include "sim/switches.h"

enum {
    SIM_ROOT_GROUP = 1,
    SIM_LEAF_GROUP = 2,
    SIM_UPLINK = SIM_RANKS, /* port of a leaf */
    SIM_STRANGERS =
        SIM_RANKS + 1, /* port of outsiders at a leaf; the root's is behind all others */
    SIM_PORTS_MAX = SIM_MEMBERS_MAX + SIM_LEAVES_MAX + 1,
};

struct sim_core {
    struct sim_switches *s;
    uint32_t index; /* 0: root; 1 + leaf */
    struct mcsw *w;
    void *memory;
    struct sim_link down[SIM_PORTS_MAX];
    uint8_t requests[4], copies[4], mac[6]; /* its addresses */
    uint64_t releases;                      /* releases after which I4 was checked */
    bool deferred, passing;                 /* packets recirculate by events; one is due */
};

struct sim_switches {
    const struct sim_options *o;
    struct sim_queue *q;
    struct sim_net *net;
    struct sim_ledger *ledger;
    struct sim_member *member;
    struct sim_group group;
    uint32_t leaves; /* 0: one level */
    void *cache;
    struct sim_core core[1 + SIM_LEAVES_MAX];
    uint64_t emitted, copies, repairs;
    bool expelled[SIM_MEMBERS_MAX];
    bool repairing[SIM_MEMBERS_MAX], relinking[SIM_LEAVES_MAX];
    struct mcsw_view view, before;
};

/* Events of the controller: what is due at a node. */
enum { SIM_PASS, SIM_REPAIR, SIM_RELINK };

/* The switch of a member's RQP, and the rank there. */
static inline struct sim_core *sim_core_of(struct sim_switches *s, uint32_t member)
{
    return &s->core[s->leaves ? 1 + member / s->group.leaf : 0];
}

static inline uint32_t sim_rank_of(const struct sim_switches *s, uint32_t member)
{
    return s->leaves ? member % s->group.leaf : member;
}

static inline uint32_t sim_group_of(const struct sim_core *c)
{
    return c->index ? SIM_LEAF_GROUP : SIM_ROOT_GROUP;
}

/* ---- controller.c ---- */
void sim_controller_join(struct sim_switches *s);
void sim_controller_notify(void *core, uint32_t group, unsigned rank, enum mcsw_event event);
void sim_controller_act(struct sim_switches *s, const struct sim_event *e);
void sim_controller_check(struct sim_core *c, bool all);

#endif
