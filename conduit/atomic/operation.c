/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starts operations on the path of their domain. No state, no lock. */
#include "config.h"

#include <stdatomic.h>

#include "atomic/atomic_private.h"
#include "event/event.h"
#include "event/nbi_now.h"
#include "stats/stats.h"
#include "topology/topology.h"
#include "transport/neighbour.h"

static enum tk_status post(const struct tk_atomic *m, struct tk_op *op)
{
    bool by_device = m->ad->path == TK_AD_DEVICE;
    enum tk_status status = by_device ? tk_atomic_by_device(m, op) : tk_atomic_by_message(m, op);
    if (status == TK_OK)
        tk_count(by_device ? tk_counter_atomics_by_device : tk_counter_atomics_by_message);
    return status;
}

/* The location's address in this process; NULL: our CPU cannot access it, or must not, as memory of
 * a device. A segment of the client's own memory is mapped by its owner only. */
static void *mapped(const struct tk_atomic *m)
{
    uint32_t rank = m->peer->rank;
    if (m->endpoint != 0 && tk_bound_of(rank, m->endpoint).kind)
        return NULL;
    if (rank == tk_peers.me)
        return (void *)m->address;
    if (m->ad->path == TK_AD_MESSAGE || !tk_is_neighbour(rank))
        return NULL;
    uintptr_t offset = tk_bound_addr_offset(rank, m->endpoint);
    if (offset == tk_unmapped && tk_bound_of(rank, m->endpoint).fd >= 0)
        offset = tk_neighbour_addr_offset(m->peer, m->endpoint);
    return offset == tk_unmapped ? NULL : (void *)(m->address + offset);
}

static bool __attribute__((noinline)) by_cpu(const struct tk_atomic *m)
{
    void *at = mapped(m);
    if (!at)
        return false;
    tk_count(tk_counter_atomics_here);
    if (m->opcode == GEX_OP_GET && (m->flags & GEX_FLAG_AD_REL))
        atomic_thread_fence(
            memory_order_seq_cst); /* a load may pass earlier stores, nothing else */
    uint64_t was = tk_atomic_execute(m->ad->dt, m->opcode, at, m->a, m->b);
    if (TRUNKLINE_AD_FETCHES(m->opcode))
        tk_atomic_store_result(m->result, m->ad->dt, was);
    return true;
}

gex_Event_t tk_atomic_start(const struct tk_atomic *m)
{
    if (!m->ad->by_device_only && by_cpu(m))
        return GEX_EVENT_INVALID;
    struct tk_op *op = tk_op_take_with(1);
    if (post(m, op) == TK_OK)
        return tk_event_of(op);
    tk_op_give(op);
    return GEX_EVENT_NO_OP;
}

static enum tk_nbi_kind kind_of(gex_OP_t opcode)
{
    return opcode == GEX_OP_SET ? TK_NBI_PUT : opcode == GEX_OP_GET ? TK_NBI_GET : TK_NBI_RMW;
}

int tk_atomic_implicit(const struct tk_atomic *m)
{
    if (!m->ad->by_device_only && by_cpu(m))
        return 0;
    struct tk_op *op = tk_nbi_op(kind_of(m->opcode));
    tk_op_add_piece(op);
    if (post(m, op) == TK_OK)
        return 0;
    tk_counter_add(&op->pending, -1);
    return 1;
}
