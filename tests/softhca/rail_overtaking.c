/* SPDX-License-Identifier: BSD-3-Clause */
/* Two rails between two ends, one of them disturbed: messages over the other one overtake, and the
 * data is not in memory yet. With "delay" the write itself comes later, with "early" its completion
 * has been delivered long before. Owns nothing. */
#include "config.h"

#include "faults.h"

/* Rails of one buffer: they differ in the HCA and port that they use at both ends. */
struct rail {
    struct end a, b;
    struct address to;
};

static void rail_open(struct rail *r, int hca, int port)
{
    const struct end_options o = {.hca = hca, .port = port};

    open_two(&r->a, &r->b, &o);
    r->to = address_of(&r->b);
}

/* 2 HCAs of 2 ports; rail 0 goes over softhca0:1 and is the disturbed one. */
static void machine(const char *rules)
{
    setenv("SOFTHCA_HCAS", "2", 1);
    setenv("SOFTHCA_PORTS", "2", 1);
    faults(rules);
}

/* A message on a rail arrives, and finds memory as expected. */
static void message(struct rail *r, const char *memory, char expected)
{
    CHECK_EQ(post_recv(&r->b, 5, 4096, 64), 0);
    CHECK_EQ(post_send(&r->a, 6, 4096, 64, 0), 0);
    CHECK_EQ(wait_wc(r->b.rcq).wr_id, 5);
    CHECK_EQ(*(volatile const char *)memory, expected);
    CHECK_EQ(wait_wc(r->a.scq).status, IBV_WC_SUCCESS);
}

static void write_byte(struct rail *r, char value, size_t at)
{
    r->a.buf[at] = value;
    CHECK_EQ(post(&r->a, IBV_WR_RDMA_WRITE, 1, at, 8, IBV_SEND_SIGNALED, &r->to, at), 0);
}

static void completed(struct rail *r)
{
    CHECK_EQ(wait_wc(r->a.scq).status, IBV_WC_SUCCESS);
}

static void arrives(const char *memory, char expected)
{
    for (double until = seconds() + HANG; *(volatile const char *)memory != expected;)
        CHECK(seconds() < until);
}

/* ---- delay ---- */

static void delay_of_one_port_lets_the_other_overtake(void)
{
    struct rail slow, fast;

    machine("delay:dev=softhca0,port=1,ms=500");
    rail_open(&slow, 0, 1);
    rail_open(&fast, 0, 2);
    write_byte(&slow, 7, 0);
    message(&fast, slow.b.buf, 0);
    no_wc(slow.a.scq);
    completed(&slow);
    CHECK_EQ(slow.b.buf[0], 7);
}

/* ---- early ---- */

static void early_completes_before_the_data_is_there(void)
{
    struct rail slow, fast;
    double start = seconds();

    machine("early:dev=softhca0,port=1,ms=500");
    rail_open(&slow, 0, 1);
    rail_open(&fast, 1, 1);
    write_byte(&slow, 7, 0);
    completed(&slow);
    CHECK_EQ(slow.b.buf[0], 0);
    message(&fast, slow.b.buf, 0);
    write_byte(&fast, 3, 0);
    completed(&fast);
    CHECK(fast.b.buf[0] == 3 && slow.b.buf[0] == 0);
    arrives(slow.b.buf, 7);
    CHECK(seconds() - start >= 500 * MS);
}

/* A later operation through the same HCA moves the data into memory: a read or an atomic operation
 * is a fence, and a message needs none. */
static void what_comes_through_the_same_hca_finds_it(void)
{
    struct rail first, second;

    machine("early:dev=softhca0,port=1,ms=10000");
    rail_open(&first, 0, 1);
    rail_open(&second, 0, 2);
    write_byte(&first, 1, 0);
    completed(&first);
    CHECK_EQ(first.b.buf[0], 0);
    CHECK_EQ(post(&first.a, IBV_WR_RDMA_READ, 1, 512, 8, IBV_SEND_SIGNALED, &first.to, 0), 0);
    completed(&first);
    CHECK(first.b.buf[0] == 1 && first.a.buf[512] == 1);
    write_byte(&first, 2, 0);
    completed(&first);
    CHECK_EQ(first.b.buf[0], 1);
    CHECK_EQ(
        post(&first.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 512, 8, IBV_SEND_SIGNALED, &first.to, 1024),
        0);
    completed(&first);
    CHECK_EQ(first.b.buf[0], 2);
    write_byte(&first, 3, 0);
    completed(&first);
    message(&first, first.b.buf, 3);
    write_byte(&first, 4, 0);
    completed(&first);
    message(&second, first.b.buf, 4);
}

/* The program may use its buffer again, and writes to one place land in order. */
static void early_keeps_contents_and_order(void)
{
    struct rail r;

    machine("early:ms=50,count=1;early:ms=1,after=1");
    rail_open(&r, 0, 1);
    fill(r.a.buf, 4096, 1);
    CHECK_EQ(post(&r.a, IBV_WR_RDMA_WRITE, 1, 0, 4096, IBV_SEND_SIGNALED, &r.to, 0), 0);
    completed(&r);
    memset(r.a.buf, 0, 4096);
    for (char i = 1; i <= 10; i++) {
        write_byte(&r, i, 4096);
        completed(&r);
    }
    CHECK_EQ(r.b.buf[0], 0);
    arrives(r.b.buf + 4096, 10);
    CHECK(filled(r.b.buf, 4096, 1));
}

static void early_lands_without_polling(void)
{
    struct rail r;

    machine("early:ms=5");
    rail_open(&r, 0, 1);
    write_byte(&r, 7, 0);
    completed(&r);
    for (double until = seconds() + HANG; *(volatile char *)r.b.buf != 7;) {
        CHECK(seconds() < until);
        usleep(1000);
    }
}

/* Acknowledged data is written, also when the program ends by _exit. */
static void leaver(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    faults("early:ms=10000");
    end_open(&e, NULL);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    e.buf[0] = 7;
    CHECK_EQ(write_8(&e, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    _exit(0);
}

static void stayer(int fd, pid_t other)
{
    struct address to;
    struct end e;

    (void)other;
    end_open(&e, NULL);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    meet(fd);
    arrives(e.buf, 7);
}

static void leaving_lands_it(void)
{
    in_two(stayer, leaver);
}

/* Deregistered memory is not written to, nor is memory of a destroyed queue pair. */
static void early_never_writes_to_what_is_gone(void)
{
    struct rail r, s;

    machine("early:ms=20");
    rail_open(&r, 0, 1);
    rail_open(&s, 1, 1);
    write_byte(&r, 7, 0);
    write_byte(&s, 7, 0);
    completed(&r);
    completed(&s);
    CHECK_EQ(ibv_dereg_mr(r.b.mr), 0);
    CHECK_EQ(ibv_destroy_qp(s.b.qp), 0);
    usleep(100000);
    CHECK(r.b.buf[0] == 0 && s.b.buf[0] == 0);
}

static void early_still_checks(void)
{
    struct rail r;

    machine("early:ms=10000");
    rail_open(&r, 0, 1);
    r.to.rkey ^= 1;
    write_byte(&r, 7, 0);
    CHECK_EQ(wait_wc(r.a.scq).status, IBV_WC_REM_ACCESS_ERR);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(delay_of_one_port_lets_the_other_overtake),
        CASE(early_completes_before_the_data_is_there),
        CASE(what_comes_through_the_same_hca_finds_it),
        CASE(early_keeps_contents_and_order),
        CASE(early_lands_without_polling),
        CASE(leaving_lands_it),
        CASE(early_never_writes_to_what_is_gone),
        CASE(early_still_checks),
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
