/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFTHCA_FAULT with SOFTHCA_WIRE=udp: the effect of each kind of rule on packets; and idle queue
 * pairs cost the timers nothing. Both ends are in one process unless a case says otherwise. Owns
 * nothing. */
#include "config.h"

#include "faults.h"

struct arrival {
    char order[64];
    double last; /* when the last one came, seconds after the first was sent */
};

static void send_datagrams(int n, int arrive, struct arrival *out)
{
    struct end a, b;
    struct ibv_ah *ah = open_two_ud(&a, &b);
    double start;

    for (int i = 0; i < arrive; i++)
        CHECK_EQ(post_recv(&b, (uint64_t)i, (size_t)i * 64, 64), 0);
    start = seconds();
    for (int i = 0; i < n; i++) {
        a.buf[i * 8] = (char)(i + 1);
        post_datagram(&a, &b, ah, (size_t)i * 8, 0);
    }
    for (int i = 0; i < arrive; i++) {
        CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
        out->order[i] = b.buf[i * 64 + 40];
    }
    out->last = seconds() - start;
    no_wc(b.rcq);
}

/* Sends that many datagrams, numbered, under these rules; in which order do they arrive? */
static struct arrival datagrams(const char *rules, int n, int arrive)
{
    struct arrival result = {0}, *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    int status;

    CHECK(shared != MAP_FAILED && child >= 0);
    if (child == 0) {
        faults(rules);
        send_datagrams(n, arrive, shared);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    result = *shared;
    munmap(shared, sizeof *shared);
    return result;
}

static bool arrive_as(const char *rules, int n, int arrive, const char *order)
{
    struct arrival got = datagrams(rules, n, arrive);

    for (int i = 0; i < arrive; i++)
        if (got.order[i] + '0' != order[i])
            return false;
    return true;
}

/* For orders that a process shows only if it gets a CPU within some milliseconds. */
static void expect_order(const char *rules, int n, int arrive, const char *order)
{
    for (int i = 0; i < 10; i++)
        if (arrive_as(rules, n, arrive, order))
            return;
    CHECK(!"in this order");
}

/* ---- packets ---- */

static void a_delay_keeps_the_order(void)
{
    bool something = false;
    struct end a, b;
    struct address to = open_with("delay:ms=15,op=write,nth=1", &a, &b);
    double start = write_two(&a, &to);

    while (!something) {
        no_wc(b.rcq);
        something = b.buf[0] != 0 || b.buf[8] != 0;
        CHECK(!something || seconds() - start >= 15 * MS);
    }
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK(seconds() - start >= 15 * MS);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK(filled(b.buf, 16, 1));
    close_two(&a, &b);
}

static void a_delay_keeps_the_order_of_datagrams(void)
{
    CHECK(arrive_as("delay:ms=5,nth=2", 3, 3, "123"));
}

/* Very short delays: a packet that is sent at once must not overtake one that is just due. */
static void short_delays_keep_the_order(void)
{
    for (int i = 0; i < 10; i++) {
        struct arrival got = datagrams("delay:us=0-4,p=0.5;delay:us=20,every=9", 60, 60);

        for (int k = 0; k < 60; k++)
            CHECK_EQ(got.order[k], k + 1);
    }
}

static void packets_overtake_one_that_is_late(void)
{
    expect_order("reorder:ms=5,nth=1", 3, 3, "231");
}

/* 10 ms would be the end of it if polls did not count. */
static void polls_let_a_packet_go(void)
{
    struct arrival got;

    for (int i = 0; i < 10; i++) {
        got = datagrams("reorder:polls=3,nth=1", 2, 2);
        if (got.order[0] == 2 && got.last < 9 * MS)
            return;
    }
    CHECK(got.order[0] == 2);
    CHECK(got.last < 9 * MS);
}

static void a_packet_comes_twice(void)
{
    struct arrival got = datagrams("dup:nth=1", 2, 3);

    CHECK_EQ(got.order[0] + got.order[1] + got.order[2], 4);
    expect_order("dup:nth=1,ms=5", 2, 3, "121");
}

static void what_is_lost_does_not_come(void)
{
    CHECK(arrive_as("drop:nth=2;dup:nth=2", 3, 2, "13"));
}

static uint64_t added(const struct end *b)
{
    return *(volatile uint64_t *)(void *)b->buf;
}

/* Each is executed once, whatever is lost or doubled. */
static void an_atomic_is_executed_once(void)
{
    struct end a, b;
    struct address to;

    faults("dup:every=2;drop:lost=ack,every=3;drop:op=atomic,every=4");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    for (uint64_t i = 1; i <= 20; i++) {
        fetch_and_add(&a, &to, 64, 1);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        CHECK_EQ(*(uint64_t *)(void *)(a.buf + 64), i - 1);
        CHECK_EQ(added(&b), i);
    }
    close_two(&a, &b);
}

/* Requests are no operation for a rule about answers: the answer to the second one is lost. */
static void lost_answers_are_counted_alone(void)
{
    struct end a, b;
    struct address to;
    double start;

    faults("drop:lost=ack,after=1");
    open_patient(&a, &b, 8, 7);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    start = seconds();
    a.buf[8] = 1;
    CHECK_EQ(write_8(&a, &to, 2, 8), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK(seconds() - start >= 8 * 1.048 * MS);
    CHECK_EQ(b.buf[8], 1);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
    CHECK_EQ(state_of(&b), IBV_QPS_RTS);
}

/* ---- requests ---- */

static void late_holds_back_the_completion_only(void)
{
    struct end a, b;
    struct address to = open_with("late:ms=30,nth=1", &a, &b);
    double start = write_two(&a, &to), until = start + HANG;

    while (!filled(b.buf, 16, 1)) {
        CHECK(seconds() < until);
        no_wc(b.rcq);
    }
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK(seconds() - start >= 30 * MS);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2); /* was there in time, and waited */
    close_two(&a, &b);
}

/* An error behind a late completion: both come, in order. */
static void an_error_ends_the_waiting(void)
{
    struct end a, b;
    struct address to = open_with("late:ms=10000,nth=1", &a, &b);

    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    to.rkey ^= 1;
    CHECK_EQ(write_8(&a, &to, 2, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_ACCESS_ERR);
}

static void expect_error(const struct expected_error *e)
{
    struct end a, b;

    break_second(e, &a, &b);
}

static void errors_have_their_status(void)
{
    static const struct expected_error errors[] = {
        {"loc_len", IBV_WC_LOC_LEN_ERR, -1},
        {"loc_access", IBV_WC_LOC_ACCESS_ERR, -1},
        {"bad_resp", IBV_WC_BAD_RESP_ERR, -1},
        {"retry_exc", IBV_WC_RETRY_EXC_ERR, -1},
        {"rem_access", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
        {"rem_inv_req", IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},
        {"rem_op", IBV_WC_REM_OP_ERR, -1},
        {"general", IBV_WC_GENERAL_ERR, -1},
    };

    in_children(expect_error, errors, sizeof errors / sizeof errors[0]);
}

static void the_completion_queue_overruns(void)
{
    struct ibv_async_event ev;
    struct end a, b;
    struct address to = open_with("cqoverrun:nth=1", &a, &b);

    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    wait_wc(a.scq);
    CHECK_EQ(ibv_get_async_event(a.ctx, &ev), 0);
    CHECK_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
    ibv_ack_async_event(&ev);
}

/* ---- receivers ---- */

static void a_receiver_is_not_ready(void)
{
    struct end a, b;
    double start;

    faults("rnr:ms=10,op=send,nth=1");
    open_patient(&a, &b, 14, 7);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    start = seconds();
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    CHECK(seconds() - start >= 10 * MS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    close_two(&a, &b);
}

static void a_sender_without_patience(void)
{
    struct end a, b;

    faults("rnr:ms=1000,op=send");
    open_patient(&a, &b, 14, 0);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RNR_RETRY_EXC_ERR);
    no_wc(b.rcq);
}

static void open_early(struct end *a, struct end *b, struct end *c, struct end *d)
{
    setenv("SOFTHCA_HCAS", "2", 1);
    faults("early:ms=10000,dev=softhca0");
    open_two(a, b, &(struct end_options){.hca = 0});
    open_two(c, d, &(struct end_options){.hca = 1});
}

static void early_data_is_overtaken_by_another_hca(void)
{
    struct end a, b, c, d;
    struct address to_b, to_d;

    open_early(&a, &b, &c, &d);
    to_b = address_of(&b);
    to_d = address_of(&d);
    a.buf[0] = c.buf[0] = 1;
    CHECK_EQ(write_8(&a, &to_b, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(write_8(&c, &to_d, 1, 0), 0);
    CHECK_EQ(wait_wc(c.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(d.buf[0], 1);
    CHECK_EQ(b.buf[0], 0);
    /* A message through the same one finds it in place. */
    CHECK_EQ(post_recv(&b, 1, 64, 8), 0);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    CHECK_EQ(b.buf[0], 1);
}

/* ---- cables, ends of processes ---- */

static void a_cable(const char *rules, uint64_t meanwhile)
{
    struct ibv_async_event ev;
    struct end a, b;
    struct address to, to_a;

    setenv("SOFTHCA_PORTS", "2", 1);
    faults(rules);
    end_open(&a, &(struct end_options){.port = 1});
    end_open(&b, &(struct end_options){.port = 2});
    to_a = address_of(&a);
    to = address_of(&b);
    connect_to(&a, &to);
    connect_to(&b, &to_a);
    fetch_and_add(&a, &to, 64, 1);
    CHECK_EQ(ibv_get_async_event(a.ctx, &ev), 0);
    CHECK(ev.event_type == IBV_EVENT_PORT_ERR && ev.element.port_num == 1);
    ibv_ack_async_event(&ev);
    for (double until = seconds() + HANG; added(&b) < meanwhile;) {
        CHECK(seconds() < until);
        no_wc(b.rcq);
    }
    CHECK_EQ(ibv_get_async_event(a.ctx, &ev), 0);
    CHECK(ev.event_type == IBV_EVENT_PORT_ACTIVE && ev.element.port_num == 1);
    ibv_ack_async_event(&ev);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(added(&b), 1);
}

static void a_request_waits_for_the_cable(void)
{
    a_cable("unplug:port=1,op=atomic,nth=1,ms=20", 0);
}

static void an_answer_waits_for_the_cable(void)
{
    a_cable("unplug:port=1,op=atomic,nth=1,ms=20,lost=ack", 1);
}

enum { killed_bytes = 100000 };

static void killed_right(int fd, pid_t other)
{
    struct address peer;
    struct end e;

    (void)other;
    faults("kill:nth=1");
    end_open(&e, NULL);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    fill(e.buf, killed_bytes, 1);
    meet(fd);
    post(&e, IBV_WR_RDMA_WRITE, 1, 0, killed_bytes, IBV_SEND_SIGNALED, &peer, 0);
    for (;;)
        no_wc(e.scq);
}

static void surviving_left(int fd, pid_t other)
{
    struct address peer;
    siginfo_t info;
    struct end e;

    end_open(&e, NULL);
    peer = swap_addresses(fd, &e);
    to_init(e.qp);
    to_rtr(e.qp, &peer);
    to_rts(&e, 8, 7);
    meet(fd);
    /* Answers until it is killed; then takes what is still in the socket. */
    do {
        no_wc(e.rcq);
        info.si_pid = 0;
        CHECK_EQ(waitid(P_PID, (id_t)other, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    } while (info.si_pid == 0);
    CHECK_EQ(info.si_status, SIGKILL);
    for (int i = 0; i < 1000; i++)
        no_wc(e.rcq);
    CHECK(filled(e.buf, killed_bytes / 2, 1));
    CHECK(e.buf[killed_bytes / 2 + 1024] == 0 && e.buf[killed_bytes - 1] == 0);
    CHECK_EQ(post_send(&e, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_RETRY_EXC_ERR);
    end_close(&e);
}

static void killed_in_the_middle(void)
{
    in_two(surviving_left, killed_right);
}

/* ---- timers ---- */

#define IDLE  (SANITIZED ? 200 : 2000)
#define TRIPS 500

static void trips(const char *stats)
{
    struct end a, b, one;
    struct address to;

    setenv("SOFTHCA_STATS", stats, 1);
    open_two(&a, &b, NULL);
    to = address_of(&b);
    one = a;
    for (int i = 0; i < IDLE; i++) {
        struct address own;

        end_qp(&one, &(struct end_options){.send_wr = 4, .recv_wr = 1});
        own = address_of(&one);
        connect_to(&one, &own); /* to itself */
        own.addr += 4096;
        CHECK_EQ(write_8(&one, &own, 1, 0), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    for (int i = 0; i < TRIPS; i++) {
        CHECK_EQ(write_8(&a, &to, 1, 0), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        if (i % 10 == 0)
            usleep(2000); /* so that deadlines come */
    }
    exit(0);
}

/* Each queue pair was used once and leaves the heap once; one is in use. */
static void idle_queue_pairs_cost_nothing(void)
{
    char stats[] = "/tmp/udp_faults.XXXXXX", line[1024], *at;
    int fd = mkstemp(stats), status;
    pid_t child = fork();
    long looked;
    ssize_t n;

    CHECK(fd >= 0 && child >= 0);
    if (child == 0)
        trips(stats);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    n = read(fd, line, sizeof line - 1);
    unlink(stats);
    CHECK(n > 0);
    line[n] = 0;
    CHECK((at = strstr(line, " deadlines ")) != NULL);
    looked = strtol(at + 11, NULL, 10);
    printf("     %d queue pairs, %d round trips of one: %ld looked at\n", IDLE, TRIPS, looked);
    CHECK(looked > 0 && looked <= 10L * (IDLE + TRIPS));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(a_delay_keeps_the_order),
        CASE(a_delay_keeps_the_order_of_datagrams),
        CASE(short_delays_keep_the_order),
        CASE(packets_overtake_one_that_is_late),
        CASE(polls_let_a_packet_go),
        CASE(a_packet_comes_twice),
        CASE(what_is_lost_does_not_come),
        CASE(an_atomic_is_executed_once),
        CASE(lost_answers_are_counted_alone),
        CASE(late_holds_back_the_completion_only),
        CASE(an_error_ends_the_waiting),
        CASE(errors_have_their_status),
        CASE(the_completion_queue_overruns),
        CASE(a_receiver_is_not_ready),
        CASE(a_sender_without_patience),
        CASE(early_data_is_overtaken_by_another_hca),
        CASE(a_request_waits_for_the_cable),
        CASE(an_answer_waits_for_the_cable),
        CASE(killed_in_the_middle),
        CASE(idle_queue_pairs_cost_nothing),
        {NULL, NULL},
    };

    setenv("SOFTHCA_WIRE", "udp", 1);
    return run_cases(cases, argc, argv);
}
