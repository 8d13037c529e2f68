/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The deparser: writes the frames that leave. A copy changes only the headers of the frame that
 * arrived, and updates its ICRC from these changes. Answers and forwarded controls are short and
 * written from scratch. */
#include "config.h"

#include <string.h>

#include "core/private.h"
#include "packet/bytes.h"
#include "packet/icrc.h"

enum { own_ports = 0xc000, own_hops = 64, dont_fragment = 0x4000, ecn_bits = 3 };

static const struct mcsw_vips *vips(const struct mcsw *w, bool v6)
{
    return v6 ? &w->c.v6 : &w->c.v4;
}

/* ---- frames written from scratch ---- */

/* Copies the fields that a frame to this member has in common with the one that arrived: tag,
 * class, partition. */
static struct roce_frame start(const struct mcsw *w, const struct work *k, const uint8_t *from,
                               const struct address *to)
{
    const uint8_t *ip = k->head + k->p.ip_at, *bth = k->head + k->p.bth_at;
    struct roce_frame f = {.fragment = dont_fragment, .hops = own_hops};

    memcpy(f.destination_mac, to->mac, mac_bytes);
    memcpy(f.source_mac, w->c.mac, mac_bytes);
    f.vlans = k->p.ip_at > ethernet_bytes;
    f.vlan_type[0] = roce_get16(k->head + 12);
    f.vlan[0] = roce_get16(k->head + 14);
    f.ip_version = k->p.v6 ? 6 : 4;
    f.traffic_class = k->p.v6 ? (uint8_t)(ip[0] << 4 | ip[1] >> 4) : ip[1];
    f.traffic_class &= (uint8_t)~ecn_bits;
    memcpy(f.source, from, k->p.v6 ? 16 : 4);
    memcpy(f.destination, to->ip, k->p.v6 ? 16 : 4);
    f.source_port = (uint16_t)(own_ports | (k->b.group & 0x3fff));
    f.destination_port = ROCE_UDP_PORT;
    f.packet.migrated = bth[1] >> 6 & 1;
    f.packet.pkey = roce_get16(bth + 2);
    f.packet.dest_qpn = to->qpn;
    return f;
}

static void send_frame(struct mcsw *w, const struct roce_frame *f, unsigned port)
{
    uint8_t out[ROCE_FRAME_MAX];
    size_t length = roce_frame_build(f, out, sizeof out);

    if (length)
        w->c.calls.emit(w->c.calls.context, port, out, length);
}

static void count_answer(struct mcsw *w, uint8_t syndrome)
{
    uint8_t kind = syndrome & ROCE_SYNDROME_KIND;

    if (kind == ROCE_SYNDROME_ACK)
        w->count.acks++;
    else if (kind == ROCE_SYNDROME_RNR)
        w->count.rnrs++;
    else
        w->count.naks++;
}

void mcsw_answer(struct mcsw *w, const struct group *g, struct work *k, unsigned sender,
                 uint32_t psn, uint8_t syndrome, uint32_t msn)
{
    const struct address *to = mcsw_sender_address(w, (struct group *)(uintptr_t)g) + sender;
    struct roce_frame f = start(w, k, vips(w, k->p.v6)->requests, to);

    f.packet.opcode = roce_opcode_of(ROCE_RC, ROCE_ACKNOWLEDGE);
    f.packet.psn = psn & ROCE_PSN_MASK;
    f.packet.syndrome = syndrome;
    f.packet.msn = msn & ROCE_PSN_MASK;
    count_answer(w, syndrome);
    send_frame(w, &f, to->port);
}

void mcsw_answer_status(struct mcsw *w, const struct group *g, struct work *k, unsigned sender,
                        uint32_t msn, const uint8_t status[MCSW_STATUS_BYTES])
{
    const struct address *to = mcsw_sender_address(w, (struct group *)(uintptr_t)g) + sender;
    struct roce_frame f = start(w, k, vips(w, k->p.v6)->requests, to);

    f.packet.opcode = roce_opcode_of(ROCE_RC, ROCE_READ_RESPONSE_ONLY);
    f.packet.psn = k->p.psn;
    f.packet.syndrome = ROCE_CREDITS_NONE;
    f.packet.msn = msn & ROCE_PSN_MASK;
    f.packet.payload = status;
    f.packet.payload_length = MCSW_STATUS_BYTES;
    send_frame(w, &f, to->port);
}

/* In place of the control a host gets a write of 0 bytes, and a leaf its own control. */
void mcsw_emit_control(struct mcsw *w, struct work *k, const struct target *t, unsigned entry)
{
    struct roce_frame f = start(w, k, vips(w, k->p.v6)->copies, t->to);
    const uint8_t *bth = k->head + k->p.bth_at;
    struct mcsw_entry e;

    f.source_port = roce_get16(bth - udp_bytes);
    f.packet.opcode = roce_opcode_of(ROCE_RC, ROCE_WRITE_ONLY);
    f.packet.solicited = bth[1] >> 7;
    f.packet.ack_request = true;
    f.packet.psn = t->psn;
    f.packet.va = t->base;
    f.packet.rkey = t->rkey;
    if ((k->p.flags & MCSW_SECTIONS) && k->p.links) {
        e = mcsw_entry_at(k, entry);
        f.packet.va = MCSW_CONTROL_VA;
        f.packet.rkey = MCSW_CONTROL_RKEY;
        f.packet.dma_length = e.rkey;
        f.packet.payload = k->frame + k->p.payload_at + e.va;
        f.packet.payload_length = e.rkey;
    }
    send_frame(w, &f, t->to->port);
}

/* ---- frames written over the one that arrived ---- */

static void rewrite_addresses(const struct mcsw *w, const struct work *k, uint8_t *frame,
                              const uint8_t *from, const struct address *to)
{
    size_t address = k->p.v6 ? 16 : 4;
    uint8_t *ip = frame + k->p.ip_at, *first = ip + (k->p.v6 ? 8 : 12);

    memcpy(frame, to->mac, mac_bytes);
    memcpy(frame + mac_bytes, w->c.mac, mac_bytes);
    memcpy(first, from, address);
    memcpy(first + address, to->ip, address);
    if (!k->p.v6) {
        roce_put16(ip + 10, 0);
        roce_put16(ip + 10, ipv4_checksum(ip));
    }
    roce_put24(frame + k->p.bth_at + 5, to->qpn);
}

static void finish(struct mcsw *w, struct work *k, size_t headers, unsigned port)
{
    size_t from = k->p.ip_at, changed = headers - from;
    uint32_t change = roce_icrc_change(k->head + from, k->frame + from, changed);

    roce_put_icrc(k->frame + k->p.icrc_at,
                  k->icrc ^ mcsw_shift(w->c.cache, change, k->p.icrc_at - headers));
    w->c.calls.emit(w->c.calls.context, port, k->frame, k->p.icrc_at + (size_t)ROCE_ICRC_BYTES);
}

void mcsw_emit_copy(struct mcsw *w, struct work *k, const struct target *t)
{
    size_t headers = k->p.bth_at + ROCE_BTH_BYTES + (k->p.has_reth ? reth_bytes : 0);
    uint8_t *bth = k->frame + k->p.bth_at, *reth = bth + ROCE_BTH_BYTES;

    memcpy(k->frame, k->head, headers);
    rewrite_addresses(w, k, k->frame, vips(w, k->p.v6)->copies, t->to);
    roce_put24(bth + 9, t->psn);
    /* Receivers acknowledge packets that request it; a sender may request it only after its last
     * message, the RELEASE. */
    if (k->p.last)
        bth[8] |= 0x80;
    if (k->p.has_reth) {
        roce_put64(reth, k->p.va + t->base);
        roce_put32(reth + 8, t->rkey);
    }
    finish(w, k, headers, t->to->port);
}

void mcsw_emit_cnp(struct mcsw *w, const struct group *g, struct work *k, unsigned sender)
{
    const struct address *to = mcsw_sender_address(w, (struct group *)(uintptr_t)g) + sender;
    size_t headers = k->p.bth_at + (size_t)ROCE_BTH_BYTES;

    memcpy(k->frame, k->head, headers);
    rewrite_addresses(w, k, k->frame, vips(w, k->p.v6)->requests, to);
    w->count.cnps++;
    finish(w, k, headers, to->port);
}
