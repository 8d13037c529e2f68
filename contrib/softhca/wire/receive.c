/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A posted receive: its space in the segment, its payload, its completion. Owns nothing; callers
 * hold the locks named in wire.h. */
#include "config.h"

#include "wire/wire.h"

static uint64_t eager_bytes(uint32_t n)
{
    return (uint64_t)n * SHCA_EAGER_BYTES;
}

static uint64_t queue_bytes(const struct shca_rq_sh *q)
{
    uint64_t slots = (uint64_t)(q->mask + 1) * sizeof(struct shca_slot);
    uint64_t extra = (uint64_t)(q->mask + 1) * (q->max_sge - 1) * sizeof(struct shca_sge);
    uint64_t small = (uint64_t)q->n_eager * SHCA_EAGER_SMALL;

    return slots + extra + small;
}

static void free_eager(const struct shca_rq_sh *q)
{
    if (q->n_eager > 0)
        shca_heap_free(q->eager, eager_bytes(q->n_eager));
}

int shca_rq_place(struct shca_rq_sh *q, uint32_t depth, uint32_t max_sge, uint32_t max_eager)
{
    uint64_t heap = shca.seg->size - shca.seg->heap_off;
    uint64_t at;

    q->depth = depth;
    q->mask = 0;
    while (q->mask + 1 < depth)
        q->mask = q->mask << 1 | 1;
    q->max_sge = max_sge;
    q->n_eager = q->mask + 1 < max_eager ? q->mask + 1 : max_eager;
    /* With thousands of queue pairs, space for receive queues matters more than eager slots for
     * short messages. */
    if (shca_heap_used() > heap / 2)
        q->n_eager = 0;
    q->eager = shca_heap_alloc_apart(eager_bytes(q->n_eager));
    if (q->eager == 0)
        q->n_eager = 0;
    at = shca_heap_alloc(queue_bytes(q));
    if (at == 0) {
        free_eager(q);
        return ENOMEM;
    }
    q->slots = at;
    q->extra = at + (uint64_t)(q->mask + 1) * sizeof(struct shca_slot);
    return 0;
}

void shca_rq_free(struct shca_rq_sh *q)
{
    shca_heap_free(q->slots, queue_bytes(q));
    free_eager(q);
    q->slots = 0;
}

void shca_eager_unpack(const struct shca_rq_sh *rq, uint32_t index, const struct shca_slot *s)
{
    const char *from = shca_eager_at(shca.seg, rq, s->eager - 1, s->byte_len);
    size_t left = s->byte_len;

    for (uint32_t i = 0; i < s->nsge && left > 0; i++) {
        const struct shca_sge *g = i == 0 ? &s->sge0 : shca_extra_at(shca.seg, rq, index, i);
        size_t n = left < g->length ? left : g->length;

        memcpy((void *)(uintptr_t)g->addr, from, n);
        from += n;
        left -= n;
    }
}

void shca_eager_settle(const struct shca_rq_sh *rq, uint32_t index, struct shca_slot *s,
                       uint32_t key)
{
    bool uses = false;

    if (!s->eager)
        return;
    for (uint32_t i = 0; i < s->nsge; i++)
        uses |= (i == 0 ? &s->sge0 : shca_extra_at(shca.seg, rq, index, i))->lkey == key;
    if (uses) {
        shca_eager_unpack(rq, index, s);
        s->eager = 0;
    }
}

void shca_flushed_wc(uint64_t wr_id, uint32_t qpn, struct ibv_wc *wc)
{
    memset(wc, 0, sizeof *wc);
    wc->wr_id = wr_id;
    wc->status = IBV_WC_WR_FLUSH_ERR;
    wc->opcode = IBV_WC_RECV;
    wc->qp_num = qpn;
}

bool shca_settled_error(struct shca_qp *qp)
{
    if (atomic_load(&qp->sh->state) != IBV_QPS_ERR)
        return false;
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    shca_rx_unlock(qp->sh);
    return true;
}
