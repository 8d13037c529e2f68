/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes one request in the initiator: finds the target, checks everything that an HCA would
 * check on either side, and moves the bytes. The target's program does nothing. Owns nothing; the
 * caller holds sq_lock, and the responder lock of the target is held from the first check to the
 * completion. */
#include "config.h"

#include "wire/request.h"

enum {
    ud_mtu = 4096,
    mtu_min = 256, /* a message up to this fits into one packet of any path */
};

/* The answer of a read that fits into the completion is stored by the provider, with the CPU, at
 * the address that the program gave, when the completion is polled, as mlx5 does. */
static bool is_scattered(const struct shca_qp *qp, const struct shca_op *op, uint32_t access)
{
    return qp->holds && access != 0 && op->length > 0 && op->nsge <= SHCA_HOLD_PIECES &&
           (op->flags & IBV_SEND_SIGNALED) &&
           op->length <= shca_profile_of(qp->qp.context)->scatter;
}

/* Until the completion is polled, the data waits beside it. Only the request at sq_exec is
 * executed. */
static void hold(struct shca_qp *qp, struct shca_source *s, uint32_t length)
{
    struct shca_hold *h = &qp->holds[qp->sq_exec & qp->wqe_mask];

    memcpy(h->to, s->iov, s->n * sizeof *s->iov);
    h->n = s->n;
    s->iov[0] = (struct iovec){h->data, length};
    s->n = 1;
}

static bool gather(struct shca_qp *qp, const struct shca_op *op, uint32_t access,
                   struct shca_source *s)
{
    for (uint32_t i = 0; i < op->nsge; i++) {
        const struct ibv_sge *g = &op->sge[i];
        uint64_t va = g->addr;

        if (g->length == 0)
            continue;
        if (!(op->flags & IBV_SEND_INLINE) &&
            !shca_mr_check(shca.seg, g->lkey, g->addr, g->length, access, qp->sh->pd, &va))
            return false;
        if (is_scattered(qp, op, access))
            va = g->addr;
        s->iov[s->n++] = (struct iovec){(void *)(uintptr_t)va, g->length};
    }
    if (is_scattered(qp, op, access))
        hold(qp, s, op->length);
    return true;
}

/* ---- the target ---- */

static bool find_target(struct shca_qp *qp)
{
    uint32_t qpn = qp->attr.dest_qp_num;

    if (qp->peer)
        return true;
    qp->peer = qp->qp.qp_type == IBV_QPT_UC ? shca_peer_get_now(qpn >> SHCA_QP_BITS)
                                            : shca_peer_get(qpn >> SHCA_QP_BITS);
    if (!qp->peer)
        return false;
    qp->target = &shca_qp_table(qp->peer->seg)[qpn & (SHCA_QPS - 1)];
    qp->target_tail = 0;
    qp->unmapped = 0;
    qp->target_epoch = 0; /* no queue pair has this epoch */
    return true;
}

static uint32_t responder_of(const struct shca_qp *qp)
{
    return qp->qp.qp_type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : (uint32_t)qp->qp.qp_type;
}

/* Whether the responder accepts a packet of this connection. If not it stays silent. An unreliable
 * one accepts the first packet of a message whatever its PSN (specification 9.8.2.2.1). */
static bool connected(const struct shca_qp *qp, struct shca_qp_sh *t)
{
    return t->qpn == qp->attr.dest_qp_num && t->dest_qpn == qp->qp.qp_num && shca_receiving(t) &&
           t->type == responder_of(qp) && t->port == qp->dest_port &&
           t->dest_port == qp->sh->port && shca_networks_meet(t, qp->sh) &&
           (t->rq_psn == (qp->attr.sq_psn & 0xffffff) || qp->qp.qp_type == IBV_QPT_UC);
}

bool shca_answers(struct shca_qp *qp)
{
    bool there;

    if (shca_path_cut(qp->sh->port, qp->dest_port) || !find_target(qp) ||
        atomic_load(&qp->peer->dead))
        return false;
    shca_rx_lock(qp->peer->seg, qp->target, shca.pid);
    there = connected(qp, qp->target);
    shca_rx_unlock(qp->target);
    return there;
}

void shca_break_peer(struct shca_qp *qp, enum ibv_event_type why)
{
    if (!find_target(qp) || atomic_load(&qp->peer->dead))
        return;
    shca_rx_lock(qp->peer->seg, qp->target, shca.pid);
    if (connected(qp, qp->target))
        shca_break_target(qp->peer, qp->target, why);
    shca_rx_unlock(qp->target);
}

/* The first message to a responder that is not yet in RTS raises an event there, once (11.6.3.1:
 * communication established). */
static void establish(struct shca_peer *p, struct shca_qp_sh *t)
{
    if (t->established)
        return;
    /* If we are killed in between, a second event is sent, which is safe; a missing event would not
     * be. */
    shca_async_send(p->self ? NULL : p, &t->async, IBV_EVENT_COMM_EST, t->qpn & (SHCA_QPS - 1));
    t->established = 1;
}

/* Whether this request reveals that the two ends have different MTUs. All packets but the last must
 * be as large as the MTU of the path (specification 9.7.4.1.6, 9.8.2.2.7). */
static bool has_mtu_mismatch(const struct shca_qp *qp, const struct shca_op *op,
                             const struct shca_qp_sh *t)
{
    uint32_t mine = qp->sh->mtu, theirs = t->mtu;

    return mine != theirs && op->length > 128u << (mine < theirs ? mine : theirs);
}

/* The receiver of the wrong packets detects it: the responder, or for a read the requester. */
static int mtu_mismatch(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                        enum ibv_wc_status *status)
{
    if (op->opcode != IBV_WR_RDMA_READ)
        return shca_refuse(qp->peer, t, IBV_WC_REM_INV_REQ_ERR, status);
    *status = IBV_WC_BAD_RESP_ERR;
    return SHCA_DONE;
}

/* ---- transports ---- */

static int on_target(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                     const struct shca_source *s, enum ibv_wc_status *status)
{
    int wait;

    if (__builtin_expect(t->manners & SHCA_HEARS_FIRST, 0))
        t->manners &= ~(uint32_t)SHCA_HEARS_FIRST;
    if (atomic_load_explicit(&t->state, memory_order_relaxed) == IBV_QPS_RTR)
        establish(qp->peer, t);
    if (op->length > mtu_min && has_mtu_mismatch(qp, op, t))
        return mtu_mismatch(qp, op, t, status);
    switch (op->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return shca_rdma_write(qp, op, t, s, status);
    case IBV_WR_RDMA_READ:
        return shca_rdma_read(qp, op, t, s, status);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return shca_atomic(qp, op, t, s, status);
    default:
        wait = shca_deliver(qp->peer, qp, op, t, s, op->length, status);
        if (wait == SHCA_DONE)
            SHCA_COUNT(sends);
        return wait;
    }
}

static int on_domain(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                     const struct shca_source *s, enum ibv_wc_status *status)
{
    int wait;

    if (!shca_xrc_enter(qp, op, t, status))
        return SHCA_DONE;
    wait = on_target(qp, op, t, s, status);
    shca_xrc_leave(qp);
    return wait;
}

static int execute_rc(struct shca_qp *qp, const struct shca_op *op, const struct shca_source *s,
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
    if (connected(qp, t)) {
        if (qp->qp.qp_type == IBV_QPT_RC && qp->plain.epoch != t->epoch)
            shca_plain_allow(qp);
        wait = qp->qp.qp_type == IBV_QPT_XRC_SEND ? on_domain(qp, op, t, s, status)
                                                  : on_target(qp, op, t, s, status);
    }
    shca_rx_unlock(t);
    return wait;
}

/* Without acknowledgements a message that cannot be delivered is lost, and the sender is not
 * informed. */
static int execute_uc(struct shca_qp *qp, const struct shca_op *op, const struct shca_source *s)
{
    enum ibv_wc_status ignored;
    struct shca_qp_sh *t;

    if (!find_target(qp))
        return SHCA_DONE;
    if (atomic_load_explicit(&qp->peer->dead, memory_order_acquire)) {
        shca_peer_put(qp->peer);
        qp->peer = NULL; /* another process may get this number */
        return SHCA_DONE;
    }
    t = qp->target;
    shca_rx_lock(qp->peer->seg, t, shca.pid);
    if (connected(qp, t))
        on_target(qp, op, t, s, &ignored);
    shca_rx_unlock(t);
    return SHCA_DONE;
}

/* Errors that the send queue itself detects, before anything is sent. */
static enum ibv_wc_status check_local(struct shca_qp *qp, const struct shca_op *op,
                                      struct shca_source *s)
{
    bool answered = op->opcode >= IBV_WR_RDMA_READ; /* reads and atomics, the last of the opcodes */

    if (op->length > (qp->qp.qp_type == IBV_QPT_UD ? ud_mtu : shca_config.max_msg))
        return IBV_WC_LOC_LEN_ERR;
    if (answered && qp->attr.max_rd_atomic == 0)
        return IBV_WC_LOC_QP_OP_ERR;
    if (op->opcode > IBV_WR_RDMA_READ && op->length != sizeof(uint64_t))
        return IBV_WC_LOC_LEN_ERR;
    return gather(qp, op, answered ? qp->sink_access : 0, s) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

int shca_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    struct shca_source s;

    s.n = 0;
    *status = check_local(qp, op, &s);
    if (*status != IBV_WC_SUCCESS)
        return SHCA_DONE;
    if (shca_path_cut(qp->sh->port, qp->qp.qp_type == IBV_QPT_UD ? op->dest_port : qp->dest_port))
        return qp->qp.qp_type == IBV_QPT_UD || qp->qp.qp_type == IBV_QPT_UC ? SHCA_DONE
                                                                            : SHCA_WAIT_ACK;
    switch (qp->qp.qp_type) {
    case IBV_QPT_UD:
        *status = shca_execute_ud(qp, op, &s);
        return SHCA_DONE;
    case IBV_QPT_UC:
        return execute_uc(qp, op, &s);
    default:
        return execute_rc(qp, op, &s, status);
    }
}
