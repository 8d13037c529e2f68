/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of operation codes. Constant. */
#include "config.h"

#include <stddef.h>

#include "packet/opcode.h"

enum {
    bth_bytes = 12,
    f = 1, /* first */
    l = 2, /* last */
    p = 4, /* payload */
    o = f | l,
};

struct row {
    const char *name;
    uint8_t kind, headers, place;
};

static const struct row rows[ROCE_OPERATIONS] = {
    [ROCE_SEND_FIRST] = {"SEND_FIRST", ROCE_KIND_SEND, 0, f | p},
    [ROCE_SEND_MIDDLE] = {"SEND_MIDDLE", ROCE_KIND_SEND, 0, p},
    [ROCE_SEND_LAST] = {"SEND_LAST", ROCE_KIND_SEND, 0, l | p},
    [ROCE_SEND_LAST_IMM] = {"SEND_LAST_IMM", ROCE_KIND_SEND, ROCE_HAS_IMM, l | p},
    [ROCE_SEND_ONLY] = {"SEND_ONLY", ROCE_KIND_SEND, 0, o | p},
    [ROCE_SEND_ONLY_IMM] = {"SEND_ONLY_IMM", ROCE_KIND_SEND, ROCE_HAS_IMM, o | p},
    [ROCE_WRITE_FIRST] = {"WRITE_FIRST", ROCE_KIND_WRITE, ROCE_HAS_RETH, f | p},
    [ROCE_WRITE_MIDDLE] = {"WRITE_MIDDLE", ROCE_KIND_WRITE, 0, p},
    [ROCE_WRITE_LAST] = {"WRITE_LAST", ROCE_KIND_WRITE, 0, l | p},
    [ROCE_WRITE_LAST_IMM] = {"WRITE_LAST_IMM", ROCE_KIND_WRITE, ROCE_HAS_IMM, l | p},
    [ROCE_WRITE_ONLY] = {"WRITE_ONLY", ROCE_KIND_WRITE, ROCE_HAS_RETH, o | p},
    [ROCE_WRITE_ONLY_IMM] = {"WRITE_ONLY_IMM", ROCE_KIND_WRITE, ROCE_HAS_RETH | ROCE_HAS_IMM,
                             o | p},
    [ROCE_READ_REQUEST] = {"READ_REQUEST", ROCE_KIND_READ, ROCE_HAS_RETH, o},
    [ROCE_READ_RESPONSE_FIRST] = {"READ_RESPONSE_FIRST", ROCE_KIND_READ_RESPONSE, ROCE_HAS_AETH,
                                  f | p},
    [ROCE_READ_RESPONSE_MIDDLE] = {"READ_RESPONSE_MIDDLE", ROCE_KIND_READ_RESPONSE, 0, p},
    [ROCE_READ_RESPONSE_LAST] = {"READ_RESPONSE_LAST", ROCE_KIND_READ_RESPONSE, ROCE_HAS_AETH,
                                 l | p},
    [ROCE_READ_RESPONSE_ONLY] = {"READ_RESPONSE_ONLY", ROCE_KIND_READ_RESPONSE, ROCE_HAS_AETH,
                                 o | p},
    [ROCE_ACKNOWLEDGE] = {"ACKNOWLEDGE", ROCE_KIND_ACK, ROCE_HAS_AETH, o},
    [ROCE_ATOMIC_ACKNOWLEDGE] = {"ATOMIC_ACKNOWLEDGE", ROCE_KIND_ATOMIC_ACK,
                                 ROCE_HAS_AETH | ROCE_HAS_ATOMICACKETH, o},
    [ROCE_COMPARE_SWAP] = {"COMPARE_SWAP", ROCE_KIND_ATOMIC, ROCE_HAS_ATOMICETH, o},
    [ROCE_FETCH_ADD] = {"FETCH_ADD", ROCE_KIND_ATOMIC, ROCE_HAS_ATOMICETH, o},
    [ROCE_SEND_LAST_INVALIDATE] = {"SEND_LAST_INVALIDATE", ROCE_KIND_SEND, ROCE_HAS_IETH, l | p},
    [ROCE_SEND_ONLY_INVALIDATE] = {"SEND_ONLY_INVALIDATE", ROCE_KIND_SEND, ROCE_HAS_IETH, o | p},
};

/* The row of an operation that the transport has, else NULL. */
static const struct row *row_of(uint8_t opcode)
{
    unsigned operation = opcode & 31;
    bool there = operation < ROCE_OPERATIONS && rows[operation].kind != ROCE_KIND_NONE;

    switch (opcode >> 5) {
    case ROCE_RC:
    case ROCE_XRC:
        break;
    case ROCE_UC:
        there = there && operation <= ROCE_WRITE_ONLY_IMM;
        break;
    case ROCE_UD:
        there = operation == ROCE_SEND_ONLY || operation == ROCE_SEND_ONLY_IMM;
        break;
    default:
        there = false;
    }
    return there ? &rows[operation] : NULL;
}

static uint8_t headers_of(uint8_t opcode, const struct row *r)
{
    uint8_t headers = r->headers;

    if (opcode >> 5 == ROCE_UD)
        headers |= ROCE_HAS_DETH;
    if (opcode >> 5 == ROCE_XRC && !roce_is_response(opcode))
        headers |= ROCE_HAS_XRCETH;
    return headers;
}

struct roce_opcode roce_opcode(uint8_t opcode)
{
    const struct row *r = row_of(opcode);

    /* A CNP has 16 reserved bytes where others have a payload. */
    if (opcode == ROCE_CNP)
        return (struct roce_opcode){ROCE_KIND_CNP, 0, true, true, true};
    if (!r)
        return (struct roce_opcode){ROCE_KIND_NONE, 0, false, false, false};
    return (struct roce_opcode){r->kind, headers_of(opcode, r), r->place & f, r->place & l,
                                r->place & p};
}

const char *roce_operation_name(uint8_t opcode)
{
    const struct row *r = row_of(opcode);

    if (opcode == ROCE_CNP)
        return "CNP";
    return r ? r->name : "unknown";
}

uint32_t roce_opcode_bytes(uint8_t opcode)
{
    /* In the order of the bits ROCE_HAS_... */
    static const uint8_t bytes[8] = {4, 8, 16, 28, 4, 8, 4, 4};
    uint8_t headers = roce_opcode(opcode).headers;
    uint32_t n = bth_bytes;

    for (unsigned bit = 0; bit < 8; bit++)
        if (headers >> bit & 1)
            n += bytes[bit];
    return n;
}
