/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The named barrier of one rank; this test writes its neighbours' flags: flat, as the root of a
 * tree and as a leaf, with every choice of names and every order of arrival; and invalid flags.
 * Jobs test that ranks agree (tests/job/named_barrier.c). Owns the flags. */
#include "config.h"

#include <unistd.h>

#include "collective/named.h"
#include "collective/nbrhd.h"
#include "fake_job.h"
#include "message/message.h"
#include "progress/progress.h"
#include "transport/neighbour.h"
#include "unit.h"

enum { ranks_max = 5, names = 4 };

/* Kinds as encoded in a flag's word. */
enum { ANYTHING = 1, ONE_NAME, DISAGREEMENT };

/* Each test is a process of its own, since the room starts once in each. */
#define NEED(truth) need((truth), #truth, __LINE__)

static void need(bool truth, const char *what, int line)
{
    if (truth)
        return;
    fprintf(stderr, "line %d: %s\n", line, what);
    _exit(1);
}

static struct tk_nbrhd_page pages[ranks_max];
static uint32_t number; /* of the barrier */

void *tk_neighbour_flags(uint32_t neighbour)
{
    return &pages[neighbour];
}

void tk_neighbour_wake(uint32_t rank)
{
    (void)rank;
}

/* We are `rank` of `size` that share memory and are a job of their own. */
static void open_job(uint32_t rank, uint32_t size)
{
    static uint32_t all[] = {0, 1, 2, 3, 4};
    fake_job_open(size);
    tk_peers.me = rank;
    tk_topology.nbrhds = 1;
    tk_topology.nbrhd_size = size;
    tk_topology.nbrhd_rank = rank;
    tk_topology.nbrhd_ranks = all;
    tk_message_open();
    tk_named_open();
    NEED(tk_named_connect() == TK_OK);
    number = 0;
}

static void set_line(struct tk_nbrhd_line *line, uint32_t count, uint64_t kind, int id)
{
    atomic_store(&line->words[count & 1], kind << 32 | (uint32_t)id);
    atomic_store(&line->count, count);
}

/* What a rank contributes: no name, one of two names, or a mismatch. */
static uint64_t kind_of(unsigned name)
{
    static const uint64_t kinds[names] = {ANYTHING, ONE_NAME, ONE_NAME, DISAGREEMENT};
    return kinds[name];
}

static int id_of(unsigned name)
{
    return name == 1 ? 7 : name == 2 ? -8 : 0;
}

static void come(uint32_t rank, unsigned name)
{
    set_line(&pages[rank].named.up, number, kind_of(name), id_of(name));
}

static bool notify(unsigned name)
{
    static const int flags[names] = {GASNET_BARRIERFLAG_ANONYMOUS, 0, 0,
                                     GASNET_BARRIERFLAG_MISMATCH};
    return tk_named_notify(id_of(name), flags[name]);
}

static bool done(void)
{
    tk_poll();
    return tk_named_done();
}

/* Ends the barrier; its result must be the combination of these contributions. */
static void check_result(const unsigned *all, unsigned count)
{
    unsigned seen[names] = {0};
    int id = 0;
    for (unsigned i = 0; i < count; i++)
        seen[all[i]]++;
    bool differ = seen[3] || (seen[1] && seen[2]);
    NEED(tk_named_end(0, GASNET_BARRIERFLAG_ANONYMOUS) == !differ);
    NEED(tk_named_result(&id) == (!differ && (seen[1] || seen[2])));
    NEED(id == (differ ? 0 : seen[1] ? 7 : seen[2] ? -8 : 0));
}

/* ---- flat: ranks 0 (ours), 1 and 2 */

static void come_in_order(const unsigned *name, const unsigned *order)
{
    number++;
    for (unsigned i = 0; i < 3; i++) {
        if (order[i] == 0)
            NEED(notify(name[0]));
        else
            come(order[i], name[order[i]]);
        if (i < 2 && tk_named_pending())
            NEED(!done());
    }
    NEED(done());
    check_result(name, 3);
}

static void each_name_in_each_order(void *unused)
{
    static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    open_job(0, 3);
    for (unsigned n = 0; n < names * names * names; n++) {
        const unsigned name[] = {n % names, n / names % names, n / names / names};
        for (unsigned o = 0; o < 6; o++)
            come_in_order(name, orders[o]);
    }
}

/* A rank that has seen us arrive may be in the next barrier before we poll. */
static void what_others_said_is_not_lost_when_they_are_a_barrier_ahead(void *unused)
{
    open_job(0, 2);
    for (unsigned n = 0; n < names * names; n++) {
        const unsigned name[] = {n % names, n / names};
        number++;
        come(1, name[1]);
        set_line(&pages[1].named.up, number + 1, ONE_NAME, 99);
        NEED(notify(name[0]));
        NEED(done());
        check_result(name, 2);
    }
}

/* ---- a tree of five */

static void a_root_reports_the_agreed_name(void *unused)
{
    open_job(0, 5);
    for (unsigned n = 0; n < names * names; n++) {
        const unsigned name[] = {n % names, n / names, 0, 0, 0};
        number++;
        NEED(notify(name[0]));
        for (uint32_t r = 4; r > 0; r--) {
            NEED(!done());
            NEED(atomic_load(&pages[0].named.down.count) == (number - 1));
            come(r, name[r]);
        }
        NEED(done());
        check_result(name, 5);
        NEED(atomic_load(&pages[0].named.down.count) == number);
    }
}

static void a_leaf_reports_its_name_and_accepts_the_roots(void *unused)
{
    open_job(3, 5);
    for (unsigned n = 0; n < names * names; n++) {
        const unsigned ours = n % names, all = n / names;
        number++;
        NEED(notify(ours));
        NEED(!done());
        NEED(atomic_load(&pages[3].named.up.count) == number);
        NEED(tk_nbrhd_word(&pages[3].named.up, number) ==
             (kind_of(ours) << 32 | (uint32_t)id_of(ours)));
        set_line(&pages[0].named.down, number, kind_of(all), id_of(all));
        NEED(done());
        check_result(&all, 1);
    }
}

/* ---- invalid input */

static void hear_of_kind(void *kind)
{
    open_job(0, 2);
    set_line(&pages[1].named.up, 1, *(uint64_t *)kind, 5);
    notify(1);
}

static void be_told_of_kind(void *kind)
{
    open_job(4, 5);
    set_line(&pages[0].named.down, 1, *(uint64_t *)kind, 5);
    notify(1);
}

static void names_of_no_kind_are_refused(void **state)
{
    uint64_t none = 0, more = DISAGREEMENT + 1, large = UINT32_MAX;
    unit_assert_panic(hear_of_kind, &none,
                      "rank 1 (elsewhere, pid 1001) came to named barrier 1 with a name of kind 0");
    unit_assert_panic(hear_of_kind, &more, "with a name of kind 4 of 3");
    unit_assert_panic(hear_of_kind, &large, "with a name of kind 4294967295 of 3");
    unit_assert_panic(be_told_of_kind, &none,
                      "rank 0 (elsewhere, pid 1000) came to named barrier 1 with a name of kind 0");
}

#define RUN(fn)                                                                                    \
    static void run_##fn(void **state)                                                             \
    {                                                                                              \
        unit_assert_exit(fn, NULL, 0);                                                             \
    }
RUN(each_name_in_each_order)
RUN(what_others_said_is_not_lost_when_they_are_a_barrier_ahead)
RUN(a_root_reports_the_agreed_name)
RUN(a_leaf_reports_its_name_and_accepts_the_roots)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(run_each_name_in_each_order),
    cmocka_unit_test(run_what_others_said_is_not_lost_when_they_are_a_barrier_ahead),
    cmocka_unit_test(run_a_root_reports_the_agreed_name),
    cmocka_unit_test(run_a_leaf_reports_its_name_and_accepts_the_roots),
    cmocka_unit_test(names_of_no_kind_are_refused),
};

UNIT_MAIN(tests)
