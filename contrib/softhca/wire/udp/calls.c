/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an end point needs of verbs: bytes of requests, completions, memory and receives of this
 * process. Owns nothing; sq_lock is held throughout, and the responder lock around each access to
 * memory that a key names, so that ibv_dereg_mr waits for it as for any initiator. */
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

/* The address of n bytes of a request's entry; NULL: its key is no good. */
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

static struct shca_mr_sh *find(struct shca_qp *qp, const struct roce_reach *reach, uint64_t *va)
{
    uint32_t access = reach->access == ROCE_ACCESS_WRITE  ? IBV_ACCESS_REMOTE_WRITE
                      : reach->access == ROCE_ACCESS_READ ? IBV_ACCESS_REMOTE_READ
                                                          : IBV_ACCESS_REMOTE_ATOMIC;

    return shca_mr_check(shca.seg, reach->rkey, reach->va, reach->length, access, qp->sh->pd, va);
}

static enum roce_status calls_check(void *context, const struct roce_reach *reach)
{
    uint64_t va;

    return find(context, reach, &va) ? ROCE_SUCCESS : ROCE_REMOTE_ACCESS;
}

static enum roce_status calls_write(void *context, const struct roce_reach *reach, const void *from)
{
    struct shca_qp *qp = context;
    struct shca_mr_sh *m;
    uint64_t va;

    if (shca_faults() && find(qp, reach, &va) && shca_udp_early(qp, reach, from))
        return ROCE_SUCCESS;
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    m = find(qp, reach, &va);
    if (m)
        shca_copy((void *)(uintptr_t)va, from, reach->length);
    shca_rx_unlock(qp->sh);
    return m ? ROCE_SUCCESS : ROCE_REMOTE_ACCESS;
}

static enum roce_status calls_read(void *context, const struct roce_reach *reach, void *to)
{
    struct shca_qp *qp = context;
    struct shca_mr_sh *m;
    uint64_t va;

    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    m = find(qp, reach, &va);
    if (m)
        memcpy(to, (void *)(uintptr_t)va, reach->length);
    shca_rx_unlock(qp->sh);
    return m ? ROCE_SUCCESS : ROCE_REMOTE_ACCESS;
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
    enum roce_status status = ROCE_REMOTE_ACCESS;
    struct shca_piece piece;
    struct shca_mr_sh *m;
    uint64_t va;
    int e;

    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    m = find(qp, reach, &va);
    if (m && va % sizeof(uint64_t) != 0) {
        status = ROCE_REMOTE_INVALID; /* as hardware: the iova was aligned, the memory is not */
    } else if (m) {
        shca_piece_of(qp->udp->self, m, reach->rkey, va, sizeof(uint64_t), &piece);
        e = shca_atomic_change(qp->udp->self, &op, m, &piece, original);
        status = e == 0 ? ROCE_SUCCESS : ROCE_REMOTE_OPERATION;
    }
    shca_rx_unlock(qp->sh);
    return status;
}

/* ---- responder: receives ---- */

static void broken(struct shca_udp *u, enum ibv_event_type why)
{
    if (!u->broken)
        u->why = why;
    u->broken = true;
}

/* Peers of the same fabric may send to a UD queue pair through shared memory meanwhile. */
static void lock_receives(struct shca_qp *qp)
{
    if (!qp->udp->locked)
        shca_rx_lock(shca.seg, qp->sh, shca.pid);
    qp->udp->locked = true;
}

static void unlock_receives(struct shca_qp *qp, bool done)
{
    if (qp->udp->locked && (done || qp->qp.qp_type != IBV_QPT_UD)) {
        shca_rx_unlock(qp->sh);
        qp->udp->locked = false;
    }
}

static enum roce_status calls_take(void *context, uint32_t srqn)
{
    struct shca_qp *qp = context;
    int wait;

    (void)srqn;
    if (shca_faults() && shca_udp_not_ready(qp))
        return ROCE_NOT_READY;
    lock_receives(qp);
    wait = shca_receive_begin(qp->udp->self, qp, qp->sh, &qp->udp->receive);
    unlock_receives(qp, wait != SHCA_DONE);
    if (wait == SHCA_WAIT_NEVER)
        broken(qp->udp, IBV_EVENT_QP_FATAL);
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
        const struct shca_sge *g = i == 0 ? &s->sge0 : shca_extra_at(shca.seg, r->rq, r->index, i);
        uint64_t va;
        uint32_t n;

        if (offset >= g->length) {
            offset -= g->length;
            continue;
        }
        n = g->length - offset < length ? g->length - offset : length;
        if (!shca_mr_check(shca.seg, g->lkey, g->addr + offset, n, IBV_ACCESS_LOCAL_WRITE, r->pd,
                           &va))
            return IBV_WC_LOC_PROT_ERR;
        shca_copy((void *)(uintptr_t)va, from, n);
        from += n;
        length -= n;
        offset = 0;
    }
    return length > 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

static void finish(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status status)
{
    atomic_store_explicit(&shca_udp.delivered, true, memory_order_relaxed);
    lock_receives(qp);
    if (shca_receiving(qp->sh))
        shca_receive_end(qp, qp->sh, &qp->udp->receive, op, status);
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

    lock_receives(qp);
    status = scatter(&qp->udp->receive, offset + (ud ? grh_bytes : 0u), from, length);
    unlock_receives(qp, false);
    if (status == IBV_WC_SUCCESS)
        return ROCE_SUCCESS;
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
