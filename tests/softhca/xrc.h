/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the XRC tests: a receiving side (domain, target, queue), a sender, requests. Owns
 * nothing. */
#ifndef SOFTHCA_XRC_H
#define SOFTHCA_XRC_H

#include "harness.h"

/* One side that receives: domain, target, queue. */
struct side {
    struct end e; /* e.qp is the target, e.srq the queue */
    struct ibv_xrcd *xrcd;
    uint32_t srqn;
};

static inline struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd, int oflags)
{
    struct ibv_xrcd_init_attr a = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};

    return ibv_open_xrcd(ctx, &a);
}

static inline void make_queue(struct side *s, struct ibv_pd *pd)
{
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 16, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                                                     IBV_SRQ_INIT_ATTR_PD,
                                        .srq_type = IBV_SRQT_XRC,
                                        .xrcd = s->xrcd,
                                        .cq = s->e.rcq,
                                        .pd = pd};

    s->e.srq = ibv_create_srq_ex(s->e.ctx, &init);
    CHECK(s->e.srq != NULL);
    CHECK_EQ(ibv_get_srq_num(s->e.srq, &s->srqn), 0);
    CHECK(s->srqn != 0);
}

static inline struct ibv_qp *make_target(struct side *s)
{
    struct ibv_qp_init_attr_ex init = {
        .comp_mask = IBV_QP_INIT_ATTR_XRCD, .qp_type = IBV_QPT_XRC_RECV, .xrcd = s->xrcd};
    struct ibv_qp *qp = ibv_create_qp_ex(s->e.ctx, &init);

    CHECK(qp && qp->qp_type == IBV_QPT_XRC_RECV && !qp->pd);
    return qp;
}

static inline void open_side(struct side *s, int fd, bool private)
{
    end_open(&s->e, &(struct end_options){.no_qp = true, .private = private});
    s->xrcd = open_domain(s->e.ctx, fd, O_CREAT);
    CHECK(s->xrcd != NULL);
    make_queue(s, s->e.pd);
}

static inline void close_side(struct side *s)
{
    CHECK_EQ(ibv_close_xrcd(s->xrcd), EBUSY);
    CHECK_EQ(ibv_destroy_cq(s->e.rcq), EBUSY);
    if (s->e.qp)
        CHECK_EQ(ibv_destroy_qp(s->e.qp), 0);
    s->e.qp = NULL;
    CHECK_EQ(ibv_destroy_srq(s->e.srq), 0);
    CHECK_EQ(ibv_close_xrcd(s->xrcd), 0);
    end_close(&s->e);
}

static inline void open_sender(struct end *e)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_XRC_SEND,
        .cap = {.max_send_wr = 64, .max_send_sge = 1, .max_inline_data = 64}};

    end_open(e, &(struct end_options){.no_qp = true});
    init.send_cq = e->scq;
    e->qp = ibv_create_qp(e->pd, &init);
    CHECK(e->qp != NULL);
}

/* The answering half of to_rts: a target has no retries. */
static inline void target_to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .timeout = 14};

    CHECK_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN), 0);
}

static inline void connect_target(struct ibv_qp *qp, const struct address *from)
{
    to_init(qp);
    to_rtr(qp, from);
    target_to_rts(qp);
}

/* A connected sender and receiver in this process. */
static inline void open_pair(struct end *a, struct side *b, int fd)
{
    struct address to_a, to_b;

    open_sender(a);
    open_side(b, fd, false);
    b->e.qp = make_target(b);
    to_a = address_of(a);
    to_b = address_of(&b->e);
    connect_to(a, &to_b);
    connect_target(b->e.qp, &to_a);
}

static inline int post_xrc(struct end *e, enum ibv_wr_opcode op, uint32_t srqn, size_t length,
                           const struct address *remote)
{
    struct ibv_sge sge = sge_of(e, 0, length);
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = 7},
                       *bad;

    wr.qp_type.xrc.remote_srqn = srqn;
    if (remote) {
        wr.wr.rdma.remote_addr = remote->addr;
        wr.wr.rdma.rkey = remote->rkey;
    }
    return ibv_post_send(e->qp, &wr, &bad);
}

static inline int post_queue(struct side *s, uint64_t id, size_t offset, size_t length)
{
    struct ibv_sge sge = sge_of(&s->e, offset, length);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_srq_recv(s->e.srq, &wr, &bad);
}

static inline void expect_message(struct side *s, uint64_t id, uint32_t target, size_t length)
{
    struct ibv_wc wc = wait_wc(s->e.rcq);

    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.wr_id, id);
    CHECK_EQ(wc.qp_num, target);
    CHECK_EQ(wc.byte_len, length);
}

#endif
