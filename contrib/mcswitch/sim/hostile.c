/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See hostile.h. Each forged packet enters the switch through its author's port, and must change
 * nothing there and cause no frame (design: sender table, ingress port, acknowledgements only of
 * sent packets). */
#include "config.h"

#include <string.h>

#include "packet/bytes.h"
#include "packet/psn.h"
#include "sim/hostile.h"

enum forgery {
    SPOOFED_REQUEST, /* an outsider's, in the name of a member */
    UNKNOWN_REQUEST, /* from an address that no member has */
    SPOOFED_ACK,     /* an outsider's, in the name of a receiver */
    OTHERS_REQUEST,  /* a member's, in the name of another */
    OTHERS_ACK,
    FUTURE_ACK, /* of a packet that was never sent to this receiver */
    FUTURE_NAK,
    DAMAGED, /* its ICRC is wrong */
    SHORT,   /* it ends too early */
    UNKNOWN_GROUP,
    FORGERIES,
};

struct forged {
    struct sim_envelope v;
    struct roce_packet p;
    bool to_vsqp, damaged, cut;
    uint32_t author; /* the member on whose port it arrives; outsiders: the number of members */
};

void sim_hostile_start(struct sim_hostile *h, const struct sim_options *o, struct sim_queue *q,
                       struct sim_switches *s, struct sim_member *members)
{
    *h = (struct sim_hostile){.o = o, .q = q, .switches = s, .member = members};
}

static uint32_t any_member(struct sim_hostile *h)
{
    return sim_below(h->q, h->o->members);
}

static uint32_t other_than(struct sim_hostile *h, uint32_t member)
{
    return (member + 1 + sim_below(h->q, h->o->members - 1)) % h->o->members;
}

/* Fills in what a member's queue pair would send, as far as an outsider can guess. */
static void as_member(struct forged *f, const struct sim_member *m, bool response)
{
    const struct sim_side *s = &m->side[response ? SIM_RQP : SIM_SQP];

    f->v = s->envelope;
    f->to_vsqp = response;
    f->p = (struct roce_packet){.pkey = 0xffff,
                                .migrated = true,
                                .dest_qpn = s->a.dest_qpn,
                                .ack_request = !response,
                                .rkey = sim_rkey(0, m->index),
                                .dma_length = 0,
                                .psn = (s->a.send_psn + (uint32_t)m->packets) & ROCE_PSN_MASK};
    f->p.opcode = response ? ROCE_ACKNOWLEDGE : ROCE_WRITE_ONLY;
    f->p.syndrome = ROCE_SYNDROME_ACK | ROCE_CREDITS_NONE;
}

static void forge(struct sim_hostile *h, enum forgery kind, struct forged *f)
{
    uint32_t victim = any_member(h);
    bool response = kind == SPOOFED_ACK || kind == OTHERS_ACK || kind == FUTURE_ACK ||
                    kind == FUTURE_NAK || (kind >= DAMAGED && sim_below(h->q, 2));

    memset(f, 0, sizeof *f);
    as_member(f, &h->member[victim], response);
    f->author = h->o->members;
    if (kind == OTHERS_REQUEST || kind == OTHERS_ACK) {
        f->author = other_than(h, victim);
        if (sim_below(h->q, 2)) /* with its own address */
            memcpy(f->v.from_ip, h->member[f->author].ip, 4);
    } else if (kind >= FUTURE_ACK) {
        f->author = victim;
    }
    if (kind == UNKNOWN_REQUEST)
        f->v.from_ip[0] = 99;
    if (response && kind != FUTURE_ACK && kind != FUTURE_NAK)
        f->p.psn = sim_switches_expected(h->switches, victim);
    if (kind == FUTURE_ACK || kind == FUTURE_NAK)
        f->p.psn = (sim_switches_expected(h->switches, victim) + (kind == FUTURE_NAK) +
                    sim_below(h->q, 1000)) &
                   ROCE_PSN_MASK;
    if (kind == FUTURE_NAK)
        f->p.syndrome = ROCE_NAK_SEQUENCE;
    if (kind == UNKNOWN_GROUP)
        f->p.dest_qpn ^= 0x7ff00;
    f->damaged = kind == DAMAGED;
    f->cut = kind == SHORT;
}

static void send(struct sim_hostile *h, enum forgery kind)
{
    uint8_t frame[SIM_ENVELOPE + ROCE_PACKET_MAX];
    struct forged f;
    size_t length;

    forge(h, kind, &f);
    length = roce_packet_build(&f.p, frame + SIM_ENVELOPE, sizeof frame - SIM_ENVELOPE);
    length = sim_envelope_close(&f.v, frame, length);
    if (f.damaged) /* after the part that the ICRC does not cover */
        frame[SIM_ENVELOPE + 5 + sim_below(h->q, (uint32_t)length - SIM_ENVELOPE - 5)] ^= 0x10;
    if (f.cut)
        length = sim_below(h->q, (uint32_t)length - 1);
    h->sent++;
    sim_switches_forged(h->switches, f.author, f.to_vsqp, frame, length, kind);
}

void sim_hostile_act(struct sim_hostile *h, uint32_t posted)
{
    if (h->seen == posted)
        return;
    h->seen = posted;
    if (sim_chance(h->q, h->o->hostile))
        send(h, (enum forgery)sim_below(h->q, FORGERIES));
}
