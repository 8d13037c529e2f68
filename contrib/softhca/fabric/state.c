/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of this process that all folders share: its segment, its handles. Owns `shca`;
 * shca.lock protects its tables. */
#include "config.h"

#include "fabric/fabric.h"

struct shca_process shca = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .seg_fd = -1,
                            .claim_fd = -1,
                            .info_fd = -1,
                            .liveness = {-1, -1}};

uint32_t shca_qp_state(struct shca_qp *qp)
{
    return atomic_load_explicit(&qp->sh->state, memory_order_acquire);
}
