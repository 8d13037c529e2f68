/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections: messages that arrive, messages that are lost silently, and errors
 * that break the queue pair. A sender learns nothing about the other side: every sent request
 * succeeds. */
#include "config.h"

#include "harness.h"

static const struct end_options uc = {.type = IBV_QPT_UC};
static const struct end_options uc_private = {.type = IBV_QPT_UC, .private = true};

static enum ibv_qp_state state_of(struct end *e)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;

    CHECK_EQ(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &i), 0);
    return a.qp_state;
}

static void sent(struct end *e, uint64_t id, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = wait_wc(e->scq);

    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.opcode, opcode);
    CHECK_EQ(wc.wr_id, id);
}

static void traffic(const struct end_options *o)
{
    struct end a, b;
    struct address to;
    struct ibv_wc wc;

    open_two(&a, &b, o);
    to = address_of(&b);
    fill(a.buf, 70000, 3);
    CHECK_EQ(post_recv(&b, 5, 0, 70000), 0);
    CHECK_EQ(post_send(&a, 1, 0, 70000, 0), 0);
    sent(&a, 1, IBV_WC_SEND);
    CHECK_EQ(wait_wc(b.rcq).byte_len, 70000);
    CHECK(filled(b.buf, 70000, 3));
    CHECK_EQ(post_recv(&b, 6, 100000, 64), 0);
    CHECK_EQ(post(&a, IBV_WR_SEND_WITH_IMM, 2, 0, 64, IBV_SEND_SIGNALED, NULL, 0), 0);
    sent(&a, 2, IBV_WC_SEND);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.wc_flags, IBV_WC_WITH_IMM);
    CHECK_EQ(wc.imm_data, 0x12345678);
    fill(a.buf, 5000, 4);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 3, 0, 5000, IBV_SEND_SIGNALED, &to, 200000), 0);
    sent(&a, 3, IBV_WC_RDMA_WRITE);
    CHECK(filled(b.buf + 200000, 5000, 4));
    CHECK_EQ(post_recv(&b, 7, 0, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 0, 5000, IBV_SEND_SIGNALED, &to, 300000), 0);
    sent(&a, 4, IBV_WC_RDMA_WRITE);
    CHECK_EQ(wait_wc(b.rcq).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK(filled(b.buf + 300000, 5000, 4));
    close_two(&a, &b);
}

static void traffic_shared(void)
{
    traffic(&uc);
}

static void traffic_private(void)
{
    traffic(&uc_private);
}

/* The answer of a read or an atomic could not come back. */
static void no_answers(void)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b, &uc);
    to = address_of(&b);
    CHECK_EQ(post(&a, IBV_WR_RDMA_READ, 1, 0, 8, 0, &to, 0), EINVAL);
    CHECK_EQ(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 0, &to, 0), EINVAL);
    CHECK_EQ(post(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, 8, 0, &to, 0), EINVAL);
    close_two(&a, &b);
}

static void lost_without_receive(void)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b, &uc);
    to = address_of(&b);
    fill(a.buf, 64, 1);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    sent(&a, 1, IBV_WC_SEND);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 64, IBV_SEND_SIGNALED, &to, 0), 0);
    sent(&a, 2, IBV_WC_RDMA_WRITE);
    no_wc(b.rcq);
    fill(a.buf, 64, 2);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    no_wc(b.rcq);
    CHECK_EQ(post_send(&a, 3, 0, 64, 0), 0);
    sent(&a, 3, IBV_WC_SEND);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 7);
    CHECK(filled(b.buf, 64, 2));
    CHECK_EQ(state_of(&b), IBV_QPS_RTS);
    close_two(&a, &b);
}

static void bad_key_is_dropped(void)
{
    struct end a, b;
    struct address to, wrong;

    open_two(&a, &b, &uc);
    to = wrong = address_of(&b);
    wrong.rkey ^= 0x100;
    fill(a.buf, 64, 1);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 64, IBV_SEND_SIGNALED, &wrong, 0), 0);
    sent(&a, 1, IBV_WC_RDMA_WRITE);
    CHECK_EQ(b.buf[5], 0);
    CHECK_EQ(state_of(&a), IBV_QPS_RTS);
    CHECK_EQ(state_of(&b), IBV_QPS_RTS);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 2, 0, 64, IBV_SEND_SIGNALED, &to, 0), 0);
    sent(&a, 2, IBV_WC_RDMA_WRITE);
    CHECK(filled(b.buf, 64, 1));
    close_two(&a, &b);
}

/* An error in the receiver's own work breaks the receiver (10.10.3). */
static void too_long_breaks_receiver(void)
{
    struct end a, b;
    struct ibv_wc wc;

    open_two(&a, &b, &uc);
    CHECK_EQ(post_recv(&b, 7, 0, 63), 0);
    CHECK_EQ(post_recv(&b, 8, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    sent(&a, 1, IBV_WC_SEND);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
    CHECK_EQ(wc.wr_id, 7);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(state_of(&b), IBV_QPS_ERR);
    CHECK_EQ(post_send(&a, 2, 0, 64, 0), 0);
    sent(&a, 2, IBV_WC_SEND);
    CHECK_EQ(state_of(&a), IBV_QPS_RTS);
    close_two(&a, &b);
}

static void connect_wrong(void (*spoil)(struct address *), bool arrives)
{
    struct end a, b;
    struct address to_a, to_b;

    end_open(&a, &uc);
    end_open(&b, &uc);
    to_a = address_of(&a);
    to_b = address_of(&b);
    spoil(&to_a);
    connect_to(&a, &to_b);
    connect_to(&b, &to_a);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    sent(&a, 1, IBV_WC_SEND);
    if (arrives)
        CHECK_EQ(wait_wc(b.rcq).wr_id, 7);
    else
        no_wc(b.rcq);
    close_two(&a, &b);
}

static void spoil_qpn(struct address *a)
{
    a->qpn++;
}

static void spoil_lid(struct address *a)
{
    a->lid += 77;
}

static void spoil_psn(struct address *a)
{
    a->psn++;
}

static void other_connection(void)
{
    connect_wrong(spoil_qpn, false);
    connect_wrong(spoil_lid, false);
    /* The first packet of a message sets the expected PSN anew (9.8.2.2.1). */
    connect_wrong(spoil_psn, true);
}

static void dead_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    end_open(&e, &uc);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    meet(fd);
    for (;;)
        pause();
}

static void dead_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    double until;

    end_open(&e, &uc);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    meet(fd);
    CHECK_EQ(kill(other, SIGKILL), 0);
    for (until = seconds() + 0.1; seconds() < until;) {
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 64, IBV_SEND_SIGNALED, &peer, 0), 0);
        sent(&e, 1, IBV_WC_RDMA_WRITE);
    }
    CHECK_EQ(state_of(&e), IBV_QPS_RTS);
    end_close(&e);
}

static void dead_peer(void)
{
    in_two(dead_left, dead_right);
}

/* ---- only the send queue breaks ---- */

static void post_bad(struct end *e, struct ibv_ah *ah, uint64_t id)
{
    struct ibv_sge sge = sge_of(e, BUF_BYTES - 8, 9);
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_send_wr *bad;

    wr.wr.ud.ah = ah;
    CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
}

static void send_queue_error(void)
{
    struct end a, b;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

    open_two(&a, &b, &uc);
    CHECK_EQ(post_recv(&a, 11, 0, 64), 0);
    CHECK_EQ(post_recv(&b, 12, 0, 64), 0);
    post_bad(&a, NULL, 1);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(state_of(&a), IBV_QPS_SQE);
    CHECK_EQ(post_send(&a, 2, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    no_wc(a.rcq); /* receives stay, and go on */
    CHECK_EQ(post_send(&b, 3, 0, 64, 0), 0);
    sent(&b, 3, IBV_WC_SEND);
    CHECK_EQ(wait_wc(a.rcq).status, IBV_WC_SUCCESS);
    no_wc(b.rcq);
    CHECK_EQ(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
    CHECK_EQ(post_send(&a, 4, 0, 64, 0), 0);
    sent(&a, 4, IBV_WC_SEND);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 12);
    close_two(&a, &b);
}

static void datagram_queue_error(void)
{
    struct end e;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    struct address self;
    struct ibv_ah_attr path;
    struct ibv_ah *ah;

    end_open(&e, &(struct end_options){.type = IBV_QPT_UD});
    to_init(e.qp);
    CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    self = address_of(&e);
    path = path_to(&self);
    CHECK((ah = ibv_create_ah(e.pd, &path)) != NULL);
    CHECK_EQ(post_recv(&e, 1, 0, 100), 0);
    post_bad(&e, ah, 2);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(state_of(&e), IBV_QPS_SQE);
    no_wc(e.rcq);
    CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
    CHECK_EQ(state_of(&e), IBV_QPS_RTS);
    CHECK_EQ(ibv_destroy_ah(ah), 0);
    end_close(&e);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"traffic_shared", traffic_shared},
        {"traffic_private", traffic_private},
        {"no_answers", no_answers},
        {"lost_without_receive", lost_without_receive},
        {"bad_key_is_dropped", bad_key_is_dropped},
        {"too_long_breaks_receiver", too_long_breaks_receiver},
        {"other_connection", other_connection},
        {"dead_peer", dead_peer},
        {"send_queue_error", send_queue_error},
        {"datagram_queue_error", datagram_queue_error},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
