/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that execute a request share: execute.c (checks, connection, dispatch), deliver.c
 * (messages into receives), rdma.c (remote memory), datagram.c (UD). Each function runs in the
 * initiator, with its sq_lock held and, where a target is given, the target's responder lock. */
#ifndef SHCA_REQUEST_H
#define SHCA_REQUEST_H

#include "shca.h"

/* A request's local buffers, checked. One more than SGEs: a datagram begins with its GRH. */
struct shca_source {
    struct iovec iov[SHCA_MAX_SGE + 1];
    unsigned n;
};

static inline bool shca_receiving(struct shca_qp_sh *t)
{
    uint32_t state = atomic_load_explicit(&t->state, memory_order_acquire);

    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

/* The responder found an error: its queue pair breaks too, and its program is told. */
void shca_break_target(struct shca_peer *p, struct shca_qp_sh *t, enum ibv_event_type why);

/* The same for the other end of a connection, when there is one. */
void shca_break_peer(struct shca_qp *qp, enum ibv_event_type why);

/* Is a receive posted for the next message? */
bool shca_receive_posted(struct shca_qp *qp, struct shca_qp_sh *t);
/* Delivers a message of length bytes (or, with src->n == 0, the immediate of a write) into the next
 * receive. SHCA_DONE with *status as the sender is told, or what to wait for. */
int shca_deliver(struct shca_peer *p, struct shca_qp *qp, const struct shca_op *op,
                 struct shca_qp_sh *t, const struct shca_source *src, uint32_t length,
                 enum ibv_wc_status *status);

int shca_rdma_write(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                    const struct shca_source *src, enum ibv_wc_status *status);
int shca_rdma_read(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                   const struct shca_source *dst, enum ibv_wc_status *status);

/* A datagram that nobody wants is lost without a word. */
void shca_execute_ud(struct shca_qp *qp, const struct shca_op *op, const struct shca_source *s);

#endif
