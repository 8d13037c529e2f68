/* SPDX-License-Identifier: BSD-3-Clause */
/* The payload of a REPORT frame: what happened to ranks of one host, in order. Many events share
 * one frame, so that the number of the head's messages is proportional to the hosts. Pure; no
 * lock. */
#ifndef TRUNKLINE_SPAWNER_REPORT_H
#define TRUNKLINE_SPAWNER_REPORT_H

#include "pack.h"

enum report_kind {
    REPORT_LAUNCHED = 1, /* number = pid */
    REPORT_CONNECTED,
    REPORT_FINALIZED,
    REPORT_EXITED /* number = wait status */
};

struct report {
    uint32_t kind, rank, number;
};

static inline void report_pack(struct bytes *b, enum report_kind kind, uint32_t rank,
                               uint32_t number)
{
    pack_number(b, kind);
    pack_number(b, rank);
    pack_number(b, number);
}

/* The next entry; false at the end, and for a part of one. */
static inline bool report_unpack(struct unpack *u, struct report *r)
{
    r->kind = unpack_number(u);
    r->rank = unpack_number(u);
    r->number = unpack_number(u);
    return !u->bad;
}

#endif
