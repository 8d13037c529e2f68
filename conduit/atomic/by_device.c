/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomics executed by the target's device, which has two operations on 8 bytes: fetch-and-add and
 * compare-and-swap. No state, no lock. */
#include "config.h"

#include "atomic/atomic_private.h"
#include "base/report.h"
#include "progress/steps.h"
#include "transport/transport.h"

const struct tk_transport_atomics *tk_atomic_device(void)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->atomics)
            return tk_transports.at[i]->atomics;
    return NULL;
}

/* The operations that can be built from these two. SET and SWAP cannot: a loop of compare-and-swaps
 * has no bound, and a plain write may fall between the steps of an atomic (IBA 9.4.5).
 * Floating-point numbers are compared by their bits. */
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

/* The addend is the operand times `factor`, plus `constant`. Rows are in the order of bit numbers
 * of the operations, fetching ones last. GET adds 0, because a plain read is not atomic to atomics.
 * Compare-and-swap uses its operand unchanged. */
static const struct {
    int8_t factor, constant;
} addends[] = {
    [3] = {1, 0},   [4] = {-1, 0}, [8] = {0, 1},   [9] = {0, -1}, [11] = {1, 0}, [18] = {1, 0},
    [19] = {-1, 0}, [23] = {0, 1}, [24] = {0, -1}, [26] = {1, 0}, [27] = {0, 0}};

static uint64_t operand(const struct tk_atomic *m)
{
    unsigned bit = (unsigned)__builtin_ctz(m->opcode);
    return m->a * (uint64_t)(int64_t)addends[bit].factor + (uint64_t)(int64_t)addends[bit].constant;
}

_Static_assert(GEX_OP_ADD == 1u << 3 && GEX_OP_SUB == 1u << 4 && GEX_OP_INC == 1u << 8 &&
                   GEX_OP_DEC == 1u << 9 && GEX_OP_CAS == 1u << 11 && GEX_OP_GET == 1u << 27,
               "bit numbers of the table");

static uint32_t find_key(const struct tk_atomic *m)
{
    const struct tk_bound bound = tk_bound_of(m->peer->rank, m->endpoint);
    if (!bound.keys)
        tk_panic("an atomic operation on rank %u, endpoint %u, which has no segment that is known "
                 "here",
                 m->peer->rank, m->endpoint);
    return bound.keys[0];
}

static enum tk_status __attribute__((noinline))
wait_post(const struct tk_atomic *m, struct tk_op *op, const struct tk_device_atomic *atomic)
{
    unsigned empty = 0;
    enum tk_status status = TK_BUSY;
    while (status == TK_BUSY && !(m->flags & GEX_FLAG_IMMEDIATE)) {
        tk_wait_step_silent(&empty);
        status = m->ad->device->post(m->peer, op, atomic);
    }
    return status;
}

enum tk_status tk_atomic_by_device(const struct tk_atomic *m, struct tk_op *op)
{
    struct tk_device_atomic atomic = {
        .remote = m->address,
        .remote_key = m->ad->peers && m->peer->segment_size ? m->peer->segment_key : find_key(m),
        .operand = operand(m),
        .swap = m->b,
        .is_swap = m->opcode & (GEX_OP_CAS | GEX_OP_FCAS),
        .result = TRUNKLINE_AD_FETCHES(m->opcode) ? m->result : NULL};
    enum tk_status status = m->ad->device->post(m->peer, op, &atomic);
    tk_if_unlikely(status == TK_BUSY) status = wait_post(m, op, &atomic);
    return status;
}
