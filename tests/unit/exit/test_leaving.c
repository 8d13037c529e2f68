/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Agreement on a code and election of the rank that notifies the others, together: up to 512 hosts
 * of one or more ranks, all in this process, with a fake clock and a fake network, which refuses,
 * delays and reorders at random from a seed. Ranks leave, only poll, or are silent. Checked: no
 * rank is done before all have arrived, all that are done have the largest code, and every rank
 * that polls is notified within the bound. The sources are included, because their state is swapped
 * when the test becomes another rank. */
#include "config.h"

#include <limits.h>

#include "exit/agree.c"
#include "exit/elect.c"

#include "unit.h"

enum {
    ranks_most = 1024,
    in_flight_most = 1 << 16,
    ms = 1000000,
    grace_ms = 100, /* as leave.c has it */
    never = 1 << 30
};

/* ---- a rank */

/* All that both files keep. */
#define EACH(DO)     DO(agreement) DO(election)
#define MEMBER(name) __typeof__(name) name;
#define KEEP(name)   memcpy(&m->name, &name, sizeof(name));
#define TAKE(name)   memcpy(&name, &m->name, sizeof(name));

struct mind {
    EACH(MEMBER)
};

static struct {
    struct mind mind;
    int comes_at, silent_until; /* ms; never: does not leave by itself, does not look at all */
    int code, left_at;          /* -1: does not leave yet */
    bool is_done;
    unsigned told_to_agree; /* messages of the reduction that it has sent */
} ranks[ranks_most];

static struct tk_peer peers[ranks_most];
static uint32_t nbrhd_of[ranks_most], numbers[ranks_most];
static char pages[ranks_most][tk_flags_size] __attribute__((aligned(tk_flags_size)));
static uint32_t size, per_host, current = never;
static int now_ms;
static struct unit_random dice;

struct tk_peers tk_peers;
tk_counter_t tk_deferred_work_wanted;
static unsigned wakes[ranks_most];
static bool (*is_due)(void);

static void be(uint32_t rank)
{
    if (current < ranks_most) {
        struct mind *m = &ranks[current].mind;
        EACH(KEEP)
    }
    struct mind *m = &ranks[rank].mind;
    EACH(TAKE)
    current = rank;
    tk_peers.me = rank;
    tk_topology.my_nbrhd = rank / per_host;
    tk_topology.nbrhd_rank = rank % per_host;
    tk_topology.nbrhd_ranks = &numbers[rank - tk_topology.nbrhd_rank];
}

void *tk_neighbour_flags(uint32_t neighbour)
{
    return pages[tk_topology.nbrhd_ranks[neighbour]];
}

/* Ranks step in turn here, and none sleeps. */
void tk_neighbour_wake(uint32_t rank)
{
    assert_int_equal(rank / per_host, tk_topology.my_nbrhd);
    wakes[rank]++;
}

static bool on_demand; /* connections, and so there is a tree */

bool tk_transports_connect_later(void)
{
    return on_demand;
}

bool tk_is_progress_thread(void)
{
    return false;
}

void tk_progress_look(bool (*look)(void))
{
    is_due = look;
}

/* ---- the network */

struct flight {
    uint32_t from, to;
    enum tk_internal_handler handler;
    int32_t args[2];
    int due_ms;
};

static struct flight flights[in_flight_most];
static unsigned flying, requests_sent[ranks_most], leaders_seen, questions;
static bool has_notified[ranks_most][ranks_most];
static int slowest_ms, refusals_of_ten;
static tk_internal_fn handlers[tk_internal_handlers];

void tk_internal_register(enum tk_internal_handler index, tk_internal_fn fn)
{
    handlers[index] = fn;
}

enum tk_status tk_internal_send(struct tk_peer *peer, enum tk_message_kind kind,
                                enum tk_internal_handler handler, unsigned nargs,
                                const int32_t *args)
{
    if ((int)unit_below(&dice, 10) < refusals_of_ten)
        return TK_BUSY;
    assert_true(flying < in_flight_most);
    struct flight *f = &flights[flying++];
    *f = (struct flight){.from = tk_peers.me, .to = peer->rank, .handler = handler};
    memcpy(f->args, args, nargs * sizeof(*args));
    f->due_ms = now_ms + 1 + (int)unit_below(&dice, (unsigned)slowest_ms);
    ranks[tk_peers.me].told_to_agree += handler == TK_HANDLER_AGREE;
    questions += handler == TK_HANDLER_ELECT && args[0] == TK_ELECT_ASK;
    if (handler == TK_HANDLER_EXIT) {
        assert_int_equal(kind, TK_CONTROL);
        assert_false(has_notified[tk_peers.me][peer->rank]); /* there is one receive buffer */
        has_notified[tk_peers.me][peer->rank] = true;
        leaders_seen += requests_sent[tk_peers.me]++ == 0;
    }
    return TK_OK;
}

static bool looks(uint32_t rank)
{
    return now_ms >= ranks[rank].silent_until;
}

/* Those that are due, in any order, to ranks that look. */
static void deliver_to(uint32_t rank)
{
    for (unsigned i = 0; i < flying;) {
        struct flight f = flights[i];
        if (f.to != rank || f.due_ms > now_ms) {
            i++;
            continue;
        }
        flights[i] = flights[--flying];
        handlers[f.handler](&peers[f.from], f.args);
    }
}

/* ---- what happens */

static void close_world(void)
{
    if (current != never)
        be(current);
    for (uint32_t r = 0; r < ranks_most; r++) {
        free(ranks[r].mind.election.notified);
        free(ranks[r].mind.election.asked);
    }
    memset(ranks, 0, sizeof(ranks));
    current = never;
}

static void open_world(uint32_t hosts, uint32_t ranks_of_host, uint64_t seed)
{
    size = hosts * ranks_of_host, per_host = ranks_of_host;
    dice = unit_random(seed);
    tk_counter_set(&tk_deferred_work_wanted, 0);
    now_ms = 0, flying = 0, leaders_seen = 0, questions = 0, slowest_ms = 3, refusals_of_ten = 2;
    close_world();
    memset(pages, 0, sizeof(pages));
    memset(requests_sent, 0, sizeof(requests_sent));
    memset(has_notified, 0, sizeof(has_notified));
    memset(wakes, 0, sizeof(wakes));
    for (uint32_t r = 0; r < size; r++) {
        numbers[r] = r, nbrhd_of[r] = r / per_host;
        peers[r] = (struct tk_peer){.rank = r};
        ranks[r].comes_at = (int)unit_below(&dice, grace_ms / 2);
        ranks[r].code = (int)unit_below(&dice, 200);
        ranks[r].left_at = -1;
    }
    tk_peers.at = peers;
    tk_peers.size = size;
    tk_topology.nbrhds = hosts;
    tk_topology.nbrhd_size = per_host;
    tk_topology.nbrhd_of = nbrhd_of;
    for (uint32_t r = 0; r < size; r++) {
        be(r);
        tk_agree_open();
        tk_elect_open();
        tk_agree_connect();
        tk_elect_connect();
    }
}

static void begin_with(uint32_t rank, int code)
{
    ranks[rank].left_at = now_ms;
    ranks[rank].code = code;
    tk_agree_begin(code);
}

static int last_to_come(void)
{
    int last = 0;
    for (uint32_t r = 0; r < size; r++)
        last = ranks[r].left_at < 0 ? never : (int)tk_max(last, ranks[r].left_at);
    return last;
}

/* As serve() of leave.c. */
static void leave(uint32_t rank)
{
    int asks_at = ranks[rank].left_at + grace_ms;
    if (!tk_agree_step()) {
        uint64_t waited = (uint64_t)(now_ms - asks_at) * ms;
        if (now_ms > asks_at && tk_elect_step(waited, grace_ms * ms) == TK_ROLE_LEADER)
            tk_elect_notify(tk_agree_code(), waited, grace_ms * ms);
        return;
    }
    for (uint32_t r = 0; r < size; r++)
        assert_true(ranks[r].left_at >= 0); /* no rank is done before all have arrived */
    ranks[rank].is_done = true;
}

static void act(uint32_t rank)
{
    be(rank);
    deliver_to(rank);
    tk_elect_serve();
    if (ranks[rank].left_at < 0 && now_ms >= ranks[rank].comes_at)
        begin_with(rank, ranks[rank].code);
    if (ranks[rank].left_at < 0 && tk_elect_requested() >= 0)
        begin_with(rank, tk_elect_requested());
    if (ranks[rank].left_at >= 0)
        leave(rank);
}

static void live_until(int end_ms)
{
    for (; now_ms < end_ms; now_ms++) {
        uint32_t first = unit_below(&dice, size);
        for (uint32_t i = 0; i < size; i++)
            if (looks((first + i) % size))
                act((first + i) % size);
    }
}

/* ---- what must be true */

static int largest_code(void)
{
    int largest = 0;
    for (uint32_t r = 0; r < size; r++)
        largest = (int)tk_max(largest, ranks[r].code);
    return largest;
}

static void assert_all_done(int code)
{
    for (uint32_t r = 0; r < size; r++) {
        assert_true(ranks[r].is_done);
        be(r);
        assert_int_equal(tk_agree_code(), code);
    }
}

static void assert_nobody_done(void)
{
    for (uint32_t r = 0; r < size; r++)
        assert_false(ranks[r].is_done);
}

/* All ranks that poll leave, and the one leader has notified each other rank once. */
static void assert_told_by(uint32_t who)
{
    for (uint32_t r = 0; r < size; r++) {
        assert_int_equal(requests_sent[r], r == who ? size - 1 : 0);
        if (looks(r))
            assert_true(ranks[r].left_at >= 0);
    }
}

/* ---- cases */

static const uint32_t hosts[] = {1, 2, 3, 8, 64};
enum { shapes = sizeof(hosts) / sizeof(hosts[0]) };

/* Dissemination: each first rank sends ceil(log2 hosts) messages, others none; and no rank asks who
 * leads. */
static void all_come(uint32_t count, uint32_t of_host, uint64_t seed)
{
    unsigned rounds = 0;
    open_world(count, of_host, seed);
    int largest = largest_code();
    live_until(grace_ms);
    assert_all_done(largest);
    while (1u << rounds < count)
        rounds++;
    for (uint32_t r = 0; r < size; r++)
        assert_int_equal(ranks[r].told_to_agree, r % of_host ? 0 : rounds);
    assert_int_equal(leaders_seen, 0);
    assert_true(now_ms >= last_to_come());
}

static void all_that_come_have_the_largest_code(void **unused)
{
    for (int s = 0; s < shapes; s++)
        for (uint32_t of_host = 1; of_host <= 3; of_host++)
            for (uint64_t seed = 1; seed <= 10; seed++)
                all_come(hosts[s], of_host, seed);
    all_come(2, 12, 1); /* a tree of neighbours that is two levels deep */
}

/* Ranks of one host that leave sleep, except for one step when they arrive and one after each ring.
 * At the other steps a check before the sleep would find nothing new. */
static void sleepers_are_woken(uint32_t of_host, uint64_t seed)
{
    unsigned seen[ranks_most];
    open_world(1, of_host, seed);
    for (uint32_t r = 0; r < size; r++)
        seen[r] = UINT_MAX;
    for (now_ms = 0; now_ms < grace_ms; now_ms++)
        for (uint32_t r = 0; r < size; r++) {
            if (now_ms < ranks[r].comes_at || wakes[r] == seen[r])
                continue;
            seen[r] = wakes[r];
            act(r);
            assert_false(is_due());
        }
    assert_all_done(largest_code());
}

static void a_rank_that_sleeps_while_it_leaves_is_woken(void **unused)
{
    static const uint32_t sizes[] = {2, 3, 9, 10, 30, 64};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint64_t seed = 1; seed <= 10; seed++)
            sleepers_are_woken(sizes[i], seed);
}

/* The flag that is waited for is what a look before the sleep finds. */
static void a_rank_does_not_fall_asleep_over_a_flag(void **unused)
{
    open_world(1, 2, 1);
    be(0);
    begin_with(0, 3);
    assert_false(tk_agree_step());
    assert_false(is_due());
    be(1);
    begin_with(1, 4);
    assert_false(tk_agree_step());
    be(0);
    assert_true(is_due());
    assert_true(tk_agree_step());
    assert_false(is_due());
    be(1);
    assert_true(is_due());
    assert_true(tk_agree_step());
}

/* One rank, any in any shape, never polls: none is done, but each of the others leaves. */
static void one_is_silent(uint32_t count, uint32_t of_host, uint32_t who, uint32_t leads)
{
    open_world(count, of_host, 1 + who);
    for (uint32_t r = 0; r < size; r++)
        ranks[r].comes_at = never;
    ranks[who].silent_until = never;
    ranks[leads].comes_at = 5;
    live_until(5 + grace_ms + 400); /* all turns are over by then */
    assert_nobody_done();
    assert_int_equal(leaders_seen, 1);
    assert_told_by(leads);
}

static void a_silent_member_does_not_keep_others_from_hearing(void **unused)
{
    for (int s = 1; s < shapes; s++) {
        uint32_t last = hosts[s] - 1;
        one_is_silent(hosts[s], 1, last, 0);
        one_is_silent(hosts[s], 1, 0, last);
        one_is_silent(hosts[s], 2, 1, 2 * last);
        if (last > 1)
            one_is_silent(hosts[s], 1, 1, last);
    }
}

/* Its turns are 3 ms apart with 64 ranks: the lowest is heard before the next one's if messages are
 * as fast as that. */
static void without_rank_0_the_lowest_that_leaves_leads(void **unused)
{
    for (int s = 2; s < shapes; s++) {
        open_world(hosts[s], 1, 7);
        slowest_ms = 1, refusals_of_ten = 0;
        ranks[0].silent_until = never;
        for (uint32_t r = 0; r < size; r++)
            ranks[r].comes_at = r < size / 2 ? never : 5;
        live_until(5 + grace_ms + 400);
        assert_nobody_done();
        assert_told_by(size / 2);
    }
}

/* It has slept through all of it, and finds questions, requests and codes when it looks again. */
static void a_late_rank_ends_with_the_others(void **unused)
{
    for (int s = 1; s < shapes; s++)
        for (uint32_t who = 0; who < hosts[s]; who += hosts[s] - 1) {
            open_world(hosts[s], 1, 3 + who);
            ranks[who].silent_until = 2000;
            ranks[who].comes_at = never;
            ranks[who].code = 0;
            int largest = largest_code();
            live_until(1999);
            assert_nobody_done();
            live_until(2300);
            assert_all_done(largest);
        }
}

/* Each believes that it is the first. Rank 0 polls and chooses, and both codes are known in the
 * end. */
static void of_two_that_ask_at_once_one_leads(void **unused)
{
    for (int s = 2; s < shapes; s++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            open_world(hosts[s], 1, seed);
            for (uint32_t r = 0; r < size; r++)
                ranks[r].comes_at = never;
            uint32_t a = 1 + unit_below(&dice, size - 1), b = a == 1 ? size - 1 : a - 1;
            ranks[a].comes_at = ranks[b].comes_at = 5;
            int larger = (int)tk_max(ranks[a].code, ranks[b].code);
            live_until(5 + grace_ms + 200);
            assert_int_equal(leaders_seen, 1);
            assert_all_done(larger);
        }
}

/* Messages so slow that several ranks lead before they hear of each other, which is safe. */
static void several_leaders_end_it_as_well(void **unused)
{
    open_world(64, 1, 5);
    slowest_ms = 150;
    ranks[0].silent_until = 1000;
    ranks[0].comes_at = never;
    ranks[0].code = 0;
    int largest = largest_code();
    live_until(4000);
    assert_true(leaders_seen > 1);
    assert_all_done(largest);
}

/* First ranks that are about to enter the fence add the code for their neighbours; those that are
 * in it already can't. */
static void assert_carried(enum tk_exit_phase phase, uint32_t count, uint32_t of_host)
{
    atomic_store(&tk_exit_state.phase, phase);
    open_world(count, of_host, 11);
    int largest = largest_code();
    live_until(grace_ms);
    assert_all_done(largest);
    for (uint32_t r = 0; r < size; r++) {
        be(r);
        assert_int_equal(tk_agree_is_carried(), phase == TK_EXIT_AGREE && r % of_host != 0);
    }
    atomic_store(&tk_exit_state.phase, TK_EXIT_RUNNING);
}

static void first_ranks_carry_the_code_unless_they_are_in_the_fence(void **unused)
{
    for (uint32_t of_host = 1; of_host <= 12; of_host += 11) {
        assert_carried(TK_EXIT_AGREE, 3, of_host);
        assert_carried(TK_EXIT_PART, 3, of_host);
        assert_carried(TK_EXIT_HANDED_OVER, 1, of_host);
    }
}

/* ---- with a tree among leaders */

static unsigned requests_of_all(void)
{
    unsigned all = 0;
    for (uint32_t r = 0; r < size; r++)
        all += requests_sent[r];
    return all;
}

/* No rank sends more than its tree and its neighbourhood need: what one leader sent alone before.
 */
static void assert_none_sends_many(void)
{
    for (uint32_t r = 0; r < size; r++) {
        assert_true(requests_sent[r] <= tk_notice_over_tree_max + per_host - 1);
        assert_true(ranks[r].told_to_agree <= tk_notice_over_tree_max);
    }
}

static void one_of_many_leaves(uint32_t count, uint32_t of_host, uint32_t who)
{
    on_demand = true;
    open_world(count, of_host, 1 + who);
    for (uint32_t r = 0; r < size; r++)
        ranks[r].comes_at = r == who ? 5 : never;
    slowest_ms = 1;
    live_until(5 + 3 * grace_ms);
    on_demand = false;
    assert_all_done(ranks[who].code);
    assert_int_equal(questions, who != 0);
    assert_int_equal(requests_of_all(), size - 1);
    assert_none_sends_many();
}

static void notices_travel_along_the_tree(void **unused)
{
    for (uint32_t who = 0; who < 64; who++)
        one_of_many_leaves(64, 1, who);
    for (uint32_t who = 0; who < 48; who++)
        one_of_many_leaves(16, 3, who);
}

/* It asks later than the leader's patience is long. */
static void notices_of_a_rank_deep_in_a_tree_travel_along_it_too(void **unused)
{
    enum { count = 512, of_host = 2 };
    assert_true(tk_elect_pause(tk_elect_depth_of_neighbour(count, of_host - 1), grace_ms * ms) >
                tk_notice_patience(grace_ms * ms));
    one_of_many_leaves(count, of_host, count * of_host - 1);
}

/* All but one leave, and that one polls. Those below it in the tree would ask after it. */
static void one_of_many_works_on(uint32_t count, uint32_t of_host, uint32_t who)
{
    on_demand = true;
    open_world(count, of_host, 1 + who);
    for (uint32_t r = 0; r < size; r++)
        ranks[r].comes_at = r == who ? never : 5;
    ranks[who].code = 0;
    slowest_ms = 1;
    live_until(5 + 3 * grace_ms);
    on_demand = false;
    assert_all_done(largest_code());
    assert_true(questions <= 8); /* a rank of each level, not each rank */
    assert_true(requests_of_all() <= size - 1);
    assert_none_sends_many();
}

static void few_ask_after_a_late_rank(void **unused)
{
    for (uint32_t who = 0; who < 64; who++)
        one_of_many_works_on(64, 1, who);
    for (uint32_t who = 0; who < 48; who++)
        one_of_many_works_on(16, 3, who);
}

/* It does not pass the notice on, so the leader sends it to all after its patience. */
static void a_silent_rank_on_the_way_delays_the_notice_only(void **unused)
{
    for (uint32_t who = 1; who < 16; who++) {
        on_demand = true;
        open_world(16, 2, 1 + who);
        for (uint32_t r = 0; r < size; r++)
            ranks[r].comes_at = r == 0 ? 5 : never;
        ranks[2 * who].silent_until = never;
        live_until(5 + grace_ms + 2 * grace_ms + 100);
        on_demand = false;
        assert_nobody_done();
        for (uint32_t r = 0; r < size; r++)
            assert_true(ranks[r].left_at >= 0 || !looks(r));
    }
}

static void come_late(int32_t what, enum tk_internal_handler handler, uint32_t to)
{
    const int32_t args[2] = {what, 0};
    be(to);
    handlers[handler](&peers[1], args);
}

/* Messages in flight when all had agreed change nothing, and rank 0 still answers. */
static void late_messages_change_nothing(void **unused)
{
    open_world(8, 1, 9);
    int largest = largest_code();
    live_until(grace_ms);
    come_late(TK_ELECT_ASK, TK_HANDLER_ELECT, 0);
    come_late(TK_ELECT_FOLLOW, TK_HANDLER_ELECT, 5);
    come_late(TK_ELECT_LEAD, TK_HANDLER_ELECT, 6);
    come_late(255, TK_HANDLER_EXIT, 7);
    live_until(3 * grace_ms);
    assert_all_done(largest);
    assert_int_equal(leaders_seen, 0);
    assert_int_equal(tk_counter_read(&tk_deferred_work_wanted), 1); /* of the request, for good */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_that_come_have_the_largest_code),
    cmocka_unit_test(a_rank_that_sleeps_while_it_leaves_is_woken),
    cmocka_unit_test(a_rank_does_not_fall_asleep_over_a_flag),
    cmocka_unit_test(a_silent_member_does_not_keep_others_from_hearing),
    cmocka_unit_test(without_rank_0_the_lowest_that_leaves_leads),
    cmocka_unit_test(a_late_rank_ends_with_the_others),
    cmocka_unit_test(of_two_that_ask_at_once_one_leads),
    cmocka_unit_test(several_leaders_end_it_as_well),
    cmocka_unit_test(first_ranks_carry_the_code_unless_they_are_in_the_fence),
    cmocka_unit_test(notices_travel_along_the_tree),
    cmocka_unit_test(notices_of_a_rank_deep_in_a_tree_travel_along_it_too),
    cmocka_unit_test(few_ask_after_a_late_rank),
    cmocka_unit_test(a_silent_rank_on_the_way_delays_the_notice_only),
    cmocka_unit_test(late_messages_change_nothing),
};

UNIT_MAIN(tests)
