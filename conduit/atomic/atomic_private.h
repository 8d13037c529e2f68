/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of atomic/. */
#ifndef TK_ATOMIC_PRIVATE_H
#define TK_ATOMIC_PRIVATE_H

#include "atomic/atomic.h"
#include "base/status.h"

struct tk_op;

/* execute.c. This CPU executes the operation; returns the previous value. The data type must
 * support the operation, and the address must be mapped and aligned. */
uint64_t tk_atomic_execute(gex_DT_t dt, gex_OP_t opcode, void *at, uint64_t a, uint64_t b);

static inline void tk_atomic_store_result(void *result, gex_DT_t dt, uint64_t bits)
{
    if (tk_ad_size(dt) == sizeof(uint32_t))
        *(trunkline_ad_32_t *)result = (uint32_t)bits;
    else
        *(trunkline_ad_64_t *)result = bits;
}

/* by_message.c. The CPU of the target executes the operation. The caller has counted it in `op`,
 * which is counted down when the answer arrives. TK_BUSY: nothing was done (immediate only). */
void tk_atomic_open_messages(void);
enum tk_status tk_atomic_by_message(const struct tk_atomic *m, struct tk_op *op);

/* by_device.c. The same, but the device of the target executes the operation. */
enum tk_status tk_atomic_by_device(const struct tk_atomic *m, struct tk_op *op);

/* Atomics by the devices of a transport, NULL if there are none; and the operations that these
 * devices support. */
const struct tk_transport_atomics *tk_atomic_device(void);
gex_OP_t tk_atomic_device_ops(gex_DT_t dt);

/* connect.c. Requests connections for atomics to those members of a team that messages do not reach
 * over the network: neighbours and this process. Does not wait for them; the operations wait, for
 * queue space. */
void tk_atomic_open_connections(void);
void tk_atomic_connect(gex_TM_t tm);

#endif
