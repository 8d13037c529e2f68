/* SPDX-License-Identifier: BSD-3-Clause */
/* The named barrier (tests/rules.md, item 59): names agree or the mismatch is seen everywhere,
 * anonymous matches all, a wait has a name of its own, and the barrier synchronises whatever its
 * result is. Item 61: it may overlap with the other barrier. Owned by the one client thread. */
#include "config.h"

#include "job.h"

enum {
    ANONYMOUS = GASNET_BARRIERFLAG_ANONYMOUS,
    MISMATCH = GASNET_BARRIERFLAG_MISMATCH,
    UNNAMED = GASNET_BARRIERFLAG_UNNAMED,
    BAD = GASNET_ERR_BARRIER_MISMATCH,
    ROUNDS = 40,
    UNTOUCHED = 0x5eed
};

static unsigned tried; /* ranks that tried while the last one stayed away */

static void on_tried(gex_Token_t token)
{
    (void)token;
    tried++;
}

static void register_handlers(void)
{
    gex_AM_Entry_t entry = {
        200, (gex_AM_Fn_t)on_tried, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};

    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
}

/* Notify and wait with the same name, as most programs do. */
static void expect(int status, int id, int flags)
{
    int got = gasnet_barrier(id, flags);

    CHECK(got == status, "%s, not %s", gasnet_ErrorName(got), gasnet_ErrorName(status));
}

static void expect_wait(int status, int id, int flags)
{
    int got = gasnet_barrier_wait(id, flags);

    CHECK(got == status, "%s, not %s", gasnet_ErrorName(got), gasnet_ErrorName(status));
}

static void expect_name(int id)
{
    int got = UNTOUCHED;

    CHECK(gasnet_barrier_result(&got) == 0 && got == id, "%d, not %d", got, id);
}

static void expect_no_name(void)
{
    int got = UNTOUCHED;

    CHECK(gasnet_barrier_result(&got) != 0 && got == UNTOUCHED, "%d", got);
}

static void item_59_equal_names(void)
{
    static const int ids[] = {0, 1, -1, 0x7fffffff, -0x7fffffff - 1};

    job_phase("item 59: equal names");
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
        expect(GASNET_OK, ids[i], 0);
        expect_name(ids[i]);
    }
}

static void item_59_anonymous_matches_all(void)
{
    job_phase("item 59: anonymous");
    expect(GASNET_OK, (int)job.rank, ANONYMOUS);
    expect_no_name();
    expect(GASNET_OK, (int)job.rank, UNNAMED);
    expect_no_name();
    for (gex_Rank_t named = 0; named < job.size; named++) {
        job_phase("item 59: all anonymous but rank %u", (unsigned)named);
        expect(GASNET_OK, job.rank == named ? 7 : (int)job.rank, job.rank == named ? 0 : ANONYMOUS);
        expect_name(7);
    }
}

/* For each pair of ranks with different names: their names reach each rank by another path. */
static void item_59_two_names_mismatch_everywhere(void)
{
    for (gex_Rank_t a = 0; a < job.size; a++)
        for (gex_Rank_t b = 0; b < a; b++) {
            job_phase("item 59: ranks %u and %u differ", (unsigned)a, (unsigned)b);
            expect(BAD, job.rank == a ? 7 : 8, job.rank == a || job.rank == b ? 0 : ANONYMOUS);
            expect_no_name();
        }
    expect(job.size > 1 ? BAD : GASNET_OK, (int)job.rank, 0);
}

static void item_59_mismatch_flag_poisons_all(void)
{
    for (gex_Rank_t bad = 0; bad < job.size; bad++) {
        job_phase("item 59: rank %u gives MISMATCH", (unsigned)bad);
        gasnet_barrier_notify(5, job.rank == bad ? MISMATCH : 0);
        expect_wait(BAD, 5, 0);
        expect(BAD, 5, job.rank == bad ? MISMATCH : ANONYMOUS);
        expect(BAD, 5, job.rank == bad ? (MISMATCH | ANONYMOUS) : ANONYMOUS);
    }
    expect(GASNET_OK, 5, 0); /* and only that one */
}

static void item_59_wait_has_a_name_of_its_own(void)
{
    int mine = job.rank == 0 ? 0 : ANONYMOUS;

    job_phase("item 59: names of waits");
    gasnet_barrier_notify(7, mine);
    expect_wait(BAD, 9, 0);
    expect_name(7); /* the other ranks see the names of a correct barrier */
    gasnet_barrier_notify(7, mine);
    expect_wait(GASNET_OK, 7, 0);
    gasnet_barrier_notify(7, mine);
    expect_wait(GASNET_OK, 9, ANONYMOUS);
    gasnet_barrier_notify(7, mine);
    expect_wait(job.rank % 2 ? BAD : GASNET_OK, job.rank % 2 ? 9 : 7, 0);
}

/* Each rank computes the expected result of all from the same random numbers. */
static void item_59_anything_at_random(void)
{
    uint64_t dice = 59;

    for (int round = 0; round < 300; round++) {
        int seen = UNTOUCHED, named = 0, bad = 0, id = 0, flags = 0;

        job_phase("item 59: random names, round %d", round);
        for (gex_Rank_t r = 0; r < job.size; r++) {
            unsigned roll = (unsigned)(job_random(&dice) >> 40);
            int its_id = roll % 16 == 0 ? 2 : 1;
            int its_flags = roll / 16 % 16 == 0 ? MISMATCH : roll / 256 % 2 ? ANONYMOUS : 0;

            bad |= its_flags == MISMATCH || (!its_flags && named && seen != its_id);
            if (!its_flags)
                named = 1, seen = its_id;
            if (r == job.rank)
                id = its_id, flags = its_flags;
        }
        expect(bad ? BAD : GASNET_OK, id, flags);
        if (bad || !named)
            expect_no_name();
        else
            expect_name(seen);
    }
}

/* One rank enters only after all others have seen, by try, that the barrier does not complete
 * without it; notify does not wait. */
static void item_59_waits_for_the_last(gex_Rank_t last, int flags, int status)
{
    int got;

    job_phase("barrier that rank %u comes to last", (unsigned)last);
    tried = 0;
    job_barrier();
    if (job.rank == last) {
        GASNET_BLOCKUNTIL(tried == job.size - 1);
        gasnet_barrier_notify(1, flags);
    } else {
        gasnet_barrier_notify(1, flags);
        for (int i = 0; i < 200; i++)
            CHECK(gasnet_barrier_try(1, flags) == GASNET_ERR_NOT_READY, "without %u",
                  (unsigned)last);
        gex_AM_RequestShort0(job.tm, last, 200, 0);
    }
    while ((got = gasnet_barrier_try(1, flags)) == GASNET_ERR_NOT_READY)
        ;
    CHECK(got == status, "%s", gasnet_ErrorName(got));
}

/* After the barrier all puts are visible, whether names agree (odd rounds) or not. */
static void item_59_synchronises_whatever_the_result(void)
{
    uint64_t *cells = (uint64_t *)job.base;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        int flags = round % 2 ? 0 : MISMATCH;

        job_phase("round %u of puts", (unsigned)round);
        for (gex_Rank_t to = 0; to < job.size; to++)
            gex_RMA_PutBlocking(job.tm, to, job_remote(to, job.rank * sizeof round), &round,
                                sizeof round, 0);
        expect(flags ? BAD : GASNET_OK, 3, flags);
        for (gex_Rank_t from = 0; from < job.size; from++)
            CHECK(cells[from] == round, "rank %u: %u", (unsigned)from, (unsigned)cells[from]);
        expect(GASNET_OK, 4,
               0); /* no rank writes the next value before all have checked this one */
    }
}

static void item_61_overlaps_the_other_barrier(void)
{
    gex_Event_t events[2];

    job_phase("item 61: both barriers at once");
    for (int i = 0; i < ROUNDS; i++) {
        events[0] = gex_Coll_BarrierNB(job.tm, 0);
        gasnet_barrier_notify(i, 0);
        events[1] = gex_Coll_BarrierNB(job.tm, 0);
        if (i % 2)
            expect_wait(GASNET_OK, i, 0);
        gex_Event_WaitAll(events, 2, 0);
        if (i % 2 == 0)
            expect_wait(GASNET_OK, i, 0);
    }
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, GASNET_PAGESIZE);
    expect_no_name();
    register_handlers();
    item_59_equal_names();
    item_59_anonymous_matches_all();
    item_59_two_names_mismatch_everywhere();
    item_59_mismatch_flag_poisons_all();
    item_59_wait_has_a_name_of_its_own();
    item_59_anything_at_random();
    for (gex_Rank_t last = 0; last < job.size; last++) {
        item_59_waits_for_the_last(last, 0, GASNET_OK);
        item_59_waits_for_the_last(last, ANONYMOUS, GASNET_OK);
        item_59_waits_for_the_last(last, MISMATCH, BAD);
    }
    item_59_synchronises_whatever_the_result();
    item_61_overlaps_the_other_barrier();
    for (int i = 0; i < 300; i++)
        expect(GASNET_OK, i, 0);
    job_end();
}
