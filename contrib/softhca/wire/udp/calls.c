/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The callbacks of an end point into verbs: bytes of requests, completions, memory and receives of
 * this process, or with XRC of the process of the queue that a request names. Owns nothing; sq_lock
 * is held throughout, and the responder lock around each access to memory that a key names, so that
 * ibv_dereg_mr waits for it as for any initiator. */
#include "config.h"

#include <endian.h>

#include "wire/udp/udp.h"

enum { grh_bytes = 40 };

static enum roce_status to_roce(enum ibv_wc_status s)
{
    return s == IBV_WC_LOC_LEN_ERR     ? ROCE_LOCAL_LENGTH
           : s == IBV_WC_LOC_QP_OP_ERR ? ROCE_LOCAL_OPERATION
                                       : ROCE_LOCAL_PROTECTION;
}

static enum ibv_wc_status to_verbs(enum roce_status s)
{
    static const enum ibv_wc_status status[] = {
        [ROCE_SUCCESS] = IBV_WC_SUCCESS,
        [ROCE_LOCAL_LENGTH] = IBV_WC_LOC_LEN_ERR,
        [ROCE_LOCAL_OPERATION] = IBV_WC_LOC_QP_OP_ERR,
        [ROCE_LOCAL_PROTECTION] = IBV_WC_LOC_PROT_ERR,
        [ROCE_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
        [ROCE_BAD_RESPONSE] = IBV_WC_BAD_RESP_ERR,
        [ROCE_REMOTE_INVALID] = IBV_WC_REM_INV_REQ_ERR,
        [ROCE_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
        [ROCE_REMOTE_OPERATION] = IBV_WC_REM_OP_ERR,
        [ROCE_RETRIES_EXCEEDED] = IBV_WC_RETRY_EXC_ERR,
        [ROCE_RNR_EXCEEDED] = IBV_WC_RNR_RETRY_EXC_ERR,
    };

    return s < sizeof status / sizeof status[0] ? status[s] : IBV_WC_GENERAL_ERR;
}

/* ---- requester ---- */

static bool answered(uint32_t opcode)
{
    return opcode >= IBV_WR_RDMA_READ;
}

/* The address of n bytes of a request's entry; NULL: its key is invalid. */
static char *entry_at(struct shca_qp *qp, const struct shca_op *op, const struct ibv_sge *g,
                      uint64_t offset, uint32_t n)
{
    uint64_t va = g->addr + offset;

    if (!(op->flags & IBV_SEND_INLINE) &&
        !shca_mr_check(shca.seg, g->lkey, g->addr + offset, n,
                       answered(op->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0, qp->sh->pd, &va))
        return NULL;
    return (char *)(uintptr_t)va;
}

/* Copies between the buffers of a request and one packet. */
static enum roce_status walk(struct shca_qp *qp, const struct shca_op *op, uint32_t offset,
                             char *out, const char *in, uint32_t length)
{
    for (uint32_t i = 0; i < op->nsge && length > 0; i++) {
        const struct ibv_sge *g = &op->sge[i];
        uint32_t n;
        char *at;

        if (offset >= g->length) {
            offset -= g->length;
            continue;
        }
        n = g->length - offset < length ? g->length - offset : length;
        at = entry_at(qp, op, g, offset, n);
        if (!at)
            return ROCE_LOCAL_PROTECTION;
        if (out) {
            memcpy(out, at, n);
            out += n;
        } else {
            shca_copy(at, in, n);
            in += n;
        }
        length -= n;
        offset = 0;
    }
    return ROCE_SUCCESS;
}

static enum roce_status calls_fetch(void *context, const struct roce_request *r, uint32_t offset,
                                    void *to, uint32_t length)
{
    struct shca_qp *qp = context;
    struct shca_wqe *w = r->owner;

    if (w->refused)
        return to_roce(w->refused);
    if (shca_faults() && shca_udp_provokes(qp, r)) {
        memset(to, 0, length);
        return ROCE_SUCCESS;
    }
    qp->udp->moved = offset + length;
    qp->udp->payload = length;
    return walk(qp, &w->op, offset, to, NULL, length);
}

static enum roce_status calls_store(void *context, const struct roce_request *r, uint32_t offset,
                                    const void *from, uint32_t length)
{
    struct shca_qp *qp = context;
    struct shca_wqe *w = r->owner;
    enum roce_status status = walk(qp, &w->op, offset, NULL, from, length);

    if (shca_faults()) {
        qp->udp->moved = offset + length;
        shca_udp_stored(qp, r);
    }
    return status;
}

static void count(const struct shca_op *op)
{
    if (op->opcode == IBV_WR_RDMA_READ)
        SHCA_COUNT(reads);
    else if (answered(op->opcode))
        SHCA_COUNT(atomics);
    else if (op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        SHCA_COUNT(writes);
    else
        SHCA_COUNT(sends);
}

static void calls_complete(void *context, const struct roce_request *r, enum roce_status status)
{
    struct shca_wqe *w = r->owner;
    enum ibv_wc_status s = to_verbs(status);

    if (status == ROCE_SUCCESS)
        count(&w->op);
    else if (status == ROCE_RETRIES_EXCEEDED)
        shca_udp_explain(context);
    if (w->refused && status != ROCE_FLUSHED && status != ROCE_SUCCESS)
        s = w->refused;
    shca_udp_complete(context, (uint32_t)r->id, s);
}

enum ibv_wc_status shca_udp_check(struct shca_qp *qp, const struct shca_op *op)
{
    bool ud = qp->qp.qp_type == IBV_QPT_UD;

    if (op->length > (ud ? shca_inet_payload(qp->sh->port) : shca_config.max_msg))
        return IBV_WC_LOC_LEN_ERR;
    if (answered(op->opcode) && qp->attr.max_rd_atomic == 0)
        return IBV_WC_LOC_QP_OP_ERR;
    if (op->opcode > IBV_WR_RDMA_READ && op->length != sizeof(uint64_t))
        return IBV_WC_LOC_LEN_ERR;
    for (uint32_t i = 0; i < op->nsge; i++)
        if (op->sge[i].length && !entry_at(qp, op, &op->sge[i], 0, op->sge[i].length))
            return IBV_WC_LOC_PROT_ERR;
    return IBV_WC_SUCCESS;
}

/* ---- responder: memory ---- */

/* Excludes ibv_dereg_mr, and with XRC finds and locks the queue that a request names: the keys are
 * those of its process and domain. False: there is no such queue. */
static bool enter(struct shca_qp *qp, uint32_t srqn)
{
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    if (qp->qp.qp_type != IBV_QPT_XRC_RECV || shca_xrc_lock(qp, srqn, qp->sh))
        return true;
    shca_rx_unlock(qp->sh);
    return false;
}

static void leave(struct shca_qp *qp)
{
    if (qp->xrc_srq)
        shca_xrc_leave(qp);
    shca_rx_unlock(qp->sh);
}

static struct shca_peer *memory_of(const struct shca_qp *qp)
{
    return qp->xrc_srq ? qp->xrc_holder : qp->udp->self;
}

/* The memory that a request names, between enter and leave. */
static struct shca_mr_sh *find(struct shca_qp *qp, const struct roce_reach *reach, uint64_t *va)
{
    uint32_t access = reach->access == ROCE_ACCESS_WRITE  ? IBV_ACCESS_REMOTE_WRITE
                      : reach->access == ROCE_ACCESS_READ ? IBV_ACCESS_REMOTE_READ
                                                          : IBV_ACCESS_REMOTE_ATOMIC;
    uint32_t pd = qp->xrc_srq ? qp->xrc_srq->pd : qp->sh->pd;

    return shca_mr_check(memory_of(qp)->seg, reach->rkey, reach->va, reach->length, access, pd, va);
}

static enum roce_status copied(int e)
{
    return e == 0                 ? ROCE_SUCCESS
           : shca_copy_refused(e) ? ROCE_REMOTE_OPERATION
                                  : ROCE_REMOTE_ACCESS;
}

static enum roce_status calls_check(void *context, const struct roce_reach *reach)
{
    struct shca_qp *qp = context;
    bool good;
    uint64_t va;

    if (!enter(qp, reach->srqn))
        return ROCE_REMOTE_INVALID;
    good = reach->length == 0 || find(qp, reach, &va);
    leave(qp);
    return good ? ROCE_SUCCESS : ROCE_REMOTE_ACCESS;
}

static enum roce_status calls_write(void *context, const struct roce_reach *reach, const void *from)
{
    struct iovec source = {(void *)(uintptr_t)from, reach->length};
    enum roce_status status = ROCE_REMOTE_ACCESS;
    struct shca_qp *qp = context;
    struct shca_piece piece;
    struct shca_mr_sh *m;
    uint64_t va;

    /* With XRC the memory may be another process's, which would not see a late store in order. */
    if (shca_faults() && qp->qp.qp_type != IBV_QPT_XRC_RECV && find(qp, reach, &va) &&
        shca_udp_early(qp, reach, from))
        return ROCE_SUCCESS;
    if (!enter(qp, reach->srqn))
        return ROCE_REMOTE_INVALID;
    m = find(qp, reach, &va);
    if (m) {
        shca_piece_of(memory_of(qp), m, reach->rkey, va, reach->length, &piece);
        status = copied(shca_move_out(memory_of(qp), &piece, 1, &source, 1));
    }
    leave(qp);
    return status;
}

static enum roce_status calls_read(void *context, const struct roce_reach *reach, void *to)
{
    struct iovec sink = {to, reach->length};
    enum roce_status status = ROCE_REMOTE_ACCESS;
    struct shca_qp *qp = context;
    struct shca_piece piece;
    struct shca_mr_sh *m;
    uint64_t va;

    if (!enter(qp, reach->srqn))
        return ROCE_REMOTE_INVALID;
    m = find(qp, reach, &va);
    if (m) {
        shca_piece_of(memory_of(qp), m, reach->rkey, va, reach->length, &piece);
        status = copied(shca_move_in(memory_of(qp), &sink, 1, &piece));
        if (status == ROCE_SUCCESS)
            shca_mr_was_read(memory_of(qp)->seg, m);
    }
    leave(qp);
    return status;
}

static enum roce_status change(struct shca_qp *qp, const struct roce_reach *reach,
                               const struct shca_op *op, uint64_t *original)
{
    struct shca_piece piece;
    struct shca_mr_sh *m;
    uint64_t va;

    m = find(qp, reach, &va);
    if (!m)
        return ROCE_REMOTE_ACCESS;
    if (va % sizeof(uint64_t) != 0) /* as hardware: the iova was aligned, the memory is not */
        return ROCE_REMOTE_INVALID;
    shca_piece_of(memory_of(qp), m, reach->rkey, va, sizeof(uint64_t), &piece);
    return shca_atomic_change(memory_of(qp), op, m, &piece, original) == 0 ? ROCE_SUCCESS
                                                                           : ROCE_REMOTE_OPERATION;
}

static enum roce_status calls_atomic(void *context, const struct roce_reach *reach,
                                     bool compare_swap, uint64_t swap_add, uint64_t compare,
                                     uint64_t *original)
{
    struct shca_qp *qp = context;
    struct shca_op op = {.opcode =
                             compare_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
                         .compare_add = compare_swap ? compare : swap_add,
                         .swap = swap_add};
    enum roce_status status;

    if (!enter(qp, reach->srqn))
        return ROCE_REMOTE_INVALID;
    status = change(qp, reach, &op, original);
    leave(qp);
    return status;
}

/* ---- responder: receives ---- */

static void broken(struct shca_udp *u, enum ibv_event_type why)
{
    if (!u->broken)
        u->why = why;
    u->broken = true;
}

/* Peers of the same fabric may send to a UD queue pair through shared memory meanwhile. False: with
 * XRC, the queue is gone. */
static bool lock_receives(struct shca_qp *qp)
{
    struct shca_udp *u = qp->udp;

    if (!u->locked && !enter(qp, u->srqn))
        return false;
    u->locked = true;
    return true;
}

static void unlock_receives(struct shca_qp *qp, bool done)
{
    if (qp->udp->locked && (done || qp->qp.qp_type != IBV_QPT_UD)) {
        leave(qp);
        qp->udp->locked = false;
    }
}

/* An XRC queue is locked again for each packet: checks whether the taken receive is still there. */
static bool kept(struct shca_qp *qp)
{
    if (!lock_receives(qp))
        return false;
    if (!qp->xrc_srq || shca_xrc_kept(qp, &qp->udp->receive, qp->sh))
        return true;
    unlock_receives(qp, true);
    return false;
}

static enum roce_status calls_take(void *context, uint32_t srqn)
{
    struct shca_qp *qp = context;
    struct shca_udp *u = qp->udp;
    int wait;

    if (shca_faults() && shca_udp_not_ready(qp))
        return ROCE_NOT_READY;
    u->srqn = srqn;
    if (!lock_receives(qp))
        return ROCE_REMOTE_INVALID;
    wait = shca_receive_begin(u->self, qp, qp->sh, &u->receive);
    if (wait == SHCA_DONE && qp->xrc_srq)
        shca_xrc_keep(&u->receive, qp->sh);
    unlock_receives(qp, wait != SHCA_DONE);
    if (wait == SHCA_WAIT_NEVER)
        broken(u, IBV_EVENT_QP_FATAL);
    return wait == SHCA_DONE       ? ROCE_SUCCESS
           : wait == SHCA_WAIT_RNR ? ROCE_NOT_READY
                                   : ROCE_REMOTE_OPERATION;
}

/* Copies into the posted buffers from an offset on. */
static enum ibv_wc_status scatter(const struct shca_receive *r, uint32_t offset, const char *from,
                                  uint32_t length)
{
    const struct shca_slot *s = r->slot;

    for (uint32_t i = 0; i < s->nsge && length > 0; i++) {
        const struct shca_sge *g = i == 0 ? &s->sge0 : shca_extra_at(r->p->seg, r->rq, r->index, i);
        struct shca_piece piece;
        struct shca_mr_sh *m;
        struct iovec source;
        uint64_t va;

        if (offset >= g->length) {
            offset -= g->length;
            continue;
        }
        source = (struct iovec){(void *)(uintptr_t)from, g->length - offset};
        if (source.iov_len > length)
            source.iov_len = length;
        m = shca_mr_check(r->p->seg, g->lkey, g->addr + offset, source.iov_len,
                          IBV_ACCESS_LOCAL_WRITE, r->pd, &va);
        if (!m)
            return IBV_WC_LOC_PROT_ERR;
        shca_piece_of(r->p, m, g->lkey, va, source.iov_len, &piece);
        if (shca_move_out(r->p, &piece, 1, &source, 1) != 0)
            return IBV_WC_LOC_PROT_ERR;
        from += source.iov_len;
        length -= (uint32_t)source.iov_len;
        offset = 0;
    }
    return length > 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

/* Completes the receive; lock_receives. */
static void finish(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status status)
{
    struct shca_receive *r = &qp->udp->receive;

    atomic_store_explicit(&shca_udp.delivered, true, memory_order_relaxed);
    if (shca_receiving(qp->sh) && (!qp->xrc_srq || shca_xrc_first(qp, r)))
        shca_receive_end(qp, qp->sh, r, op, status);
    unlock_receives(qp, true);
    if (status != IBV_WC_SUCCESS)
        broken(qp->udp, IBV_EVENT_QP_REQ_ERR);
}

static enum roce_status calls_fill(void *context, uint32_t offset, const void *from,
                                   uint32_t length)
{
    struct shca_qp *qp = context;
    bool ud = qp->qp.qp_type == IBV_QPT_UD;
    struct shca_op op = {.length = offset + length};
    enum ibv_wc_status status;

    if (!kept(qp))
        return ROCE_REMOTE_INVALID;
    status = scatter(&qp->udp->receive, offset + (ud ? grh_bytes : 0u), from, length);
    if (status == IBV_WC_SUCCESS) {
        unlock_receives(qp, false);
        return ROCE_SUCCESS;
    }
    finish(qp, &op, status);
    return status == IBV_WC_LOC_LEN_ERR ? ROCE_REMOTE_INVALID : ROCE_REMOTE_OPERATION;
}

static void calls_done(void *context, const struct roce_message *m)
{
    struct shca_qp *qp = context;
    bool ud = qp->qp.qp_type == IBV_QPT_UD;
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    struct shca_op op = {.length = m->length + (ud ? grh_bytes : 0u),
                         .opcode = m->write      ? IBV_WR_RDMA_WRITE_WITH_IMM
                                   : m->with_imm ? IBV_WR_SEND_WITH_IMM
                                                 : IBV_WR_SEND,
                         .imm = htobe32(m->imm),
                         .flags = m->solicited ? IBV_SEND_SOLICITED : 0,
                         .dest_qpn = ud ? m->src_qpn : qp->attr.dest_qp_num,
                         .grh = ud};
    struct ibv_grh grh;

    if (!kept(qp)) /* the queue was destroyed under the message */
        return;
    if (ud) {
        shca_udp_grh(qp, m->length, &grh);
        status = scatter(&qp->udp->receive, 0, (const char *)&grh, sizeof grh);
    }
    finish(qp, &op, status);
}

static void calls_event(void *context, enum roce_event event)
{
    struct shca_qp *qp = context;

    switch (event) {
    case ROCE_EVENT_ESTABLISHED:
        if (shca_qp_state(qp) == IBV_QPS_RTR && !qp->sh->established)
            shca_async_send(NULL, &qp->sh->async, IBV_EVENT_COMM_EST, qp->index);
        qp->sh->established = 1;
        break;
    case ROCE_EVENT_REQUEST_ERROR:
        broken(qp->udp, IBV_EVENT_QP_REQ_ERR);
        break;
    case ROCE_EVENT_ACCESS_ERROR:
        broken(qp->udp, IBV_EVENT_QP_ACCESS_ERR);
        break;
    case ROCE_EVENT_FATAL:
        broken(qp->udp, IBV_EVENT_QP_FATAL);
        break;
    case ROCE_EVENT_REQUESTER_ERROR:
        qp->udp->sends_broken = true;
        break;
    }
}

const struct roce_calls shca_udp_calls = {
    .fetch = calls_fetch,
    .store = calls_store,
    .complete = calls_complete,
    .check = calls_check,
    .write = calls_write,
    .read = calls_read,
    .atomic = calls_atomic,
    .receive_take = calls_take,
    .receive_fill = calls_fill,
    .receive_done = calls_done,
    .event = calls_event,
};
