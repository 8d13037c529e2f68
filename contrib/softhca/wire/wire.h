/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The execution of requests: queues, the functions that execute a request, and its effects at the
 * receiver. Owns nothing by itself; the lock that each function needs is named beside it. */
#ifndef SHCA_WIRE_H
#define SHCA_WIRE_H

#include "fabric/fabric.h"

/* A piece of a peer's memory. */
struct shca_piece {
    char *mapped;  /* NULL: use CMA at addr */
    uint64_t addr; /* address in the owner */
    size_t length;
};

/* ---- completion.c ---- */
/* Enters the completion of the request at index of a send queue. */
void shca_cq_push(struct shca_cq *cq, struct shca_qp *qp, uint32_t index, uint64_t wr_id,
                  enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t byte_len);
/* shca_cq_ready() (wire/entry.h) for the queue pairs behind the first ones. */
void shca_cq_ready_more(struct shca_cq_sh *cq, uint32_t bit);
/* Adds what a queue may put into the CQ at once (negative: removes it). Holds shca.lock. */
void shca_cq_demand(struct shca_cq *cq, int64_t entries);
/* Determines anew whether the entries of a CQ have to be counted. Holds shca.lock. */
void shca_cq_recount(struct shca_cq *cq);
void shca_cq_overrun(struct shca_peer *p, struct shca_cq_sh *cq);
int shca_cq_attach(struct shca_cq *cq, struct shca_feed *feed, uint32_t *bit);
void shca_cq_detach(struct shca_cq *cq, uint32_t bit);
void shca_cq_purge(struct shca_cq *cq, struct shca_qp *qp);

/* ---- copy.c ---- */
/* The order of one transfer: every byte before the last word, then the last word. */
void shca_copy(void *dst, const void *src, size_t n);
/* Moves src (this process) into pieces of the peer, or the other way round. 0 or errno. */
int shca_move_out(struct shca_peer *p, const struct shca_piece *dst, unsigned ndst,
                  const struct iovec *src, unsigned nsrc);
int shca_move_in(struct shca_peer *p, const struct iovec *dst, unsigned ndst,
                 const struct shca_piece *src);

/* ---- deliver.c ---- */
/* Sends IBV_EVENT_QP_LAST_WQE_REACHED, once: a queue pair takes no more receives from its shared
 * queue. */
void shca_last_wqe(struct shca_peer *p, struct shca_qp_sh *t);

/* ---- engine.c ---- */
int shca_engine_start(void);

/* ---- execute.c ---- */
/* Executes one request; SHCA_DONE with *status, or what it has to wait for. Holds sq_lock. */
int shca_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status);

/* ---- fatal.c ---- */
/* Breaks an HCA in this process: its queue pairs flush, and every later call fails with EIO. */
void shca_fatal(int hca);

/* ---- notify.c ---- */
/* Call after an entry has become visible: sends the event if the CQ is armed for it. */
void shca_cq_notify(struct shca_peer *p, struct shca_cq_sh *cq, bool solicited);
/* p NULL: this process. */
void shca_async_send(struct shca_peer *p, const struct shca_pipe *to, enum ibv_event_type type,
                     uint32_t index);

/* ---- pending.c ---- */
void shca_pending_add(struct shca_qp *qp); /* caller holds sq_lock */
void shca_pending_remove(struct shca_qp *qp);
/* The other wire: makes progress; for the helper thread, returns ns until it must be called again.
 * NULL: no other wire is in use. While one is in use, shca.pending counts it. */
extern void (*_Atomic shca_far_run)(void);
extern uint64_t (*_Atomic shca_far_sleep)(void);
/* Counters of packets as " name number" each; returns their length. */
extern int (*_Atomic shca_far_report)(char *out, size_t room);
uint64_t shca_pending_run(void); /* ns until the next try, UINT64_MAX: no queue waits */
void shca_pending_inherited(void);

/* ---- receive.c ---- */
/* Copies the payload of a receive from its eager slot to the posted buffers. */
void shca_eager_unpack(const struct shca_rq_sh *rq, uint32_t index, const struct shca_slot *s);
/* The same now, if the message goes into the region of this key. */
void shca_eager_settle(const struct shca_rq_sh *rq, uint32_t index, struct shca_slot *s,
                       uint32_t key);
/* The completion of a receive that is flushed. */
void shca_flushed_wc(uint64_t wr_id, uint32_t qpn, struct ibv_wc *wc);
/* True in ERR, once nothing more can arrive because no initiator holds the lock any more. */
bool shca_settled_error(struct shca_qp *qp);
/* Allocates a receive queue in the segment; holds shca.lock. */
int shca_rq_place(struct shca_rq_sh *q, uint32_t depth, uint32_t max_sge, uint32_t max_eager);
void shca_rq_free(struct shca_rq_sh *q);

/* ---- receive_queue.c ---- */
/* A region is deregistered: messages for it that wait in the segment of this process move to their
 * buffers. Holds shca.lock. */
void shca_rq_settle(struct shca_qp *qp, uint32_t key);
/* A queue pair starts or stops using a shared queue for what goes into a CQ. Holds shca.lock. */
int shca_srq_join(struct shca_srq *srq, struct shca_cq *cq);
void shca_srq_leave(struct shca_srq *srq, struct shca_cq *cq);
/* Creates the receive queue of a new queue pair and its feed of the receive CQ; holds shca.lock. */
int shca_rq_create(struct shca_qp *qp);
void shca_rq_destroy(struct shca_qp *qp);
/* Drops every receive of a queue pair in RESET. */
void shca_rq_reset(struct shca_qp *qp);
/* The queue pair went to ERR: flushes its receives. */
void shca_rq_error(struct shca_qp *qp);

/* ---- send_queue.c ---- */
/* Executes the requests that wait in the send queue, until one has to wait. Holds sq_lock. */
void shca_sq_run(struct shca_qp *qp);
/* Executes one of them: true when it is finished, successfully or not. Holds sq_lock. */
bool shca_sq_execute(struct shca_qp *qp, const struct shca_op *op, uint32_t index);
void shca_sq_flush(struct shca_qp *qp); /* Holds sq_lock. */
void shca_qp_error(struct shca_qp *qp); /* to ERR; flushes the send queue. Holds sq_lock. */

/* ---- plain.c ---- */
/* Executes and completes requests of a list as long as they are plain; returns 0 if all are. At the
 * first request that is not plain, rest() continues with sq_lock held, releases it, and supplies
 * the result. */
typedef int shca_post_rest(struct shca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int shca_plain_post(struct shca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
                    shca_post_rest *rest);
/* The two ends of the connection agree: from now on its requests may be plain. Holds sq_lock and
 * the responder lock. */
void shca_plain_allow(struct shca_qp *qp);

/* A request that another wire carried: its completion. Then, after an error, what that does to the
 * queue pair (ERR, or SQE). Both hold sq_lock. */
void shca_sq_finish(struct shca_qp *qp, const struct shca_op *op, uint32_t index,
                    enum ibv_wc_status status);
void shca_sq_break(struct shca_qp *qp);

/* ---- shared.c ---- */
void shca_shared_settle(struct shca_qp *qp, uint32_t key);
void shca_xrc_settle(struct shca_srq *srq, uint32_t key);
/* The program has finished with a slot. */
void shca_srq_give(struct shca_srq *srq, uint32_t number);
/* Arms IBV_EVENT_SRQ_LIMIT_REACHED: sent once when fewer than limit receives are posted. */
void shca_srq_arm(struct shca_srq *srq, uint32_t limit);
/* Messages in shared receives, for the poller, which holds the lock of the CQ. */
uint32_t shca_shared_collect(struct shca_qp *qp, uint32_t max, struct ibv_wc *wc, bool *drained,
                             uint32_t *counted);
uint32_t shca_xrc_collect(struct shca_srq *srq, uint32_t max, struct ibv_wc *wc, bool *drained,
                          uint32_t *counted);
/* How many messages of an XRC queue were counted and will not be polled. */
uint32_t shca_xrc_drop(struct shca_srq *srq);
/* Returns everything that a queue pair in RESET holds of its shared queue; result: how many were
 * counted. */
uint32_t shca_shared_drop(struct shca_qp *qp);
/* Whether some initiator has taken a receive that is not complete. */
bool shca_shared_holds(const struct shca_qp *qp);

/* ---- target.c ---- */
/* Attributes of a target are shared by its holders: load before use, store after each change. */
void shca_target_load(struct shca_qp *qp);
void shca_target_store(struct shca_qp *qp);
int shca_target_create(struct shca_qp *qp); /* holds shca.lock */
/* Closes a handle; true: it was the last one and the target is gone. Holds shca.lock. */
bool shca_target_close(struct shca_qp *qp);
void shca_target_count(struct shca_qp *qp, int by); /* handles of this process */
void shca_target_reap(struct shca_qp_sh *sh);       /* holds shca.lock */

/* ---- xrc.c ---- */
void shca_xrc_release(struct shca_qp *qp);

/* Checks a range against the MR table of a process; the address there in *va. */
/* Memory of an accelerator is mapped elsewhere than at its address. */
static inline bool shca_mr_is_view(const struct shca_mr_sh *m)
{
    return m->addr != m->iova;
}

/* An RDMA read of the region is done. */
static inline void shca_mr_was_read(struct shca_segment *owner, const struct shca_mr_sh *m)
{
    if (shca_mr_is_view(m))
        atomic_fetch_add(&owner->device_reads, 1);
}

static inline struct shca_mr_sh *shca_mr_check(struct shca_segment *seg, uint32_t key,
                                               uint64_t addr, uint64_t length, uint32_t access,
                                               uint32_t pd, uint64_t *va)
{
    struct shca_mr_sh *m;

    if ((key >> 8) >= SHCA_MRS)
        return NULL;
    m = &shca_mr_table(seg)[key >> 8];
    if (key == 0 || atomic_load(&m->key) != key || m->pd != pd || (m->access & access) != access)
        return NULL;
    if (addr < m->iova || length > m->length || addr - m->iova > m->length - length)
        return NULL;
    *va = m->addr + (addr - m->iova);
    if ((m->access & IBV_ACCESS_ON_DEMAND) && seg == shca.seg && length > 0 &&
        !shca_pages_fault(*va, length, m->access))
        return NULL;
    return m;
}

/* Whether the kernel forbids such copies at all (Yama, seccomp, or built without them). */
static inline bool shca_copy_refused(int e)
{
    return e == EPERM || e == EACCES || e == ENOSYS;
}

/* Resolves a checked region of the peer to a piece. */
static inline void shca_piece_of(struct shca_peer *p, struct shca_mr_sh *m, uint32_t key,
                                 uint64_t va, size_t length, struct shca_piece *out)
{
    char *base = p->self ? (char *)(uintptr_t)m->addr : shca_peer_map(p, m, key);

    out->mapped = base ? base + (va - m->addr) : NULL;
    out->addr = va;
    out->length = length;
}

/* Written only under sq_lock: no atomic read-modify-write is needed, only whole words. */
__attribute__((always_inline)) static inline void shca_sq_count(struct shca_qp *qp, uint32_t bytes)
{
    uint64_t m = atomic_load_explicit(&qp->messages, memory_order_relaxed) + 1;
    uint64_t b = atomic_load_explicit(&qp->bytes, memory_order_relaxed) + bytes;

    atomic_store_explicit(&qp->messages, m, memory_order_relaxed);
    atomic_store_explicit(&qp->bytes, b, memory_order_relaxed);
}

static inline struct shca_wqe *shca_wqe_at(struct shca_qp *qp, uint32_t index)
{
    return (struct shca_wqe *)(void *)(qp->wqes + (index & qp->wqe_mask) * qp->wqe_bytes);
}

/* ---- work requests (fault_run.c) ---- */

/* shca_execute under the rules in force and at the rate of its port; also returns SHCA_WAIT_FAULT
 * and SHCA_WAIT_WIRE. Holds sq_lock. */
int shca_fault_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status);
/* Stores held writes (early.c), so that a request to the same HCA finds their data in place. */
void shca_early_settle(const struct shca_qp *qp, const struct shca_op *op);
void shca_early_enter(struct shca_qp *qp); /* adds the write held by the executed request, if any */
uint64_t shca_early_run(uint64_t now);     /* when the next one is due, UINT64_MAX: none */
void shca_early_end(void);
void shca_early_inherited(void);
/* Whether the send queue must appear full because of a rule. */
bool shca_fault_sq_full(const struct shca_qp *qp, uint32_t opcode);

#endif
