/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files that execute a request: execute.c (checks, connection, dispatch), deliver.c
 * (messages into receives), rdma.c (remote memory), datagram.c (UD). Owns nothing. Each function
 * runs in the initiator, with its sq_lock held and, where a target is given, the target's responder
 * lock. */
#ifndef SHCA_REQUEST_H
#define SHCA_REQUEST_H

#include "wire/wire.h"

/* A request's local buffers, checked. One more than SGEs, because a datagram begins with its
 * GRH. */
struct shca_source {
    struct iovec iov[SHCA_MAX_SGE + 1];
    unsigned n;
};

/* The receive that a message is delivered into. */
struct shca_receive {
    struct shca_peer *p; /* the process that posted it */
    const struct shca_rq_sh *rq;
    struct shca_slot *slot;
    struct shca_cq_sh *cq;
    uint32_t cq_bit;
    uint32_t index; /* of the slot */
    uint32_t pd;
};

static inline bool shca_receiving(struct shca_qp_sh *t)
{
    uint32_t state = atomic_load_explicit(&t->state, memory_order_acquire);

    return state >= IBV_QPS_RTR && state <= IBV_QPS_SQE;
}

/* The process whose memory a request accesses. */
static inline struct shca_peer *shca_memory_of(const struct shca_qp *qp)
{
    return qp->xrc_srq ? qp->xrc_holder : qp->peer;
}

/* Finds and locks the shared receive queue that a request names; false: the domain of the target
 * does not contain it (shca_xrc_enter has then broken the target). While the queue is locked, the
 * request accesses the memory of the queue's process. */
bool shca_xrc_lock(struct shca_qp *qp, uint32_t srqn, const struct shca_qp_sh *t);
bool shca_xrc_enter(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                    enum ibv_wc_status *status);
void shca_xrc_leave(struct shca_qp *qp);

/* The responder detected an error: its queue pair breaks too, and its program gets the event. */
void shca_break_target(struct shca_peer *p, struct shca_qp_sh *t, enum ibv_event_type why);

/* Whether the responder of this connection exists, and the path to it is up. */
bool shca_answers(struct shca_qp *qp);

/* The same as shca_break_target for the other end of a connection, when there is one. */
void shca_break_peer(struct shca_qp *qp, enum ibv_event_type why);

/* Whether a receive is posted to the target's own queue, whose head this is. The tail is in a line
 * that the receiver keeps writing: read it only when the known receives are used up. */
static inline bool shca_own_posted(struct shca_qp *qp, const struct shca_qp_sh *t, uint32_t head)
{
    if (__builtin_expect(qp->target_tail == head || qp->target_epoch != t->epoch, 0)) {
        qp->target_epoch = t->epoch;
        qp->target_tail = atomic_load_explicit(&t->rq_tail, memory_order_acquire);
    }
    return qp->target_tail != head;
}

/* Whether a receive is posted for the next message. */
bool shca_receive_posted(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t);
/* Delivers a message of length bytes (or, with src->n == 0, the immediate of a write) into the next
 * receive. SHCA_DONE with the sender's *status, or what to wait for. */
int shca_deliver(struct shca_peer *p, struct shca_qp *qp, const struct shca_op *op,
                 struct shca_qp_sh *t, const struct shca_source *src, uint32_t length,
                 enum ibv_wc_status *status);

/* The same in pieces, for a wire whose messages come in packets: takes the next receive (SHCA_DONE,
 * SHCA_WAIT_RNR, or SHCA_WAIT_NEVER: its CQ is full and the queue pair was broken); completes it
 * (op: length, imm, flags, opcode; dest_qpn is the sender's number). */
int shca_receive_begin(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t,
                       struct shca_receive *r);
void shca_receive_end(struct shca_qp *qp, struct shca_qp_sh *t, const struct shca_receive *r,
                      const struct shca_op *op, enum ibv_wc_status status);

/* The same for queue pairs that use a shared receive queue (shared.c). Taking a receive is
 * repeatable: until it is published, a queue pair gets the same one again. */
bool shca_shared_posted(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t);
bool shca_shared_take(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t,
                      struct shca_receive *r);
void shca_shared_publish(const struct shca_receive *r, struct shca_qp *qp, struct shca_qp_sh *t);
/* A message in packets keeps a receive of an XRC queue while the queue is not locked: notes that
 * the one just taken is kept; with the queue locked again, finds it. False: it is no longer there,
 * because the queue is another one. */
void shca_xrc_keep(const struct shca_receive *r, const struct shca_qp_sh *t);
bool shca_xrc_kept(struct shca_qp *qp, struct shca_receive *r, const struct shca_qp_sh *t);
/* Makes it the next to be published. */
bool shca_xrc_first(struct shca_qp *qp, const struct shca_receive *r);

int shca_rdma_write(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                    const struct shca_source *src, enum ibv_wc_status *status);
int shca_rdma_read(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                   const struct shca_source *dst, enum ibv_wc_status *status);
/* Stores the previous value in dst. */
int shca_atomic(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                const struct shca_source *dst, enum ibv_wc_status *status);
/* Finds the memory that a request names. IBV_WC_SUCCESS, or the sender's status. */
enum ibv_wc_status shca_resolve(const struct shca_qp *qp, struct shca_qp_sh *t,
                                const struct shca_op *op, uint32_t access, struct shca_mr_sh **m,
                                struct shca_piece *piece);
/* Breaks the target because of a bad request, if its transport reports errors to the sender;
 * SHCA_DONE. */
int shca_refuse(struct shca_peer *p, struct shca_qp_sh *t, enum ibv_wc_status nak,
                enum ibv_wc_status *status);
/* The bytes could not be moved (errno e). If the memory disappeared under its region, the key is
 * bad. If the kernel forbids copying, the key is not at fault: the responder fails, as with a
 * broken memory controller. */
int shca_failed_copy(struct shca_peer *p, struct shca_qp_sh *t, int e, enum ibv_wc_status *status);

/* Keeps the data of a write that passed all checks for later; false: it has to be moved at once. */
bool shca_early_hold(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                     const struct shca_source *src);

/* Whether this queue pair accepts the datagram, whatever address it was sent to. */
static inline bool shca_accepts_ud(const struct shca_qp *qp, const struct shca_op *op,
                                   struct shca_qp_sh *t)
{
    return t->type == IBV_QPT_UD && t->qkey == op->qkey && shca_receiving(t) &&
           shca_networks_meet(t, qp->sh);
}

/* Executes an atomic on a checked piece: 0, errno, or EOPNOTSUPP. */
int shca_atomic_change(struct shca_peer *p, const struct shca_op *op, const struct shca_mr_sh *m,
                       struct shca_piece *piece, uint64_t *old);

/* Sends a datagram (with its GRH) to each member of the group that its address names. */
void shca_multicast(struct shca_qp *qp, const struct shca_op *op, const struct shca_source *packet,
                    uint32_t length);

/* A datagram without a receiver is lost silently. */
enum ibv_wc_status shca_execute_ud(struct shca_qp *qp, const struct shca_op *op,
                                   const struct shca_source *s);

#endif
