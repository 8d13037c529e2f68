/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Entries of completion queues: the inline code that each request and each message runs. Owns
 * nothing; the fifo is protected by the lock of the CQ. */
#ifndef SHCA_ENTRY_H
#define SHCA_ENTRY_H

#include "wire/wire.h"

__attribute__((always_inline)) static inline bool shca_cq_full(struct shca_cq_sh *cq)
{
    uint32_t in, out;

    if (!atomic_load_explicit(&cq->counted, memory_order_relaxed))
        return false;
    in = atomic_load_explicit(&cq->arrived, memory_order_relaxed) +
         atomic_load_explicit(&cq->pushed, memory_order_relaxed);
    out = atomic_load_explicit(&cq->taken, memory_order_relaxed);
    /* Signed: a receive may be polled a moment before it is counted. */
    return (int32_t)(in - out) >= (int32_t)atomic_load_explicit(&cq->limit, memory_order_relaxed);
}

/* Marks a QP of a CQ as having receives; CQ and peer may be this process. */
static inline void shca_cq_ready(struct shca_cq_sh *cq, uint32_t bit)
{
    if (__builtin_expect(bit < SHCA_ROOT_MORE, 1))
        atomic_fetch_or(&cq->root, UINT64_C(1) << bit);
    else
        shca_cq_ready_more(cq, bit);
}

/* Call after shca_cq_ready(), which is the barrier between the entry and this check; req_notify
 * does it in the opposite order. */
static inline void shca_cq_wake(struct shca_peer *p, struct shca_cq_sh *cq, bool solicited)
{
    if (__builtin_expect(atomic_load(&cq->arm) & 3, 0))
        shca_cq_notify(p->self ? NULL : p, cq, solicited);
}

/* Enters the completion of the request at index of a send queue. */
__attribute__((always_inline)) static inline void
shca_cq_enter(struct shca_cq *cq, struct shca_qp *qp, uint32_t index, uint64_t wr_id,
              enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t byte_len)
{
    uint32_t tail;
    bool full;

    shca_lock(&cq->lock);
    tail = atomic_load_explicit(&cq->fifo_tail, memory_order_relaxed);
    full = shca_cq_full(cq->sh) ||
           tail - atomic_load_explicit(&cq->fifo_head, memory_order_relaxed) > cq->fifo_mask;
    if (!full) {
        struct shca_cqe *e = &cq->fifo[tail & cq->fifo_mask];

        e->wc = (struct ibv_wc){.wr_id = wr_id,
                                .status = status,
                                .opcode = opcode,
                                .byte_len = byte_len,
                                .qp_num = qp->qp.qp_num};
        e->qp = qp;
        e->sq_index = index;
        if (status != IBV_WC_SUCCESS)
            cq->failed = tail + 1;
        if (cq->stamps)
            cq->stamps[tail & cq->fifo_mask] = tk_now();
        atomic_store_explicit(&cq->sh->pushed, cq->sh->pushed + 1, memory_order_relaxed);
        atomic_store_explicit(&cq->fifo_tail, tail + 1, memory_order_release);
    }
    shca_unlock(&cq->lock);
    if (__builtin_expect(full, 0)) {
        shca_cq_overrun(NULL, cq->sh);
    } else if (cq->sh->event.fd >= 0) {
        /* First the entry, then the read of the arming; req_notify does it in the opposite
         * order. */
        atomic_thread_fence(memory_order_seq_cst);
        shca_cq_notify(NULL, cq->sh, status != IBV_WC_SUCCESS);
    }
}

/* The completion of a receive. */
static inline void shca_receive_wc(const struct shca_slot *s, uint64_t wr_id, uint32_t qpn,
                                   struct ibv_wc *wc)
{
    *wc = (struct ibv_wc){.wr_id = wr_id,
                          .status = s->status,
                          .opcode = s->opcode ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                          .byte_len = s->byte_len,
                          .imm_data = s->imm,
                          .wc_flags = s->wc_flags,
                          .qp_num = qpn,
                          .src_qp = s->src_qp,
                          .slid = s->slid,
                          .pkey_index = s->pkey_index};
}

static inline struct shca_sge shca_sge_of(const struct ibv_sge *g)
{
    return (struct shca_sge){g->addr, g->length, g->lkey};
}

/* Writes one posted receive. */
static inline void shca_slot_fill(const struct shca_rq_sh *q, uint32_t index,
                                  const struct ibv_recv_wr *wr)
{
    struct shca_slot *s = shca_slot_at(shca.seg, q, index);

    s->nsge = (uint32_t)wr->num_sge;
    for (uint32_t i = 1; i < s->nsge; i++)
        *shca_extra_at(shca.seg, q, index, i) = shca_sge_of(&wr->sg_list[i]);
    if (s->nsge > 0)
        s->sge0 = shca_sge_of(wr->sg_list);
}

#endif
