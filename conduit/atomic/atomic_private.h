/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of atomic/. */
#ifndef TK_ATOMIC_PRIVATE_H
#define TK_ATOMIC_PRIVATE_H

#include "atomic/atomic.h"
#include "base/status.h"

struct tk_op;

/* execute.c. By this CPU; returns the previous value. The operation is one that the type has, the
 * address is mapped and aligned. */
uint64_t tk_atomic_execute(gex_DT_t dt, gex_OP_t opcode, void *at, uint64_t a, uint64_t b);

static inline void tk_atomic_store_result(void *result, gex_DT_t dt, uint64_t bits)
{
    if (tk_ad_size(dt) == sizeof(uint32_t))
        *(trunkline_ad_32_t *)result = (uint32_t)bits;
    else
        *(trunkline_ad_64_t *)result = bits;
}

/* by_message.c. By the CPU of the target. `op` counts the operation already and is counted down
 * when the answer has come. TK_BUSY: nothing was done (immediate only). */
void tk_atomic_open_messages(void);
enum tk_status tk_atomic_by_message(const struct tk_atomic *m, struct tk_op *op);

/* by_device.c. The same by the device of the target. */
enum tk_status tk_atomic_by_device(const struct tk_atomic *m, struct tk_op *op);

/* The transport that has such devices; NULL: none has. And what these can do. */
const struct tk_transport *tk_atomic_device(void);
gex_OP_t tk_atomic_device_ops(gex_DT_t dt);

/* connect.c. Asks for connections for atomics to the members of a team that messages do not reach
 * over the network: neighbours and ourselves. Does not wait: operations do, for space. */
void tk_atomic_open_connections(void);
void tk_atomic_connect(gex_TM_t tm);

#endif
