/* SPDX-License-Identifier: BSD-3-Clause */
/* A sender dies in the middle of a message, always at the same place: the receive is taken, half
 * of the bytes have moved, nothing was told. What becomes of that receive. */
#include "config.h"

#include "harness.h"
#include "srq.h"

#define DEPTH 4

/* Sends until it is killed inside its third message. */
static void victim(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    setenv("SOFTHCA_FAULT", "kill:op=send,nth=3", 1);
    end_open(&e, NULL);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    fill(e.buf, 2000, 3);
    for (;;) {
        CHECK_EQ(post_send(&e, 1, 0, 2000, 0), 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    }
}

static void wait_for_death(pid_t pid)
{
    siginfo_t how;

    CHECK_EQ(waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT), 0);
    CHECK_EQ(how.si_code, CLD_KILLED);
}

static void open_server(struct end *e, int type)
{
    end_open(e, &(struct end_options){.no_qp = true});
    e->srq = new_srq(e, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++)
        CHECK_EQ(post_srq(e, i, (size_t)i * 4096, 4096), 0);
    end_qp(e, &(struct end_options){.type = type});
}

/* Lets the victim come and go: two messages have arrived, the third was begun. */
static void lose_one(struct end *e, int fd, pid_t other)
{
    struct address from;

    open_server(e, IBV_QPT_RC);
    from = swap_addresses(fd, e);
    connect_to(e, &from);
    meet(fd);
    wait_for_death(other);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(wait_wc(e->rcq).wr_id, i);
        CHECK(filled(e->buf + i * 4096, 2000, 3));
    }
    no_wc(e->rcq);
    /* two free, one posted, one in the hands of the dead */
    CHECK_EQ(post_srq(e, 10, 0, 64), 0);
    CHECK_EQ(post_srq(e, 11, 0, 64), 0);
    CHECK_EQ(post_srq(e, 12, 0, 64), ENOMEM);
}

static void close_server(struct end *e)
{
    if (e->qp)
        CHECK_EQ(ibv_destroy_qp(e->qp), 0);
    e->qp = NULL;
    CHECK_EQ(ibv_destroy_srq(e->srq), 0);
    end_close(e);
}

static void flushed_by_error(int fd, pid_t other)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc;
    struct end e;

    lose_one(&e, fd, other);
    CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
    wc = wait_wc(e.rcq);
    CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(wc.wr_id, 2);
    no_wc(e.rcq);
    CHECK_EQ(post_srq(&e, 12, 0, 64), 0);
    CHECK_EQ(post_srq(&e, 13, 0, 64), ENOMEM);
    close_server(&e);
}

static void freed_by_destroy(int fd, pid_t other)
{
    struct end e;

    lose_one(&e, fd, other);
    CHECK_EQ(ibv_destroy_qp(e.qp), 0);
    e.qp = NULL;
    CHECK_EQ(post_srq(&e, 12, 0, 64), 0);
    CHECK_EQ(post_srq(&e, 13, 0, 64), ENOMEM);
    close_server(&e);
}

/* ---- datagrams: another sender comes, and gets the receive that was begun ---- */

static void to_ready(struct end *e)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};

    to_init(e->qp);
    CHECK_EQ(ibv_modify_qp(e->qp, &rtr, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_modify_qp(e->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void send_datagram(struct end *e, struct ibv_ah *ah, uint32_t qpn)
{
    struct ibv_sge sge = sge_of(e, 0, 1000);
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = 0x11111;
    CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
}

static void datagrams(struct end *e, const struct address *to, int count)
{
    struct ibv_ah_attr path = path_to(to);
    struct ibv_ah *ah = ibv_create_ah(e->pd, &path);

    CHECK(ah != NULL);
    while (count-- > 0)
        send_datagram(e, ah, to->qpn);
    CHECK_EQ(ibv_destroy_ah(ah), 0);
}

static void ud_victim(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    setenv("SOFTHCA_FAULT", "kill:op=send,nth=3", 1);
    end_open(&e, &(struct end_options){.type = IBV_QPT_UD});
    to = swap_addresses(fd, &e);
    to_ready(&e);
    datagrams(&e, &to, 3);
}

static void taken_again(int fd, pid_t other)
{
    struct address to;
    struct end e, next;

    open_server(&e, IBV_QPT_UD);
    to_ready(&e);
    swap_addresses(fd, &e);
    wait_for_death(other);
    for (unsigned i = 0; i < 2; i++)
        CHECK_EQ(wait_wc(e.rcq).wr_id, i);
    end_open(&next, &(struct end_options){.type = IBV_QPT_UD});
    to_ready(&next);
    to = address_of(&e);
    fill(next.buf, 1000, 9);
    datagrams(&next, &to, 2);
    for (unsigned i = 2; i < 4; i++) {
        CHECK_EQ(wait_wc(e.rcq).wr_id, i);
        CHECK(filled(e.buf + i * 4096 + 40, 1000, 9));
    }
    expect_all_free(&e, DEPTH);
    end_close(&next);
    close_server(&e);
}

static void error(void)
{
    in_two(flushed_by_error, victim);
}

static void destroy(void)
{
    in_two(freed_by_destroy, victim);
}

static void next_sender(void)
{
    in_two(taken_again, ud_victim);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"error", error},
        {"destroy", destroy},
        {"next_sender", next_sender},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
