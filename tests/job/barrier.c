/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers: no rank leaves before every rank has entered, several may be outstanding and be synced
 * in any order, a put that was complete before the barrier is visible after it, and both forms
 * work. Owned by the one client thread.
 *
 * Usage: barrier [STEP]: one rank after another enters late; only each STEP-th rank and the last
 * do. */
#include "config.h"

#include "job.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 64, OUTSTANDING = 6, ROUNDS = 40 };

static unsigned tested; /* ranks that tested their barrier while rank 0 stayed away */
static gex_AM_Index_t tested_index;

static void on_tested(gex_Token_t token)
{
    (void)token;
    tested++;
}

static void register_handlers(void)
{
    gex_AM_Entry_t entry = {
        200, (gex_AM_Fn_t)on_tested, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};

    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    tested_index = entry.gex_index;
}

/* One rank enters only after all others have seen that the barrier does not complete without it. */
static void waits_for_the_last(gex_Rank_t last)
{
    gex_Event_t event;

    job_phase("barrier that rank %u comes to last", last);
    tested = 0;
    job_barrier();
    if (job.rank == last) {
        GASNET_BLOCKUNTIL(tested == job.size - 1);
        event = gex_Coll_BarrierNB(job.tm, 0);
    } else {
        event = gex_Coll_BarrierNB(job.tm, 0);
        CHECK(event != GEX_EVENT_INVALID, "complete without rank %u", last);
        for (int i = 0; i < 200; i++) {
            CHECK(gex_Event_Test(event) == GASNET_ERR_NOT_READY, "complete without rank %u", last);
            gasnet_AMPoll();
        }
        gex_AM_RequestShort0(job.tm, last, tested_index, 0);
    }
    gex_Event_Wait(event);
}

/* Each rank puts the number of the round to all; after the barrier all numbers are there. */
static void puts_are_seen(void)
{
    uint64_t *cells = (uint64_t *)job.base;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        job_phase("round %u of puts", (unsigned)round);
        for (gex_Rank_t to = 0; to < job.size; to++)
            gex_RMA_PutBlocking(job.tm, to, job_remote(to, job.rank * sizeof round), &round,
                                sizeof round, 0);
        gex_Coll_BarrierBlocking(job.tm, 0);
        for (gex_Rank_t from = 0; from < job.size; from++)
            CHECK(cells[from] == round, "rank %u: %u", from, (unsigned)cells[from]);
        gex_Coll_BarrierBlocking(
            job.tm, 0); /* no rank writes the next value before all have checked this one */
    }
}

static void any_order(int first, int step)
{
    gex_Event_t events[OUTSTANDING];

    job_phase("%d barriers, synced from %d by %d", OUTSTANDING, first, step);
    for (int i = 0; i < OUTSTANDING; i++)
        events[i] = gex_Coll_BarrierNB(job.tm, 0);
    for (int i = 0; i < OUTSTANDING; i++)
        gex_Event_Wait(events[(first + i * step) % OUTSTANDING]);
}

/* A later barrier can't complete before an earlier one that a rank has not entered. */
static void none_is_skipped(void)
{
    gex_Event_t events[OUTSTANDING];

    job_phase("several barriers against one rank that comes one by one");
    tested = 0;
    job_barrier();
    for (int i = 0; i < OUTSTANDING; i++) {
        if (job.rank == 0)
            GASNET_BLOCKUNTIL(i > 0 || tested == job.size - 1);
        events[i] = gex_Coll_BarrierNB(job.tm, 0);
    }
    if (job.rank != 0) {
        for (int i = 0; i < OUTSTANDING; i++)
            CHECK(gex_Event_Test(events[i]) == GASNET_ERR_NOT_READY, "barrier %d", i);
        gex_AM_RequestShort0(job.tm, 0, tested_index, 0);
    }
    gex_Event_WaitAll(events, OUTSTANDING, 0);
}

int main(int argc, char **argv)
{
    gex_Rank_t step = argc > 1 ? (gex_Rank_t)atoi(argv[1]) : 1;

    job_start(&argc, &argv, MAX_RANKS * sizeof(uint64_t));
    CHECK(job.size <= MAX_RANKS && step > 0);
    register_handlers();
    for (gex_Rank_t last = 0; last < job.size; last += step)
        waits_for_the_last(last);
    waits_for_the_last(job.size - 1);
    puts_are_seen();
    any_order(0, 1);
    any_order(OUTSTANDING - 1, OUTSTANDING - 1);
    any_order(3, 5);
    none_is_skipped();
    for (int i = 0; i < 300; i++)
        gex_Coll_BarrierBlocking(job.tm, 0);
    job_end();
}
