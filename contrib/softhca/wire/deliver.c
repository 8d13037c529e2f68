/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delivers a message into the buffers of the next posted receive, or into an eager slot when those
 * cannot be mapped here, and then its completion. Owns nothing; the responder lock of the target is
 * held throughout. */
#include "config.h"

#include "wire/entry.h"
#include "wire/request.h"

/* Small messages of a connection before memory is mapped for them. As many cost less than the five
 * system calls of a mapping and its page faults, and a connection of a program with few barriers
 * and messages carries no more. */
enum { unmapped_max = 16 };

static struct shca_cq_sh *deliver_cq_of(struct shca_peer *p, struct shca_qp_sh *t)
{
    return &shca_cq_table(p->seg)[t->recv_cq];
}

void shca_last_wqe(struct shca_peer *p, struct shca_qp_sh *t)
{
    if (t->rq_kind == SHCA_RQ_OWN || t->type == IBV_QPT_XRC_SEND || t->last_wqe ||
        (t->manners & SHCA_NO_LAST_WQE))
        return;
    shca_async_send(p, &t->async, IBV_EVENT_QP_LAST_WQE_REACHED, t->qpn & (SHCA_QPS - 1));
    t->last_wqe = 1;
}

/* The responder detected an error: its queue pair breaks too, and its program gets the event. */
void shca_break_target(struct shca_peer *p, struct shca_qp_sh *t, enum ibv_event_type why)
{
    struct shca_peer *other = p->self ? NULL : p;

    atomic_store(&t->state, IBV_QPS_ERR);
    if (t->rq_kind != SHCA_RQ_XRC) {
        shca_cq_ready(deliver_cq_of(p, t), t->cq_bit);
        shca_cq_notify(other, deliver_cq_of(p, t), true);
    }
    shca_async_send(other, &t->async, why, t->qpn & (SHCA_QPS - 1));
    shca_last_wqe(other, t);
}

bool shca_receive_posted(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t)
{
    uint32_t head = atomic_load_explicit(&t->rq_head, memory_order_relaxed);

    if (t->rq_kind != SHCA_RQ_OWN)
        return shca_shared_posted(p, qp, t);
    if (qp->qp.qp_type == IBV_QPT_UD) /* each of its messages may go to another target */
        qp->target_epoch = 0;
    return shca_own_posted(qp, t, head);
}

/* Makes the completion visible and advances; payload and fields are in place. Inline, as the two
 * below: with a second caller, the wire of packets, the compiler would call them on the path of
 * shared memory too, which costs some 40 instructions a message. */
__attribute__((always_inline)) static inline void deliver_publish(const struct shca_receive *r,
                                                                  const struct shca_op *op,
                                                                  struct shca_qp *qp,
                                                                  struct shca_qp_sh *t)
{
    struct shca_slot *s = r->slot;
    bool solicited = (op->flags & IBV_SEND_SOLICITED) || s->status != IBV_WC_SUCCESS;
    bool counted = atomic_load_explicit(&r->cq->counted, memory_order_relaxed) != 0;

    s->counted = counted;
    if (r->cq->stamps)
        s->stamp = tk_now();
    if (t->rq_kind == SHCA_RQ_OWN) {
        atomic_store_explicit(&s->seq, r->index + 1, memory_order_release);
        atomic_store_explicit(&t->rq_head, r->index + 1, memory_order_release);
    } else {
        shca_shared_publish(r, qp, t);
    }
    /* Do this last: if we are killed in between, the CQ has unused space, but no entry that is
     * never polled. */
    if (counted)
        atomic_fetch_add_explicit(&r->cq->arrived, 1, memory_order_relaxed);
    shca_cq_ready(r->cq, r->cq_bit);
    if (r->cq->event.fd >= 0)
        shca_cq_notify(r->p->self ? NULL : r->p, r->cq, solicited);
}

__attribute__((always_inline)) static inline void fill(struct shca_qp *qp, const struct shca_op *op,
                                                       struct shca_slot *s, uint32_t length,
                                                       enum ibv_wc_status status)
{
    s->status = (uint8_t)status;
    s->byte_len = length;
    s->imm = op->imm;
    s->src_qp = qp->qp.qp_num;
    s->slid = op->slid;
    s->opcode = op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    s->wc_flags = op->opcode == IBV_WR_SEND_WITH_IMM || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM
                      ? IBV_WC_WITH_IMM
                      : 0;
    if (op->grh)
        s->wc_flags |= IBV_WC_GRH;
    s->eager = 0;
}

/* Returns the piece as far as it is known; it is not mapped if that has not been done yet. */
static struct shca_piece piece_mapped(struct shca_peer *p, const struct shca_mr_sh *m, uint32_t key,
                                      uint64_t va, size_t length)
{
    char *base = shca_peer_mapped(p, m, key);

    return (struct shca_piece){base ? base + (va - m->addr) : NULL, va, length};
}

/* Resolves the posted buffers of a receive for length bytes; `maps`: also maps regions that are not
 * mapped yet. */
static enum ibv_wc_status deliver_scatter(const struct shca_receive *r, uint32_t length, bool maps,
                                          struct shca_piece *out, unsigned *n)
{
    const struct shca_slot *s = r->slot;
    uint32_t left = length;

    *n = 0;
    for (uint32_t i = 0; i < s->nsge && left > 0; i++) {
        const struct shca_sge *g = i == 0 ? &s->sge0 : shca_extra_at(r->p->seg, r->rq, r->index, i);
        uint32_t take = left < g->length ? left : g->length;
        struct shca_mr_sh *m;
        uint64_t va;

        if (take == 0)
            continue;
        m = shca_mr_check(r->p->seg, g->lkey, g->addr, take, IBV_ACCESS_LOCAL_WRITE, r->pd, &va);
        if (!m)
            return IBV_WC_LOC_PROT_ERR;
        if (maps || r->p->self)
            shca_piece_of(r->p, m, g->lkey, va, take, &out[(*n)++]);
        else
            out[(*n)++] = piece_mapped(r->p, m, g->lkey, va, take);
        left -= take;
    }
    return left > 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

static bool all_mapped(const struct shca_piece *piece, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!piece[i].mapped)
            return false;
    return true;
}

/* The eager slot that a receive may use; false: the receive has no eager slot. */
static bool eager_free(const struct shca_receive *r, const struct shca_qp_sh *t, uint32_t *number)
{
    uint32_t n = r->rq->n_eager;

    *number = r->index;
    if (t->rq_kind != SHCA_RQ_OWN || n == 0)
        return r->index < n;
    *number = r->index % n;
    return r->index - atomic_load_explicit(&t->rq_done, memory_order_acquire) < n;
}

/* Short messages for memory that is not mapped wait in the segment until the receiver polls. */
static bool put_eager(const struct shca_receive *r, const struct shca_qp_sh *t, uint32_t length,
                      const struct shca_source *src)
{
    uint32_t number;
    char *to;

    if (length > SHCA_EAGER_BYTES || shca_fault_dying() || !eager_free(r, t, &number))
        return false;
    to = shca_eager_at(r->p->seg, r->rq, number, length);
    for (unsigned i = 0; i < src->n; i++) {
        memcpy(to, src->iov[i].iov_base, src->iov[i].iov_len);
        to += src->iov[i].iov_len;
    }
    r->slot->eager = number + 1;
    return true;
}

/* Mapping a region takes a hundred times as long as a small message, so the first messages of a
 * connection, which may be its only ones, do not map regions. */
static bool is_too_young_to_map(const struct shca_qp *qp, uint32_t length)
{
    return qp->unmapped < unmapped_max && length <= SHCA_EAGER_SMALL &&
           qp->qp.qp_type != IBV_QPT_UD;
}

/* Puts the message into the receive; false: the receiver's process is exiting. */
static bool deliver_place(const struct shca_receive *r, struct shca_qp *qp,
                          const struct shca_qp_sh *t, uint32_t length,
                          const struct shca_source *src, enum ibv_wc_status *theirs)
{
    struct shca_piece piece[SHCA_MAX_SGE];
    bool maps = !is_too_young_to_map(qp, length);
    unsigned n;
    int e;

    *theirs = deliver_scatter(r, length, maps, piece, &n);
    if (*theirs != IBV_WC_SUCCESS)
        return true;
    if (!all_mapped(piece, n) && put_eager(r, t, length, src)) {
        qp->unmapped += !maps;
        return true;
    }
    if (!maps)
        *theirs = deliver_scatter(r, length, true, piece, &n);
    if (*theirs != IBV_WC_SUCCESS)
        return true;
    e = shca_move_out(r->p, piece, n, src->iov, src->n);
    /* Otherwise the memory disappeared under the region: the receiver's error. */
    if (e != 0)
        *theirs = shca_copy_refused(e) ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR;
    return e != ESRCH;
}

/* The status for the sender when the receive failed with the given one. */
static enum ibv_wc_status nak_of(enum ibv_wc_status theirs)
{
    return theirs == IBV_WC_SUCCESS       ? IBV_WC_SUCCESS
           : theirs == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR
                                          : IBV_WC_REM_OP_ERR;
}

/* The queue pair's own next receive. */
__attribute__((always_inline)) static inline void
own_receive(struct shca_peer *p, struct shca_qp_sh *t, struct shca_receive *r)
{
    r->p = p;
    r->rq = &t->rq;
    r->index = atomic_load_explicit(&t->rq_head, memory_order_relaxed);
    r->slot = shca_slot_at(p->seg, &t->rq, r->index);
    r->cq = deliver_cq_of(p, t);
    r->cq_bit = t->cq_bit;
    r->pd = t->pd;
}

static int overrun(struct shca_peer *p, struct shca_qp_sh *t, const struct shca_receive *r,
                   enum ibv_wc_status *status)
{
    shca_cq_overrun(r->p->self ? NULL : r->p, r->cq);
    shca_break_target(p, t, IBV_EVENT_QP_FATAL);
    *status = IBV_WC_REM_OP_ERR;
    return SHCA_DONE;
}

/* A page's first access also maps the pages around it if it is a read (fabric/heap.c), but not if
 * it is a write (3 us); and the compiler may not put a store before it. */
static inline void read_first(const struct shca_slot *s)
{
    __asm__ volatile("" ::"r"(s->nsge) : "memory");
}

int shca_receive_begin(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t,
                       struct shca_receive *r)
{
    enum ibv_wc_status status;

    if (t->rq_kind == SHCA_RQ_OWN)
        own_receive(p, t, r);
    else if (!shca_shared_take(p, qp, t, r))
        return SHCA_WAIT_RNR;
    if (t->rq_kind == SHCA_RQ_OWN && !shca_receive_posted(p, qp, t))
        return SHCA_WAIT_RNR;
    if (!shca_cq_full(r->cq))
        return SHCA_DONE;
    overrun(p, t, r, &status);
    return SHCA_WAIT_NEVER;
}

void shca_receive_end(struct shca_qp *qp, struct shca_qp_sh *t, const struct shca_receive *r,
                      const struct shca_op *op, enum ibv_wc_status status)
{
    fill(qp, op, r->slot, op->length, status);
    r->slot->src_qp = op->dest_qpn;
    r->slot->pkey_index = t->pkey_index;
    deliver_publish(r, op, qp, t);
}

int shca_deliver(struct shca_peer *p, struct shca_qp *qp, const struct shca_op *op,
                 struct shca_qp_sh *t, const struct shca_source *src, uint32_t length,
                 enum ibv_wc_status *status)
{
    enum ibv_wc_status theirs = IBV_WC_SUCCESS;
    struct shca_receive r;

    if (t->rq_kind == SHCA_RQ_OWN)
        own_receive(p, t, &r);
    else if (!shca_shared_take(p, qp, t, &r))
        return SHCA_WAIT_RNR;
    /* The line that a poller spins on takes longest to get: request it first. */
    __builtin_prefetch(&r.cq->root, 1);
    if (t->rq_kind == SHCA_RQ_OWN && !shca_receive_posted(p, qp, t))
        return SHCA_WAIT_RNR;
    if (shca_cq_full(r.cq))
        return overrun(p, t, &r, status);
    read_first(r.slot);
    fill(qp, op, r.slot, length, IBV_WC_SUCCESS);
    r.slot->pkey_index = t->pkey_index;
    if (src->n && !deliver_place(&r, qp, t, length, src, &theirs))
        return SHCA_WAIT_ACK;
    r.slot->status = (uint8_t)theirs;
    deliver_publish(&r, op, qp, t);
    /* So that the next message finds its slot in the cache. */
    __builtin_prefetch(shca_slot_at(r.p->seg, r.rq, r.index + 1), 1);
    if (theirs != IBV_WC_SUCCESS)
        shca_break_target(p, t, IBV_EVENT_QP_REQ_ERR);
    *status = nak_of(theirs);
    return SHCA_DONE;
}
