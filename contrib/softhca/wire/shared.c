/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How receives of shared queues move between processes. The initiator's half (take, publish) runs
 * under the responder lock of the target and takes the lock of the shared queue, always after it;
 * the owner's half (collect, drop) runs under the lock of the CQ that the messages go into. Owns
 * nothing.
 *
 * A process may be killed between any two stores here. The ring of a shared queue is authoritative
 * about what is posted: a slot belongs to the queue pair in slot.taker only if it is no longer at
 * the head of that ring. The queue pair remembers (taken) which slot its next message goes into, so
 * that the next process to deliver or collect, a later initiator or the owner, finds it again. */
#include "config.h"

#include "wire/entry.h"
#include "wire/request.h"

static uint32_t *ring_of(struct shca_segment *seg, uint64_t offset)
{
    return (uint32_t *)(void *)((char *)seg + offset);
}

/* Atomic because the store that orders this before the owner's next lap may be in another process,
 * where the thread sanitizer does not see it. */
static uint32_t number_at(struct shca_segment *seg, const struct shca_srq_sh *q, uint32_t at)
{
    uint32_t *number = &ring_of(seg, q->ring)[at & q->rq.mask];

    return __atomic_load_n(number, __ATOMIC_RELAXED) & q->rq.mask;
}

static bool empty(struct shca_srq_sh *q)
{
    return atomic_load_explicit(&q->head, memory_order_relaxed) ==
           atomic_load_explicit(&q->tail, memory_order_acquire);
}

/* ---- initiator ---- */

static struct shca_srq_sh *queue_of(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t)
{
    return t->rq_kind == SHCA_RQ_XRC ? qp->xrc_srq : &shca_srq_table(p->seg)[t->srq];
}

bool shca_shared_posted(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t)
{
    return !empty(queue_of(p, qp, t));
}

/* p NULL: the queue is this process's own. */
static void notify_limit(struct shca_peer *p, struct shca_srq_sh *q)
{
    uint32_t limit = atomic_load_explicit(&q->limit, memory_order_relaxed);

    if (limit == 0 || atomic_load_explicit(&q->tail, memory_order_acquire) -
                              atomic_load_explicit(&q->head, memory_order_relaxed) >=
                          limit)
        return;
    /* First the event, then the disarming: if we are killed in between, there is one event too
     * many. */
    shca_async_send(p, &q->async, IBV_EVENT_SRQ_LIMIT_REACHED, q->srqn & (SHCA_SRQS - 1));
    atomic_store(&q->limit, 0);
}

/* The slot taken for the message at rq_head by an initiator that did not publish it. */
static bool shared_held(struct shca_segment *seg, struct shca_srq_sh *q, struct shca_qp_sh *t,
                        uint32_t *number)
{
    uint64_t taken = atomic_load(&t->taken);

    if ((uint32_t)taken == 0 || (uint32_t)(taken >> 32) != atomic_load(&t->rq_head))
        return false;
    *number = ((uint32_t)taken - 1) & q->rq.mask;
    if (atomic_load(&shca_slot_at(seg, &q->rq, *number)->taker) != t->qpn)
        return false;
    return empty(q) || number_at(seg, q, atomic_load(&q->head)) != *number;
}

static bool take_next(struct shca_peer *p, struct shca_srq_sh *q, struct shca_qp_sh *t,
                      uint32_t *number)
{
    uint32_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
    uint64_t at = (uint64_t)atomic_load_explicit(&t->rq_head, memory_order_relaxed) << 32;

    if (empty(q))
        return false;
    *number = number_at(p->seg, q, head);
    atomic_store_explicit(&t->taken, at | (*number + 1), memory_order_release);
    atomic_store_explicit(&shca_slot_at(p->seg, &q->rq, *number)->taker, t->qpn,
                          memory_order_release);
    atomic_store_explicit(&q->head, head + 1, memory_order_release);
    notify_limit(p->self ? NULL : p, q);
    return true;
}

static void set_receive(struct shca_receive *r, struct shca_peer *p, struct shca_srq_sh *q,
                        uint32_t number)
{
    r->p = p;
    r->rq = &q->rq;
    r->index = number;
    r->slot = shca_slot_at(p->seg, &q->rq, number);
    r->pd = q->pd;
}

/* ---- XRC ---- */

/* A message in packets keeps its slot of an XRC queue until its last packet: the slot stays in the
 * ring with this mark and the target's number in taker, and others pass it by. The mark is void
 * when that target no longer receives, so a target that breaks or whose process dies leaves nothing
 * behind. */
enum { kept_mark = 1u << 31 };

static bool keeps(uint32_t qpn, struct shca_qp *qp)
{
    struct shca_peer *p;
    struct shca_qp_sh *t;
    bool busy;

    if (qpn == qp->qp.qp_num)
        return false; /* kept for the same target by a message that was given up */
    p = qpn >> SHCA_QP_BITS < SHCA_MEMBERS ? shca_peer_get(qpn >> SHCA_QP_BITS) : NULL;
    if (!p)
        return false;
    t = &shca_qp_table(p->seg)[qpn & (SHCA_QPS - 1)];
    busy = !atomic_load(&p->dead) && t->qpn == qpn && shca_receiving(t);
    shca_peer_put(p);
    return busy;
}

/* Exchanges the number at a position of the ring with the number at its head. A process may be
 * killed in between: so the move is recorded first, and the next process that moves a number
 * completes it. */
static void finish_move(struct shca_segment *seg, struct shca_srq_sh *q)
{
    uint32_t *ring = ring_of(seg, q->ring), mask = q->rq.mask, head = atomic_load(&q->head);
    uint64_t moving = atomic_load(&q->moving);
    uint32_t at = (uint32_t)(moving >> 32) - 1, displaced = (uint32_t)moving;

    if (moving == 0)
        return;
    if (number_at(seg, q, at) != displaced)
        __atomic_store_n(&ring[head & mask], number_at(seg, q, at), __ATOMIC_RELEASE);
    __atomic_store_n(&ring[at & mask], displaced, __ATOMIC_RELEASE);
    atomic_store(&q->moving, 0);
}

static void bring_to_head(struct shca_segment *seg, struct shca_srq_sh *q, uint32_t at)
{
    uint32_t head = atomic_load(&q->head);

    if (at == head)
        return;
    atomic_store(&q->moving, (uint64_t)((at & q->rq.mask) + 1) << 32 | number_at(seg, q, head));
    finish_move(seg, q);
}

/* The holder of the lock of an XRC queue only reads the slot at its head, once it is there. */
static bool peek_xrc(struct shca_qp *qp, struct shca_receive *r)
{
    struct shca_segment *seg = qp->xrc_holder->seg;
    struct shca_srq_sh *q = qp->xrc_srq;
    uint32_t tail = atomic_load_explicit(&q->tail, memory_order_acquire), at;

    finish_move(seg, q);
    for (at = atomic_load_explicit(&q->head, memory_order_relaxed); at != tail; at++) {
        uint32_t taker = atomic_load(&shca_slot_at(seg, &q->rq, number_at(seg, q, at))->taker);

        if (!(taker & kept_mark) || !keeps(taker & ~kept_mark, qp))
            break;
    }
    if (at == tail)
        return false;
    bring_to_head(seg, q, at);
    set_receive(r, qp->xrc_holder, q, number_at(seg, q, atomic_load(&q->head)));
    r->cq = &shca_cq_table(seg)[q->cq];
    r->cq_bit = q->cq_bit;
    return true;
}

void shca_xrc_keep(const struct shca_receive *r, const struct shca_qp_sh *t)
{
    atomic_store(&r->slot->taker, kept_mark | t->qpn);
}

bool shca_xrc_kept(struct shca_qp *qp, struct shca_receive *r, const struct shca_qp_sh *t)
{
    struct shca_segment *seg = qp->xrc_holder->seg;
    struct shca_srq_sh *q = qp->xrc_srq;

    /* A later request may have named another queue, and the mapping of the first queue's process
     * may be gone. */
    set_receive(r, qp->xrc_holder, q, r->index);
    r->cq = &shca_cq_table(seg)[q->cq];
    r->cq_bit = q->cq_bit;
    return r->index <= q->rq.mask && atomic_load(&r->slot->taker) == (kept_mark | t->qpn);
}

bool shca_xrc_first(struct shca_qp *qp, const struct shca_receive *r)
{
    struct shca_segment *seg = qp->xrc_holder->seg;
    struct shca_srq_sh *q = qp->xrc_srq;
    uint32_t tail = atomic_load_explicit(&q->tail, memory_order_acquire), at;

    finish_move(seg, q);
    for (at = atomic_load(&q->head); at != tail; at++)
        if (number_at(seg, q, at) == r->index) {
            bring_to_head(seg, q, at);
            return true;
        }
    return false;
}

bool shca_shared_take(struct shca_peer *p, struct shca_qp *qp, struct shca_qp_sh *t,
                      struct shca_receive *r)
{
    struct shca_srq_sh *q = queue_of(p, qp, t);
    uint32_t number;
    bool got;

    if (t->rq_kind == SHCA_RQ_XRC)
        return peek_xrc(qp, r);
    shca_pid_lock(&q->lock, shca.pid);
    got = shared_held(p->seg, q, t, &number) || take_next(p, q, t, &number);
    shca_pid_unlock(&q->lock);
    if (!got)
        return false;
    set_receive(r, p, q, number);
    r->cq = &shca_cq_table(p->seg)[t->recv_cq];
    r->cq_bit = t->cq_bit;
    return true;
}

void shca_shared_publish(const struct shca_receive *r, struct shca_qp *qp, struct shca_qp_sh *t)
{
    uint32_t head = atomic_load_explicit(&t->rq_head, memory_order_relaxed);
    struct shca_srq_sh *q = qp->xrc_srq;

    if (t->rq_kind == SHCA_RQ_SHARED) {
        ring_of(r->p->seg, t->ring)[head & t->ring_mask] = r->index;
        atomic_store_explicit(&t->rq_head, head + 1, memory_order_release);
        return;
    }
    atomic_store_explicit(&r->slot->taker, t->qpn, memory_order_relaxed);
    atomic_store_explicit(&q->head, atomic_load_explicit(&q->head, memory_order_relaxed) + 1,
                          memory_order_release);
    notify_limit(r->p->self ? NULL : r->p, q);
}

/* ---- owner ---- */

void shca_srq_give(struct shca_srq *srq, uint32_t number)
{
    shca_lock(&srq->lock);
    srq->free[srq->n_free++] = number;
    shca_unlock(&srq->lock);
}

/* Hands one message to the program and returns its slot to the queue. */
static void hand_over(struct shca_cq *cq, struct shca_srq *srq, uint32_t number, uint32_t qpn,
                      struct ibv_wc *wc, uint32_t *counted)
{
    struct shca_slot *s = shca_slot_at(shca.seg, &srq->sh->rq, number);

    if (s->eager)
        shca_eager_unpack(&srq->sh->rq, number, s);
    shca_receive_wc(s, srq->wr_id[number], qpn, wc);
    if (cq->stamps)
        cq->stamp = s->stamp;
    *counted += s->counted;
    shca_srq_give(srq, number);
}

/* After ERR: the receive that an initiator took and could not finish comes back flushed. */
static bool flush_held(struct shca_qp *qp, struct ibv_wc *wc)
{
    struct shca_srq_sh *q = qp->srq->sh;
    uint32_t number;
    bool found;

    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    shca_pid_lock(&q->lock, shca.pid);
    found = shared_held(shca.seg, q, qp->sh, &number);
    atomic_store(&qp->sh->taken, 0);
    shca_pid_unlock(&q->lock);
    shca_rx_unlock(qp->sh);
    if (!found)
        return false;
    if (wc)
        shca_flushed_wc(qp->srq->wr_id[number], qp->qp.qp_num, wc);
    if (qp->rcq->stamps)
        qp->rcq->stamp = tk_now();
    shca_srq_give(qp->srq, number);
    return true;
}

bool shca_shared_holds(const struct shca_qp *qp)
{
    uint64_t taken = atomic_load(&qp->sh->taken);

    return (uint32_t)taken != 0 && (uint32_t)(taken >> 32) == atomic_load(&qp->sh->rq_head);
}

uint32_t shca_shared_collect(struct shca_qp *qp, uint32_t max, struct ibv_wc *wc, bool *drained,
                             uint32_t *counted)
{
    struct shca_qp_sh *sh = qp->sh;
    const uint32_t *ring = ring_of(shca.seg, sh->ring);
    uint32_t at = atomic_load_explicit(&sh->rq_done, memory_order_relaxed);
    /* Reading the state waits for initiators that hold the lock, so it comes before reading the
     * head. */
    bool dead = shca_settled_error(qp);
    uint32_t head = atomic_load_explicit(&sh->rq_head, memory_order_acquire);
    uint32_t n = 0;

    for (; n < max && at != head; n++, at++)
        hand_over(qp->rcq, qp->srq, ring[at & sh->ring_mask], qp->qp.qp_num, &wc[n], counted);
    atomic_store_explicit(&sh->rq_done, at, memory_order_relaxed);
    if (dead && n < max && shca_shared_holds(qp) && flush_held(qp, &wc[n]))
        n++;
    *drained = n < max;
    return n;
}

uint32_t shca_shared_drop(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    const uint32_t *ring = ring_of(shca.seg, sh->ring);
    uint32_t head = atomic_load(&sh->rq_head);
    uint32_t counted = 0;

    for (uint32_t at = atomic_load(&sh->rq_done); at != head; at++) {
        uint32_t number = ring[at & sh->ring_mask];

        counted += shca_slot_at(shca.seg, &qp->srq->sh->rq, number)->counted;
        shca_srq_give(qp->srq, number);
    }
    flush_held(qp, NULL);
    return counted;
}

void shca_shared_settle(struct shca_qp *qp, uint32_t key)
{
    struct shca_qp_sh *sh = qp->sh;
    const struct shca_rq_sh *rq = &qp->srq->sh->rq;
    const uint32_t *ring = ring_of(shca.seg, sh->ring);
    uint32_t head = atomic_load(&sh->rq_head);

    for (uint32_t at = atomic_load(&sh->rq_done); at != head; at++) {
        uint32_t number = ring[at & sh->ring_mask];

        shca_eager_settle(rq, number, shca_slot_at(shca.seg, rq, number), key);
    }
}

uint32_t shca_xrc_collect(struct shca_srq *srq, uint32_t max, struct ibv_wc *wc, bool *drained,
                          uint32_t *counted)
{
    struct shca_srq_sh *q = srq->sh;
    uint32_t head = atomic_load_explicit(&q->head, memory_order_acquire);
    uint32_t n = 0;

    for (; n < max && srq->done != head; n++, srq->done++) {
        uint32_t number = number_at(shca.seg, q, srq->done);

        hand_over(srq->cq, srq, number, shca_slot_at(shca.seg, &q->rq, number)->taker, &wc[n],
                  counted);
    }
    *drained = n < max;
    return n;
}

uint32_t shca_xrc_drop(struct shca_srq *srq)
{
    struct shca_srq_sh *q = srq->sh;
    uint32_t head = atomic_load(&q->head), counted = 0;

    for (; srq->done != head; srq->done++)
        counted += shca_slot_at(shca.seg, &q->rq, number_at(shca.seg, q, srq->done))->counted;
    return counted;
}

void shca_xrc_settle(struct shca_srq *srq, uint32_t key)
{
    struct shca_srq_sh *q = srq->sh;
    uint32_t head;

    if (!srq->cq)
        return;
    shca_lock(&srq->cq->lock);
    /* Read it only now: `done` passes an older head as soon as another thread polls. */
    head = atomic_load(&q->head);
    for (uint32_t at = srq->done; at != head; at++) {
        uint32_t number = number_at(shca.seg, q, at);

        shca_eager_settle(&q->rq, number, shca_slot_at(shca.seg, &q->rq, number), key);
    }
    shca_unlock(&srq->cq->lock);
}

void shca_srq_arm(struct shca_srq *srq, uint32_t limit)
{
    shca_pid_lock(&srq->sh->lock, shca.pid);
    atomic_store(&srq->sh->limit, limit);
    notify_limit(NULL, srq->sh);
    shca_pid_unlock(&srq->sh->lock);
}
