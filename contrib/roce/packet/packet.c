/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads and writes transport packets. Pure functions. */
#include "config.h"

#include <string.h>

#include "packet/bytes.h"
#include "packet/packet.h"

static void parse_bth(const uint8_t *b, struct roce_packet *p)
{
    memset(p, 0, sizeof *p);
    p->opcode = b[0];
    p->solicited = b[1] >> 7;
    p->migrated = b[1] >> 6 & 1;
    p->pad = b[1] >> 4 & 3;
    p->version = b[1] & 15;
    p->pkey = roce_get16(b + 2);
    p->fecn = b[4] >> 7;
    p->becn = b[4] >> 6 & 1;
    p->reserved6 = b[4] & 63;
    p->dest_qpn = roce_get24(b + 5);
    p->ack_request = b[8] >> 7;
    p->reserved7 = b[8] & 127;
    p->psn = roce_get24(b + 9);
    p->headers = roce_opcode(p->opcode).headers;
}

static const uint8_t *parse_addresses(const uint8_t *b, struct roce_packet *p)
{
    if (p->headers & ROCE_HAS_XRCETH) {
        p->xrc_reserved = b[0];
        p->srqn = roce_get24(b + 1);
        b += 4;
    }
    if (p->headers & ROCE_HAS_DETH) {
        p->qkey = roce_get32(b);
        p->deth_reserved = b[4];
        p->src_qpn = roce_get24(b + 5);
        b += 8;
    }
    if (p->headers & (ROCE_HAS_RETH | ROCE_HAS_ATOMICETH)) {
        p->va = roce_get64(b);
        p->rkey = roce_get32(b + 8);
        b += 12;
    }
    return b;
}

static const uint8_t *parse_rest(const uint8_t *b, struct roce_packet *p)
{
    if (p->headers & ROCE_HAS_RETH) {
        p->dma_length = roce_get32(b);
        b += 4;
    }
    if (p->headers & ROCE_HAS_ATOMICETH) {
        p->swap_add = roce_get64(b);
        p->compare = roce_get64(b + 8);
        b += 16;
    }
    if (p->headers & ROCE_HAS_AETH) {
        p->syndrome = b[0];
        p->msn = roce_get24(b + 1);
        b += 4;
    }
    if (p->headers & ROCE_HAS_ATOMICACKETH) {
        p->original = roce_get64(b);
        b += 8;
    }
    if (p->headers & ROCE_HAS_IMM) {
        p->imm = roce_get32(b);
        b += 4;
    }
    if (p->headers & ROCE_HAS_IETH) {
        p->invalidate = roce_get32(b);
        b += 4;
    }
    return b;
}

static enum roce_verdict parse_payload(const uint8_t *b, size_t length, struct roce_packet *p)
{
    if (p->pad > length)
        return ROCE_BAD_PAD;
    p->payload = b;
    p->payload_length = (uint32_t)(length - p->pad);
    if (length % 4 != 0 || length > ROCE_MTU_MAX)
        return ROCE_BAD_PAYLOAD;
    if (length != 0 && !roce_opcode(p->opcode).payload)
        return ROCE_BAD_PAYLOAD;
    if (p->opcode == ROCE_CNP && length != ROCE_CNP_BYTES)
        return ROCE_BAD_PAYLOAD;
    return ROCE_GOOD;
}

enum roce_verdict roce_packet_parse(const uint8_t *data, size_t length, struct roce_packet *packet)
{
    const uint8_t *b;
    size_t headers;

    if (length < ROCE_BTH_BYTES)
        return ROCE_TOO_SHORT;
    parse_bth(data, packet);
    if (roce_opcode(packet->opcode).kind == ROCE_KIND_NONE)
        return ROCE_BAD_OPCODE;
    if (packet->version != 0)
        return ROCE_BAD_VERSION;
    headers = roce_opcode_bytes(packet->opcode);
    if (length < headers)
        return ROCE_TOO_SHORT;
    b = parse_addresses(data + ROCE_BTH_BYTES, packet);
    b = parse_rest(b, packet);
    return parse_payload(b, length - headers, packet);
}

static void build_bth(const struct roce_packet *p, uint8_t *b)
{
    b[0] = p->opcode;
    b[1] = (uint8_t)(p->solicited << 7 | p->migrated << 6 | roce_pad(p->payload_length) << 4 |
                     (p->version & 15));
    roce_put16(b + 2, p->pkey);
    b[4] = (uint8_t)(p->fecn << 7 | p->becn << 6 | (p->reserved6 & 63));
    roce_put24(b + 5, p->dest_qpn);
    b[8] = (uint8_t)(p->ack_request << 7 | (p->reserved7 & 127));
    roce_put24(b + 9, p->psn);
}

static uint8_t *build_addresses(const struct roce_packet *p, uint8_t headers, uint8_t *b)
{
    if (headers & ROCE_HAS_XRCETH) {
        b[0] = p->xrc_reserved;
        roce_put24(b + 1, p->srqn);
        b += 4;
    }
    if (headers & ROCE_HAS_DETH) {
        roce_put32(b, p->qkey);
        b[4] = p->deth_reserved;
        roce_put24(b + 5, p->src_qpn);
        b += 8;
    }
    if (headers & (ROCE_HAS_RETH | ROCE_HAS_ATOMICETH)) {
        roce_put64(b, p->va);
        roce_put32(b + 8, p->rkey);
        b += 12;
    }
    return b;
}

static uint8_t *build_rest(const struct roce_packet *p, uint8_t headers, uint8_t *b)
{
    if (headers & ROCE_HAS_RETH) {
        roce_put32(b, p->dma_length);
        b += 4;
    }
    if (headers & ROCE_HAS_ATOMICETH) {
        roce_put64(b, p->swap_add);
        roce_put64(b + 8, p->compare);
        b += 16;
    }
    if (headers & ROCE_HAS_AETH) {
        b[0] = p->syndrome;
        roce_put24(b + 1, p->msn);
        b += 4;
    }
    if (headers & ROCE_HAS_ATOMICACKETH) {
        roce_put64(b, p->original);
        b += 8;
    }
    if (headers & ROCE_HAS_IMM) {
        roce_put32(b, p->imm);
        b += 4;
    }
    if (headers & ROCE_HAS_IETH) {
        roce_put32(b, p->invalidate);
        b += 4;
    }
    return b;
}

size_t roce_packet_headers(const struct roce_packet *packet, uint8_t *out)
{
    uint8_t headers = roce_opcode(packet->opcode).headers;
    uint8_t *b;

    build_bth(packet, out);
    b = build_addresses(packet, headers, out + ROCE_BTH_BYTES);
    return (size_t)(build_rest(packet, headers, b) - out);
}

size_t roce_packet_build(const struct roce_packet *packet, uint8_t *out, size_t room)
{
    size_t headers = roce_opcode_bytes(packet->opcode);
    size_t pad = roce_pad(packet->payload_length);
    size_t length = headers + packet->payload_length + pad;

    if (room < length)
        return 0;
    roce_packet_headers(packet, out);
    if (packet->payload_length)
        memcpy(out + headers, packet->payload, packet->payload_length);
    memset(out + length - pad, 0, pad);
    return length;
}
