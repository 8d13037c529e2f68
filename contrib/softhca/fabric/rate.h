/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports with a limited bandwidth (SOFTHCA_RATE). Owns the state of the request at the head of a
 * send queue; sq_lock protects it. */
#ifndef SHCA_RATE_H
#define SHCA_RATE_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct shca_rate_state {
    int stage; /* 0: not yet scheduled on the wire */
    enum ibv_wc_status status;
    uint64_t due; /* when its last byte has passed */
    uint64_t end; /* the queue did not use the wire before this time */
};

struct shca_qp;
struct shca_op;
/* shca_execute, at the rate of the port; also returns SHCA_WAIT_WIRE. Holds sq_lock. */
int shca_rate_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status);

#endif
