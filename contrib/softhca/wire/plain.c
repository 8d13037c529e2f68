/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The plain case of a request in one piece: a write, a read or a send on a reliable connection
 * within this host, with one buffer, nothing ahead of it, and the memory of the receiver mapped.
 * All that an HCA checks is checked here, too; a request that is not plain has had no effect yet
 * and is executed from the start by send_queue.c and execute.c, which find the reason. Owns
 * nothing; sq_lock is held.
 *
 * qp->plain.epoch is the word that any unusual state changes: it is the target's epoch (which
 * changes when the target is modified) from the time at which execute.c saw that the connection's
 * two ends agree, and 0 from each modification of this end on. Properties that can't change while
 * the two epochs are equal (rights, protection domains, path MTU) are checked once. Regions come
 * and go without a new epoch: their entries in the tables are checked for each request. */
#include "config.h"

#include "wire/entry.h"
#include "wire/request.h"

enum { any_mtu = 256 /* a message up to this is one packet, whatever the MTU of the path */ };

/* Each request passes all of these. */
#define PLAIN_INLINE __attribute__((always_inline)) static inline

void shca_plain_allow(struct shca_qp *qp)
{
    const struct shca_qp_sh *t = qp->target;

    qp->plain = (struct shca_plain){
        .epoch = t->epoch,
        .network = atomic_load_explicit(&t->network, memory_order_relaxed),
        .most = t->mtu == qp->sh->mtu ? shca_config.max_msg : any_mtu,
    };
}

/* ---- memory ---- */

/* Whether the connection allows this use, regardless of the region. */
static bool plain_allows(const struct shca_qp *qp, enum shca_use use)
{
    const struct shca_qp_sh *t = qp->target;

    if (use == SHCA_USE_WRITE)
        return t->access & IBV_ACCESS_REMOTE_WRITE;
    if (use == SHCA_USE_READ)
        return (t->access & IBV_ACCESS_REMOTE_READ) && t->max_dest_rd_atomic > 0 &&
               qp->attr.max_rd_atomic > 0;
    return true;
}

/* Finds a region; NULL: the region does not allow the access, or is not mapped (yet), or its pages
 * must be checked each time. */
__attribute__((noinline)) static char *plain_find(struct shca_qp *qp, enum shca_use use,
                                                  uint32_t key, uint64_t addr, uint32_t length)
{
    static const uint32_t rights[SHCA_USES] = {[SHCA_USE_SINK] = IBV_ACCESS_LOCAL_WRITE,
                                               [SHCA_USE_WRITE] = IBV_ACCESS_REMOTE_WRITE,
                                               [SHCA_USE_READ] = IBV_ACCESS_REMOTE_READ,
                                               [SHCA_USE_RECEIVE] = IBV_ACCESS_LOCAL_WRITE};
    bool own = use <= SHCA_USE_SINK || qp->peer->self;
    const struct shca_mr_sh *m;
    uint64_t va;
    char *base;

    m = shca_mr_check(own ? shca.seg : qp->peer->seg, key, addr, length, rights[use],
                      use <= SHCA_USE_SINK ? qp->sh->pd : qp->target->pd, &va);
    if (!m || !plain_allows(qp, use) || (own && (m->access & IBV_ACCESS_ON_DEMAND)))
        return NULL;
    if (use == SHCA_USE_SINK && qp->holds) /* short ones wait for their poll */
        return NULL;
    if (use == SHCA_USE_READ && shca_mr_is_view(m)) /* is counted */
        return NULL;
    base = own ? (char *)(uintptr_t)m->addr : shca_peer_mapped(qp->peer, m, key);
    if (!base)
        return NULL;
    qp->plain.windows[use] = (struct shca_window){m, m->serial, m->iova, m->length, base};
    return base + (va - m->addr);
}

/* The local address of the range. The lock that keeps the region from going away is held: sq_lock
 * for this process's memory, the responder lock for the peer's. */
PLAIN_INLINE char *plain_memory(struct shca_qp *qp, enum shca_use use, uint32_t key, uint64_t addr,
                                uint32_t length)
{
    const struct shca_window *w = &qp->plain.windows[use];
    uint64_t at = addr - w->iova, end;

    /* An empty window has length 0. */
    if (__builtin_expect(__builtin_add_overflow(at, length, &end) || end > w->length ||
                             atomic_load(&w->region->key) != key || w->region->serial != w->serial,
                         0))
        return plain_find(qp, use, key, addr, length);
    return w->base + at;
}

/* Copies words and short messages, for which this case is made; for longer ones the copy dominates
 * anyway. */
PLAIN_INLINE void plain_copy(char *to, const char *from, size_t n)
{
    if (n == 8 && ((uintptr_t)to & 7) == 0) {
        uint64_t word;

        memcpy(&word, from, 8);
        __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
        return;
    }
    shca_copy(to, from, n);
}

/* ---- conditions ---- */

PLAIN_INLINE bool plain_begins(const struct shca_qp *qp, const struct ibv_send_wr *wr)
{
    return qp->plain.epoch != 0 && wr->num_sge == 1 &&
           atomic_load_explicit(&qp->sh->state, memory_order_acquire) == IBV_QPS_RTS &&
           qp->sq_exec == qp->sq_tail &&
           qp->sq_tail - atomic_load_explicit(&qp->sq_head, memory_order_acquire) <
               qp->init.cap.max_send_wr &&
           !shca_detours() && atomic_load_explicit(&shca_any_down, memory_order_relaxed) == 0 &&
           !atomic_load_explicit(&qp->peer->dead, memory_order_acquire) &&
           wr->sg_list->length - 1u < qp->plain.most; /* a length of 0 is not plain, either */
}

/* The responder lock is held. */
PLAIN_INLINE bool plain_meets(const struct shca_qp *qp, const struct shca_qp_sh *t)
{
    return t->epoch == qp->plain.epoch &&
           atomic_load_explicit(&t->state, memory_order_acquire) == IBV_QPS_RTS &&
           atomic_load_explicit(&t->network, memory_order_relaxed) == qp->plain.network;
}

/* ---- operations: with the responder lock, false: nothing was done ---- */

PLAIN_INLINE bool plain_write(struct shca_qp *qp, const struct ibv_send_wr *wr, const char *from)
{
    uint32_t length = wr->sg_list->length;
    char *to = plain_memory(qp, SHCA_USE_WRITE, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, length);

    if (!to)
        return false;
    plain_copy(to, from, length);
    SHCA_COUNT(writes);
    return true;
}

PLAIN_INLINE bool plain_read(struct shca_qp *qp, const struct ibv_send_wr *wr, char *to)
{
    uint32_t length = wr->sg_list->length;
    const char *from =
        plain_memory(qp, SHCA_USE_READ, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, length);

    if (!from)
        return false;
    plain_copy(to, from, length);
    SHCA_COUNT(reads);
    return true;
}

PLAIN_INLINE void plain_fill(struct shca_slot *s, const struct shca_qp *qp,
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

/* Into the next receive of the target's own queue, when its first buffer can hold all of it. */
PLAIN_INLINE bool plain_send(struct shca_qp *qp, struct shca_qp_sh *t, const struct ibv_send_wr *wr,
                             const char *from)
{
    struct shca_peer *p = qp->peer;
    uint32_t head = atomic_load_explicit(&t->rq_head, memory_order_relaxed);
    uint32_t length = wr->sg_list->length;
    struct shca_slot *s = shca_slot_at(p->seg, &t->rq, head);
    struct shca_cq_sh *cq = &shca_cq_table(p->seg)[t->recv_cq];
    char *to;

    /* The line that a poller spins on takes longest to get: request it first. */
    __builtin_prefetch(&cq->root, 1);
    if (t->rq_kind != SHCA_RQ_OWN || !shca_own_posted(qp, t, head) || cq->stamps ||
        atomic_load_explicit(&cq->counted, memory_order_relaxed) || s->nsge == 0 ||
        s->sge0.length < length)
        return false;
    to = plain_memory(qp, SHCA_USE_RECEIVE, s->sge0.lkey, s->sge0.addr, length);
    if (!to)
        return false;
    if (length <= any_mtu)
        memcpy(to, from,
               length); /* unlike the data of a write, it is not read before the completion */
    else
        shca_copy(to, from, length);
    plain_fill(s, qp, t, wr);
    atomic_store_explicit(&s->seq, head + 1, memory_order_release);
    atomic_store_explicit(&t->rq_head, head + 1, memory_order_release);
    shca_cq_ready(cq, t->cq_bit);
    shca_cq_wake(p, cq, wr->send_flags & IBV_SEND_SOLICITED);
    /* So that the next message finds its slot in the cache. */
    __builtin_prefetch(s + 1, 1);
    SHCA_COUNT(sends);
    return true;
}

/* ---- requests; the opcode is a constant, but for the two kinds of send ---- */

/* The buffer of this end; NULL: the request is not plain. */
PLAIN_INLINE char *plain_buffer(struct shca_qp *qp, const struct ibv_send_wr *wr, bool is_read)
{
    const struct ibv_sge *g = wr->sg_list;

    if (wr->send_flags & IBV_SEND_INLINE)
        return !is_read && g->length <= qp->init.cap.max_inline_data ? (char *)(uintptr_t)g->addr
                                                                     : NULL;
    return plain_memory(qp, is_read ? SHCA_USE_SINK : SHCA_USE_SOURCE, g->lkey, g->addr, g->length);
}

PLAIN_INLINE bool plain_execute(struct shca_qp *qp, const struct ibv_send_wr *wr,
                                enum ibv_wr_opcode opcode)
{
    struct shca_qp_sh *t = qp->target;
    char *mine = plain_buffer(qp, wr, opcode == IBV_WR_RDMA_READ);
    uint32_t free = 0;
    bool done;

    if (!mine)
        return false;
    /* shca_rx_lock() without its slow path */
    if (__builtin_expect(!atomic_compare_exchange_strong(&t->lock, &free, shca.pid), 0))
        shca_rx_lock_slow(qp->peer->seg, t, shca.pid);
    done = plain_meets(qp, t) && (opcode == IBV_WR_RDMA_WRITE  ? plain_write(qp, wr, mine)
                                  : opcode == IBV_WR_RDMA_READ ? plain_read(qp, wr, mine)
                                                               : plain_send(qp, t, wr, mine));
    shca_rx_unlock(t);
    return done;
}

/* The send queue moves on, and the completion goes to the CQ. */
PLAIN_INLINE void plain_complete(struct shca_qp *qp, const struct ibv_send_wr *wr,
                                 enum ibv_wc_opcode opcode)
{
    uint32_t length = wr->sg_list->length, index = qp->sq_tail;

    qp->sq_tail = qp->sq_exec = index + 1;
    shca_sq_count(qp, length);
    if ((wr->send_flags & IBV_SEND_SIGNALED) || qp->init.sq_sig_all)
        shca_cq_enter(qp->scq, qp, index, wr->wr_id, IBV_WC_SUCCESS, opcode, length);
}

PLAIN_INLINE bool plain_one(struct shca_qp *qp, const struct ibv_send_wr *wr,
                            enum ibv_wr_opcode opcode, enum ibv_wc_opcode done_as)
{
    if (!plain_begins(qp, wr) || !plain_execute(qp, wr, opcode))
        return false;
    plain_complete(qp, wr, done_as);
    return true;
}

PLAIN_INLINE bool plain_request(struct shca_qp *qp, const struct ibv_send_wr *wr)
{
    if (wr->opcode == IBV_WR_RDMA_WRITE)
        return plain_one(qp, wr, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE);
    if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM)
        return plain_one(qp, wr, IBV_WR_SEND, IBV_WC_SEND);
    return wr->opcode == IBV_WR_RDMA_READ && plain_one(qp, wr, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ);
}

int shca_plain_post(struct shca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
                    shca_post_rest *rest)
{
    shca_lock(&qp->sq_lock);
    while (wr && plain_request(qp, wr))
        wr = wr->next;
    if (__builtin_expect(wr != NULL, 0))
        return rest(qp, wr, bad);
    shca_unlock(&qp->sq_lock);
    return 0;
}
