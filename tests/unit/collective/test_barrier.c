/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The barrier, with 1 to 12 ranks, each a process, that share memory in groups of 1 to 9. This test
 * is their network: it decides which rank starts, which polls, whose sends are refused and which
 * message arrives next, at random from a seed. Checked at every step: no rank leaves a barrier that
 * some rank has not entered, barriers end in order, and no more messages are in flight than
 * leaders.h promises. Checked at the end: all of them end. */
#include "config.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective/barrier.h"
#include "collective/nbrhd.h"
#include "fake_job.h"
#include "message/message.h"
#include "progress/progress.h"
#include "topology/leaders.h"
#include "transport/neighbour.h"
#include "unit.h"

enum {
    ranks_max = 12,
    steps = 1500,
    ahead_max = 5, /* barriers that a rank starts beyond those it saw end */
    sent_max = 64,
    in_flight_max = 4096,
    ops_max = 4096
};

enum act { START, POLL, DELIVER, STOP };

struct order {
    enum act act;
    unsigned round;  /* DELIVER */
    unsigned refuse; /* this many sends return TK_BUSY */
};

struct outcome {
    unsigned done; /* barriers that have ended so far */
    bool in_order;
    unsigned sent;
    struct {
        uint32_t to;
        unsigned round;
    } message[sent_max];
};

/* ---- a rank */

static struct outcome outcome;
static unsigned refusals;
static struct tk_op ops[ops_max];
static unsigned started_here;

static enum tk_status take_from_rank(struct tk_peer *to, struct tk_outgoing *m)
{
    if (refusals > 0) {
        refusals--;
        return TK_BUSY;
    }
    if (m->head->handler != TK_HANDLER_BARRIER || m->head->kind != TK_BOUNDED ||
        outcome.sent == sent_max)
        _exit(1);
    outcome.message[outcome.sent].to = to->rank;
    outcome.message[outcome.sent++].round = *(const unsigned *)(m->head + 1);
    return TK_OK;
}

static bool nothing(void)
{
    return false;
}

static bool is_on_demand;

static bool is_connected(uint32_t rank)
{
    (void)rank;
    return !is_on_demand;
}

static void take_message(unsigned round)
{
    struct {
        struct tk_message_head head;
        int32_t round;
    } message = {.head = {.handler = TK_HANDLER_BARRIER, .nargs = 1}, .round = (int32_t)round};
    struct tk_arrival arrival = {.peer = tk_peer(0), .head = &message.head};
    tk_deliver(&arrival);
}

static void obey(const struct order *order)
{
    outcome.sent = 0;
    refusals = order->refuse;
    if (order->act == START) {
        tk_op_init(&ops[started_here]);
        tk_barrier_start(&ops[started_here++]);
    } else if (order->act == DELIVER) {
        take_message(order->round);
    } else {
        tk_poll();
    }
    while (outcome.done < started_here && tk_op_done(&ops[outcome.done]))
        outcome.done++;
    outcome.in_order = true;
    for (unsigned i = outcome.done; i < started_here; i++)
        outcome.in_order &= !tk_op_done(&ops[i]);
}

static struct tk_nbrhd_page *pages; /* by rank; seen by all */

void *tk_neighbour_flags(uint32_t neighbour)
{
    return &pages[tk_topology.nbrhd_ranks[neighbour]];
}

/* Nobody sleeps here. */
void tk_neighbour_wake(uint32_t rank)
{
    (void)rank;
}

/* A host whose ranks share memory in groups of `most`. */
static void cut_host(uint32_t rank, uint32_t size, uint32_t most)
{
    static uint32_t all[ranks_max], nbrhd_of[ranks_max];
    struct tk_topology *t = &tk_topology;
    for (uint32_t r = 0; r < size; r++) {
        all[r] = r;
        nbrhd_of[r] = r / most;
    }
    t->nbrhd_of = nbrhd_of;
    t->nbrhds = (size + most - 1) / most;
    t->my_nbrhd = rank / most;
    t->nbrhd_rank = rank % most;
    t->nbrhd_ranks = &all[rank - t->nbrhd_rank];
    t->nbrhd_size = (uint32_t)tk_min(most, size - (rank - t->nbrhd_rank));
}

static void open_rank(uint32_t rank, uint32_t size, uint32_t most,
                      const struct tk_transport *network)
{
    fake_job_open(size);
    tk_peers.me = rank;
    for (uint32_t r = 0; r < size; r++)
        tk_peer(r)->transport = network;
    tk_progress_use(network);
    cut_host(rank, size, most);
    tk_message_open();
    tk_barrier_open();
    if (tk_barrier_connect() != TK_OK)
        _exit(1);
}

static void be_rank(uint32_t rank, uint32_t size, uint32_t most, int way)
{
    static const struct tk_transport_demand demand = {.is_connected = is_connected};
    static const struct tk_transport network = {.am.send = take_from_rank,
                                                .poll = nothing,
                                                .reap = nothing,
                                                .reap_in_handler = nothing,
                                                .demand = &demand};
    struct order order;
    open_rank(rank, size, most, &network);
    outcome.in_order = true;
    while (recv(way, &order, sizeof(order), 0) == sizeof(order) && order.act != STOP) {
        obey(&order);
        if (write(way, &outcome, sizeof(outcome)) != sizeof(outcome))
            _exit(1);
    }
    _exit(0);
}

/* ---- the network */

static struct unit_random dice;
static uint32_t size, most; /* in a neighbourhood */
static int ways[ranks_max];
static pid_t pids[ranks_max];
static unsigned started[ranks_max], done[ranks_max];
static bool met[ranks_max][ranks_max]; /* ranks that exchanged a message with each other */
static unsigned in_flight;
static struct {
    uint32_t to;
    unsigned round;
} flying[in_flight_max];

static void begin(uint32_t ranks, uint32_t in_nbrhd)
{
    size = ranks;
    most = in_nbrhd;
    pages = mmap(NULL, size * sizeof(*pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    assert_true(pages != MAP_FAILED);
    for (uint32_t r = 0; r < size; r++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        started[r] = done[r] = 0;
        fflush(NULL);
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r] == 0) {
            close(pair[0]);
            be_rank(r, size, most, pair[1]);
        }
        close(pair[1]);
        ways[r] = pair[0];
    }
    in_flight = 0;
    memset(met, 0, sizeof(met));
}

static void end(void)
{
    const struct order stop = {.act = STOP};
    for (uint32_t r = 0; r < size; r++) {
        int status;
        assert_int_equal(write(ways[r], &stop, sizeof(stop)), sizeof(stop));
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        assert_int_equal(status, 0);
        close(ways[r]);
    }
    munmap(pages, size * sizeof(*pages));
}

/* The property of a barrier. */
static void check(void)
{
    unsigned least = started[0];
    for (uint32_t r = 1; r < size; r++)
        least = started[r] < least ? started[r] : least;
    for (uint32_t r = 0; r < size; r++)
        if (done[r] > least)
            fail_msg("rank %u of %u left barrier %u, which somebody has not entered", r, size,
                     done[r] - 1);
}

static bool is_of_tree(unsigned round)
{
    return is_on_demand && size > tk_leaders_without_tree && round < tk_leaders_tree_steps;
}

/* Receivers have as many buffers, and messages of barriers take no credits. */
static void check_bound(uint32_t to)
{
    unsigned of_round[tk_leaders_steps_max] = {0}, all = 0;
    for (unsigned i = 0; i < in_flight; i++)
        if (flying[i].to == to) {
            all++;
            of_round[flying[i].round]++;
        }
    for (unsigned round = 0; round < tk_leaders_steps_max; round++)
        assert_true(of_round[round] <= (is_of_tree(round) ? 1 : 2) * tk_leaders_ahead);
    assert_true((int)all <= tk_leaders_messages_max(size));
}

static void tell(uint32_t rank, struct order order)
{
    struct outcome o;
    assert_int_equal(write(ways[rank], &order, sizeof(order)), sizeof(order));
    assert_int_equal(recv(ways[rank], &o, sizeof(o), 0), sizeof(o));
    assert_true(o.in_order);
    done[rank] = o.done;
    for (unsigned i = 0; i < o.sent; i++) {
        assert_true(in_flight < in_flight_max && o.message[i].to < size);
        met[rank][o.message[i].to] = met[o.message[i].to][rank] = true;
        flying[in_flight].to = o.message[i].to;
        flying[in_flight++].round = o.message[i].round;
    }
    for (unsigned i = 0; i < o.sent; i++)
        check_bound(o.message[i].to);
    check();
}

static void deliver_any(void)
{
    if (in_flight == 0)
        return;
    unsigned which = unit_below(&dice, in_flight);
    uint32_t to = flying[which].to;
    unsigned round = flying[which].round;
    flying[which] = flying[--in_flight];
    tell(to, (struct order){.act = DELIVER, .round = round});
}

static void start_one(uint32_t rank, unsigned refuse)
{
    if (started[rank] >= done[rank] + ahead_max || started[rank] == ops_max)
        return;
    started[rank]++;
    tell(rank, (struct order){.act = START, .refuse = refuse});
}

static void one_step(void)
{
    uint32_t rank = unit_below(&dice, size);
    unsigned refuse = unit_below(&dice, 4) ? 0 : unit_below(&dice, 3);
    switch (unit_below(&dice, 6)) {
    case 0:
        start_one(rank, refuse);
        break;
    case 1:
    case 2:
        tell(rank, (struct order){.act = POLL, .refuse = refuse});
        break;
    default:
        deliver_any();
    }
}

static unsigned most_started(void)
{
    unsigned result = 0;
    for (uint32_t r = 0; r < size; r++)
        result = started[r] > result ? started[r] : result;
    return result;
}

/* All ranks enter as many barriers as the rank that entered most; then all barriers end without
 * further calls. */
static void let_all_end(void)
{
    unsigned most = most_started(), turns = 0;
    bool open = true;
    while (open) {
        open = false;
        assert_true(turns++ < 100000);
        for (uint32_t r = 0; r < size; r++) {
            if (started[r] < most)
                start_one(r, 0);
            tell(r, (struct order){.act = POLL});
            open |= done[r] < most;
        }
        deliver_any();
    }
    while (in_flight > 0)
        deliver_any();
}

static void run(uint32_t ranks, uint32_t in_nbrhd)
{
    dice = unit_random(9 * in_nbrhd + ranks);
    begin(ranks, in_nbrhd);
    for (int i = 0; i < steps; i++)
        one_step();
    let_all_end();
    assert_true(done[0] > 0);
    end();
}

static void over_the_network_no_rank_leaves_before_all_have_entered(void **state)
{
    for (uint32_t ranks = 1; ranks <= 9; ranks++)
        run(ranks, 1);
}

static unsigned most_met(void)
{
    unsigned result = 0;
    for (uint32_t r = 0; r < size; r++) {
        unsigned count = 0;
        for (uint32_t other = 0; other < size; other++)
            count += met[r][other];
        result = count > result ? count : result;
    }
    return result;
}

/* Ranks that are connected on first use are connected to few at first, and to more if there are
 * many barriers. */
static void many_over_the_network_go_by_a_tree_at_first(void **state)
{
    is_on_demand = true;
    for (uint32_t ranks = 9; ranks <= ranks_max; ranks += 3) {
        dice = unit_random(ranks);
        begin(ranks, 1);
        while (most_started() < tk_leaders_few)
            one_step();
        assert_int_equal(most_met(), 3);
        for (int i = 0; i < steps; i++)
            one_step();
        let_all_end();
        assert_true(done[0] > tk_leaders_few);
        assert_true(most_met() > 4);
        end();
    }
    is_on_demand = false;
}

static void in_shared_memory_no_rank_leaves_before_all_have_entered(void **state)
{
    for (uint32_t ranks = 2; ranks <= 9; ranks++)
        run(ranks, 9);
}

static void mixed_no_rank_leaves_before_all_have_entered(void **state)
{
    for (uint32_t ranks = 3; ranks <= 9; ranks++)
        for (uint32_t in_nbrhd = 2; in_nbrhd < 5 && in_nbrhd < ranks; in_nbrhd++)
            run(ranks, in_nbrhd);
}

static void hold_up(uint32_t in_nbrhd, uint32_t late)
{
    dice = unit_random(late);
    begin(5, in_nbrhd);
    for (uint32_t r = 0; r < size; r++)
        if (r != late)
            start_one(r, 0);
    for (int i = 0; i < 200; i++) {
        deliver_any();
        tell((uint32_t)i % size, (struct order){.act = POLL});
    }
    for (uint32_t r = 0; r < size; r++)
        assert_int_equal(done[r], 0);
    let_all_end();
    end();
}

static void one_rank_that_comes_last_holds_all_up(void **state)
{
    for (uint32_t in_nbrhd = 1; in_nbrhd <= 5; in_nbrhd++)
        for (uint32_t late = 0; late < 5; late++)
            hold_up(in_nbrhd, late);
}

static void alone_it_is_over_at_once(void **state)
{
    begin(1, 1);
    start_one(0, 0);
    assert_int_equal(done[0], 1);
    assert_int_equal(in_flight, 0);
    end();
}

static void deliver_round_9(void *rank)
{
    open_rank(*(uint32_t *)rank, 8, 2, &fake_transport);
    take_message(9);
}

static void deliver_round_0(void *rank)
{
    open_rank(*(uint32_t *)rank, 8, 2, &fake_transport);
    take_message(0);
}

/* Four leaders, the first of every two ranks; the others take part in no round. */
static void a_round_that_does_not_exist_is_refused(void **state)
{
    uint32_t leader = 2, other = 3;
    begin(8, 2);
    unit_assert_panic(deliver_round_9, &leader,
                      "rank 0 (elsewhere, pid 1000) is in barrier step 9 of 2");
    unit_assert_panic(deliver_round_0, &other,
                      "rank 0 (elsewhere, pid 1000) is in barrier step 0 of 0");
    end();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(alone_it_is_over_at_once),
    cmocka_unit_test(over_the_network_no_rank_leaves_before_all_have_entered),
    cmocka_unit_test(many_over_the_network_go_by_a_tree_at_first),
    cmocka_unit_test(in_shared_memory_no_rank_leaves_before_all_have_entered),
    cmocka_unit_test(mixed_no_rank_leaves_before_all_have_entered),
    cmocka_unit_test(one_rank_that_comes_last_holds_all_up),
    cmocka_unit_test(a_round_that_does_not_exist_is_refused),
};

UNIT_MAIN(tests)
