/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Entries of completion queues, and the sources of their receives. Owns nothing; the fifo and the
 * feeds are protected by the lock of the CQ. */
#include "config.h"

#include "wire/wire.h"

void shca_cq_recount(struct shca_cq *cq)
{
    atomic_store(&cq->sh->counted, cq->demand > (uint64_t)cq->cq.cqe);
}

bool shca_cq_full(struct shca_cq_sh *cq)
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

void shca_cq_ready(struct shca_cq_sh *cq, uint32_t bit)
{
    if (bit < SHCA_ROOT_MORE) {
        atomic_fetch_or(&cq->root, UINT64_C(1) << bit);
        return;
    }
    atomic_fetch_or(&cq->leaf[bit / 64], UINT64_C(1) << (bit % 64));
    atomic_fetch_or(&cq->mid, UINT64_C(1) << (bit / 64));
    atomic_fetch_or(&cq->root, UINT64_C(1) << SHCA_ROOT_MORE);
}

/* A CQ with room for all that its queues can hold needs no count; most programs create such CQs,
 * and the count would be one more cache line for which all initiators compete. */
void shca_cq_demand(struct shca_cq *cq, int64_t entries)
{
    cq->demand += (uint64_t)entries;
    shca_cq_recount(cq);
}

void shca_cq_overrun(struct shca_peer *p, struct shca_cq_sh *cq)
{
    if (atomic_exchange(&cq->overrun, 1) == 0)
        shca_async_send(p, &cq->async, IBV_EVENT_CQ_ERR, cq->index);
}

void shca_cq_push(struct shca_cq *cq, struct shca_qp *qp, uint32_t index, uint64_t wr_id,
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
            cq->stamps[tail & cq->fifo_mask] = shca_now();
        atomic_store_explicit(&cq->sh->pushed, cq->sh->pushed + 1, memory_order_relaxed);
        atomic_store_explicit(&cq->fifo_tail, tail + 1, memory_order_release);
    }
    shca_unlock(&cq->lock);
    if (full) {
        shca_cq_overrun(NULL, cq->sh);
    } else if (cq->sh->event.fd >= 0) {
        /* First the entry, then the read of the arming; req_notify does it in the opposite
         * order. */
        atomic_thread_fence(memory_order_seq_cst);
        shca_cq_notify(NULL, cq->sh, status != IBV_WC_SUCCESS);
    }
}

int shca_cq_attach(struct shca_cq *cq, struct shca_feed *feed, uint32_t *bit)
{
    int e = ENOMEM;

    shca_lock(&cq->lock);
    for (uint32_t i = 0; i < SHCA_CQ_QPS; i++)
        if (!cq->feeds[i]) {
            cq->feeds[i] = feed;
            *bit = i;
            e = 0;
            break;
        }
    shca_unlock(&cq->lock);
    return e;
}

void shca_cq_detach(struct shca_cq *cq, uint32_t bit)
{
    shca_lock(&cq->lock);
    cq->feeds[bit] = NULL;
    shca_unlock(&cq->lock);
}

/* Drops the completions of a queue pair that is reset or destroyed, as drivers do. */
void shca_cq_purge(struct shca_cq *cq, struct shca_qp *qp)
{
    uint32_t out, dropped = 0;

    shca_lock(&cq->lock);
    out = cq->fifo_head;
    for (uint32_t i = cq->fifo_head; i != cq->fifo_tail; i++) {
        struct shca_cqe *e = &cq->fifo[i & cq->fifo_mask];

        if (e->qp == qp) {
            dropped++;
            continue;
        }
        if (cq->stamps)
            cq->stamps[out & cq->fifo_mask] = cq->stamps[i & cq->fifo_mask];
        cq->fifo[out++ & cq->fifo_mask] = *e;
    }
    atomic_store(&cq->fifo_tail, out);
    atomic_fetch_add(&cq->sh->taken, dropped);
    shca_unlock(&cq->lock);
}
