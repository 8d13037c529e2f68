/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomics executed by the target's device, which has two operations on 8 bytes: fetch-and-add and
 * compare-and-swap. No state, no lock. */
#include "config.h"

#include "atomic/atomic_private.h"
#include "base/report.h"
#include "progress/progress.h"
#include "transport/transport.h"

const struct tk_transport *tk_atomic_device(void)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->atomic)
            return tk_transports.at[i];
    return NULL;
}

/* What follows from the two. SET and SWAP do not: a loop of compare-and-swaps has no bound, and a
 * plain write may fall between the steps of an atomic (IBA 9.4.5). Floating-point numbers are
 * compared by their bits. */
gex_OP_t tk_atomic_device_ops(gex_DT_t dt)
{
    const gex_OP_t swaps = GEX_OP_CAS | GEX_OP_FCAS | GEX_OP_GET;
    const gex_OP_t adds = GEX_OP_ADD | GEX_OP_SUB | GEX_OP_INC | GEX_OP_DEC;
    switch (dt) {
    case GEX_DT_I64:
    case GEX_DT_U64:
        return swaps | adds | GEX_OP_TO_FETCHING(adds);
    case GEX_DT_DBL:
        return swaps;
    default:
        return 0;
    }
}

static uint64_t addend(gex_OP_t opcode, uint64_t a)
{
    switch (opcode) {
    case GEX_OP_ADD:
    case GEX_OP_FADD:
        return a;
    case GEX_OP_SUB:
    case GEX_OP_FSUB:
        return -a;
    case GEX_OP_INC:
    case GEX_OP_FINC:
        return 1;
    case GEX_OP_DEC:
    case GEX_OP_FDEC:
        return UINT64_MAX;
    default:
        return 0; /* GET: a read is not atomic to atomics, an addition is */
    }
}

enum tk_status tk_atomic_by_device(const struct tk_atomic *m, struct tk_op *op)
{
    const struct tk_bound bound = tk_bound_of(m->peer->rank, m->endpoint);
    const struct tk_transport *device = tk_atomic_device();
    bool is_swap = m->opcode & (GEX_OP_CAS | GEX_OP_FCAS);
    struct tk_device_atomic atomic = {.remote = m->address,
                                      .remote_keys = bound.keys,
                                      .operand = is_swap ? m->a : addend(m->opcode, m->a),
                                      .swap = m->b,
                                      .is_swap = is_swap,
                                      .result = TRUNKLINE_AD_FETCHES(m->opcode) ? m->result : NULL};
    unsigned empty = 0;
    enum tk_status status;
    if (!bound.keys)
        tk_panic("an atomic operation on rank %u, endpoint %u, which has no segment that is known "
                 "here",
                 m->peer->rank, m->endpoint);
    while ((status = device->atomic(m->peer, op, &atomic)) == TK_BUSY &&
           !(m->flags & GEX_FLAG_IMMEDIATE))
        tk_wait_step_silent(&empty);
    return status;
}
