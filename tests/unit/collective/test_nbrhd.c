/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Barriers of neighbours by flags, all in this process: every order in which ranks may arrive,
 * poll, and sleep until a ring, by a search of all states; and larger trees at random. Checked in
 * each state: no rank has left a barrier that some rank has not entered, here or elsewhere. Checked
 * in each final state, where all are asleep: all barriers are complete. Owns the states, and
 * replaces the shared-memory transport. */
#include "config.h"

#include "collective/nbrhd.h"
#include "fake_job.h"
#include "transport/neighbour.h"
#include "unit.h"

enum { ranks_max = 80, barriers_max = 3, states_max = 1 << 20 };

static struct tk_nbrhd nears[ranks_max];
static struct tk_nbrhd_lines lines[ranks_max];
static uint32_t entered[ranks_max];
static bool awake[ranks_max];
static uint32_t size, barriers, elsewhere;
static bool with_others; /* there are other neighbourhoods */
static uint32_t begin;   /* initial value of the counts */

/* ---- the room of shared memory */

void *tk_neighbour_flags(uint32_t neighbour)
{
    (void)neighbour;
    return NULL;
}

void tk_neighbour_wake(uint32_t rank)
{
    awake[rank] = true;
}

static struct tk_nbrhd_lines *lines_of(uint32_t neighbour)
{
    return &lines[neighbour];
}

/* ---- the ranks */

static uint32_t ask_elsewhere(uint32_t count)
{
    return (int32_t)(elsewhere - count) < 0 ? elsewhere : count;
}

static uint32_t only_us(uint32_t count)
{
    return count;
}

static void open_rank(uint32_t rank)
{
    tk_topology.nbrhd_rank = rank;
    assert_int_equal(tk_nbrhd_open(&nears[rank], lines_of), TK_OK);
    nears[rank].over = nears[rank].gathered = begin;
    atomic_store(&lines[rank].up.count, begin);
    atomic_store(&lines[rank].down.count, begin);
    entered[rank] = begin;
    awake[rank] = false;
}

static void open_all(uint32_t ranks, uint32_t how_many, bool others)
{
    static uint32_t numbers[ranks_max];
    fake_job_open(ranks);
    size = ranks;
    barriers = how_many;
    with_others = others;
    elsewhere = begin;
    for (uint32_t r = 0; r < size; r++)
        numbers[r] = r;
    tk_topology.nbrhds = others ? 2 : 1;
    tk_topology.nbrhd_size = size;
    tk_topology.nbrhd_ranks = numbers;
    for (uint32_t r = 0; r < size; r++)
        open_rank(r);
}

/* Possible steps. Only a rank that waits for a barrier polls. */
enum act { COME, LOOK, SLEEP, acts };

static bool may(enum act act, uint32_t rank)
{
    const struct tk_nbrhd *nbrhd = &nears[rank];
    if (act == COME)
        return entered[rank] - begin < barriers;
    if (nbrhd->over == entered[rank] || !awake[rank])
        return false;
    return act == LOOK || !tk_nbrhd_is_due(nbrhd, entered[rank]);
}

static void happen(enum act act, uint32_t rank)
{
    if (act == SLEEP) {
        awake[rank] = false;
        return;
    }
    if (act == COME) {
        entered[rank]++;
        awake[rank] = true;
    }
    tk_nbrhd_step(&nears[rank], entered[rank], with_others ? ask_elsewhere : only_us);
}

/* The other leaders' messages have arrived: the poll that finds them also does its work. */
static bool may_elsewhere(void)
{
    return with_others && elsewhere - begin < barriers;
}

static void come_elsewhere(void)
{
    elsewhere++;
    if (nears[0].over != entered[0])
        happen(LOOK, 0);
}

static void check(void)
{
    uint32_t least = with_others ? elsewhere - begin : barriers;
    for (uint32_t r = 0; r < size; r++)
        least = entered[r] - begin < least ? entered[r] - begin : least;
    for (uint32_t r = 0; r < size; r++)
        if (nears[r].over - begin > least)
            fail_msg("rank %u of %u is behind barrier %u, to which somebody has not come", r, size,
                     nears[r].over - begin);
}

static void check_end(void)
{
    for (uint32_t r = 0; r < size; r++)
        if (nears[r].over - begin != barriers)
            fail_msg("rank %u of %u sleeps for ever behind %u of %u barriers", r, size,
                     nears[r].over - begin, barriers);
}

/* ---- all states */

enum { searched_max = 10, per_rank = 7 };

struct picture {
    uint8_t of[searched_max][per_rank];
    uint8_t elsewhere;
};

static struct picture *pictures;
static uint32_t *table; /* number of a picture + 1, by hash */
static uint32_t known;

static struct picture take_picture(void)
{
    struct picture p = {.elsewhere = (uint8_t)(elsewhere - begin)};
    for (uint32_t r = 0; r < size; r++) {
        const uint8_t of[per_rank] = {(uint8_t)(entered[r] - begin),
                                      (uint8_t)(nears[r].over - begin),
                                      (uint8_t)(nears[r].gathered - begin),
                                      (uint8_t)nears[r].arrived,
                                      (uint8_t)(atomic_load(&lines[r].up.count) - begin),
                                      (uint8_t)(atomic_load(&lines[r].down.count) - begin),
                                      awake[r]};
        memcpy(p.of[r], of, per_rank);
    }
    return p;
}

static void go_back_to(const struct picture *p)
{
    elsewhere = begin + p->elsewhere;
    for (uint32_t r = 0; r < size; r++) {
        const uint8_t *of = p->of[r];
        entered[r] = begin + of[0];
        nears[r].over = begin + of[1];
        nears[r].gathered = begin + of[2];
        nears[r].arrived = of[3];
        atomic_store(&lines[r].up.count, begin + of[4]);
        atomic_store(&lines[r].down.count, begin + of[5]);
        awake[r] = of[6];
    }
}

static void note(void)
{
    const struct picture p = take_picture();
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof(p); i++)
        hash = (hash ^ ((const uint8_t *)&p)[i]) * 1099511628211u;
    uint32_t at = (uint32_t)(hash >> 32) % (2 * states_max);
    for (; table[at]; at = (at + 1) % (2 * states_max))
        if (memcmp(&pictures[table[at] - 1], &p, sizeof(p)) == 0)
            return;
    assert_true(known < states_max);
    pictures[known++] = p;
    table[at] = known;
    check();
}

static bool follow_all(const struct picture *p)
{
    bool any = false;
    for (uint32_t r = 0; r < size; r++)
        for (enum act act = COME; act < acts; act++) {
            go_back_to(p);
            if (!may(act, r))
                continue;
            happen(act, r);
            note();
            any = true;
        }
    go_back_to(p);
    if (!may_elsewhere())
        return any;
    come_elsewhere();
    note();
    return true;
}

static void search(uint32_t ranks, uint32_t how_many, bool others)
{
    open_all(ranks, how_many, others);
    pictures = malloc(states_max * sizeof(*pictures));
    table = calloc(2 * states_max, sizeof(*table));
    known = 0;
    note();
    for (uint32_t i = 0; i < known; i++) {
        const struct picture now = pictures[i];
        if (!follow_all(&now)) {
            go_back_to(&now);
            check_end();
        }
    }
    print_message("%u ranks%s, %u barriers: %u states\n", ranks, others ? " and others" : "",
                  how_many, known);
    free(pictures);
    free(table);
    fake_job_close();
}

static void every_order_of_a_flat_neighbourhood(void **state)
{
    search(1, 3, false);
    search(2, 3, false);
    search(3, 3, false);
    search(4, 3, false);
}

static void every_order_of_a_tree(void **state)
{
    search(1, 3, true);
    search(2, 3, true);
    search(3, 3, true);
    search(4, 2, true);
    search(5, 2, false);
    search(10, 1, false); /* two levels */
}

static void every_order_where_counts_wrap(void **state)
{
    begin = UINT32_MAX - 1;
    search(2, 3, false);
    search(2, 3, true);
    begin = 0;
}

/* ---- larger ones */

static void one_of_many(struct unit_random *dice)
{
    uint32_t rank = unit_below(dice, size);
    enum act act = unit_below(dice, acts);
    if (may(act, rank))
        happen(act, rank);
    if (may_elsewhere() && unit_below(dice, 2 * size) == 0)
        come_elsewhere();
    check();
}

static bool any_is_left(void)
{
    bool any = may_elsewhere();
    for (uint32_t r = 0; r < size; r++)
        any |= may(COME, r) || may(LOOK, r);
    return any;
}

static void roll(uint32_t ranks, bool others, uint64_t seed)
{
    struct unit_random dice = unit_random(seed);
    open_all(ranks, barriers_max, others);
    for (int i = 0; i < 1000000 && any_is_left(); i++)
        one_of_many(&dice);
    assert_false(any_is_left());
    check_end();
    fake_job_close();
}

/* Up to three levels of the tree. */
static void larger_trees_by_dice(void **state)
{
    static const uint32_t sizes[] = {9, 10, 18, 73, 74, 80};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            roll(sizes[i], false, seed);
            roll(sizes[i], true, seed);
        }
}

/* ---- invalid input */

static void see_a_barrier_over_that_we_are_not_in(void *unused)
{
    open_all(5, 3, false);
    atomic_store(&lines[0].down.count, 2);
    happen(COME, 3);
}

static void see_somebody_go_back(void *unused)
{
    begin = 7;
    open_all(2, 3, false);
    atomic_store(&lines[1].up.count, 6);
    happen(COME, 0);
}

static void counts_that_cannot_be_name_who_wrote_them(void **state)
{
    unit_assert_panic(see_a_barrier_over_that_we_are_not_in, NULL,
                      "rank 0 (elsewhere, pid 1000) counts 2 barriers, where 0 are over and we are "
                      "in 1");
    unit_assert_panic(see_somebody_go_back, NULL,
                      "rank 1 (elsewhere, pid 1001) counts 6 barriers, where 7 are over");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_order_of_a_flat_neighbourhood),
    cmocka_unit_test(every_order_of_a_tree),
    cmocka_unit_test(every_order_where_counts_wrap),
    cmocka_unit_test(larger_trees_by_dice),
    cmocka_unit_test(counts_that_cannot_be_name_who_wrote_them),
};

UNIT_MAIN(tests)
