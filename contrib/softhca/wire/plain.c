/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The plain case of a request in one piece: a write or a send on a reliable connection within this
 * host, with one buffer, nothing ahead of it, and the memory of the receiver mapped. All that an
 * HCA checks is checked here, too; whatever is not plain has changed nothing and is executed from
 * the start by send_queue.c and execute.c, which find the reason. Owns nothing; sq_lock is held.
 *
 * qp->plain_epoch is the word that any unusual state clears: it is the target's epoch (which
 * changes when the target is modified) from the time at which execute.c saw that the connection's
 * two ends agree, and 0 from each modification of this end on. */
#include "config.h"

#include "wire/request.h"

enum { any_mtu = 256 /* a message up to this is one packet, whatever the MTU of the path */ };

/* A copy of the words and short messages that this case is made for; longer ones take their time
 * anyway. */
__attribute__((always_inline)) static inline void plain_copy(char *to, const char *from, size_t n)
{
    if (n == 8 && ((uintptr_t)to & 7) == 0) {
        uint64_t word;

        memcpy(&word, from, 8);
        __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
        return;
    }
    shca_copy(to, from, n);
}

static inline bool plain_begins(const struct shca_qp *qp, const struct ibv_send_wr *wr)
{
    return qp->plain_epoch != 0 && wr->num_sge == 1 &&
           atomic_load_explicit(&qp->sh->state, memory_order_acquire) == IBV_QPS_RTS &&
           qp->sq_exec == qp->sq_tail &&
           qp->sq_tail - atomic_load_explicit(&qp->sq_head, memory_order_acquire) <
               qp->init.cap.max_send_wr &&
           !shca_detours() && atomic_load_explicit(&shca_any_down, memory_order_relaxed) == 0 &&
           !atomic_load_explicit(&qp->peer->dead, memory_order_acquire);
}

/* Where the data is; NULL: not to be sent like this. */
static inline const char *plain_source(const struct shca_qp *qp, const struct ibv_send_wr *wr)
{
    const struct ibv_sge *g = wr->sg_list;
    uint64_t va = g->addr;

    if (g->length == 0 || g->length > shca_config.max_msg)
        return NULL;
    if (wr->send_flags & IBV_SEND_INLINE)
        return g->length <= qp->init.cap.max_inline_data ? (const char *)(uintptr_t)va : NULL;
    return shca_mr_check(shca.seg, g->lkey, g->addr, g->length, 0, qp->sh->pd, &va)
               ? (const char *)(uintptr_t)va
               : NULL;
}

static inline bool plain_meets(const struct shca_qp *qp, const struct shca_qp_sh *t,
                               uint32_t length)
{
    return t->epoch == qp->plain_epoch &&
           atomic_load_explicit(&t->state, memory_order_acquire) == IBV_QPS_RTS &&
           shca_networks_meet(t, qp->sh) && (length <= any_mtu || t->mtu == qp->sh->mtu);
}

/* The peer's memory where it is mapped here; NULL: the key does not allow it, or it is not mapped
 * (yet). */
static inline char *plain_memory(struct shca_peer *p, uint32_t key, uint64_t addr, uint32_t length,
                                 uint32_t access, uint32_t pd)
{
    uint64_t va;
    const struct shca_mr_sh *m = shca_mr_check(p->seg, key, addr, length, access, pd, &va);
    char *base;

    if (!m)
        return NULL;
    base = p->self ? (char *)(uintptr_t)m->addr : shca_peer_mapped(p, m, key);
    return base ? base + (va - m->addr) : NULL;
}

static inline bool plain_write(struct shca_peer *p, const struct shca_qp_sh *t,
                               const struct ibv_send_wr *wr, const char *from)
{
    uint32_t length = wr->sg_list->length;
    char *to;

    if (!(t->access & IBV_ACCESS_REMOTE_WRITE))
        return false;
    to = plain_memory(p, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, length, IBV_ACCESS_REMOTE_WRITE,
                      t->pd);
    if (!to)
        return false;
    plain_copy(to, from, length);
    SHCA_COUNT(writes);
    return true;
}

static inline void plain_fill(struct shca_slot *s, const struct shca_qp *qp,
                              const struct shca_qp_sh *t, const struct ibv_send_wr *wr)
{
    s->byte_len = wr->sg_list->length;
    s->imm = wr->imm_data;
    s->src_qp = qp->qp.qp_num;
    s->eager = 0;
    s->slid = 0;
    s->status = IBV_WC_SUCCESS;
    s->opcode = 0;
    s->wc_flags = wr->opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_WITH_IMM : 0;
    s->counted = 0;
    s->pkey_index = t->pkey_index;
}

/* Into the next receive of the target's own queue, when its first buffer has room for all of it. */
static inline bool plain_send(struct shca_qp *qp, struct shca_qp_sh *t,
                              const struct ibv_send_wr *wr, const char *from)
{
    struct shca_peer *p = qp->peer;
    uint32_t head = atomic_load_explicit(&t->rq_head, memory_order_relaxed),
             length = wr->sg_list->length;
    struct shca_slot *s = shca_slot_at(p->seg, &t->rq, head);
    struct shca_cq_sh *cq = &shca_cq_table(p->seg)[t->recv_cq];
    char *to;

    /* The line that a poller spins on takes longest to get: request it first. */
    __builtin_prefetch(&cq->root, 1);
    if (t->rq_kind != SHCA_RQ_OWN || !shca_receive_posted(p, qp, t) || cq->stamps ||
        atomic_load_explicit(&cq->counted, memory_order_relaxed) || s->nsge == 0 ||
        s->sge0.length < length)
        return false;
    to = plain_memory(p, s->sge0.lkey, s->sge0.addr, length, IBV_ACCESS_LOCAL_WRITE, t->pd);
    if (!to)
        return false;
    if (length <= any_mtu)
        memcpy(to, from,
               length); /* unlike a write's, nobody may look at it before the completion */
    else
        shca_copy(to, from, length);
    plain_fill(s, qp, t, wr);
    atomic_store_explicit(&s->seq, head + 1, memory_order_release);
    atomic_store_explicit(&t->rq_head, head + 1, memory_order_release);
    shca_cq_ready(cq, t->cq_bit);
    if (cq->event.fd >= 0)
        shca_cq_notify(p->self ? NULL : p, cq, wr->send_flags & IBV_SEND_SOLICITED);
    /* So that the next message finds its slot in the cache. */
    __builtin_prefetch(s + 1, 1);
    SHCA_COUNT(sends);
    return true;
}

bool shca_plain_post(struct shca_qp *qp, const struct ibv_send_wr *wr)
{
    bool is_send = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;
    struct shca_qp_sh *t = qp->target;
    uint32_t index = qp->sq_tail;
    const char *from;
    bool done;

    if ((!is_send && wr->opcode != IBV_WR_RDMA_WRITE) || !plain_begins(qp, wr))
        return false;
    from = plain_source(qp, wr);
    if (!from)
        return false;
    shca_rx_lock(qp->peer->seg, t, shca.pid);
    done = plain_meets(qp, t, wr->sg_list->length) &&
           (is_send ? plain_send(qp, t, wr, from) : plain_write(qp->peer, t, wr, from));
    shca_rx_unlock(t);
    if (done)
        shca_sq_plain(qp, wr, index);
    return done;
}
