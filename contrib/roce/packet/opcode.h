/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The operation codes of the base transport header: which transport, which operation, which place
 * in a message, which extension headers follow (specification table 38; annex A14 for XRC; annex
 * A17.9.3 for CNP). The table is constant. */
#ifndef ROCE_OPCODE_H
#define ROCE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* The upper three bits of an operation code. */
enum roce_transport {
    ROCE_RC = 0,
    ROCE_UC = 1,
    ROCE_UD = 3,
    ROCE_CNP_TRANSPORT = 4,
    ROCE_XRC = 5,
};

/* The lower five bits, as RC has them; UC, UD and XRC have a part of these. */
enum roce_operation {
    ROCE_SEND_FIRST,
    ROCE_SEND_MIDDLE,
    ROCE_SEND_LAST,
    ROCE_SEND_LAST_IMM,
    ROCE_SEND_ONLY,
    ROCE_SEND_ONLY_IMM,
    ROCE_WRITE_FIRST,
    ROCE_WRITE_MIDDLE,
    ROCE_WRITE_LAST,
    ROCE_WRITE_LAST_IMM,
    ROCE_WRITE_ONLY,
    ROCE_WRITE_ONLY_IMM,
    ROCE_READ_REQUEST,
    ROCE_READ_RESPONSE_FIRST,
    ROCE_READ_RESPONSE_MIDDLE,
    ROCE_READ_RESPONSE_LAST,
    ROCE_READ_RESPONSE_ONLY,
    ROCE_ACKNOWLEDGE,
    ROCE_ATOMIC_ACKNOWLEDGE,
    ROCE_COMPARE_SWAP,
    ROCE_FETCH_ADD,
    ROCE_SEND_LAST_INVALIDATE = 0x16,
    ROCE_SEND_ONLY_INVALIDATE = 0x17,
    ROCE_OPERATIONS = 0x18,
};

/* The congestion notification packet, a whole operation code. */
enum { ROCE_CNP = 0x81 };

enum roce_kind {
    ROCE_KIND_NONE, /* no such operation */
    ROCE_KIND_SEND,
    ROCE_KIND_WRITE,
    ROCE_KIND_READ,
    ROCE_KIND_ATOMIC,
    ROCE_KIND_READ_RESPONSE,
    ROCE_KIND_ACK,
    ROCE_KIND_ATOMIC_ACK,
    ROCE_KIND_CNP,
};

/* Extension headers, in the order in which they follow the BTH. */
enum {
    ROCE_HAS_XRCETH = 1,
    ROCE_HAS_DETH = 2,
    ROCE_HAS_RETH = 4,
    ROCE_HAS_ATOMICETH = 8,
    ROCE_HAS_AETH = 16,
    ROCE_HAS_ATOMICACKETH = 32,
    ROCE_HAS_IMM = 64,
    ROCE_HAS_IETH = 128,
};

struct roce_opcode {
    uint8_t kind;    /* enum roce_kind */
    uint8_t headers; /* ROCE_HAS_... */
    bool first;      /* begins a message; an ONLY packet is first and last */
    bool last;
    bool payload; /* a payload may follow */
};

/* Of an operation code; its kind is ROCE_KIND_NONE when the transport has no such operation. */
struct roce_opcode roce_opcode(uint8_t opcode);

/* The operation in words, such as "WRITE_FIRST"; for logs and tests. */
const char *roce_operation_name(uint8_t opcode);

/* Bytes of the headers from the BTH on. */
uint32_t roce_opcode_bytes(uint8_t opcode);

static inline uint8_t roce_opcode_of(enum roce_transport transport, unsigned operation)
{
    return (uint8_t)((unsigned)transport << 5 | operation);
}

static inline enum roce_transport roce_opcode_transport(uint8_t opcode)
{
    return (enum roce_transport)(opcode >> 5);
}

/* Whether the packet goes to the requester of its destination. */
static inline bool roce_is_response(uint8_t opcode)
{
    unsigned operation = opcode & 31;

    return operation >= ROCE_READ_RESPONSE_FIRST && operation <= ROCE_ATOMIC_ACKNOWLEDGE;
}

#endif
