/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Failover groups that are closed for others and opened again while ports die and come back: two
 * ranks; before each step each port dies at either end, and before each later step it comes back,
 * or the other end also finds it dead. Nothing may be lost, duplicated or left over, and afterwards
 * all resources are free. */
#include "config.h"

#include "failing_rails.h"

#include "op/op.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/data/ack.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/failover/failover_group.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

/* The steps of conn/demand_record.c when datagrams come, in the order of `plan`. */
enum step {
    ASK,    /* the asker freezes */
    AGREE,  /* so does the other one, or both stop */
    SHUT,   /* the asker gets the answer */
    FOLLOW, /* the other one learns that it is over */
    OPEN,   /* the asker makes the next ones */
    ANSWER, /* the other one makes them too, and connects */
    USE,    /* the asker connects and sends */
    CONFIRM,
    steps
};
enum { devices = 2, no_step = steps + 1 };

static struct {
    uint32_t asker;
    bool is_agreed, is_open[ranks];
    uint32_t epoch[ranks];
    uint32_t numbers[ranks][tk_conns_max];
    int qps; /* before */
} life;

static struct tk_conn *conns(void)
{
    return tk_conns_to(1 - tk_peers.me);
}

static void all_poll(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        fake_settle();
        one_polls(1);
        one_polls(0);
    }
}

/* ---- steps ---- */

static bool is_balanced(void)
{
    struct tk_pair_balance balance[ranks];
    for (uint32_t r = 0; r < ranks; r++) {
        world_be(r);
        balance[r] = tk_pair_balance(conns());
    }
    return balance[0].out == balance[1].owed && balance[0].owed == balance[1].out;
}

static bool freeze(uint32_t rank)
{
    world_be(rank);
    return tk_pair_freeze(conns());
}

static void release(uint32_t rank)
{
    world_be(rank);
    tk_pair_release(conns());
}

static void send_from(uint32_t rank, int count)
{
    for (int i = 0; i < count; i++) {
        world_be(rank);
        send_numbered(1 - rank, TK_REQUEST, i % 2 ? 100 : 0); /* or there is no space now */
    }
}

static void agree(void)
{
    if (!life.is_agreed)
        return;
    if (!freeze(1 - life.asker)) {
        release(life.asker);
        life.is_agreed = false;
    } else if (!is_balanced()) {
        release(life.asker);
        release(1 - life.asker);
        life.is_agreed = false;
    }
}

static void withdraw(void)
{
    release(life.asker);
    send_from(life.asker, 2);
    all_poll(2);
    release(1 - life.asker);
    life.is_agreed = false;
}

static void shut(uint32_t rank)
{
    enum { rounds_most = 20 };
    if (!life.is_agreed)
        return;
    world_be(rank);
    tk_pair_shut(conns());
    life.epoch[rank]++;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        conns()[k].epoch = life.epoch[rank];
    for (int i = 0; i < rounds_most && life.is_open[rank]; i++) {
        all_poll(1);
        world_be(rank);
        life.is_open[rank] = !tk_pair_end(conns());
    }
    assert_false(life.is_open[rank]);
    assert_null(conns()->qp);
}

/* There is no fake of datagrams, so connections of start-up are closed, as if they were on
 * demand. */
static void make(uint32_t rank)
{
    static char demand;
    struct tk_conn *made;
    if (!life.is_agreed)
        return;
    world_be(rank);
    tk_conns.demand = (struct tk_demand *)(void *)&demand;
    assert_int_equal(tk_pair_open(1 - rank, &made), TK_OK);
    tk_conns.demand = NULL;
    assert_ptr_equal(made, conns());
    assert_int_equal(tk_pair_fill(made), TK_OK);
    life.is_open[rank] = true;
}

static void say_numbers(uint32_t rank)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        life.numbers[rank][k] = tk_failover_group_number(&conns()[k]);
}

static void connect_to(uint32_t rank, bool asks)
{
    const uint32_t *theirs = life.numbers[1 - rank];
    world_be(rank);
    tk_pair_publish(1 - rank, conns());
    tk_failover_group_agree(conns(), theirs, asks);
    assert_int_equal(tk_pair_connect(conns(), theirs, tk_verbs.credits_pp), TK_OK);
}

/* ---- a put in pieces over all connections, which may be in flight during the next steps ---- */

enum { put_size = 3 * stripe };
static struct {
    struct tk_op op;
    struct tk_rma rma;
    struct tk_rma_state state;
    bool is_begun, is_posted;
} put;

static void put_begin(void)
{
    world_be(0);
    memset(world_segment(1), 0, put_size);
    put.is_posted = world_start(&put.op, &put.rma, &put.state, true, put_size) == TK_OK;
    put.is_begun = true;
}

static void put_end(void)
{
    for (int i = 0; i < 100 && put.is_begun; i++) {
        world_be(0);
        put.is_posted = put.is_posted || tk_verbs_rma(tk_peer(1), &put.rma, &put.state) == TK_OK;
        all_poll(1);
        put.is_begun = !put.is_posted || !tk_op_done(&put.op);
    }
    assert_false(put.is_begun);
    assert_memory_equal(world_segment(0), world_segment(1), put_size);
}

/* ---- what happens ---- */

static void take_step(enum step step)
{
    uint32_t other = 1 - life.asker;
    switch (step) {
    case ASK:
        life.is_agreed = freeze(life.asker);
        break;
    case AGREE:
        agree();
        break;
    case SHUT:
        shut(life.asker);
        break;
    case FOLLOW:
        shut(other);
        break;
    case OPEN:
        make(life.asker);
        break;
    case ANSWER:
        make(other);
        break;
    case USE:
        if (!life.is_agreed)
            break;
        world_be(life.asker);
        say_numbers(life.asker);
        connect_to(other, true);
        say_numbers(other);
        connect_to(life.asker, false);
        release(life.asker);
        send_from(life.asker, 3);
        break;
    default:
        if (life.is_agreed)
            release(other);
    }
}

/* ---- ports ---- */

static void port_dies(uint32_t rank, uint32_t rail)
{
    fake.ports[rail][1].attr.state = IBV_PORT_DOWN;
    world_be(rank);
    tk_reconnect_watch(&tk_verbs.rails[rail]);
    tk_failover_rail(rail);
}

static void ports_are_back(void)
{
    for (uint32_t rail = 0; rail < devices; rail++)
        fake.ports[rail][1].attr.state = IBV_PORT_ACTIVE;
    for (uint32_t r = 0; r < ranks; r++) {
        world_be(r);
        for (uint32_t rail = 0; rail < devices; rail++)
            tk_verbs.rails[rail].look_again = 1;
        tk_verbs_report_stall();
    }
}

/* ---- lives ---- */

struct fault {
    unsigned dies, then; /* before these steps */
    uint32_t rank, rail;
    bool comes_back; /* then; else the other rank finds it dead */
};

struct course {
    uint32_t asker;
    bool is_early; /* the asker opens the next ones before the other one learns that it is over */
    bool is_withdrawn; /* the question, when it was agreed to */
    int rounds;        /* of polls between two steps */
    struct fault fault;
};

static void happen(const struct fault *fault, unsigned at)
{
    if (at == fault->dies) {
        put_begin();
        port_dies(fault->rank, fault->rail);
    }
    if (at == fault->then && fault->comes_back)
        ports_are_back();
    if (at == fault->then && !fault->comes_back)
        port_dies(1 - fault->rank, fault->rail);
}

/* True if it was closed and opened again. */
static bool live(const struct course *c)
{
    static const enum step plan[2][steps] = {
        {ASK, AGREE, SHUT, FOLLOW, OPEN, ANSWER, USE, CONFIRM},
        {ASK, AGREE, SHUT, OPEN, FOLLOW, ANSWER, USE, CONFIRM},
    };
    life.asker = c->asker;
    unit_listen();
    for (unsigned at = 0; at < steps; at++) {
        happen(&c->fault, at);
        all_poll(c->rounds);
        if (c->is_withdrawn && at == SHUT && life.is_agreed)
            withdraw();
        take_step(plan[c->is_early][at]);
        if (plan[c->is_early][at] == FOLLOW && life.is_agreed && !c->is_early)
            assert_int_equal(fake.qps, life.qps - 2 * (int)tk_verbs.conns_pp);
    }
    happen(&c->fault, steps);
    unit_heard();
    return life.is_agreed;
}

static void assert_nothing_is_left(void)
{
    logged_until_idle();
    assert_int_equal(lost_count, 0);
    assert_whole();
    assert_int_equal(fake.qps, life.qps);
    for (uint32_t r = 0; r < ranks; r++) {
        const struct tk_rank_pair *pair = &world_verbs(r)->pairs[1 - r];
        assert_false(pair->is_frozen);
        assert_int_equal(tk_counter_read(&pair->moving), 0);
        assert_int_equal(pair->pending_work, 0);
    }
}

/* All space and all buffers are free at both ends, and the primary connection is the original
 * one. */
static void assert_as_new(void)
{
    assert_int_equal(assert_whole(), 1);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t k = 0; k < devices; k++) {
            struct tk_conn *conn = conn_to(r, 1 - r, k);
            assert_int_equal(tk_counter_read(&conn->state), TK_LIVE);
            assert_int_equal(tk_conn_space(conn) + conn->unsignaled, tk_verbs.depth_pp);
            assert_false(conn->ack_due || conn->is_held || conn->is_closing);
            assert_int_equal(conn->tx_log->incarnation.number,
                             conn_to(1 - r, r, k)->tx_log->incarnation.number);
        }
}

static void begin(void)
{
    open_failing_rails(devices, "GASNET_NUM_QPS=2", NULL);
    tk_reconnect_wait = 0;
    memset(&life, 0, sizeof(life));
    life.is_open[0] = life.is_open[1] = true;
    life.qps = fake.qps;
}

/* Unsignaled messages have acknowledgements, too: the first look finds them in flight. */
static void look_until_idle(void)
{
    bool are_idle = false;
    for (int looks = 0; looks < 8 && !are_idle; looks++) {
        logged_until_idle();
        are_idle = true;
        for (uint32_t r = 0; r < ranks; r++)
            if (freeze(r))
                release(r);
            else
                are_idle = false;
    }
    assert_true(are_idle);
}

static void close_and_open(uint32_t asker)
{
    const struct course calm = {
        .asker = asker, .rounds = 5, .fault = {.dies = no_step, .then = no_step}};
    look_until_idle();
    assert_true(live(&calm));
    send_from(1 - asker, 3);
    put_begin();
    put_end();
    assert_nothing_is_left();
}

static unsigned closed, refused;

/* Runs all in one world, so that each finds what the previous one has left. */
static void run(const struct course *c)
{
    send_from(c->asker, 1);
    send_from(1 - c->asker, 2);
    look_until_idle();
    live(c) ? closed++ : refused++;
    unit_listen();
    put_end();
    unit_heard();
    send_from(0, 3);
    send_from(1, 3);
    assert_nothing_is_left();
    close_and_open(c->asker); /* whatever is dead */
    ports_are_back();
    close_and_open(1 - c->asker);
    ports_are_back();
    logged_until_idle();
    close_and_open(c->asker);
    assert_as_new();
}

static void every_death_of(struct course *c)
{
    struct fault *f = &c->fault;
    for (f->dies = 0; f->dies <= steps; f->dies++)
        for (f->then = f->dies; f->then <= no_step; f->then++)
            for (unsigned which = 0; which < 8; which++) {
                f->rank = which & 1;
                f->rail = which >> 1 & 1;
                f->comes_back = which >> 2;
                run(c);
            }
}

static void every_death_ends_well(void **state)
{
    closed = refused = 0;
    for (unsigned how = 0; how < 12; how++) {
        struct course c = {.asker = how & 1,
                           .rounds = how & 2 ? 5 : 0,
                           .is_early = how >> 2 == 1,
                           .is_withdrawn = how >> 2 == 2};
        begin();
        every_death_of(&c);
        world_close();
    }
    assert_true(closed > 1000 && refused > 1000);
}

static void (*deliver_only)(struct tk_arrival *arrival);
static bool freezes_in_handler;

static void deliver_and_freeze(struct tk_arrival *arrival)
{
    deliver_only(arrival);
    if (!freezes_in_handler)
        return;
    freezes_in_handler = false;
    assert_true(tk_pair_freeze(conns()));
}

/* The handler ends when nothing can be sent any more. Its credit returns without the ACK, which
 * found no space and must not be due when another connection is primary. */
static void an_ack_that_is_due_goes_with_the_connection(void **state)
{
    begin();
    deliver_only = tk_deliver;
    tk_deliver = deliver_and_freeze;
    unit_listen();
    port_dies(0, 1);
    unit_heard();
    for (int i = 0; i < tk_verbs.slack; i++) {
        look_until_idle();
        send_from(0, 1);
    }
    look_until_idle();
    assert_int_equal(conn_to(1, 0, 0)->credits_to_return, tk_verbs.slack);
    freezes_in_handler = true;
    send_from(0, 1);
    all_poll(2);
    assert_true(conn_to(1, 0, 0)->ack_due);
    if (!freeze(0)) { /* its message is under way */
        all_poll(2);
        assert_true(freeze(0));
    }
    life.asker = 0;
    life.is_agreed = is_balanced();
    assert_true(life.is_agreed);
    fake.ports[1][1].attr.state = IBV_PORT_ACTIVE;
    for (enum step step = SHUT; step < steps; step++)
        take_step(step);
    assert_nothing_is_left();
    close_and_open(1);
    assert_as_new();
    world_close();
}

/* Another thread runs a long handler, and earlier messages of the same poll are not acknowledged
 * yet when the connection is closed: no ACK may be due on a closed connection. */
static void what_a_batch_holds_back_ends_with_the_connection(void **state)
{
    struct tk_ack_batch batch;
    begin();
    unit_listen();
    port_dies(0, 1);
    unit_heard();
    world_be(1);
    tk_verbs.slack = 1;       /* less than a batch may hold back */
    tk_verbs.batch_slack = 3; /* with shared queues there is no batch */
    world_be(0);
    tk_ack_batch_begin(&batch);
    for (int i = 0; i < 2; i++) {
        look_until_idle();
        send_from(0, 1);
    }
    look_until_idle();
    assert_int_equal(conn_to(1, 0, 0)->credits_to_return, 2);
    life.asker = 0;
    life.is_agreed = freeze(0) && freeze(1) && is_balanced();
    assert_true(life.is_agreed);
    fake.ports[1][1].attr.state = IBV_PORT_ACTIVE;
    for (enum step step = SHUT; step <= FOLLOW; step++)
        take_step(step);
    world_be(1);
    tk_ack_batch_end(&batch);
    assert_int_equal(tk_counter_read(&tk_verbs.pending_work), 0);
    for (enum step step = OPEN; step < steps; step++)
        take_step(step);
    assert_nothing_is_left();
    assert_as_new();
    world_close();
}

/* The error of an unsignaled message in the hands of a thread, which has just found that the
 * connection's incarnation is that of the error. */
static void error_in_hand(void)
{
    const struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};
    for (uint32_t k = 0; k < devices; k++) {
        struct tk_tx *quiet = (struct tk_tx *)(uintptr_t)conns()[k].unsignaled_wr.wr_id;
        assert_true(tk_failover(quiet, &wc));
        assert_int_equal(tk_counter_read(&conns()[k].broken), 0);
    }
}

/* Also while their next queue pairs are made, when they seem live and there is no other. */
static void errors_that_a_thread_holds_while_all_are_closed_and_opened_are_of_none(void **state)
{
    begin();
    look_until_idle();
    life.asker = 0;
    life.is_agreed = freeze(0) && freeze(1) && is_balanced();
    assert_true(life.is_agreed);
    for (enum step step = SHUT; step <= FOLLOW; step++)
        take_step(step);
    world_be(0);
    error_in_hand();
    fake.before_create_qp = error_in_hand;
    for (enum step step = OPEN; step <= ANSWER; step++)
        take_step(step);
    fake.before_create_qp = NULL;
    world_be(1);
    error_in_hand();
    for (enum step step = USE; step < steps; step++)
        take_step(step);
    assert_nothing_is_left();
    assert_as_new();
    world_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_death_ends_well),
    cmocka_unit_test(errors_that_a_thread_holds_while_all_are_closed_and_opened_are_of_none),
    cmocka_unit_test(an_ack_that_is_due_goes_with_the_connection),
    cmocka_unit_test(what_a_batch_holds_back_ends_with_the_connection),
};

UNIT_MAIN(tests)
