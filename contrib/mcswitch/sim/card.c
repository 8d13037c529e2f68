/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See member.h: a member's network card, frames around the packets of its queue pairs, and the
 * requester's check of MSNs. */
#include "config.h"

#include <string.h>

#include "packet/bytes.h"
#include "packet/icrc.h"
#include "packet/psn.h"
#include "sim/member.h"

enum {
    ethernet = 14,
    ip_header = 20,
    hops = 64,
    held_back = 3, /* the most links that a delayed acknowledgement waits */
    frame_room = SIM_ENVELOPE + ROCE_PACKET_MAX,
};

static void put_ip(const struct sim_envelope *v, uint8_t *ip, size_t length)
{
    uint32_t sum = 0;

    memset(ip, 0, ip_header);
    ip[0] = 0x45;
    roce_put16(ip + 2, (uint16_t)length);
    ip[6] = 0x40;
    ip[8] = hops;
    ip[9] = 17;
    memcpy(ip + 12, v->from_ip, 4);
    memcpy(ip + 16, v->to_ip, 4);
    for (int i = 0; i < ip_header; i += 2)
        sum += roce_get16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    roce_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
}

size_t sim_envelope_close(const struct sim_envelope *v, uint8_t *frame, size_t length)
{
    uint8_t *ip = frame + ethernet, *udp = ip + ip_header;
    struct roce_path path = {
        .version = 4, .source_port = v->source_port, .destination_port = ROCE_UDP_PORT};

    memcpy(frame, v->to_mac, 6);
    memcpy(frame + 6, v->from_mac, 6);
    roce_put16(frame + 12, 0x0800);
    put_ip(v, ip, SIM_ENVELOPE - ethernet + length + ROCE_ICRC_BYTES);
    roce_put16(udp, path.source_port);
    roce_put16(udp + 2, path.destination_port);
    roce_put16(udp + 4, (uint16_t)(8 + length + ROCE_ICRC_BYTES));
    roce_put16(udp + 6, 0);
    memcpy(path.source, v->from_ip, 4);
    memcpy(path.destination, v->to_ip, 4);
    roce_put_icrc(frame + SIM_ENVELOPE + length, roce_icrc(&path, frame + SIM_ENVELOPE, length));
    return SIM_ENVELOPE + length + ROCE_ICRC_BYTES;
}

static void set_timer(struct sim_side *s, roce_time due)
{
    struct sim_member *m = s->member;

    if (due == ROCE_NEVER || due >= s->timer)
        return;
    s->timer = due;
    sim_queue_post(m->net->q,
                   (struct sim_event){
                       .due = due, .kind = SIM_TIMER, .node = (uint16_t)m->index, .port = s->name});
}

static void pump_side(struct sim_side *s)
{
    struct sim_member *m = s->member;
    const struct roce_request *r;
    uint8_t frame[frame_room];
    size_t length;

    if (m->dead || m->asleep_until > m->net->q->now)
        return;
    while ((length = roce_output(s->e, m->net->q->now, frame + SIM_ENVELOPE, &r)))
        sim_net_send(m->net, &s->up, s->to, frame, sim_envelope_close(&s->envelope, frame, length));
    set_timer(s, roce_deadline(s->e));
}

void sim_member_pump(struct sim_member *m)
{
    pump_side(&m->side[SIM_SQP]);
    pump_side(&m->side[SIM_RQP]);
}

void sim_member_timer(struct sim_member *m, enum sim_side_name name)
{
    /* If an earlier event has replaced this one, posts no other: otherwise their number would
     * grow. */
    if (m->side[name].timer > m->net->q->now)
        return;
    m->side[name].timer = ROCE_NEVER;
    pump_side(&m->side[name]);
}

/* ---- the requester's check ---- */

/* Counts the messages whose last packet is among the first `through` packets; false: too long
 * ago. */
static bool ended(const struct sim_member *m, uint64_t through, uint64_t *messages)
{
    for (*messages = m->sent; *messages; --*messages) {
        if (m->sent - *messages >= SIM_HISTORY)
            return false;
        if (m->end[(*messages - 1) % SIM_HISTORY] <= through)
            break;
    }
    return true;
}

/* A responder's count of messages must match the packets that it acknowledges. */
static void check_msn(struct sim_member *m, const struct roce_packet *p)
{
    uint32_t last = m->side[SIM_SQP].a.send_psn + (uint32_t)m->packets;
    bool nak = (p->syndrome & ROCE_SYNDROME_KIND) != ROCE_SYNDROME_ACK;
    int64_t through = (int64_t)m->packets + roce_psn_diff(p->psn, last) + (nak ? 0 : 1);
    uint64_t messages;

    /* A round takes the MSN of its last acknowledgement, whose PSN may not be the lowest. */
    if (m->net->o->aggregate == SIM_ROUNDS)
        return;
    if (through < 0 || through > (int64_t)m->packets)
        return; /* stale: for earlier queue pairs */
    if (ended(m, (uint64_t)through, &messages) && p->msn != (messages & ROCE_PSN_MASK))
        sim_violation(m->ledger, "MSN: member %u gets syndrome %#x, PSN %#x with MSN %u, not %llu",
                      m->index, p->syndrome, p->psn, p->msn, (unsigned long long)messages);
}

/* ---- in ---- */

static bool addressed(const struct sim_side *s, const struct roce_frame *f)
{
    const struct sim_member *m = s->member;

    return memcmp(f->source, s->envelope.to_ip, 4) == 0 && memcmp(f->destination, m->ip, 4) == 0 &&
           memcmp(f->destination_mac, m->mac, 6) == 0;
}

static void hand_in(struct sim_side *s, const struct roce_frame *f)
{
    struct sim_member *m = s->member;
    roce_time now = m->net->q->now;

    if (!addressed(s, f)) {
        sim_violation(m->ledger, "member %u gets a frame with wrong addresses", m->index);
        return;
    }
    if (s->name == SIM_SQP && roce_opcode(f->packet.opcode).kind == ROCE_KIND_ACK)
        check_msn(m, &f->packet);
    roce_input(s->e, now, &f->packet, false);
    if (s->name == SIM_RQP && !m->net->calm && sim_chance(m->net->q, m->net->o->delayed))
        set_timer(s, now + 1 + sim_below(m->net->q, held_back * (uint32_t)SIM_LINK));
    else
        pump_side(s);
}

void sim_member_frame(struct sim_member *m, struct sim_frame *frame)
{
    struct roce_frame f;
    enum roce_verdict v;

    if (m->dead)
        return;
    v = roce_frame_parse(frame->bytes, frame->length, &f);
    if (v != ROCE_GOOD) {
        sim_violation(m->ledger, "member %u gets a frame that is wrong: %s", m->index,
                      roce_verdict_name(v));
        return;
    }
    for (int i = 0; i < 2; i++)
        if (m->side[i].a.qpn == f.packet.dest_qpn)
            hand_in(&m->side[i], &f);
}
