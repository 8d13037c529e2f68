/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Builds frames, feeds the switch, matches what leaves. */
#include "config.h"

#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/psn.h"

static const uint8_t vip4[2][4] = {{10, 0, 0, 200}, {10, 0, 0, 201}};
static const uint8_t vip6[2][16] = {{0xfd, 1, [15] = 200}, {0xfd, 1, [15] = 201}};
static const uint8_t switch_mac[6] = {2, 0, 0, 0, 1, 0};

/* ---- callbacks ---- */

static void emit(void *context, unsigned port, uint8_t *frame, size_t length)
{
    struct rig *r = context;
    struct rig_out *o = &r->out[r->outs];

    if (r->outs == RIG_OUTS || length > sizeof o->bytes) {
        rig_check(r, false, "too many frames, or one too long, came out");
        return;
    }
    r->outs++;
    memset(o, 0, sizeof *o);
    o->port = port;
    o->length = length;
    memcpy(o->bytes, frame, length);
    o->verdict = roce_frame_parse(o->bytes, length, &o->f);
    o->roce = o->verdict == ROCE_GOOD || o->verdict == ROCE_BAD_ICRC;
}

static void notify(void *context, uint32_t group, unsigned rank, enum mcsw_event event)
{
    struct rig *r = context;

    (void)rank;
    rig_check(r, group == RIG_GROUP, "an event of this group");
    if (event == MCSW_FENCED)
        r->fenced++;
    else
        r->dirtied++;
}

static void violation(void *context, const char *what)
{
    struct rig *r = context;

    r->violations++;
    fprintf(stderr, "a pipeline can't do this: %s\n", what);
}

/* ---- open ---- */

static void set_config(struct rig *r)
{
    struct mcsw_config *c = &r->config;

    c->mode = r->o.mode;
    c->aggregate = r->o.aggregate;
    c->groups = RIG_GROUP;
    c->v4.on = c->v6.on = true;
    memcpy(c->v4.requests, vip4[0], 4);
    memcpy(c->v4.copies, vip4[1], 4);
    memcpy(c->v6.requests, vip6[0], 16);
    memcpy(c->v6.copies, vip6[1], 16);
    memcpy(c->mac, switch_mac, 6);
    c->lease = 1000000;
    c->boot = 77;
    c->believe_icrc = r->o.believe_icrc;
    c->deferred = r->o.deferred;
    c->slots = r->o.deferred ? 64 : 0;
    c->calls = (struct mcsw_calls){r, emit, notify, violation};
    c->cache = r->cache;
}

static void address(const struct rig *r, unsigned m, uint8_t ip[16], uint8_t mac[6])
{
    memset(ip, 0, 16);
    if (r->o.v6) {
        ip[0] = 0xfd;
        ip[1] = 1;
        ip[15] = (uint8_t)(m + 1);
    } else {
        ip[0] = 10;
        ip[3] = (uint8_t)(m + 1);
    }
    memset(mac, 0, 6);
    mac[0] = 2;
    mac[5] = (uint8_t)(m + 1);
}

static void set_members(struct rig *r)
{
    for (unsigned m = 0; m < r->o.members; m++) {
        struct mcsw_sender *s = &r->sender[m];
        struct mcsw_receiver *v = &r->receiver[m];

        address(r, m, s->ip, s->mac);
        memcpy(v->ip, s->ip, 16);
        memcpy(v->mac, s->mac, 6);
        s->port = v->port = m;
        s->qpn = 0x100 + m;
        v->qpn = 0x200 + m;
        s->psn = r->o.near_wrap ? 0xfffffe : 0x1000 * (m + 1);
        v->psn = r->o.near_wrap ? roce_psn_add(0xfffffd, m) : 0x80000 + 0x100 * m;
        v->base = 0x100000000ull * (m + 1);
        v->rkey = 0x3000 + m;
    }
}

void rig_open(struct rig *r, const struct rig_options *o)
{
    struct mcsw_group_config g = {.key = RIG_KEY, .ip_version = o->v6 ? 6 : 4};

    memset(r, 0, sizeof *r);
    r->o = *o;
    if (r->o.members == 0)
        r->o.members = 4;
    r->cache = mcsw_cache_open(malloc(mcsw_cache_bytes()));
    r->now = 1000000000;
    set_config(r);
    set_members(r);
    r->w = mcsw_open(malloc(mcsw_bytes(&r->config)), &r->config);
    g.senders = g.receivers = r->o.members;
    g.sender = r->sender;
    g.receiver = r->receiver;
    if (!mcsw_create(r->w, RIG_GROUP, &g))
        abort();
}

void rig_close(struct rig *r)
{
    free(r->w);
    free(r->cache);
}

/* ---- in ---- */

struct roce_frame rig_frame(const struct rig *r, unsigned m, bool to_requests)
{
    struct roce_frame f = {.ip_version = r->o.v6 ? 6 : 4, .fragment = 0x4000, .hops = 64};

    memcpy(f.destination_mac, switch_mac, 6);
    memcpy(f.source_mac, r->sender[m].mac, 6);
    memcpy(f.source, r->sender[m].ip, 16);
    if (r->o.v6)
        memcpy(f.destination, vip6[!to_requests], 16);
    else
        memcpy(f.destination, vip4[!to_requests], 4);
    f.source_port = (uint16_t)(0xc100 + m);
    f.destination_port = ROCE_UDP_PORT;
    if (r->o.vlan) {
        f.vlans = 1;
        f.vlan_type[0] = 0x8100;
        f.vlan[0] = (uint16_t)r->o.vlan;
    }
    f.packet.pkey = 0xffff;
    f.packet.dest_qpn = mcsw_qpn(RIG_GROUP, m);
    return f;
}

void rig_put_bytes(struct rig *r, unsigned port, const uint8_t *frame, size_t length)
{
    uint8_t copy[ROCE_FRAME_MAX];

    memcpy(copy, frame, length);
    r->now += 1000;
    if (r->record)
        r->record(r->context, port, r->now, copy, length);
    mcsw_frame(r->w, port, r->now, copy, length);
}

void rig_put(struct rig *r, unsigned port, const struct roce_frame *f)
{
    uint8_t bytes[ROCE_FRAME_MAX];
    size_t length = roce_frame_build(f, bytes, sizeof bytes);

    rig_put_bytes(r, port, bytes, length);
}

static void pattern(uint8_t *to, uint32_t length, uint32_t psn)
{
    for (uint32_t i = 0; i < length; i++)
        to[i] = (uint8_t)(psn * 7 + i);
}

static void put_request(struct rig *r, unsigned sender, struct roce_frame *f, unsigned operation,
                        uint32_t psn, uint32_t length)
{
    uint8_t payload[ROCE_MTU_MAX];

    pattern(payload, length, psn);
    f->packet.opcode = (uint8_t)operation;
    f->packet.psn = psn & ROCE_PSN_MASK;
    f->packet.payload = payload;
    f->packet.payload_length = length;
    rig_put(r, sender, f);
}

void rig_request(struct rig *r, unsigned sender, unsigned operation, uint32_t psn, uint32_t length)
{
    struct roce_frame f = rig_frame(r, sender, true);

    put_request(r, sender, &f, operation, psn, length);
}

void rig_write(struct rig *r, unsigned sender, unsigned operation, uint32_t psn, uint64_t offset,
               uint32_t length)
{
    struct roce_frame f = rig_frame(r, sender, true);

    f.packet.va = offset;
    f.packet.rkey = r->write_rkey ? r->write_rkey : 1;
    f.packet.dma_length = length;
    put_request(r, sender, &f, operation, psn, length);
}

void rig_control(struct rig *r, unsigned sender, uint32_t psn, const struct mcsw_control *c)
{
    struct roce_frame f = rig_frame(r, sender, true);
    uint8_t payload[ROCE_MTU_MAX];

    f.packet.opcode = ROCE_WRITE_ONLY;
    f.packet.psn = psn & ROCE_PSN_MASK;
    f.packet.va = MCSW_CONTROL_VA;
    f.packet.rkey = MCSW_CONTROL_RKEY;
    f.packet.payload = payload;
    f.packet.payload_length = (uint32_t)mcsw_control_build(c, payload, sizeof payload);
    f.packet.dma_length = f.packet.payload_length;
    rig_put(r, sender, &f);
}

struct mcsw_control rig_set(const struct rig *r, uint8_t flags, uint32_t psn, uint32_t mask)
{
    (void)r;
    return (struct mcsw_control){.flags = flags,
                                 .group = RIG_GROUP,
                                 .key = RIG_KEY,
                                 .psn = roce_psn_add(psn, 1),
                                 .msn = MCSW_UNCHECKED,
                                 .bitmap = mask};
}

void rig_acquire(struct rig *r, unsigned sender, uint32_t psn, uint32_t mask)
{
    struct mcsw_control c = rig_set(r, MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_BITMAP, psn, mask);

    rig_control(r, sender, psn, &c);
}

void rig_release(struct rig *r, unsigned sender, uint32_t psn)
{
    struct mcsw_control c = rig_set(r, MCSW_RELEASE, psn, 0);

    rig_control(r, sender, psn, &c);
}

void rig_response(struct rig *r, unsigned receiver, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    struct roce_frame f = rig_frame(r, receiver, false);

    f.packet.opcode = ROCE_ACKNOWLEDGE;
    f.packet.psn = psn & ROCE_PSN_MASK;
    f.packet.syndrome = syndrome;
    f.packet.msn = msn & ROCE_PSN_MASK;
    rig_put(r, receiver, &f);
}

void rig_congestion(struct rig *r, unsigned receiver)
{
    static const uint8_t zeros[ROCE_CNP_BYTES];
    struct roce_frame f = rig_frame(r, receiver, false);

    f.packet.opcode = ROCE_CNP;
    f.packet.becn = true;
    f.packet.payload = zeros;
    f.packet.payload_length = sizeof zeros;
    rig_put(r, receiver, &f);
}

uint32_t rig_sq(const struct rig *r, unsigned sender, uint32_t n)
{
    return roce_psn_add(r->sender[sender].psn, n);
}

uint32_t rig_rq(const struct rig *r, unsigned receiver, uint32_t n)
{
    return roce_psn_add(r->receiver[receiver].psn, n);
}

/* ---- out ---- */

void rig_check(struct rig *r, bool holds, const char *what)
{
    if (holds)
        return;
    r->failures++;
    fprintf(stderr, "does not hold: %s\n", what);
}

static void print_outs(const struct rig *r)
{
    for (unsigned i = 0; i < r->outs; i++) {
        const struct rig_out *o = &r->out[i];

        fprintf(stderr, "  out %u: port %u %s%s psn %06x syndrome %02x msn %u%s\n", i, o->port,
                o->roce ? roce_operation_name(o->f.packet.opcode) : "not RoCE",
                o->verdict == ROCE_BAD_ICRC ? " wrong ICRC" : "", o->f.packet.psn,
                o->f.packet.syndrome, o->f.packet.msn, o->matched ? " (expected)" : "");
    }
}

const struct rig_out *rig_expect(struct rig *r, unsigned port, unsigned opcode, uint32_t psn)
{
    char text[80];

    for (unsigned i = 0; i < r->outs; i++) {
        struct rig_out *o = &r->out[i];

        if (o->matched || !o->roce || o->port != port || o->f.packet.opcode != opcode ||
            o->f.packet.psn != (psn & ROCE_PSN_MASK))
            continue;
        o->matched = true;
        if (o->verdict != ROCE_GOOD && !r->o.believe_icrc)
            rig_check(r, false, "the ICRC is right");
        return o;
    }
    snprintf(text, sizeof text, "port %u gets %s with PSN %06x", port,
             roce_operation_name((uint8_t)opcode), psn & ROCE_PSN_MASK);
    rig_check(r, false, text);
    print_outs(r);
    return NULL;
}

/* Checks the properties that each copy must have. */
static const struct rig_out *expect_to(struct rig *r, unsigned m, unsigned opcode, uint32_t psn)
{
    const struct rig_out *o = rig_expect(r, m, opcode, psn);
    size_t address = r->o.v6 ? 16 : 4;

    if (!o)
        return NULL;
    RIG_CHECK(r, memcmp(o->f.destination_mac, r->receiver[m].mac, 6) == 0);
    RIG_CHECK(r, memcmp(o->f.source_mac, switch_mac, 6) == 0);
    RIG_CHECK(r, memcmp(o->f.destination, r->receiver[m].ip, address) == 0);
    RIG_CHECK(r, memcmp(o->f.source, r->o.v6 ? vip6[1] : vip4[1], address) == 0);
    RIG_CHECK(r, o->f.packet.dest_qpn == r->receiver[m].qpn);
    RIG_CHECK(r, o->f.vlans == (r->o.vlan != 0) && (!r->o.vlan || o->f.vlan[0] == r->o.vlan));
    return o;
}

void rig_expect_copies(struct rig *r, uint32_t mask, unsigned operation, uint32_t n)
{
    for (unsigned m = 0; m < r->o.members; m++) {
        const struct rig_out *o;

        if (!(mask >> m & 1))
            continue;
        o = expect_to(r, m, operation, rig_rq(r, m, n));
        if (!o)
            continue;
        RIG_CHECK(r, o->f.packet.ack_request || !roce_opcode((uint8_t)operation).last);
        if (!(o->f.packet.headers & ROCE_HAS_RETH))
            continue;
        RIG_CHECK(r, o->f.packet.rkey == r->receiver[m].rkey);
        RIG_CHECK(r, o->f.packet.va - r->receiver[m].base < 1 << 20);
    }
}

void rig_expect_control(struct rig *r, uint32_t mask, uint32_t n)
{
    for (unsigned m = 0; m < r->o.members; m++) {
        const struct rig_out *o;

        if (!(mask >> m & 1))
            continue;
        o = expect_to(r, m, ROCE_WRITE_ONLY, rig_rq(r, m, n));
        if (!o)
            continue;
        RIG_CHECK(r, o->f.packet.payload_length == 0 && o->f.packet.dma_length == 0);
        RIG_CHECK(r, o->f.packet.ack_request);
    }
}

static const struct rig_out *expect_answer(struct rig *r, unsigned s, uint8_t syndrome,
                                           uint32_t psn)
{
    const struct rig_out *o = rig_expect(r, s, ROCE_ACKNOWLEDGE, psn);
    size_t address = r->o.v6 ? 16 : 4;

    if (!o)
        return NULL;
    RIG_CHECK(r, o->f.packet.syndrome == syndrome);
    RIG_CHECK(r, memcmp(o->f.destination_mac, r->sender[s].mac, 6) == 0);
    RIG_CHECK(r, memcmp(o->f.destination, r->sender[s].ip, address) == 0);
    RIG_CHECK(r, memcmp(o->f.source, r->o.v6 ? vip6[0] : vip4[0], address) == 0);
    RIG_CHECK(r, o->f.packet.dest_qpn == r->sender[s].qpn);
    return o;
}

void rig_expect_answer(struct rig *r, unsigned sender, uint8_t syndrome, uint32_t psn)
{
    expect_answer(r, sender, syndrome, psn);
}

void rig_expect_msn(struct rig *r, unsigned sender, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    const struct rig_out *o = expect_answer(r, sender, syndrome, psn);

    if (o && o->f.packet.msn != (msn & ROCE_PSN_MASK)) {
        fprintf(stderr, "MSN %u in place of %u\n", o->f.packet.msn, msn);
        rig_check(r, false, "the MSN is right");
    }
}

void rig_expect_nothing(struct rig *r)
{
    bool all = true;

    for (unsigned i = 0; i < r->outs; i++)
        all = all && r->out[i].matched;
    rig_check(r, all, "nothing else came out");
    if (!all)
        print_outs(r);
    rig_check(r, r->violations == 0, "no pass did what a pipeline can't");
    r->outs = 0;
}

void rig_all_acknowledge(struct rig *r, uint32_t mask, uint32_t n, uint32_t msn)
{
    for (unsigned m = 0; m < r->o.members; m++)
        if (mask >> m & 1)
            rig_response(r, m, ROCE_CREDITS_NONE, rig_rq(r, m, n), msn);
}

struct mcsw_view rig_view(const struct rig *r)
{
    struct mcsw_view v;

    mcsw_view(r->w, RIG_GROUP, &v);
    return v;
}
