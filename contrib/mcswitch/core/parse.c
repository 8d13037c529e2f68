/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parser: decides whether a frame is for the switch's addresses, and what it requests. Owns
 * nothing. */
#include "config.h"

#include <string.h>

#include "core/private.h"
#include "packet/bytes.h"
#include "packet/icrc.h"

static bool same(const uint8_t *a, const struct mcsw_vips *v, size_t bytes)
{
    return v->on && (memcmp(a, v->requests, bytes) == 0 || memcmp(a, v->copies, bytes) == 0);
}

/* Offset behind the Ethernet header and any tags; 0: the frame is too short. */
static size_t ethernet_end(const uint8_t *frame, size_t length, uint16_t *type)
{
    size_t at = ethernet_bytes;

    if (length < at)
        return 0;
    *type = roce_get16(frame + at - 2);
    while ((*type == type_vlan || *type == type_service_vlan) && length >= at + vlan_bytes) {
        *type = roce_get16(frame + at + 2);
        at += vlan_bytes;
    }
    return at;
}

bool mcsw_for_us(const struct mcsw *w, const uint8_t *frame, size_t length)
{
    uint16_t type = 0;
    size_t at = ethernet_end(frame, length, &type);

    if (at == 0)
        return false;
    if (type == type_ipv4 && length >= at + ipv4_bytes)
        return same(frame + at + 16, &w->c.v4, 4);
    if (type == type_ipv6 && length >= at + ipv6_bytes)
        /* Excludes neighbour solicitations, which may be sent to the address itself: the pipeline
         * does not handle them. */
        return frame[at + 6] != 58 && same(frame + at + 24, &w->c.v6, 16);
    return false;
}

static void parse_control(const uint8_t *c, size_t bytes, struct packet *p)
{
    p->kind = IS_CONTROL;
    p->malformed = true;
    if (bytes < MCSW_CONTROL_BYTES || roce_get16(c) != MCSW_MAGIC || c[2] != MCSW_VERSION)
        return;
    p->flags = c[3];
    p->lock = roce_get32(c + 4);
    p->key = roce_get64(c + 8);
    p->first_psn = roce_get32(c + 16);
    p->first_msn = roce_get32(c + 20);
    p->links = roce_get16(c + 26);
    p->bitmap = roce_get32(c + 28);
    p->malformed = roce_get16(c + 24) != 0 || p->links > MCSW_RECEIVERS ||
                   bytes < MCSW_CONTROL_BYTES + (size_t)p->links * MCSW_ENTRY_BYTES;
}

static uint8_t kind_of_request(const struct roce_packet *r)
{
    bool ours = r->rkey == MCSW_CONTROL_RKEY && r->va == MCSW_CONTROL_VA;

    if (roce_opcode_transport(r->opcode) != ROCE_RC)
        return IS_REFUSED;
    switch (r->opcode) {
    case ROCE_WRITE_ONLY:
        return ours ? IS_CONTROL : IS_DATA;
    case ROCE_WRITE_FIRST:
    case ROCE_WRITE_ONLY_IMM:
        return ours ? IS_REFUSED : IS_DATA;
    case ROCE_READ_REQUEST:
        return ours && r->dma_length == MCSW_STATUS_BYTES ? IS_STATUS_READ : IS_REFUSED;
    default:
        return r->opcode <= ROCE_WRITE_ONLY_IMM ? IS_DATA : IS_REFUSED;
    }
}

static bool parse_request(const uint8_t *frame, const struct roce_packet *r, struct packet *p)
{
    /* Sends no NAK for an answer, a CNP, or another transport. */
    if (r->opcode == ROCE_CNP || roce_is_response(r->opcode) ||
        roce_opcode_transport(r->opcode) != ROCE_RC)
        return false;
    p->kind = kind_of_request(r);
    p->last = roce_opcode(r->opcode).last;
    p->has_reth = r->headers & ROCE_HAS_RETH;
    p->window = p->kind == IS_DATA && p->has_reth && r->rkey == MCSW_WINDOW_RKEY;
    if (p->kind == IS_CONTROL)
        parse_control(frame + p->payload_at, p->payload_bytes, p);
    return true;
}

static bool parse_response(const struct roce_packet *r, struct packet *p)
{
    if (r->opcode == ROCE_CNP) {
        p->kind = IS_CNP;
        return true;
    }
    p->kind = IS_ACK;
    p->syndrome = r->syndrome;
    p->msn = r->msn;
    if (r->opcode != roce_opcode_of(ROCE_RC, ROCE_ACKNOWLEDGE) || r->syndrome & 0x80)
        return false;
    switch (r->syndrome & ROCE_SYNDROME_KIND) {
    case ROCE_SYNDROME_ACK:
    case ROCE_SYNDROME_RNR:
        return true;
    case ROCE_SYNDROME_NAK:
        return r->syndrome <= ROCE_NAK_OPERATION;
    default:
        return false;
    }
}

static void parse_common(const struct roce_frame *f, struct packet *p)
{
    p->ip_at = f->ip_at;
    p->bth_at = f->bth_at;
    p->icrc_at = (uint16_t)(f->bth_at + f->packet_length);
    p->v6 = f->ip_version == 6;
    p->opcode = f->packet.opcode;
    p->qpn = f->packet.dest_qpn;
    p->psn = f->packet.psn;
    p->rkey = f->packet.rkey;
    p->va = f->packet.va;
    p->dma_length = f->packet.dma_length;
}

/* An unknown RC request is still a request, and gets a NAK. */
static bool unknown_request(const uint8_t *frame, struct roce_frame *f, enum roce_verdict *v)
{
    if (*v != ROCE_BAD_OPCODE || roce_opcode_transport(f->packet.opcode) != ROCE_RC)
        return false;
    *v = roce_icrc_ip(frame + f->ip_at, (size_t)(f->bth_at - f->ip_at),
                      (size_t)(f->bth_at - f->ip_at) + f->packet_length) == f->icrc
             ? ROCE_GOOD
             : ROCE_BAD_ICRC;
    return true;
}

bool mcsw_parse(struct mcsw *w, const uint8_t *frame, size_t length, struct packet *p)
{
    struct roce_frame f;
    enum roce_verdict v = roce_frame_parse(frame, length, &f);
    bool unknown = unknown_request(frame, &f, &v);
    const uint8_t *to;

    if (v == ROCE_BAD_ICRC && !w->c.believe_icrc) {
        w->count.drop_icrc++;
        return false;
    }
    memset(p, 0, sizeof *p);
    parse_common(&f, p);
    if ((v == ROCE_GOOD || v == ROCE_BAD_ICRC) && f.vlans <= 1) {
        const struct mcsw_vips *vips = p->v6 ? &w->c.v6 : &w->c.v4;

        to = f.destination;
        p->to_requests = memcmp(to, vips->requests, p->v6 ? 16 : 4) == 0;
        if (unknown) {
            p->kind = IS_REFUSED;
            if (p->to_requests)
                return true;
        } else {
            p->payload_at = (uint16_t)(f.packet.payload - frame);
            p->payload_bytes = (uint16_t)f.packet.payload_length;
            if (p->to_requests ? parse_request(frame, &f.packet, p) : parse_response(&f.packet, p))
                return true;
        }
    }
    w->count.drop_form++;
    return false;
}
