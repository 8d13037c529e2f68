/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See member.h: queue pairs and their callbacks. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "packet/bytes.h"
#include "packet/psn.h"
#include "sim/member.h"

enum {
    timeout_code = 8,  /* 1.05 ms, about 100 links */
    repeat_links = 60, /* before a packet is repeated */
    retries = 5,       /* if a member may be dead */
    rnr_code = 1,      /* 10 us, one link */
    request_room = 64,
    udp_source = 0xc000,
    first_qpn = 0x10000,
    near_wrap = 64,     /* half of the PSNs begin so close below 2^24 */
    far_away = 1 << 22, /* doc/multicast.md: stragglers count as old */
};

/* ---- callbacks ---- */

static enum roce_status fetch(void *context, const struct roce_request *r, uint32_t offset,
                              void *to, uint32_t length)
{
    struct sim_broadcast *b = r->owner;

    (void)context;
    if (r->id == SIM_IS_CONTROL || r->id == SIM_IS_RELEASE)
        memcpy(to, b->control + (r->id == SIM_IS_RELEASE ? b->control_bytes : 0) + offset, length);
    else
        sim_pattern(sim_serial(b, (uint32_t)r->id), offset, to, length);
    return ROCE_SUCCESS;
}

static void complete(void *context, const struct roce_request *r, enum roce_status status)
{
    struct sim_member *m = ((struct sim_side *)context)->member;

    if (status == ROCE_SUCCESS && r->id < SIM_MESSAGES_MAX && r->length)
        sim_ledger_complete(m->ledger, r->owner, (uint32_t)r->id);
    m->completed(m, r->owner, r->id, status);
}

static enum roce_status check(void *context, const struct roce_reach *reach)
{
    struct sim_member *m = ((struct sim_side *)context)->member;

    m->arriving = (struct sim_arriving){.write = true, .reach = *reach};
    return m->refuses ? ROCE_REMOTE_ACCESS : ROCE_SUCCESS;
}

/* Handles a piece of a message; the first piece names the message. */
static void piece(struct sim_member *m, uint32_t offset, const void *from, uint32_t length)
{
    struct sim_arriving *a = &m->arriving;

    if (!a->any) {
        a->any = true;
        a->serial = length >= 4 ? roce_get32(from) : UINT32_MAX;
        a->at = 0;
        if (a->write)
            sim_ledger_address(m->ledger, m->index, a->serial, a->reach.va, a->reach.rkey);
    }
    if (offset != a->at || a->serial == UINT32_MAX ||
        !sim_is_pattern(a->serial, offset, from, length))
        sim_violation(m->ledger, "I1: member %u: message %#x is damaged at byte %u", m->index,
                      a->serial, a->at);
    a->at = offset + length;
}

static void whole(struct sim_member *m, uint32_t serial, uint32_t length)
{
    const struct sim_broadcast *b = sim_ledger_find(m->ledger, serial);

    if (b && b->message[serial % SIM_MESSAGES_MAX].length != length)
        sim_violation(m->ledger, "I1: member %u: message %u of broadcast %u has %u bytes, not %u",
                      m->index, serial % SIM_MESSAGES_MAX, b->id, length,
                      b->message[serial % SIM_MESSAGES_MAX].length);
    memset(&m->arriving, 0, sizeof m->arriving);
    sim_ledger_deliver(m->ledger, m->index, serial);
}

static enum roce_status write_memory(void *context, const struct roce_reach *reach,
                                     const void *from)
{
    struct sim_member *m = ((struct sim_side *)context)->member;
    struct sim_arriving *a = &m->arriving;
    const struct sim_broadcast *b;

    piece(m, (uint32_t)(reach->va - a->reach.va), from, (uint32_t)reach->length);
    if (a->at < a->reach.length)
        return ROCE_SUCCESS;
    /* A write with immediate ends with receive_done. */
    b = sim_ledger_find(m->ledger, a->serial);
    if (!b || !b->message[a->serial % SIM_MESSAGES_MAX].with_imm)
        whole(m, a->serial, a->at);
    return ROCE_SUCCESS;
}

static enum roce_status receive_take(void *context, uint32_t srqn)
{
    struct sim_member *m = ((struct sim_side *)context)->member;

    (void)srqn;
    return !m->net->calm && sim_chance(m->net->q, m->net->o->rnr) ? ROCE_NOT_READY : ROCE_SUCCESS;
}

static enum roce_status receive_fill(void *context, uint32_t offset, const void *from,
                                     uint32_t length)
{
    if (length)
        piece(((struct sim_side *)context)->member, offset, from, length);
    return ROCE_SUCCESS;
}

static void receive_done(void *context, const struct roce_message *r)
{
    struct sim_member *m = ((struct sim_side *)context)->member;
    uint32_t serial = m->arriving.any ? m->arriving.serial : r->imm;

    if (r->with_imm && r->imm != serial)
        sim_violation(m->ledger, "I1: member %u: message %#x has immediate %#x", m->index, serial,
                      r->imm);
    whole(m, serial, r->length);
}

static const struct roce_calls calls = {
    .fetch = fetch,
    .complete = complete,
    .check = check,
    .write = write_memory,
    .receive_take = receive_take,
    .receive_fill = receive_fill,
    .receive_done = receive_done,
};

/* ---- queue pairs ---- */

void sim_member_address(uint32_t index, uint8_t *ip, uint8_t *mac)
{
    const uint8_t i[4] = {10, 1, (uint8_t)(index >> 8), (uint8_t)index};
    const uint8_t h[6] = {2, 0, 0, 1, (uint8_t)(index >> 8), (uint8_t)index};

    memcpy(ip, i, sizeof i);
    memcpy(mac, h, sizeof h);
}

void sim_member_start(struct sim_member *m, uint32_t index, struct sim_ledger *l, struct sim_net *n)
{
    memset(m, 0, sizeof *m);
    m->ledger = l;
    m->net = n;
    m->index = index;
    sim_member_address(index, m->ip, m->mac);
    sim_member_open(m, SIM_SQP);
    sim_member_open(m, SIM_RQP);
}

static void keep_counters(struct sim_member *m)
{
    const struct roce_counters *c;

    if (!m->side[SIM_SQP].e)
        return;
    c = roce_counters(m->side[SIM_SQP].e);
    m->gone.sent += c->sent;
    m->gone.repeated += c->repeated;
    m->gone.timeouts += c->timeouts;
    m->gone.rnr += c->rnr;
    m->gone.naks_received += c->naks_received;
}

void sim_member_counters(const struct sim_member *m, struct roce_counters *c)
{
    struct sim_member all = *m;

    keep_counters(&all);
    *c = all.gone;
}

void sim_member_end(struct sim_member *m)
{
    roce_close(m->side[SIM_SQP].e);
    roce_close(m->side[SIM_RQP].e);
}

static uint32_t some_psn(struct sim_member *m)
{
    struct sim_queue *q = m->net->q;

    return sim_below(q, 2) ? 0xffffff - sim_below(q, near_wrap) : sim_random(q) & ROCE_PSN_MASK;
}

static void forget_side(struct sim_member *m, enum sim_side_name name)
{
    if (name == SIM_SQP) {
        keep_counters(m);
        m->sent = m->packets = 0;
    } else {
        memset(&m->arriving, 0, sizeof m->arriving);
    }
    roce_close(m->side[name].e);
    m->side[name].e = NULL;
}

static void open_at(struct sim_member *m, enum sim_side_name name, uint32_t psn)
{
    const struct sim_options *o = m->net->o;
    struct sim_side *s = &m->side[name];
    bool mortal = o->deaths || o->sleeps;

    forget_side(m, name);
    m->generation++;
    s->member = m;
    s->name = name;
    s->timer = ROCE_NEVER;
    s->a = (struct roce_attributes){
        .transport = ROCE_RC,
        .qpn = first_qpn + m->index * 0x1000 + (m->generation & 0xfff),
        .send_psn = psn,
        .receive_psn = psn,
        .path_mtu = o->mtu,
        .pkey = 0xffff,
        .access = ROCE_ACCESS_WRITE,
        .timeout = timeout_code,
        .retry_count = mortal ? retries : 7,
        .retry_for_ever = !mortal,
        .rnr_retry = 7,
        .min_rnr_timer = rnr_code,
        .max_dest_rd_atomic = 1,
        .requests = request_room,
        .window_packets = o->window,
        .window_bytes = o->window * o->mtu,
        .repeat_first = repeat_links * SIM_LINK,
        .repeat_least = repeat_links * SIM_LINK,
    };
    s->e = roce_open(&s->a, &calls, s);
    if (!s->e)
        abort();
}

void sim_member_open(struct sim_member *m, enum sim_side_name name)
{
    open_at(m, name, some_psn(m));
}

void sim_member_open_far(struct sim_member *m)
{
    uint32_t old = m->side[SIM_RQP].a.receive_psn;

    open_at(m, SIM_RQP, (old + far_away + sim_below(m->net->q, far_away)) & ROCE_PSN_MASK);
}

void sim_member_connect(struct sim_member *m, enum sim_side_name name, uint32_t dest_qpn,
                        const struct sim_wire *w)
{
    struct sim_side *s = &m->side[name];

    s->a.dest_qpn = dest_qpn;
    s->to = (struct sim_event){.kind = SIM_AT_SWITCH, .node = w->node, .port = w->port};
    s->envelope.source_port = (uint16_t)(udp_source + name);
    memcpy(s->envelope.from_ip, m->ip, 4);
    memcpy(s->envelope.from_mac, m->mac, 6);
    memcpy(s->envelope.to_ip, w->ip, 4);
    memcpy(s->envelope.to_mac, w->mac, 6);
    roce_ready_to_receive(s->e, &s->a);
    if (name == SIM_SQP)
        roce_ready_to_send(s->e, &s->a);
}

static void remember_end(struct sim_member *m, uint32_t length)
{
    uint32_t mtu = m->net->o->mtu;

    m->packets += length ? (length + mtu - 1) / mtu : 1;
    m->end[m->sent++ % SIM_HISTORY] = m->packets;
}

void sim_member_post(struct sim_member *m, struct sim_broadcast *b, uint32_t index)
{
    struct roce_request r = {.id = index, .owner = b, .kind = ROCE_DO_WRITE};

    if (index < SIM_MESSAGES_MAX) {
        const struct sim_message *g = &b->message[index];

        r.kind = g->send ? ROCE_DO_SEND : ROCE_DO_WRITE;
        r.flags = g->with_imm ? ROCE_WITH_IMM : 0;
        r.imm = sim_serial(b, index);
        r.length = g->length;
        r.va = g->offset;
    } else {
        r.length = index == SIM_IS_CONTROL ? b->control_bytes : b->release_bytes;
        r.va = UINT64_MAX;
        r.rkey = UINT32_MAX;
    }
    remember_end(m, r.length);
    if (roce_post(m->side[SIM_SQP].e, &r) != 0)
        sim_violation(m->ledger, "the send queue of member %u is full", m->index);
}
