/* SPDX-License-Identifier: BSD-3-Clause */
/* The payloads that PMIx servers exchange through the head.
 *
 * FENCE and FENCE_DONE: u32 status, then the fence's name (u32 number, u32 count, count ranks),
 * then data. The fences of one list of ranks are numbered by each server, in order. A list of all
 * ranks has the count EXCHANGE_ALL and no entries; others are sorted.
 *
 * DMX_REQUEST: u32 id, and downward u32 host that asks; the rank is in the frame. DMX_REPLY: u32
 * id, u32 host that asked, u32 status, data. A status is libpmix's, or EXCHANGE_GONE. Pure; no
 * lock. */
#ifndef TRUNKLINE_SPAWNER_EXCHANGE_H
#define TRUNKLINE_SPAWNER_EXCHANGE_H

#include "pack.h"

#define EXCHANGE_ALL UINT32_MAX

/* The host of the rank has left the job. No status of libpmix is that small. */
#define EXCHANGE_GONE 0x80000000u

struct exchange_fence {
    uint32_t status;
    const uint8_t *name; /* number, count, ranks */
    size_t name_length;
    uint32_t number, count;
    const uint8_t *ranks; /* count of them, as in the payload */
    const uint8_t *data;
    size_t length;
};

struct exchange_reply {
    uint32_t id, host, status;
    const uint8_t *data;
    size_t length;
};

/* False when the payload is not of this form. */
bool exchange_unpack_fence(const uint8_t *payload, size_t length, struct exchange_fence *f);
bool exchange_unpack_reply(const uint8_t *payload, size_t length, struct exchange_reply *r);

/* Appends the name of a fence: number, count, ranks. */
void exchange_pack_name(struct bytes *b, uint32_t number, uint32_t count, const uint32_t *ranks);

#endif
