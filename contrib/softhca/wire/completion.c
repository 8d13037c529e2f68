/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Entries of completion queues, and the sources of their receives. Owns nothing; the fifo and the
 * feeds are protected by the lock of the CQ. */
#include "config.h"

#include "wire/entry.h"

void shca_cq_recount(struct shca_cq *cq)
{
    atomic_store(&cq->sh->counted, cq->demand > (uint64_t)cq->cq.cqe);
}

void shca_cq_ready_more(struct shca_cq_sh *cq, uint32_t bit)
{
    atomic_fetch_or(&cq->leaf[bit / 64], UINT64_C(1) << (bit % 64));
    atomic_fetch_or(&cq->mid, UINT64_C(1) << (bit / 64));
    atomic_fetch_or(&cq->root, UINT64_C(1) << SHCA_ROOT_MORE);
}

/* A CQ that can hold the completions of all its queues needs no count; most programs create such
 * CQs, and the count would be one more cache line for which all initiators compete. */
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
    shca_cq_enter(cq, qp, index, wr_id, status, opcode, byte_len);
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
