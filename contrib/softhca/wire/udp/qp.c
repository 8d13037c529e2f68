/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs on this wire: the end point follows the states of the queue pair, takes its requests
 * and breaks it when it fails. Owns the table of them and their times; sq_lock protects a queue
 * pair's own part. */
#include "config.h"

#include <endian.h>
#include <stdlib.h>

#include "wire/udp/udp.h"

static const uint64_t far_least = UINT64_C(4000000); /* ns */
/* If a port's limit delays packets, an answer takes as long as the queue in front of it. */
static const uint64_t limited_repeat_ns = UINT64_C(50000000);

enum { local_packets = 128, local_bytes = 240 << 10 };

/* ---- time ---- */

void shca_udp_timers(uint64_t now)
{
    struct shca_qp *qp;

    if (atomic_load_explicit(&shca_udp.held_polls, memory_order_relaxed) == 0 &&
        atomic_load_explicit(&shca_udp.next, memory_order_relaxed) > now)
        return;
    atomic_store(&shca_udp.next, ROCE_NEVER);
    while ((qp = shca_udp_timer_take(now)) != NULL) {
        atomic_fetch_add_explicit(&shca_udp.deadlines, 1, memory_order_relaxed);
        shca_lock(&qp->sq_lock);
        if (atomic_load(&qp->udp->again) <= now)
            shca_udp_touch(qp, now);
        else
            shca_udp_timer_set(qp, atomic_load(&qp->udp->again));
        shca_unlock(&qp->sq_lock);
    }
    shca_udp_due(shca_udp_timer_next());
    shca_udp_due(shca_udp_let_go(now));
    shca_udp_due(shca_udp_early_run(now));
}

/* ---- reports of the end point ---- */

/* Not inside of the end point's callbacks, because this calls the end point. */
static void settle(struct shca_qp *qp)
{
    struct shca_udp *u = qp->udp;

    if (u->locked) /* a datagram that was refused after its receive had been taken */
        shca_rx_unlock(qp->sh);
    u->locked = false;
    if (u->broken && shca_qp_state(qp) != IBV_QPS_ERR) {
        shca_rx_lock(shca.seg, qp->sh, shca.pid);
        shca_break_target(u->self, qp->sh, u->why);
        shca_rx_unlock(qp->sh);
    }
    if (u->broken)
        shca_qp_error(qp);
    else if (u->sends_broken)
        shca_sq_break(qp);
    u->broken = u->sends_broken = false;
    if (u->draining && roce_drained(u->e)) {
        u->draining = false;
        shca_async_send(NULL, &qp->sh->async, IBV_EVENT_SQ_DRAINED, qp->index);
    }
}

static void count_repeated(struct shca_udp *u)
{
    uint64_t all = roce_counters(u->e)->repeated;

    if (all != u->repeated)
        atomic_fetch_add_explicit(&shca_udp.repeated, all - u->repeated, memory_order_relaxed);
    u->repeated = all;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void touch(struct shca_qp *qp, enum shca_udp_order order, uint64_t now)
{
    struct shca_udp *u = qp->udp;
    uint64_t again;
    bool more;

    shca_udp_put_off_done(qp, now);
    settle(qp);
    more = shca_udp_send(qp, order, now);
    settle(qp);
    count_repeated(u);
    /* Not due now, or shca_udp_timers would find it repeatedly. */
    again = more ? now + 1 : roce_deadline(u->e);
    if (u->late) {
        shca_udp_late_run(qp, now);
        again = sooner(again, shca_udp_late_next(qp, now));
    }
    if (u->waited) /* for the wire: only answers may be sent before */
        again = u->wire_until;
    shca_udp_timer_set(qp, again);
}

void shca_udp_touch(struct shca_qp *qp, uint64_t now)
{
    touch(qp, SHCA_UDP_ANSWERS_FIRST, now);
}

/* ---- requests ---- */

static struct roce_request request_of(struct shca_qp *qp, struct shca_wqe *w, uint32_t index)
{
    static const uint8_t kinds[] = {
        [IBV_WR_RDMA_WRITE] = ROCE_DO_WRITE,
        [IBV_WR_RDMA_WRITE_WITH_IMM] = ROCE_DO_WRITE,
        [IBV_WR_SEND] = ROCE_DO_SEND,
        [IBV_WR_SEND_WITH_IMM] = ROCE_DO_SEND,
        [IBV_WR_RDMA_READ] = ROCE_DO_READ,
        [IBV_WR_ATOMIC_CMP_AND_SWP] = ROCE_DO_COMPARE_SWAP,
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = ROCE_DO_FETCH_ADD,
    };
    const struct shca_op *op = &w->op;
    bool imm = op->opcode == IBV_WR_SEND_WITH_IMM || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    bool swap = op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    struct roce_request r = {.id = index,
                             .owner = w,
                             .kind = kinds[op->opcode],
                             .length = op->length,
                             .imm = be32toh(op->imm),
                             .rkey = op->rkey,
                             .va = op->remote_addr,
                             .swap_add = swap ? op->swap : op->compare_add,
                             .compare = op->compare_add,
                             .srqn = op->srqn,
                             .dest_qpn = op->dest_qpn,
                             .qkey = op->qkey};

    r.flags = (uint8_t)((imm ? ROCE_WITH_IMM : 0) |
                        (op->flags & IBV_SEND_SOLICITED ? ROCE_SOLICITED : 0) |
                        (op->flags & IBV_SEND_FENCE ? ROCE_FENCED : 0));
    w->refused = (uint8_t)shca_udp_check(qp, op);
    if (shca_faults())
        shca_udp_fault_request(qp, w, &r);
    if (w->refused) { /* fails in its turn, when the end point fetches it */
        r.kind = ROCE_DO_SEND;
        r.length = 1;
        r.flags = 0;
    }
    return r;
}

static void run(struct shca_qp *qp)
{
    struct shca_udp *u = qp->udp;
    uint64_t now = tk_now();

    /* Requests posted in SQE are flushed already. */
    if ((int32_t)(qp->sq_exec - u->posted) > 0)
        u->posted = qp->sq_exec;
    if (shca_detours() && roce_posted(u->e) == 0)
        u->begun = tk_now();
    for (; u->posted != qp->sq_tail; u->posted++) {
        struct roce_request r = request_of(qp, shca_wqe_at(qp, u->posted), u->posted);

        if (roce_post(u->e, &r) != 0)
            break; /* as deep as the send queue: only after an error */
    }
    if (!shca_udp_put_off_post(qp, now))
        touch(qp, SHCA_UDP_REQUESTS_FIRST, now);
}

static void fail(struct shca_qp *qp)
{
    struct shca_udp *u = qp->udp;

    u->broken = u->sends_broken = u->draining = false;
    shca_udp_put_off_end(qp);
    shca_udp_late_run(qp, ROCE_NEVER);
    if (!roce_failed(u->e))
        roce_fail(u->e);
    u->posted = qp->sq_tail;
    /* A NAK may be due. */
    shca_udp_timer_set(qp, 0);
}

static const struct shca_far far_calls = {run, fail};

/* ---- states ---- */

/* Between hosts an answer may take milliseconds although nothing was lost: other processes have the
 * CPU, and the kernel's RoCE counts each repetition of ours as an error. */
static uint64_t repeat_least(const struct shca_qp *qp)
{
    const struct shca_inet *own = shca.seg->inet[qp->sh->port];

    if (shca_config.repeat_ms)
        return (uint64_t)shca_config.repeat_ms * 1000000;
    if (shca_udp_limited(qp))
        return limited_repeat_ns;
    for (int i = 0; i < SHCA_INET_KINDS; i++)
        if (own[i].port != 0 && !shca_inet_loopback(&own[i]))
            return far_least;
    return 0;
}

/* Over loopback a round trip is short, but bursts are long, and several are to be under way: one is
 * made while the peer handles others. */
static bool local(const struct shca_qp *qp)
{
    return qp->udp && shca_inet_loopback(&qp->udp->peer);
}

static uint8_t transport_of(const struct shca_qp *qp)
{
    switch (qp->qp.qp_type) {
    case IBV_QPT_RC:
        return ROCE_RC;
    case IBV_QPT_UC:
        return ROCE_UC;
    case IBV_QPT_UD:
        return ROCE_UD;
    default:
        return ROCE_XRC;
    }
}

static struct roce_attributes attributes(const struct shca_qp *qp)
{
    const struct ibv_qp_attr *a = &qp->attr;
    uint32_t access = a->qp_access_flags;

    return (struct roce_attributes){
        .transport = transport_of(qp),
        .initiator = qp->qp.qp_type == IBV_QPT_XRC_SEND,
        .qpn = qp->qp.qp_num,
        .dest_qpn = a->dest_qp_num,
        .send_psn = a->sq_psn & 0xffffff,
        .receive_psn = a->rq_psn & 0xffffff,
        .path_mtu = qp->qp.qp_type == IBV_QPT_UD ? 128u << shca_inet_mtu(qp->sh->port)
                                                 : 128u << a->path_mtu,
        .pkey = shca_config.pkeys[a->pkey_index % SHCA_PKEYS],
        .qkey = a->qkey,
        .access = (uint8_t)((access & IBV_ACCESS_REMOTE_WRITE ? ROCE_ACCESS_WRITE : 0) |
                            (access & IBV_ACCESS_REMOTE_READ ? ROCE_ACCESS_READ : 0) |
                            (access & IBV_ACCESS_REMOTE_ATOMIC ? ROCE_ACCESS_ATOMIC : 0)),
        .timeout = a->timeout,
        .retry_count = a->retry_cnt,
        .rnr_retry = a->rnr_retry,
        .min_rnr_timer = a->min_rnr_timer,
        .max_rd_atomic = a->max_rd_atomic,
        .max_dest_rd_atomic = a->max_dest_rd_atomic,
        .requests = qp->init.cap.max_send_wr,
        .repeat_least = repeat_least(qp),
        .repeat_first = shca_config.repeat_ms || shca_udp_limited(qp) ? repeat_least(qp) : 0,
        .window_packets = local(qp) ? local_packets : 0,
        .window_bytes = local(qp) ? local_bytes : 0,
    };
}

static bool udp_create(struct shca_qp *qp)
{
    struct shca_udp *u = calloc(1, sizeof *u);
    struct roce_attributes a = attributes(qp);

    if (!u)
        return false;
    /* The size of the rings: the most that any transition to RTR may ask for. */
    a.max_dest_rd_atomic = a.max_rd_atomic = 16;
    u->self = shca_peer_get(shca.slot);
    u->e = u->self ? roce_open(&a, &shca_udp_calls, qp) : NULL;
    atomic_store(&u->again, ROCE_NEVER);
    qp->udp = u;
    if (!u->e || !shca_udp_timer_open(qp)) {
        qp->udp = NULL;
        if (u->self)
            shca_peer_put(u->self);
        roce_close(u->e);
        free(u);
        return false;
    }
    atomic_store_explicit(&shca_udp.qps[qp->index], qp, memory_order_release);
    atomic_fetch_add(&shca_udp.users, 1);
    shca_helper_kick();
    return true;
}

bool shca_udp_equip(struct shca_qp *qp)
{
    if (!qp->udp && !udp_create(qp))
        return false;
    qp->udp->posted = 0;
    qp->far = &far_calls;
    qp->special = true;
    return true;
}

void shca_udp_modified(struct shca_qp *qp, uint32_t from, uint32_t to)
{
    struct roce_attributes a = attributes(qp);
    struct shca_udp *u = qp->udp;

    if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
        roce_ready_to_receive(u->e, &a);
    else if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
        roce_ready_to_send(u->e, &a);
    else if (from == IBV_QPS_SQE)
        roce_resume(u->e);
    else if (to == IBV_QPS_SQD)
        roce_pause(u->e, true);
    else if (from == IBV_QPS_SQD)
        roce_pause(u->e, false);
    else
        roce_adjust(u->e, &a);
    u->draining = to == IBV_QPS_SQD && qp->attr.en_sqd_async_notify;
    shca_udp_touch(qp, tk_now());
}

void shca_udp_reset(struct shca_qp *qp)
{
    if (!qp->far)
        return;
    shca_udp_put_off_end(qp);
    roce_reset(qp->udp->e);
    shca_udp_fault_reset(qp);
    qp->udp->broken = qp->udp->sends_broken = qp->udp->draining = false;
    atomic_store(&qp->udp->again, ROCE_NEVER);
    qp->far = NULL;
    qp->special = qp->batch != NULL;
}

void shca_udp_close(struct shca_qp *qp)
{
    if (!qp->udp)
        return;
    shca_lock(&shca_udp.lock);
    atomic_store(&shca_udp.qps[qp->index], NULL);
    shca_lock(&qp->sq_lock);
    shca_udp_put_off_end(qp);
    shca_unlock(&qp->sq_lock);
    shca_udp_timer_close(qp);
    shca_udp_put_off_close(qp);
    shca_udp_keep_counters(qp->udp->e);
    shca_unlock(&shca_udp.lock);
    if (atomic_load(&shca_udp.missed))
        shca_helper_wake();
    atomic_fetch_sub(&shca_udp.users, 1);
    shca_udp_fault_reset(qp);
    roce_close(qp->udp->e);
    shca_peer_put(qp->udp->self);
    free(qp->udp);
    qp->udp = NULL;
    qp->far = NULL;
    qp->special = qp->batch != NULL;
}
