/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One packet of the InfiniBand transport, from the BTH to the last byte of padding, as numbers.
 * frame.h and icrc.h have the layers below it (UDP, IP, Ethernet) and the ICRC after it. Pure
 * functions. */
#ifndef ROCE_PACKET_H
#define ROCE_PACKET_H

#include <stddef.h>

#include "packet/opcode.h"

enum {
    ROCE_BTH_BYTES = 12,
    ROCE_ICRC_BYTES = 4,
    ROCE_MTU_MAX = 4096,
    /* BTH, XRCETH, RETH and immediate are the longest row of headers with a payload. */
    ROCE_HEADERS_MAX = 48,
    /* A buffer for any packet with its ICRC. */
    ROCE_PACKET_MAX = ROCE_HEADERS_MAX + ROCE_MTU_MAX + ROCE_ICRC_BYTES,
    ROCE_UDP_PORT = 4791,
    ROCE_CNP_BYTES = 16, /* reserved bytes behind the BTH of a CNP */
};

/* AETH syndromes: what, and in the low five bits a credit count, a timer or a code. */
enum {
    ROCE_SYNDROME_ACK = 0x00,
    ROCE_SYNDROME_RNR = 0x20,
    ROCE_SYNDROME_NAK = 0x60,
    ROCE_SYNDROME_KIND = 0x60,  /* mask */
    ROCE_SYNDROME_VALUE = 0x1f, /* mask */
    ROCE_CREDITS_NONE = 31,     /* the responder states no limit */
    ROCE_NAK_SEQUENCE = 0x60,
    ROCE_NAK_INVALID = 0x61,
    ROCE_NAK_ACCESS = 0x62,
    ROCE_NAK_OPERATION = 0x63,
};

struct roce_packet {
    uint8_t opcode;
    bool solicited, migrated, fecn, becn, ack_request;
    uint8_t version;   /* TVer, 0 */
    uint8_t reserved6; /* low bits of byte 4; not covered by the ICRC */
    uint8_t reserved7; /* low bits of byte 8 */
    uint8_t headers;   /* ROCE_HAS_..., from the operation code */
    uint8_t pad;       /* parsed; building computes it */
    uint16_t pkey;
    uint32_t dest_qpn, psn;
    /* Valid when headers has the bit. */
    uint8_t xrc_reserved;
    uint32_t srqn;              /* XRCETH */
    uint32_t qkey, src_qpn;     /* DETH */
    uint8_t deth_reserved;      /* DETH */
    uint64_t va;                /* RETH, AtomicETH */
    uint32_t rkey;              /* RETH, AtomicETH */
    uint32_t dma_length;        /* RETH */
    uint64_t swap_add, compare; /* AtomicETH */
    uint8_t syndrome;           /* AETH */
    uint32_t msn;               /* AETH */
    uint64_t original;          /* AtomicAckETH */
    uint32_t imm;               /* ImmDt, as a number; verbs keep it in network order */
    uint32_t invalidate;        /* IETH */
    const uint8_t *payload;
    uint32_t payload_length; /* without padding */
};

enum roce_verdict {
    ROCE_GOOD,
    ROCE_TOO_SHORT,    /* for its headers */
    ROCE_BAD_OPCODE,   /* unknown */
    ROCE_BAD_VERSION,  /* of the transport header */
    ROCE_BAD_PAD,      /* more than there is, or without a payload */
    ROCE_BAD_PAYLOAD,  /* longer than any MTU, not whole words, or present where not allowed */
    ROCE_NOT_ROCE,     /* a frame of something else */
    ROCE_BAD_LENGTH,   /* lengths in the headers below contradict each other */
    ROCE_BAD_CHECKSUM, /* of the IP header */
    ROCE_BAD_ICRC,
    ROCE_VERDICTS,
};

/* Reads the transport packet in data, without its ICRC; *packet points into data. Every length is
 * checked; nothing outside of data is read. */
enum roce_verdict roce_packet_parse(const uint8_t *data, size_t length, struct roce_packet *packet);

/* Writes the headers of a packet to out (ROCE_HEADERS_MAX bytes); packet->payload_length decides
 * the padding. Result: their bytes. */
size_t roce_packet_headers(const struct roce_packet *packet, uint8_t *out);

/* Headers, payload and zeros as padding. Result: bytes, a multiple of 4, or 0 if the buffer is too
 * small. */
size_t roce_packet_build(const struct roce_packet *packet, uint8_t *out, size_t room);

static inline uint8_t roce_pad(uint32_t payload_length)
{
    return (uint8_t)(-payload_length & 3);
}

#endif
