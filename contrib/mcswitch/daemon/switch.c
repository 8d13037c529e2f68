/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's core; see switch.h. A group of two levels has a group of the core as its root. The
 * root's receivers are leaf groups, and the only sender of a leaf group is the root. */
#include "config.h"

#include "daemon/switch.h"

#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "daemon/wire.h"

enum {
    loop_port = MCD_PORTS, /* between the levels */
    loop_slots = 512,
    leaf_groups = 256,  /* numbers behind those of the controller's groups */
    members_most = 254, /* the core's limit */
    leaves_most = (members_most + TK_MCSW_LEAF - 1) / TK_MCSW_LEAF,
    far = 1 << 22, /* packets in flight with an old PSN count as old */
    psn_mask = 0xffffff,
};

_Static_assert(MCSW_WINDOW_RKEY == TK_MCSW_WINDOW_KEY, "what members and the core call it");

/* The core's groups of one controller group. */
struct levels {
    unsigned members, leaves; /* leaves 0: one level */
    uint32_t first;           /* leaf group */
    uint32_t psn[leaves_most];
    uint32_t broken; /* bits of leaves that the root marked dirty */
};

struct looped {
    size_t length;
    uint8_t frame[MCSW_FRAME_MAX];
};

static struct mcsw *core;
static struct mcsw_cache *cache;
static const struct mcd_vips *vips;
static void (*report)(uint32_t group, unsigned rank, unsigned kind);
static struct levels *levels; /* by number - 1 */
static unsigned groups;
static uint32_t leaf_owner[leaf_groups]; /* number of its group; 0: free */
static struct looped *loop;
static unsigned loop_first, loop_count;
static uint64_t loop_lost, lost_port;
static bool some_broken;

/* ---- frames ---- */

static void loop_frame(const uint8_t *frame, size_t length)
{
    struct looped *l;

    if (loop_count == loop_slots || length > sizeof l->frame) {
        loop_lost++;
        return;
    }
    l = &loop[(loop_first + loop_count++) % loop_slots];
    memcpy(l->frame, frame, length);
    l->length = length;
}

static void emit(void *context, unsigned port, uint8_t *frame, size_t length)
{
    (void)context;
    if (port == loop_port && loop)
        loop_frame(frame, length);
    else if (port >= mcd_port_count)
        lost_port++;
    else if (mcd_ports[port].kind == MCD_WIRE)
        mcd_wire_send(frame, length);
    else
        mcd_port_send(&mcd_ports[port], frame, length);
}

static void repair_leaves(void);

bool mcd_switch_take(struct mcd_port *port, uint8_t *frame, size_t length)
{
    uint64_t now = mcd_now();
    bool taken = mcsw_frame(core, port->number, now, frame, length);

    while (loop_count > 0) {
        struct looped *l = &loop[loop_first];

        mcsw_frame(core, loop_port, now, l->frame, l->length);
        loop_first = (loop_first + 1) % loop_slots;
        loop_count--;
    }
    if (some_broken)
        repair_leaves();
    return taken;
}

/* ---- reports of the core ---- */

static void notify(void *context, uint32_t group, unsigned rank, enum mcsw_event event)
{
    unsigned kind = event == MCSW_FENCED ? TK_MCSW_MEMBER_FENCED : TK_MCSW_MEMBER_DIRTY;
    struct levels *l;

    (void)context;
    if (group > groups) {
        uint32_t owner = leaf_owner[group - groups - 1];

        if (owner && event == MCSW_DIRTY)
            report(owner, (group - levels[owner - 1].first) * TK_MCSW_LEAF + rank, kind);
        return;
    }
    l = &levels[group - 1];
    if (l->leaves && event == MCSW_DIRTY) { /* deferred, because the core is running */
        l->broken |= 1u << rank;
        some_broken = true;
        return;
    }
    report(group, rank, kind);
}

/* ---- members for the core ---- */

static struct mcsw_sender sender_of(const struct mcd_switch_member *m)
{
    struct mcsw_sender s = {.port = m->port, .qpn = m->sqpn, .psn = m->sqpsn};

    memcpy(s.ip, m->ip, 4);
    memcpy(s.mac, m->mac, 6);
    return s;
}

static struct mcsw_receiver receiver_of(const struct mcd_switch_member *m)
{
    struct mcsw_receiver r = {
        .port = m->port, .qpn = m->rqpn, .psn = m->rqpsn, .base = m->base, .rkey = m->rkey};

    memcpy(r.ip, m->ip, 4);
    memcpy(r.mac, m->mac, 6);
    return r;
}

/* Describe the root as a leaf's sender, and a leaf as the root's receiver. */
static struct mcsw_sender root_of(uint32_t group, unsigned leaf)
{
    struct mcsw_sender s = {
        .port = loop_port, .qpn = mcsw_qpn(group, leaf), .psn = levels[group - 1].psn[leaf]};

    memcpy(s.ip, vips->copies, 4);
    memcpy(s.mac, vips->mac, 6);
    return s;
}

static struct mcsw_receiver leaf_of(uint32_t group, unsigned leaf)
{
    const struct levels *l = &levels[group - 1];
    struct mcsw_receiver r = {
        .port = loop_port, .qpn = mcsw_qpn(l->first + leaf, 0), .psn = l->psn[leaf], .rkey = 1};

    memcpy(r.ip, vips->requests, 4);
    memcpy(r.mac, vips->mac, 6);
    return r;
}

/* New numbers between root and leaf: packets in flight match nothing. Members of the leaf that lack
 * something become dirty themselves. */
static void repair_leaf(uint32_t group, unsigned leaf)
{
    struct levels *l = &levels[group - 1];
    struct mcsw_sender s;
    struct mcsw_receiver r;

    l->psn[leaf] = (l->psn[leaf] + far) & psn_mask;
    s = root_of(group, leaf);
    r = leaf_of(group, leaf);
    mcsw_register(core, l->first + leaf, 0, &s);
    mcsw_repair(core, group, leaf, &r);
}

static void repair_leaves(void)
{
    some_broken = false;
    for (uint32_t g = 1; g <= groups; g++)
        for (unsigned i = 0; levels[g - 1].broken && i < levels[g - 1].leaves; i++)
            if (levels[g - 1].broken & 1u << i) {
                levels[g - 1].broken &= ~(1u << i);
                repair_leaf(g, i);
            }
}

/* ---- groups ---- */

static bool create_one(uint32_t number, unsigned senders, const struct mcsw_sender *s,
                       unsigned receivers, const struct mcsw_receiver *r, uint64_t key, bool leaf)
{
    struct mcsw_group_config c = {.key = key,
                                  .ip_version = 4,
                                  .senders = senders,
                                  .receivers = receivers,
                                  .sender = s,
                                  .receiver = r,
                                  .leaf = leaf};

    return mcsw_create(core, number, &c);
}

/* A range of free leaf groups; 0 if there is none. */
static uint32_t take_leaves(uint32_t owner, unsigned n)
{
    unsigned row = 0;

    for (unsigned i = 0; i < leaf_groups; i++) {
        row = leaf_owner[i] ? 0 : row + 1;
        if (row < n)
            continue;
        for (unsigned k = 0; k < n; k++)
            leaf_owner[i - k] = owner;
        return groups + 1 + i + 1 - n;
    }
    return 0;
}

static bool prepare_loop(void)
{
    if (!loop)
        loop = calloc(loop_slots, sizeof *loop);
    return loop != NULL;
}

static bool create_leaves(uint32_t group, const struct mcsw_receiver *all, uint64_t key)
{
    struct levels *l = &levels[group - 1];

    l->leaves = (l->members + TK_MCSW_LEAF - 1) / TK_MCSW_LEAF;
    l->first = take_leaves(group, l->leaves);
    for (unsigned i = 0; l->first && i < l->leaves; i++) {
        unsigned left = l->members - i * TK_MCSW_LEAF;
        struct mcsw_sender root = root_of(group, i);

        if (!create_one(l->first + i, 1, &root, left < TK_MCSW_LEAF ? left : TK_MCSW_LEAF,
                        all + i * TK_MCSW_LEAF, key, true))
            return false;
    }
    return l->first != 0;
}

bool mcd_switch_create(uint32_t group, unsigned n, const struct mcd_switch_member *members,
                       uint64_t key)
{
    struct mcsw_sender s[members_most];
    struct mcsw_receiver r[members_most], leaf[leaves_most];
    struct levels *l = &levels[group - 1];
    bool good;

    memset(l, 0, sizeof *l);
    l->members = n;
    for (unsigned i = 0; i < n; i++) {
        s[i] = sender_of(&members[i]);
        r[i] = receiver_of(&members[i]);
    }
    if (n <= TK_MCSW_LEAF)
        return create_one(group, n, s, n, r, key, false);
    good = prepare_loop() && create_leaves(group, r, key);
    for (unsigned i = 0; good && i < l->leaves; i++)
        leaf[i] = leaf_of(group, i);
    good = good && create_one(group, n, s, l->leaves, leaf, key, false);
    if (!good)
        mcd_switch_destroy(group);
    return good;
}

void mcd_switch_destroy(uint32_t group)
{
    struct levels *l = &levels[group - 1];

    mcsw_destroy(core, group);
    for (unsigned i = 0; i < l->leaves && l->first; i++) {
        mcsw_destroy(core, l->first + i);
        leaf_owner[l->first + i - groups - 1] = 0;
    }
    memset(l, 0, sizeof *l);
}

/* Finds the group of the core that has a member's receiver, and its rank there. */
static uint32_t place_of(uint32_t group, unsigned rank, unsigned *receiver)
{
    const struct levels *l = &levels[group - 1];

    *receiver = l->leaves ? rank % TK_MCSW_LEAF : rank;
    return l->leaves ? l->first + rank / TK_MCSW_LEAF : group;
}

void mcd_switch_repair(uint32_t group, unsigned rank, uint32_t what,
                       const struct mcd_switch_member *m)
{
    struct mcsw_sender s = sender_of(m);
    struct mcsw_receiver r = receiver_of(m);
    unsigned at;
    uint32_t there = place_of(group, rank, &at);

    if (what & TK_MCSW_REPAIR_SQP)
        mcsw_register(core, group, rank, &s);
    if (what & TK_MCSW_REPAIR_RQP)
        mcsw_repair(core, there, at, &r);
    if (what & TK_MCSW_REPAIR_MEMORY)
        mcsw_set_memory(core, there, at, r.base, r.rkey);
    if (some_broken)
        repair_leaves();
}

void mcd_switch_window(uint32_t group, unsigned rank, uint64_t base, uint32_t rkey)
{
    unsigned at;
    uint32_t there = place_of(group, rank, &at);

    mcsw_set_window(core, there, at, base, rkey);
}

void mcd_switch_mark(uint32_t group, unsigned rank)
{
    unsigned at;
    uint32_t there = place_of(group, rank, &at);

    mcsw_mark(core, there, at);
}

/* With two levels a rank can't be removed from a group of the core, because the same rank of the
 * root is a leaf, and sender 0 of a leaf is the root. Instead the sender gets no address, so that
 * no request is accepted from it, and the receiver becomes dirty, so that it gets nothing. */
void mcd_switch_remove(uint32_t group, unsigned rank)
{
    struct mcsw_sender nobody = {.port = loop_port};

    if (levels[group - 1].leaves == 0) {
        mcsw_remove(core, group, rank);
        return;
    }
    mcsw_register(core, group, rank, &nobody);
    mcd_switch_mark(group, rank);
    if (some_broken)
        repair_leaves();
}

void mcd_switch_place(uint32_t group, unsigned rank, struct tk_mcsw_place *p)
{
    unsigned at;
    uint32_t there = place_of(group, rank, &at);

    p->vrqpn = mcsw_qpn(group, rank);
    p->vsqpn = mcsw_qpn(there, at);
    p->leaves = levels[group - 1].leaves;
    p->leaf_group = levels[group - 1].first;
}

unsigned mcd_switch_members(void)
{
    return members_most;
}

/* ---- opening ---- */

bool mcd_switch_open(const struct mcd_switch_config *config)
{
    struct mcsw_config c = {.mode = MCSW_FAST,
                            .aggregate = MCSW_EXACT,
                            .groups = config->groups + leaf_groups,
                            .senders = members_most,
                            .lease = (uint64_t)config->lease_ms * 1000000,
                            .boot = config->boot,
                            .calls = {.emit = emit, .notify = notify}};
    size_t bytes;
    void *memory;

    groups = config->groups;
    vips = config->vips;
    report = config->event;
    c.v4.on = true;
    memcpy(c.v4.requests, vips->requests, 4);
    memcpy(c.v4.copies, vips->copies, 4);
    memcpy(c.mac, vips->mac, 6);
    levels = calloc(groups, sizeof *levels);
    memory = aligned_alloc(64, (mcsw_cache_bytes() + 63) & ~(size_t)63);
    if (!levels || !memory)
        return false;
    cache = mcsw_cache_open(memory);
    c.cache = cache;
    bytes = mcsw_bytes(&c);
    memory = bytes ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL;
    core = memory ? mcsw_open(memory, &c) : NULL;
    return core != NULL;
}

void mcd_switch_close(void)
{
    free(core);
    free(cache);
    free(levels);
    free(loop);
    core = NULL;
    loop = NULL;
}

/* ---- counters ---- */

void mcd_switch_print(FILE *to)
{
    const char *name, *meaning;
    uint64_t value;

    fprintf(to, "core");
    for (unsigned i = 0; (name = mcsw_counter(core, i, &meaning, &value)) != NULL; i++)
        fprintf(to, " %s %llu", name, (unsigned long long)value);
    fprintf(to, " loop_lost %llu lost_port %llu\n", (unsigned long long)loop_lost,
            (unsigned long long)lost_port);
}

static void print_one(FILE *to, uint32_t number)
{
    static struct mcsw_view v; /* large */

    if (!mcsw_view(core, number, &v))
        return;
    fprintf(to, "state %u holder %d version %u mask %08x agg %06x dirty %08x\n", number,
            v.holder == MCSW_NOBODY ? -1 : (int)v.holder, v.version, v.mask, v.agg, v.dirty);
    for (unsigned i = 0; i < v.senders; i++)
        fprintf(to, "sender %u epsn %06x msn %u%s%s\n", i, v.sender[i].epsn, v.sender[i].msn,
                v.sender[i].fenced ? " fenced" : "", v.sender[i].valid ? "" : " removed");
    for (unsigned i = 0; i < v.receivers; i++)
        fprintf(to, "receiver %u psn_out %06x acked %06x%s%s%s\n", i, v.receiver[i].psn_out,
                v.receiver[i].acked, v.receiver[i].linked ? " linked" : "",
                v.receiver[i].dirty ? " dirty" : "", v.receiver[i].valid ? "" : " removed");
}

void mcd_switch_print_group(FILE *to, uint32_t group)
{
    const struct levels *l = &levels[group - 1];

    print_one(to, group);
    for (unsigned i = 0; i < l->leaves; i++)
        print_one(to, l->first + i);
}
