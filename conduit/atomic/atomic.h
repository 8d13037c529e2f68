/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Remote atomics. What executes the operations of a domain is chosen when it is created, and never
 * changes. TK_AD_CPU: a CPU, ours where the target shares memory with us, through mapped memory,
 * and else that of the target, requested by an active message. TK_AD_MESSAGE: the same, but in
 * mapped memory for ourselves only; for tests. TK_AD_DEVICE: the target's device, also for
 * ourselves and for neighbours.
 *
 * The two paths of TK_AD_CPU may access one location at the same time, because both end in a locked
 * instruction of a CPU. Device and CPU may not: a device of IBV_ATOMIC_HCA reads, changes and
 * writes the word by three steps that are atomic only to other operations of the same device (IBA
 * 9.4.5, 10.6.1.2), and a CPU's instruction that falls between them is lost. So a domain that uses
 * the device uses nothing else, unless the device reports IBV_ATOMIC_GLOB. For the same reason a
 * domain with operations that no device offers (SET, SWAP, MULT, MIN, ..., 32 bits) does not use
 * the device at all: the device cannot execute them, and a CPU must not beside it.
 *
 * A domain belongs to the client, which serialises its creation and destruction against its use; it
 * is not written in between, except for the client's data. Thread-safe in PAR. */
#ifndef TK_ATOMIC_ROOM_H
#define TK_ATOMIC_ROOM_H

#include "gasnet_ratomic.h"
#include "team/team.h"

enum tk_ad_path { TK_AD_CPU, TK_AD_MESSAGE, TK_AD_DEVICE };

struct trunkline_ad {
    const uintptr_t *offsets; /* first: read by inline code in clients (trunkline_ratomic.h) */
    struct trunkline_tm *tm;
    const void *cdata;
    gex_DT_t dt;
    gex_OP_t ops;
    gex_Flags_t flags;
    enum tk_ad_path path;
    bool by_device_only;                       /* TK_AD_DEVICE, and not TK_ATOMIC_GLOBAL */
    const struct tk_transport_atomics *device; /* TK_AD_DEVICE */
    struct tk_peer *peers;                     /* of the team, as tk_team_peers() */
};

/* At start-up, before any message can arrive. */
void tk_atomic_open(void);

/* Local: operations may reach members that have not created theirs. The arguments are legal. */
struct trunkline_ad *tk_ad_create(gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
void tk_ad_destroy(struct trunkline_ad *ad);

/* One operation. Values are bits, in the low half if the type has 32 of them. */
struct tk_atomic {
    const struct trunkline_ad *ad;
    struct tk_peer *peer; /* the target, */
    uint32_t endpoint;    /* and which endpoint's segment */
    uintptr_t address;
    void *result;
    uint64_t a, b;
    gex_OP_t opcode;
    gex_Flags_t flags;
};

/* GEX_EVENT_NO_OP if nothing was done (immediate only). */
gex_Event_t tk_atomic_start(const struct tk_atomic *m);

/* Counted among the calling thread's implicit operations. 0, or 1 if nothing was done (immediate
 * only). */
int tk_atomic_implicit(const struct tk_atomic *m);

static inline size_t tk_ad_size(gex_DT_t dt)
{
    return dt & (GEX_DT_I32 | GEX_DT_U32 | GEX_DT_FLT) ? sizeof(uint32_t) : sizeof(uint64_t);
}

/* All operations that a type has. */
static inline gex_OP_t tk_ad_ops_of(gex_DT_t dt)
{
    const gex_OP_t bitwise = GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR;
    const gex_OP_t others = GEX_OP_ADD | GEX_OP_SUB | GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX |
                            GEX_OP_INC | GEX_OP_DEC | GEX_OP_SET | GEX_OP_CAS;
    gex_OP_t ops = dt & (GEX_DT_FLT | GEX_DT_DBL) ? others : others | bitwise;
    return ops | GEX_OP_TO_FETCHING(ops) | GEX_OP_GET;
}

#endif
