/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See switches.h: cores on their cables. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fabric.h"

enum {
    lease_links = 500, /* longer than four time-outs of a member */
    calm_lease = 5000, /* if no member ever stops: only five losses in a row exceed it */
    pass_ns = 5,       /* a recirculated packet passes the switch again after this time */
    pause_ns = 5000,   /* after this time, if other packets are queued before it */
    rnr_code = 4,      /* 40 us: members retry, and each costs frames */
    slots = 256,       /* links have no rate, so a whole window arrives at once */
    opcode_at = SIM_ENVELOPE,
    last_request = 0x0b,
};

/* ---- --verbose ---- */

static void show(const struct sim_core *c, const char *way, unsigned port, const uint8_t *frame,
                 size_t length)
{
    struct roce_frame f;
    enum roce_verdict v;

    if (!c->s->o->verbose)
        return;
    v = roce_frame_parse(frame, length, &f);
    printf("%10.2f switch %u %s port %-3u ", (double)c->s->q->now / (double)SIM_LINK, c->index, way,
           port);
    if (v != ROCE_GOOD)
        printf("%s\n", roce_verdict_name(v));
    else
        printf("%s QP %#x PSN %#x length %u, syndrome %#x MSN %u\n",
               roce_operation_name(f.packet.opcode), f.packet.dest_qpn, f.packet.psn,
               f.packet.payload_length, f.packet.syndrome, f.packet.msn);
}

/* ---- out ---- */

/* The other end of a port's cable. */
static struct sim_event far_end(const struct sim_core *c, unsigned port)
{
    const struct sim_switches *s = c->s;
    struct sim_event to = {.kind = SIM_AT_MEMBER, .node = (uint16_t)port};

    if (c->index && port == SIM_UPLINK)
        return (struct sim_event){
            .kind = SIM_AT_SWITCH, .node = 0, .port = (uint16_t)(s->o->members + c->index - 1)};
    if (c->index)
        to.node = (uint16_t)((c->index - 1) * s->group.leaf + port);
    else if (port >= s->o->members)
        to = (struct sim_event){.kind = SIM_AT_SWITCH,
                                .node = (uint16_t)(1 + port - s->o->members),
                                .port = SIM_UPLINK};
    return to;
}

static void emit(void *context, unsigned port, uint8_t *frame, size_t length)
{
    struct sim_core *c = context;
    struct sim_switches *s = c->s;
    struct sim_event to = far_end(c, port);

    s->emitted++;
    show(c, "out", port, frame, length);
    if (port == (c->index ? (unsigned)SIM_STRANGERS : s->o->members + s->leaves)) {
        sim_violation(s->ledger, "a switch answers a stranger");
        return;
    }
    if (to.kind == SIM_AT_MEMBER && frame[opcode_at] <= last_request)
        s->copies++;
    sim_net_send(s->net, &c->down[port], to, frame, length);
}

static void impossible(void *context, const char *what)
{
    struct sim_core *c = context;

    sim_violation(c->s->ledger, "a pipeline cannot do this: %s", what);
}

/* ---- in ---- */

static void plan_pass(struct sim_core *c)
{
    roce_time in = pass_ns;

    if (c->passing)
        return;
    c->passing = true;
    if (sim_chance(c->s->q, c->s->o->pauses))
        in += sim_below(c->s->q, pause_ns);
    sim_queue_post(c->s->q, (struct sim_event){.due = c->s->q->now + in,
                                               .kind = SIM_CONTROL,
                                               .node = (uint16_t)c->index,
                                               .value = SIM_PASS});
}

static void watch(struct sim_core *c)
{
    const struct mcsw_counters *n = mcsw_counters(c->w);

    if (n->releases == c->releases)
        return;
    c->releases = n->releases;
    sim_controller_check(c, false);
}

void sim_switches_frame(struct sim_switches *s, const struct sim_event *e)
{
    struct sim_core *c = &s->core[e->node];

    show(c, "in ", e->port, e->frame->bytes, e->frame->length);
    if (!mcsw_frame(c->w, e->port, s->q->now, e->frame->bytes, e->frame->length))
        sim_violation(s->ledger, "switch %u takes a frame for ordinary traffic", c->index);
    if (c->deferred)
        plan_pass(c);
    watch(c);
}

static void pass(struct sim_core *c)
{
    c->passing = false;
    if (mcsw_pass(c->w, c->s->q->now))
        plan_pass(c);
    watch(c);
}

void sim_switches_control(struct sim_switches *s, const struct sim_event *e)
{
    if (e->value == SIM_PASS)
        pass(&s->core[e->node]);
    else
        sim_controller_act(s, e);
}

/* Checks that the switch's state of the group is unchanged and that no frame leaves. */
void sim_switches_forged(struct sim_switches *s, uint32_t author, bool to_vsqp, uint8_t *frame,
                         size_t length, int kind)
{
    bool stranger = author == s->o->members;
    struct sim_core *c = to_vsqp && !stranger ? sim_core_of(s, author) : &s->core[0];
    unsigned port = stranger  ? s->o->members + s->leaves
                    : to_vsqp ? sim_rank_of(s, author)
                              : author;
    uint64_t emitted = s->emitted;

    memset(&s->before, 0, sizeof s->before);
    memset(&s->view, 0, sizeof s->view);
    mcsw_view(c->w, sim_group_of(c), &s->before);
    mcsw_frame(c->w, port, s->q->now, frame, length);
    mcsw_view(c->w, sim_group_of(c), &s->view);
    if (memcmp(&s->before, &s->view, sizeof s->view) != 0)
        sim_violation(s->ledger, "a forged frame (%d) of %u changes the switch", kind, author);
    if (s->emitted != emitted)
        sim_violation(s->ledger, "a forged frame (%d) of %u is answered", kind, author);
}

/* ---- a fabric ---- */

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void open_core(struct sim_switches *s, uint32_t index)
{
    struct sim_core *c = &s->core[index];
    const struct sim_options *o = s->o;
    bool loops = o->loops || o->aggregate == SIM_EXACT;
    struct mcsw_config config = {
        .mode = loops ? MCSW_FAST : MCSW_STRICT,
        .aggregate = (enum mcsw_aggregate)o->aggregate,
        .groups = SIM_LEAF_GROUP,
        .senders = index                      ? 1
                   : o->members < MCSW_NOBODY ? o->members
                                              : MCSW_NOBODY,
        .lease = sim_switches_lease(s),
        .rnr_timer = rnr_code,
        .slots = slots,
        .deferred = !loops,
        .calls = {c, emit, sim_controller_notify, impossible},
        .cache = s->cache,
    };
    const uint8_t base[4] = {10, 2, (uint8_t)index, 0}, mac[6] = {2, 0, 0, 2, 0, (uint8_t)index};

    c->s = s;
    c->index = index;
    c->deferred = config.deferred;
    memcpy(c->requests, base, sizeof base);
    memcpy(c->copies, base, sizeof base);
    memcpy(c->mac, mac, sizeof mac);
    c->requests[3] = 1;
    c->copies[3] = 2;
    config.v4.on = true;
    memcpy(config.v4.requests, c->requests, 4);
    memcpy(config.v4.copies, c->copies, 4);
    memcpy(config.mac, mac, sizeof mac);
    c->memory = must(aligned_alloc(64, (mcsw_bytes(&config) + 63) / 64 * 64));
    c->w = must(mcsw_open(c->memory, &config));
}

struct sim_switches *sim_switches_open(const struct sim_options *o, struct sim_queue *q,
                                       struct sim_net *n, struct sim_ledger *l,
                                       struct sim_member *members)
{
    struct sim_switches *s = must(calloc(1, sizeof *s));

    s->o = o;
    s->q = q;
    s->net = n;
    s->ledger = l;
    s->member = members;
    s->group = (struct sim_group){SIM_ROOT_GROUP, SIM_LEAF_GROUP, 0x0123456789abcdef, 0};
    if (o->levels == 2) {
        s->group.leaf = o->leaf;
        s->leaves = (o->members + o->leaf - 1) / o->leaf;
    }
    s->cache = mcsw_cache_open(must(aligned_alloc(64, (mcsw_cache_bytes() + 63) / 64 * 64)));
    for (uint32_t i = 0; i <= s->leaves; i++)
        open_core(s, i);
    sim_controller_join(s);
    return s;
}

void sim_switches_close(struct sim_switches *s)
{
    for (uint32_t i = 0; i <= s->leaves; i++)
        free(s->core[i].memory);
    free(s->cache);
    free(s);
}

const struct sim_group *sim_switches_group(const struct sim_switches *s)
{
    return &s->group;
}

roce_time sim_switches_lease(const struct sim_switches *s)
{
    return (s->o->deaths || s->o->sleeps ? lease_links : calm_lease) * SIM_LINK;
}

void sim_switches_count(const struct sim_switches *s, struct sim_switch_counts *out)
{
    memset(out, 0, sizeof *out);
    out->copies = s->copies;
    out->repairs = s->repairs;
    out->controls = mcsw_counters(s->core[0].w)->controls;
    out->releases = mcsw_counters(s->core[0].w)->releases;
    for (uint32_t i = 0; i <= s->leaves; i++) {
        const struct mcsw_counters *n = mcsw_counters(s->core[i].w);

        out->steals += n->steals;
        out->passes += n->recirculations;
        out->refused += n->refused;
        out->repeats += n->repeats;
        out->local += n->acks_local;
        out->drop_full += n->drop_full;
        out->future += n->drop_future;
        out->version += n->drop_version;
    }
}
