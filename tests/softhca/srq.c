/* SPDX-License-Identifier: BSD-3-Clause */
/* The promises about shared receive queues: many queue pairs, of several types and into several
 * CQs, take their receives from one queue, each message goes into the receive posted longest ago,
 * nothing is lost when a queue pair breaks or a sender is killed, and the limit event comes once.
 */
#include "config.h"

#include "harness.h"
#include "srq.h"

/* b receives from a shared queue, a sends to it. */
static void open_pair(struct end *a, struct end *b, uint32_t depth)
{
    end_open(a, NULL);
    end_open(b, &(struct end_options){.no_qp = true});
    b->psn = a->psn + 1;
    b->srq = new_srq(b, depth);
    end_qp(b, &(struct end_options){0});
    connect_pair(a, b);
}

static void close_pair(struct end *a, struct end *b)
{
    CHECK_EQ(ibv_destroy_srq(b->srq), EBUSY);
    CHECK_EQ(ibv_destroy_qp(b->qp), 0);
    b->qp = NULL;
    CHECK_EQ(ibv_dealloc_pd(b->pd), EBUSY);
    CHECK_EQ(ibv_destroy_srq(b->srq), 0);
    close_two(a, b);
}

static enum ibv_event_type next_event(struct ibv_context *ctx, struct ibv_async_event *ev)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

    CHECK_EQ(poll(&p, 1, 3000), 1);
    CHECK_EQ(ibv_get_async_event(ctx, ev), 0);
    return ev->event_type;
}

static void no_event(struct ibv_context *ctx)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

    CHECK_EQ(poll(&p, 1, 0), 0);
}

static void attributes(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 100, .max_sge = 2}};
    struct ibv_device_attr device;
    struct ibv_srq_attr attr;
    struct ibv_srq *srq;
    struct end e;

    end_open(&e, NULL);
    CHECK_EQ(ibv_query_device(e.ctx, &device), 0);
    CHECK(device.max_srq > 0 && device.max_srq_wr >= 4096 && device.max_srq_sge >= 4);
    srq = ibv_create_srq(e.pd, &init);
    CHECK(srq && srq->context == e.ctx && srq->pd == e.pd);
    CHECK_EQ(ibv_query_srq(srq, &attr), 0);
    CHECK(attr.max_wr >= 100 && attr.max_sge >= 2 && attr.srq_limit == 0);
    attr.srq_limit = attr.max_wr + 1;
    CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EOPNOTSUPP);
    CHECK_EQ(ibv_modify_srq(srq, &attr, 1 << 5), EINVAL);
    CHECK_EQ(ibv_destroy_srq(srq), 0);
    init.attr.max_wr = (uint32_t)device.max_srq_wr + 1;
    CHECK(!ibv_create_srq(e.pd, &init) && errno == EINVAL);
    init.attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = (uint32_t)device.max_srq_sge + 1};
    CHECK(!ibv_create_srq(e.pd, &init) && errno == EINVAL);
    end_close(&e);
}

static void too_many(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_srq *one, *two;
    struct end e;

    setenv("SOFTHCA_MAX_SRQ", "1", 1);
    end_open(&e, NULL);
    one = ibv_create_srq(e.pd, &init);
    CHECK(one != NULL);
    two = ibv_create_srq(e.pd, &init);
    CHECK(!two && errno == ENOMEM);
    CHECK_EQ(ibv_destroy_srq(one), 0);
    end_close(&e);
}

static void order(void)
{
    struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
    struct ibv_wc wc;
    struct end a, b;

    open_pair(&a, &b, 8);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 8; i++)
            CHECK_EQ(post_srq(&b, (uint64_t)(round * 8 + i), 4096 + (size_t)i * 64, 64), 0);
        CHECK_EQ(post_srq(&b, 0, 0, 64), ENOMEM);
        for (int i = 0; i < 8; i++) {
            fill(a.buf, 64, (unsigned)(round + i));
            CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
            CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        }
        for (int i = 0; i < 8; i++) {
            wc = wait_wc(b.rcq);
            CHECK_EQ(wc.status, IBV_WC_SUCCESS);
            CHECK_EQ(wc.wr_id, round * 8 + i);
            CHECK_EQ(wc.qp_num, b.qp->qp_num);
            CHECK_EQ(wc.byte_len, 64);
            CHECK(filled(b.buf + 4096 + i * 64, 64, (unsigned)(round + i)));
        }
    }
    no_wc(b.rcq);
    CHECK_EQ(ibv_post_recv(b.qp, &wr, &bad), EINVAL);
    close_pair(&a, &b);
}

static void private_memory(void)
{
    static const size_t sizes[] = {1, 200, 4096, 4097, 100000};
    struct ibv_wc wc;
    struct end a, b;

    end_open(&a, NULL);
    end_open(&b, &(struct end_options){.no_qp = true, .private = true});
    b.psn = a.psn + 1;
    b.srq = new_srq(&b, 4);
    end_qp(&b, &(struct end_options){0});
    connect_pair(&a, &b);
    for (unsigned i = 0; i < 5; i++) {
        struct ibv_sge two[2] = {sge_of(&b, 0, 100), sge_of(&b, 8192, 200000)};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = two, .num_sge = 2}, *bad;
        size_t n = sizes[i], first = n < 100 ? n : 100;
        char whole[100000];

        CHECK_EQ(ibv_post_srq_recv(b.srq, &wr, &bad), 0);
        fill(a.buf, n, i);
        CHECK_EQ(post_send(&a, 1, 0, n, 0), 0);
        wc = wait_wc(b.rcq);
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        CHECK_EQ(wc.byte_len, n);
        memcpy(whole, b.buf, first);
        memcpy(whole + first, b.buf + 8192, n - first);
        CHECK(filled(whole, n, i));
    }
    close_pair(&a, &b);
}

/* More messages wait than there are eager slots. */
#define DEEP 400

static void deep_receiver(int fd, pid_t other)
{
    struct address from;
    struct end e;

    (void)other;
    end_open(&e, &(struct end_options){.no_qp = true, .private = true, .cqe = 1024});
    e.srq = new_srq(&e, DEEP);
    for (unsigned i = 0; i < DEEP; i++)
        CHECK_EQ(post_srq(&e, i, i * 512, 512), 0);
    end_qp(&e, &(struct end_options){0});
    from = swap_addresses(fd, &e);
    connect_to(&e, &from);
    meet(fd);
    meet(fd);
    for (unsigned i = 0; i < DEEP; i++) {
        CHECK_EQ(wait_wc(e.rcq).wr_id, i);
        CHECK(filled(e.buf + i * 512, 500, i));
    }
    expect_all_free(&e, DEEP);
    CHECK_EQ(ibv_destroy_qp(e.qp), 0);
    e.qp = NULL;
    CHECK_EQ(ibv_destroy_srq(e.srq), 0);
    end_close(&e);
}

static void deep_sender(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    end_open(&e, NULL);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    for (unsigned i = 0; i < DEEP; i++) {
        fill(e.buf, 500, i);
        CHECK_EQ(post_send(&e, i, 0, 500, 0), 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    }
    meet(fd);
    end_close(&e);
}

static void deep_private(void)
{
    in_two(deep_receiver, deep_sender);
}

/* A CQ that is smaller than the queue can overrun, and reports that. */
static void overrun(void)
{
    struct ibv_async_event ev;
    struct end a, b;

    end_open(&a, NULL);
    end_open(&b, &(struct end_options){.no_qp = true, .cqe = 4});
    b.psn = a.psn + 1;
    b.srq = new_srq(&b, 8);
    end_qp(&b, &(struct end_options){.send_wr = 1});
    connect_pair(&a, &b);
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(post_srq(&b, i, 0, 64), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_OP_ERR);
    CHECK_EQ(next_event(b.ctx, &ev), IBV_EVENT_CQ_ERR);
    CHECK(ev.element.cq == b.rcq);
    ibv_ack_async_event(&ev);
    close_pair(&a, &b);
}

/* The sender waits in RNR until something is posted; a datagram does not wait. */
static void not_ready(void)
{
    struct end a, b;

    open_pair(&a, &b, 8);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 0, IBV_SEND_SIGNALED, NULL, 0), 0);
    usleep(3000);
    no_wc(a.scq);
    CHECK_EQ(post_srq(&b, 7, 0, 64), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 7);
    usleep(3000);
    no_wc(a.scq);
    CHECK_EQ(post_srq(&b, 8, 0, 64), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK_EQ(wait_wc(b.rcq).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    close_pair(&a, &b);
}

static void rnr_exceeded(void)
{
    struct address to_a, to_b;
    struct ibv_wc wc;
    struct end a, b;

    end_open(&a, NULL);
    end_open(&b, &(struct end_options){.no_qp = true});
    b.srq = new_srq(&b, 8);
    end_qp(&b, &(struct end_options){0});
    to_a = address_of(&a);
    to_b = address_of(&b);
    to_init(a.qp);
    to_rtr(a.qp, &to_b);
    to_rts(&a, 14, 0);
    connect_to(&b, &to_a);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    wc = wait_wc(a.scq);
    CHECK_EQ(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
    close_pair(&a, &b);
}

static void limit_event(void)
{
    struct ibv_async_event ev;
    struct ibv_srq_attr attr = {.srq_limit = 3};
    struct end a, b;

    open_pair(&a, &b, 8);
    for (unsigned i = 0; i < 5; i++)
        CHECK_EQ(post_srq(&b, i, 0, 64), 0);
    CHECK_EQ(ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    no_event(b.ctx); /* three are left: not fewer than the limit */
    CHECK_EQ(ibv_query_srq(b.srq, &attr), 0);
    CHECK_EQ(attr.srq_limit, 3);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(next_event(b.ctx, &ev), IBV_EVENT_SRQ_LIMIT_REACHED);
    CHECK(ev.element.srq == b.srq);
    ibv_ack_async_event(&ev);
    CHECK_EQ(ibv_query_srq(b.srq, &attr), 0);
    CHECK_EQ(attr.srq_limit, 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    no_event(b.ctx);    /* once for each arming */
    attr.srq_limit = 2; /* already below: the event comes at once, not after the next message */
    CHECK_EQ(ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT), 0);
    CHECK_EQ(next_event(b.ctx, &ev), IBV_EVENT_SRQ_LIMIT_REACHED);
    ibv_ack_async_event(&ev);
    close_pair(&a, &b);
}

static void last_wqe(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_async_event ev;
    struct end a, b;

    open_pair(&a, &b, 8);
    CHECK_EQ(post_srq(&b, 1, 0, 64), 0);
    CHECK_EQ(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), 0);
    CHECK_EQ(next_event(b.ctx, &ev), IBV_EVENT_QP_LAST_WQE_REACHED);
    CHECK(ev.element.qp == b.qp);
    ibv_ack_async_event(&ev);
    CHECK_EQ(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), 0);
    no_event(b.ctx);
    no_wc(b.rcq); /* what is posted belongs to the shared queue and stays there */
    CHECK_EQ(post_srq(&b, 1, 0, 64), 0);
    close_pair(&a, &b);
}

/* A message that does not fit breaks its queue pair, not the queue. */
static void broken_by_message(void)
{
    struct ibv_async_event ev;
    struct end a, b, c, d;
    struct ibv_wc wc;

    open_pair(&a, &b, 8);
    d = b;
    d.psn++;
    end_open(&c, NULL);
    end_qp(&d, &(struct end_options){0});
    connect_pair(&c, &d);
    CHECK_EQ(post_srq(&b, 1, 0, 64), 0);
    CHECK_EQ(post_srq(&b, 2, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 65, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_INV_REQ_ERR);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
    CHECK_EQ(wc.wr_id, 1);
    CHECK_EQ(next_event(b.ctx, &ev), IBV_EVENT_QP_REQ_ERR);
    ibv_ack_async_event(&ev);
    CHECK_EQ(next_event(b.ctx, &ev), IBV_EVENT_QP_LAST_WQE_REACHED);
    ibv_ack_async_event(&ev);
    no_event(b.ctx);
    CHECK_EQ(post_send(&c, 1, 0, 64, 0), 0);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.wr_id, 2);
    CHECK_EQ(wc.qp_num, d.qp->qp_num);
    CHECK_EQ(ibv_destroy_qp(d.qp), 0);
    end_close(&c);
    close_pair(&a, &b);
}

/* Messages that were not polled vanish with their queue pair; their receives return. */
static void reset_gives_back(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct end a, b;

    open_pair(&a, &b, 8);
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(post_srq(&b, i, 0, 64), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(post_srq(&b, 8, 0, 64), ENOMEM);
    CHECK_EQ(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), 0);
    no_wc(b.rcq);
    expect_all_free(&b, 8);
    close_pair(&a, &b);
}

/* One RC and one UD queue pair, each with a CQ of its own. The datagram begins with its GRH. */
static void mixed_types(void)
{
    struct end a, b, from, to;
    struct ibv_ah_attr path;
    struct ibv_send_wr wr = {.num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    struct ibv_sge sge;
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
    struct address where;
    struct ibv_wc wc;

    open_pair(&a, &b, 8);
    end_open(&from, &(struct end_options){.type = IBV_QPT_UD});
    to = b;
    to.rcq = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
    end_qp(&to, &(struct end_options){.type = IBV_QPT_UD});
    to_init(to.qp);
    CHECK_EQ(ibv_modify_qp(to.qp, &rtr, IBV_QP_STATE), 0);
    to_init(from.qp);
    CHECK_EQ(ibv_modify_qp(from.qp, &rtr, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_modify_qp(from.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    where = address_of(&to);
    path = path_to(&where);
    sge = sge_of(&from, 0, 60);
    wr.sg_list = &sge;
    wr.wr.ud.ah = ibv_create_ah(from.pd, &path);
    wr.wr.ud.remote_qpn = to.qp->qp_num;
    wr.wr.ud.remote_qkey = 0x11111;
    CHECK_EQ(ibv_post_send(from.qp, &wr, &bad), 0); /* nothing is posted: lost */
    CHECK_EQ(post_srq(&b, 1, 0, 100), 0);
    CHECK_EQ(post_srq(&b, 2, 200, 100), 0);
    CHECK_EQ(post_srq(&b, 3, 400, 100), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    fill(from.buf, 60, 5);
    CHECK_EQ(ibv_post_send(from.qp, &wr, &bad), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    wc = wait_wc(to.rcq);
    CHECK_EQ(wc.wr_id, 2);
    CHECK_EQ(wc.byte_len, 100);
    CHECK(filled(b.buf + 240, 60, 5));
    CHECK_EQ(wait_wc(b.rcq).wr_id, 1);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 3);
    CHECK_EQ(ibv_destroy_ah(wr.wr.ud.ah), 0);
    CHECK_EQ(ibv_destroy_qp(to.qp), 0);
    CHECK_EQ(ibv_destroy_cq(to.rcq), 0);
    end_close(&from);
    close_pair(&a, &b);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"attributes", attributes},
        {"too_many", too_many},
        {"order", order},
        {"private_memory", private_memory},
        {"deep_private", deep_private},
        {"overrun", overrun},
        {"not_ready", not_ready},
        {"rnr_exceeded", rnr_exceeded},
        {"limit_event", limit_event},
        {"last_wqe", last_wqe},
        {"broken_by_message", broken_by_message},
        {"reset_gives_back", reset_gives_back},
        {"mixed_types", mixed_types},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
