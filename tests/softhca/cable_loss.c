/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of one process that lose their cable at a chosen request, and lost answers: which requests
 * were executed, which end gets an error, and that nothing is executed twice. One end is at port 1,
 * the other at port 2, so that only one of them is hit. Owns nothing. */
#include "config.h"

#include "faults.h"

#define PATIENT 16 /* ack timeout 268 ms: longer than any cable here is unplugged */
#define HASTY   8  /* 1 ms, 8 ms for all tries */

static void open_at(struct end *e, int port)
{
    const struct end_options o = {.port = port};

    end_open(e, &o);
}

static void join(struct end *e, const struct address *to, int timeout)
{
    to_init_at(e->qp, e->port);
    to_rtr_at(e->qp, to, e->port);
    to_rts(e, timeout, 7);
}

static struct address open_apart(struct end *a, struct end *b, const char *rules, int timeout)
{
    struct address to_a, to_b;

    setenv("SOFTHCA_PORTS", "2", 1);
    faults(rules);
    open_at(a, 1);
    open_at(b, 2);
    to_a = address_of(a);
    to_b = address_of(b);
    join(a, &to_b, timeout);
    join(b, &to_a, timeout);
    return to_b;
}

/* An atomic that counts how often it is executed. */
static void add_one(struct end *a, const struct address *to)
{
    struct ibv_sge sge = sge_of(a, 64, 8);
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.atomic = {.remote_addr = to->addr, .rkey = to->rkey, .compare_add = 1}};
    struct ibv_send_wr *bad;

    CHECK_EQ(ibv_post_send(a->qp, &wr, &bad), 0);
}

static uint64_t added(const struct end *b)
{
    return *(volatile uint64_t *)(void *)b->buf;
}

static void expect_event(struct ibv_context *ctx, enum ibv_event_type type, int port)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
    struct ibv_async_event e;

    CHECK_EQ(poll(&p, 1, HANG * 1000), 1);
    CHECK_EQ(ibv_get_async_event(ctx, &e), 0);
    CHECK_EQ(e.event_type, type);
    CHECK_EQ(e.element.port_num, port);
    ibv_ack_async_event(&e);
}

static enum ibv_port_state port_state(struct ibv_context *ctx, uint8_t port)
{
    struct ibv_port_attr a;

    CHECK_EQ(ibv_query_port(ctx, port, &a), 0);
    return a.state;
}

/* ---- lost answers ---- */

static void a_lost_answer_is_given_again(void)
{
    struct end a, b;
    struct address to;
    double start;

    to = open_apart(&a, &b, "drop:lost=ack,count=3", 10);
    start = seconds();
    add_one(&a, &to);
    CHECK_EQ(added(&b), 1);
    no_wc(a.scq);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(seconds() - start >= 3 * 4.19 * MS);
    CHECK_EQ(added(&b), 1);
    add_one(&a, &to);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(added(&b), 2);
}

/* The message uses one receive, however often its sender tries. */
static void an_answer_that_never_comes(void)
{
    struct end a, b;

    open_apart(&a, &b, "drop:lost=ack", HASTY);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    CHECK_EQ(post_recv(&b, 2, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 1);
    no_wc(b.rcq);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
}

/* An error of the responder is still reported; a peer that is gone does not answer. */
static void an_error_is_no_answer_to_lose(void)
{
    struct end a, b;
    struct address to;

    to = open_apart(&a, &b, "drop:lost=ack", HASTY);
    to.rkey ^= 1;
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_ACCESS_ERR);
}

/* ---- cables ---- */

/* Soon, not at once, because the queue pairs of that port are notified one after another. */
static void none_reaches(struct end *from, const struct end *e)
{
    struct address to = address_of(e);
    double until = seconds() + HANG;
    enum ibv_wc_status status;

    do {
        CHECK(seconds() < until);
        CHECK_EQ(write_8(from, &to, 1, 0), 0);
        status = wait_wc(from->scq).status;
    } while (status == IBV_WC_SUCCESS);
    CHECK_EQ(status, IBV_WC_RETRY_EXC_ERR);
}

static void after_three_writes(const char *rules, char third)
{
    struct end a, b, other, idle, peer;
    struct address to, to_other;

    to = open_apart(&a, &b, rules, HASTY);
    open_at(&other, 2);
    to_other = address_of(&other);
    open_apart(&idle, &peer, rules, HASTY);
    memset(a.buf, 7, 64);
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(write_8(&a, &to, i, i * 8), 0);
    expect_event(a.ctx, IBV_EVENT_PORT_ERR, 1);
    CHECK(port_state(a.ctx, 1) == IBV_PORT_DOWN && port_state(a.ctx, 2) == IBV_PORT_ACTIVE);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK(b.buf[0] == 7 && b.buf[8] == 7 && b.buf[16] == third && b.buf[24] == 0);
    /* The other port continues, and nothing reaches the unplugged one. */
    join(&other, &to_other, HASTY);
    CHECK_EQ(write_8(&other, &to_other, 1, 0), 0);
    CHECK_EQ(wait_wc(other.scq).status, IBV_WC_SUCCESS);
    none_reaches(&peer, &idle);
}

static void the_request_is_lost(void)
{
    after_three_writes("unplug:port=1,op=write,nth=3", 0);
}

static void the_answer_is_lost(void)
{
    after_three_writes("unplug:port=1,op=write,nth=3,lost=ack", 7);
}

/* In both directions: when the cable is plugged in again all requests continue, and are executed
 * once. */
static void back_in_time(const char *rules, uint64_t meanwhile)
{
    struct end a, b;
    struct address to, to_a;

    to = open_apart(&a, &b, rules, PATIENT);
    to_a = address_of(&a);
    add_one(&a, &to);
    add_one(&a, &to);
    CHECK_EQ(added(&b), meanwhile);
    expect_event(a.ctx, IBV_EVENT_PORT_ERR, 1);
    CHECK_EQ(write_8(&b, &to_a, 1, 1024), 0); /* the way to it is as long */
    expect_event(a.ctx, IBV_EVENT_PORT_ACTIVE, 1);
    CHECK_EQ(port_state(a.ctx, 1), IBV_PORT_ACTIVE);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(b.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(added(&b), 2);
}

static void a_request_waits_for_the_cable(void)
{
    back_in_time("unplug:dev=softhca0,port=1,op=atomic,nth=1,ms=20", 0);
}

static void an_answer_waits_for_the_cable(void)
{
    back_in_time("unplug:dev=softhca0,port=1,op=atomic,nth=1,ms=20,lost=ack", 1);
}

/* The packet is lost as well, and sent again long after the cable was plugged in: that must not
 * unplug it again. */
static void pulled_once_for_a_request(void)
{
    struct pollfd p = {.events = POLLIN};
    struct end a, b;
    struct address to;

    to = open_apart(&a, &b, "unplug:nth=1,ms=1;drop:count=1", 14);
    p.fd = a.ctx->async_fd;
    add_one(&a, &to);
    expect_event(a.ctx, IBV_EVENT_PORT_ERR, 1);
    expect_event(a.ctx, IBV_EVENT_PORT_ACTIVE, 1);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(poll(&p, 1, 0), 0);
}

/* Unacknowledged datagrams and UC messages are lost, or executed, without an error. */
static void unreliable_ends(void)
{
    const struct end_options o = {.type = IBV_QPT_UC};
    struct end a, b, c, d;
    struct address to;

    faults("unplug:op=write,nth=1,lost=ack");
    open_two(&a, &b, &o);
    open_two(&c, &d, &o);
    to = address_of(&b);
    memset(a.buf, 7, 64);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(b.buf[0], 7);
    expect_event(a.ctx, IBV_EVENT_PORT_ERR, 1);
    to = address_of(&d);
    memset(c.buf, 7, 64);
    CHECK_EQ(write_8(&c, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(c.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(d.buf[0], 0);
}

/* ---- two processes ---- */

/* Its port has no cable from the start; queue pairs made meanwhile receive nothing either. */
static void without_cable(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    setenv("SOFTHCA_UNPLUGGED", "softhca0:1", 1);
    end_open(&e, NULL);
    CHECK_EQ(port_state(e.ctx, 1), IBV_PORT_DOWN);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    meet(fd);
    CHECK_EQ(e.buf[0], 0);
}

static void with_cable(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    end_open(&e, NULL);
    CHECK_EQ(port_state(e.ctx, 1), IBV_PORT_ACTIVE);
    to = swap_addresses(fd, &e);
    to_init(e.qp);
    to_rtr(e.qp, &to);
    to_rts(&e, HASTY, 7);
    meet(fd);
    e.buf[0] = 7;
    CHECK_EQ(write_8(&e, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(port_state(e.ctx, 1), IBV_PORT_ACTIVE);
    meet(fd);
}

static void ports_of_others_stay_up(void)
{
    in_two(with_cable, without_cable);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(a_lost_answer_is_given_again),
        CASE(an_answer_that_never_comes),
        CASE(an_error_is_no_answer_to_lose),
        CASE(the_request_is_lost),
        CASE(the_answer_is_lost),
        CASE(a_request_waits_for_the_cable),
        CASE(an_answer_waits_for_the_cable),
        CASE(pulled_once_for_a_request),
        CASE(unreliable_ends),
        CASE(ports_of_others_stay_up),
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
