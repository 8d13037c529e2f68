/* SPDX-License-Identifier: BSD-3-Clause */
/* What the initiator does with one request: find the target, check everything an HCA would check on
 * either side, and move the bytes. The target's program does nothing. Owns nothing; the caller
 * holds sq_lock, and the responder lock of the target is held from the first check to the
 * completion. */
#include "config.h"

#include <endian.h>

#include "shca.h"

#define GRH_BYTES   40
#define UD_MTU      4096
#define IB_GRH_NEXT 0x1b

/* A request's local buffers, checked. */
struct source {
    struct iovec iov[SHCA_MAX_SGE + 1];
    unsigned n;
};

static bool gather(struct shca_qp *qp, const struct shca_op *op, uint32_t access, struct source *s)
{
    for (uint32_t i = 0; i < op->nsge; i++) {
        const struct ibv_sge *g = &op->sge[i];
        uint64_t va = g->addr;

        if (g->length == 0)
            continue;
        if (!(op->flags & IBV_SEND_INLINE) &&
            !shca_mr_check(shca.seg, g->lkey, g->addr, g->length, access, qp->sh->pd, &va))
            return false;
        s->iov[s->n++] = (struct iovec){(void *)(uintptr_t)va, g->length};
    }
    return true;
}

/* ---- the target ---- */

static bool find_target(struct shca_qp *qp)
{
    uint32_t qpn = qp->attr.dest_qp_num;

    if (qp->peer)
        return true;
    qp->peer = shca_peer_get(qpn >> SHCA_QP_BITS);
    if (!qp->peer)
        return false;
    qp->target = &shca_qp_table(qp->peer->seg)[qpn & (SHCA_QPS - 1)];
    qp->target_tail = 0;
    return true;
}

static bool receiving(uint32_t state)
{
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

/* Would the responder accept a packet of this connection? If not it stays silent. */
static bool connected(const struct shca_qp *qp, struct shca_qp_sh *t)
{
    return t->qpn == qp->attr.dest_qp_num && t->dest_qpn == qp->qp.qp_num &&
           receiving(atomic_load_explicit(&t->state, memory_order_acquire)) &&
           t->type == (uint32_t)qp->qp.qp_type && t->port == qp->dest_port &&
           t->dest_port == qp->sh->port && t->rq_psn == (qp->attr.sq_psn & 0xffffff);
}

static struct shca_cq_sh *cq_of(struct shca_peer *p, struct shca_qp_sh *t)
{
    return &shca_cq_table(p->seg)[t->recv_cq];
}

/* The responder found an error: its queue pair breaks too, and its program is told. */
static void break_target(struct shca_peer *p, struct shca_qp_sh *t, enum ibv_event_type why)
{
    struct shca_cq_sh *cq = cq_of(p, t);

    atomic_store(&t->state, IBV_QPS_ERR);
    shca_cq_ready(cq, t->cq_bit);
    shca_cq_notify(p->self ? NULL : p, cq, true);
    shca_async_send(p->self ? NULL : p, cq, why, t->qpn & (SHCA_QPS - 1));
}

/* ---- receives ---- */

static bool receive_posted(struct shca_qp *qp, struct shca_qp_sh *t, uint32_t head)
{
    /* The tail lies in a line the receiver keeps writing: look only when the known ones are used.
     */
    if (qp->target_tail == head || qp->target_epoch != t->epoch || qp->qp.qp_type == IBV_QPT_UD) {
        qp->target_epoch = t->epoch;
        qp->target_tail = atomic_load_explicit(&t->rq_tail, memory_order_acquire);
    }
    return qp->target_tail != head;
}

/* Makes the completion visible and moves on; payload and fields are in place. */
static void publish(struct shca_peer *p, const struct shca_op *op, struct shca_qp_sh *t,
                    uint32_t head, struct shca_slot *s)
{
    struct shca_cq_sh *cq = cq_of(p, t);
    bool solicited = (op->flags & IBV_SEND_SOLICITED) || s->status != IBV_WC_SUCCESS;

    s->counted = atomic_load_explicit(&cq->counted, memory_order_relaxed) != 0;
    if (s->counted)
        atomic_fetch_add_explicit(&cq->arrived, 1, memory_order_relaxed);
    atomic_store_explicit(&s->seq, head + 1, memory_order_release);
    atomic_store_explicit(&t->rq_head, head + 1, memory_order_release);
    shca_cq_ready(cq, t->cq_bit);
    if (cq->event.fd >= 0)
        shca_cq_notify(p->self ? NULL : p, cq, solicited);
}

static void fill(struct shca_qp *qp, const struct shca_op *op, struct shca_slot *s, uint32_t length,
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

/* Resolves the posted buffers of a slot for length bytes. */
static enum ibv_wc_status scatter(struct shca_peer *p, struct shca_qp_sh *t, uint32_t head,
                                  uint32_t length, struct shca_piece *out, unsigned *n)
{
    struct shca_slot *s = shca_slot_at(p->seg, t, head);
    uint32_t left = length;

    *n = 0;
    for (uint32_t i = 0; i < s->nsge && left > 0; i++) {
        const struct shca_sge *g = i == 0 ? &s->sge0 : shca_extra_at(p->seg, t, head, i);
        uint32_t take = left < g->length ? left : g->length;
        struct shca_mr_sh *m;
        uint64_t va;

        if (take == 0)
            continue;
        m = shca_mr_check(p->seg, g->lkey, g->addr, take, IBV_ACCESS_LOCAL_WRITE, t->pd, &va);
        if (!m)
            return IBV_WC_LOC_PROT_ERR;
        shca_piece_of(p, m, g->lkey, va, take, &out[(*n)++]);
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

/* Short messages for memory that is not mapped wait in the segment until the receiver polls. */
static bool put_eager(struct shca_peer *p, struct shca_qp_sh *t, uint32_t head, uint32_t length,
                      const struct source *src)
{
    uint32_t number = t->n_eager ? head % t->n_eager : 0;
    char *to;

    if (length > SHCA_EAGER_BYTES || t->n_eager == 0 ||
        head - atomic_load_explicit(&t->rq_done, memory_order_acquire) >= t->n_eager)
        return false;
    to = shca_eager_at(p->seg, t, number);
    for (unsigned i = 0; i < src->n; i++) {
        memcpy(to, src->iov[i].iov_base, src->iov[i].iov_len);
        to += src->iov[i].iov_len;
    }
    shca_slot_at(p->seg, t, head)->eager = number + 1;
    return true;
}

/* Puts the message where the receive says; false: the receiver's process is going away. */
static bool land(struct shca_peer *p, struct shca_qp_sh *t, uint32_t head, uint32_t length,
                 const struct source *src, enum ibv_wc_status *theirs)
{
    struct shca_piece piece[SHCA_MAX_SGE];
    unsigned n;
    int e;

    *theirs = scatter(p, t, head, length, piece, &n);
    if (*theirs != IBV_WC_SUCCESS)
        return true;
    if (!all_mapped(piece, n) && put_eager(p, t, head, length, src))
        return true;
    e = shca_move_out(p, piece, n, src->iov, src->n);
    /* Otherwise the memory went away under the region: the receiver's fault. */
    if (e != 0)
        *theirs = IBV_WC_LOC_PROT_ERR;
    return e != ESRCH;
}

/* What the sender is told when the receive failed with a status. */
static enum ibv_wc_status nak_of(enum ibv_wc_status theirs)
{
    return theirs == IBV_WC_SUCCESS       ? IBV_WC_SUCCESS
           : theirs == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR
                                          : IBV_WC_REM_OP_ERR;
}

/* Delivers a message (or the immediate of a write, with src->n == 0) into the next receive. */
static int deliver(struct shca_peer *p, struct shca_qp *qp, const struct shca_op *op,
                   struct shca_qp_sh *t, const struct source *src, uint32_t length,
                   enum ibv_wc_status *status)
{
    uint32_t head = atomic_load_explicit(&t->rq_head, memory_order_relaxed);
    struct shca_cq_sh *cq = cq_of(p, t);
    struct shca_slot *s;
    enum ibv_wc_status theirs = IBV_WC_SUCCESS;

    /* The line a poller spins on takes longest to get: ask for it first. */
    __builtin_prefetch(&cq->root, 1);
    if (!receive_posted(qp, t, head))
        return SHCA_WAIT_RNR;
    if (shca_cq_full(cq)) {
        shca_cq_overrun(p->self ? NULL : p, cq);
        break_target(p, t, IBV_EVENT_QP_FATAL);
        *status = IBV_WC_REM_OP_ERR;
        return SHCA_DONE;
    }
    s = shca_slot_at(p->seg, t, head);
    fill(qp, op, s, length, IBV_WC_SUCCESS);
    if (src->n && !land(p, t, head, length, src, &theirs))
        return SHCA_WAIT_ACK;
    s->status = (uint8_t)theirs;
    publish(p, op, t, head, s);
    /* The next message finds its slot in the cache. */
    __builtin_prefetch(shca_slot_at(p->seg, t, head + 1), 1);
    if (theirs != IBV_WC_SUCCESS)
        break_target(p, t, IBV_EVENT_QP_REQ_ERR);
    *status = nak_of(theirs);
    return SHCA_DONE;
}

/* ---- remote memory ---- */

static int remote_fault(struct shca_peer *p, struct shca_qp_sh *t, enum ibv_wc_status *status)
{
    break_target(p, t, IBV_EVENT_QP_ACCESS_ERR);
    *status = IBV_WC_REM_ACCESS_ERR;
    return SHCA_DONE;
}

static bool resolve(struct shca_peer *p, struct shca_qp_sh *t, const struct shca_op *op,
                    uint32_t access, struct shca_piece *piece)
{
    struct shca_mr_sh *m;
    uint64_t va;

    if (!(t->access & access))
        return false;
    m = shca_mr_check(p->seg, op->rkey, op->remote_addr, op->length, access, t->pd, &va);
    if (m)
        shca_piece_of(p, m, op->rkey, va, op->length, piece);
    return m != NULL;
}

static int rdma_write(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                      const struct source *src, enum ibv_wc_status *status)
{
    static const struct source nothing;
    struct shca_peer *p = qp->peer;
    struct shca_piece piece;
    bool imm = op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

    if (imm && !receive_posted(qp, t, atomic_load_explicit(&t->rq_head, memory_order_relaxed)))
        return SHCA_WAIT_RNR;
    if (op->length > 0) {
        int e = EFAULT;

        if (resolve(p, t, op, IBV_ACCESS_REMOTE_WRITE, &piece))
            e = shca_move_out(p, &piece, 1, src->iov, src->n);
        if (e != 0)
            return e == ESRCH ? SHCA_WAIT_ACK : remote_fault(p, t, status);
    }
    SHCA_COUNT(writes);
    return imm ? deliver(p, qp, op, t, &nothing, op->length, status) : SHCA_DONE;
}

static int rdma_read(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                     const struct source *dst, enum ibv_wc_status *status)
{
    struct shca_peer *p = qp->peer;
    struct shca_piece piece;

    if (op->length > 0) {
        int e = EFAULT;

        if (resolve(p, t, op, IBV_ACCESS_REMOTE_READ, &piece))
            e = shca_move_in(p, dst->iov, dst->n, &piece);
        if (e != 0)
            return e == ESRCH ? SHCA_WAIT_ACK : remote_fault(p, t, status);
    }
    SHCA_COUNT(reads);
    return SHCA_DONE;
}

/* ---- transports ---- */

static int on_target(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                     const struct source *s, enum ibv_wc_status *status)
{
    int wait;

    switch (op->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return rdma_write(qp, op, t, s, status);
    case IBV_WR_RDMA_READ:
        return rdma_read(qp, op, t, s, status);
    default:
        wait = deliver(qp->peer, qp, op, t, s, op->length, status);
        if (wait == SHCA_DONE)
            SHCA_COUNT(sends);
        return wait;
    }
}

static int execute_rc(struct shca_qp *qp, const struct shca_op *op, const struct source *s,
                      enum ibv_wc_status *status)
{
    struct shca_qp_sh *t;
    int wait = SHCA_WAIT_ACK;

    if (!find_target(qp))
        return SHCA_WAIT_ACK;
    if (atomic_load_explicit(&qp->peer->dead, memory_order_acquire)) {
        *status = IBV_WC_RETRY_EXC_ERR;
        return SHCA_DONE;
    }
    t = qp->target;
    shca_rx_lock(qp->peer->seg, t, shca.pid);
    if (connected(qp, t))
        wait = on_target(qp, op, t, s, status);
    shca_rx_unlock(t);
    return wait;
}

static void make_grh(const struct shca_qp *qp, const struct shca_op *op, struct ibv_grh *g)
{
    memset(g, 0, sizeof *g);
    if (!op->grh)
        return;
    g->version_tclass_flow = htobe32(6u << 28);
    g->paylen = htobe16((uint16_t)(op->length + 24)); /* BTH, DETH and ICRC count as payload */
    g->next_hdr = IB_GRH_NEXT;
    g->hop_limit = 64;
    shca_gid_of(qp->sh->port, &g->sgid);
    g->dgid = op->dgid;
}

static bool accepts_ud(const struct shca_op *op, struct shca_qp_sh *t)
{
    return t->qpn == op->dest_qpn && t->type == IBV_QPT_UD && t->port == op->dest_port &&
           t->qkey == op->qkey && receiving(atomic_load(&t->state));
}

/* A datagram that nobody wants is lost without a word. */
static void execute_ud(struct shca_qp *qp, const struct shca_op *op, const struct source *s)
{
    struct shca_peer *p = op->dest_port ? shca_peer_get(op->dest_qpn >> SHCA_QP_BITS) : NULL;
    enum ibv_wc_status ignored;
    struct source with_grh;
    struct shca_qp_sh *t;
    struct ibv_grh grh;

    if (!p)
        return;
    make_grh(qp, op, &grh);
    with_grh.iov[0] = (struct iovec){&grh, sizeof grh};
    memcpy(&with_grh.iov[1], s->iov, s->n * sizeof s->iov[0]);
    with_grh.n = s->n + 1;
    t = &shca_qp_table(p->seg)[op->dest_qpn & (SHCA_QPS - 1)];
    if (!atomic_load(&p->dead)) {
        shca_rx_lock(p->seg, t, shca.pid);
        if (accepts_ud(op, t))
            deliver(p, qp, op, t, &with_grh, op->length + GRH_BYTES, &ignored);
        shca_rx_unlock(t);
    }
    shca_peer_put(p);
    SHCA_COUNT(sends);
}

int shca_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    bool ud = qp->qp.qp_type == IBV_QPT_UD;
    struct source s;

    s.n = 0;
    *status = IBV_WC_SUCCESS;
    if (op->length > (ud ? UD_MTU : shca_config.max_msg)) {
        *status = IBV_WC_LOC_LEN_ERR;
        return SHCA_DONE;
    }
    if (!gather(qp, op, op->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0, &s)) {
        *status = IBV_WC_LOC_PROT_ERR;
        return SHCA_DONE;
    }
    if (!ud)
        return execute_rc(qp, op, &s, status);
    execute_ud(qp, op, &s);
    return SHCA_DONE;
}
