/* SPDX-License-Identifier: BSD-3-Clause */
/* Which completions come, when, and which waiter is woken: selective signalling and sq_sig_all,
 * errors of unsignaled work, solicited events on each transport, and fences between a read and what
 * uses it.
 */
#include "config.h"

#include "harness.h"

static struct ibv_qp *replace_qp(struct end *e, enum ibv_qp_type type, int sig_all)
{
    struct ibv_qp_init_attr init = {.send_cq = e->scq,
                                    .recv_cq = e->rcq,
                                    .qp_type = type,
                                    .sq_sig_all = sig_all,
                                    .cap = {8, 8, 2, 2, 64}};

    if (e->qp)
        CHECK_EQ(ibv_destroy_qp(e->qp), 0);
    CHECK((e->qp = ibv_create_qp(e->pd, &init)) != NULL);
    return e->qp;
}

static void connect_both(struct end *a, struct end *b)
{
    struct address to_a = address_of(a), to_b = address_of(b);

    connect_to(a, &to_b);
    connect_to(b, &to_a);
}

static void signal_all(void)
{
    struct end a, b;
    struct address to;

    end_open(&a, NULL);
    end_open(&b, NULL);
    replace_qp(&a, IBV_QPT_RC, 1);
    connect_both(&a, &b);
    to = address_of(&b);
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, i, 0, 8, 0, &to, 0), 0);
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(wait_wc(a.scq).wr_id, i);
    close_two(&a, &b);
}

/* Only every fourth is signaled: its completion covers those before it, in order. */
static void signal_some(void)
{
    struct end a, b;
    struct address to;

    end_open(&a, NULL);
    end_open(&b, NULL);
    replace_qp(&a, IBV_QPT_RC, 0);
    connect_both(&a, &b);
    to = address_of(&b);
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 8; i++)
            CHECK_EQ(post(&a, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i, 0, 8,
                          i % 4 == 3 ? IBV_SEND_SIGNALED : 0, &to, 0),
                     0);
        CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 9, 0, 8, 0, &to, 0), ENOMEM);
        CHECK_EQ(wait_wc(a.scq).wr_id, 3);
        CHECK_EQ(wait_wc(a.scq).wr_id, 7);
        no_wc(a.scq);
    }
    close_two(&a, &b);
}

static void unsignaled_sends_keep_their_place(void)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b, &(struct end_options){.send_wr = 4});
    to = address_of(&b);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, &to, 0), 0);
    no_wc(a.scq);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 2, 0, 8, IBV_SEND_SIGNALED, &to, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, &to, 0), ENOMEM);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, &to, 0), 0);
    close_two(&a, &b);
}

/* A failed request, and those flushed behind it, complete whether or not they were signaled. */
static void errors_are_reported(void)
{
    struct end a, b;
    struct address to, wrong;
    struct ibv_wc wc;

    open_two(&a, &b, NULL);
    to = wrong = address_of(&b);
    wrong.rkey ^= 0x100;
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, &to, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, &wrong, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, &to, 0), 0);
    wc = wait_wc(a.scq);
    CHECK_EQ(wc.wr_id, 2);
    CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
    wc = wait_wc(a.scq);
    CHECK_EQ(wc.wr_id, 3);
    CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    no_wc(a.scq);
    close_two(&a, &b);
}

/* ---- events ---- */

static bool woken(struct end *e)
{
    struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    if (poll(&p, 1, 0) == 0)
        return false;
    CHECK_EQ(ibv_get_cq_event(e->channel, &cq, &context), 0);
    CHECK(cq == e->rcq);
    ibv_ack_cq_events(cq, 1);
    return true;
}

static void arm(struct end *e, int solicited)
{
    CHECK_EQ(post_recv(e, 1, 0, 64), 0);
    CHECK_EQ(ibv_req_notify_cq(e->rcq, solicited), 0);
}

static void solicited_on(int type)
{
    const struct end_options o = {.type = type, .channel = true};
    struct end a, b;
    struct address to;

    open_two(&a, &b, &o);
    to = address_of(&b);
    arm(&b, 1);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK(!woken(&b));
    wait_wc(b.rcq);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 8, IBV_SEND_SOLICITED), 0);
    CHECK(woken(&b));
    wait_wc(b.rcq);
    /* An armed CQ wakes once. */
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 8, IBV_SEND_SOLICITED), 0);
    CHECK(!woken(&b));
    wait_wc(b.rcq);
    arm(&b, 1);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SOLICITED, &to, 0), 0);
    CHECK(!woken(&b)); /* a write without immediate consumes no receive */
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 8, IBV_SEND_SOLICITED, &to, 0), 0);
    CHECK(woken(&b));
    wait_wc(b.rcq);
    arm(&b, 0);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK(woken(&b));
    close_two(&a, &b);
}

static void solicited_reliable(void)
{
    solicited_on(IBV_QPT_RC);
}

static void solicited_unreliable(void)
{
    solicited_on(IBV_QPT_UC);
}

/* A completion with an error counts as solicited (11.4.2.2). */
static void errors_wake(void)
{
    const struct end_options o = {.channel = true};
    struct end a, b;

    open_two(&a, &b, &o);
    arm(&b, 1);
    CHECK_EQ(post_send(&a, 1, 0, 65, 0), 0);
    CHECK(woken(&b));
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_LOC_LEN_ERR);
    close_two(&a, &b);
}

/* ---- fence ---- */

/* The answer of a read (or atomic) is slow; a fenced request behind it uses its result. */
static void fence(void)
{
    struct end a, b;
    struct address to;

    setenv("SOFTHCA_FAULT", "delay:op=read,us=2000;delay:op=atomic,us=2000", 1);
    open_two(&a, &b, NULL);
    to = address_of(&b);
    fill(b.buf, 64, 8);
    CHECK_EQ(post(&a, IBV_WR_RDMA_READ, 1, 0, 64, 0, &to, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 2, 0, 64, IBV_SEND_FENCE | IBV_SEND_SIGNALED, &to, 1024),
             0);
    CHECK(!filled(b.buf + 1024, 64, 8)); /* the read has not even begun */
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK(filled(b.buf + 1024, 64, 8));
    CHECK_EQ(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 128, 8, 0, &to, 0), 0);
    CHECK_EQ(post_recv(&b, 7, 2048, 8), 0);
    CHECK_EQ(post_send(&a, 4, 128, 8, IBV_SEND_FENCE), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 4);
    wait_wc(b.rcq);
    CHECK(filled(b.buf + 2048, 8, 8));
    close_two(&a, &b);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"signal_all", signal_all},
        {"signal_some", signal_some},
        {"unsignaled_sends_keep_their_place", unsignaled_sends_keep_their_place},
        {"errors_are_reported", errors_are_reported},
        {"solicited_reliable", solicited_reliable},
        {"solicited_unreliable", solicited_unreliable},
        {"errors_wake", errors_wake},
        {"fence", fence},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
