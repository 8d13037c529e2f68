/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks of one host that share memory. "shape N": the results of queries when neighbourhoods have
 * at most N ranks (0: no limit), and that the reported addresses are right. "flood": the ring of a
 * neighbour that does not poll fills up and reports it, and its messages arrive once and in order.
 * "hidden": this process does not let others access its memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "job.h"

/* ---- shape */

/* The host is divided in order of ranks. */
static gex_Rank_t nbrhd_of(gex_Rank_t rank, gex_Rank_t most)
{
    return most ? rank / most : 0;
}

static void ranks_are_cut_in_order(gex_Rank_t most)
{
    gex_RankInfo_t *all;
    gex_Rank_t count, mine, sets, set, expected = 0;

    gex_System_QueryNbrhdInfo(&all, &count, &mine);
    gex_System_QueryMyPosition(&sets, &set, NULL, NULL);
    for (gex_Rank_t r = 0; r < job.size; r++) {
        if (nbrhd_of(r, most) != nbrhd_of(job.rank, most))
            continue;
        CHECK(expected < count && all[expected].gex_jobrank == r, "neighbour %u", expected);
        expected++;
    }
    CHECK(count == expected && all[mine].gex_jobrank == job.rank);
    CHECK(sets == nbrhd_of(job.size - 1, most) + 1 && set == nbrhd_of(job.rank, most));
}

/* An owner sees a neighbour's store to its segment; segments of other ranks have no address
 * here. */
static void addresses_are_true(gex_Rank_t most)
{
    gasnet_nodeinfo_t *nodes = job_memory(job.size * sizeof(*nodes));

    CHECK(gasnet_getNodeInfo(nodes, (int)job.size) == GASNET_OK);
    for (gex_Rank_t r = 0; r < job.size; r++) {
        void *owner, *local = &owner;
        uint64_t *cell;

        CHECK(nodes[r].supernode == nbrhd_of(r, most));
        CHECK(gex_Segment_QueryBound(job.tm, r, &owner, &local, NULL) == 0);
        CHECK((local != NULL) == (nbrhd_of(r, most) == nbrhd_of(job.rank, most)), "rank %u", r);
        if (!local)
            continue;
        CHECK((char *)owner + nodes[r].offset == local);
        CHECK(r != job.rank || local == owner);
        cell = (uint64_t *)local + job.rank;
        *cell = job_mix(job.rank, r);
    }
    job_barrier();
    for (gex_Rank_t r = 0; r < job.size; r++)
        CHECK(((uint64_t *)job.base)[r] ==
                  (nbrhd_of(r, most) == nbrhd_of(job.rank, most) ? job_mix(r, job.rank) : 0),
              "what rank %u stored", r);
    free(nodes);
}

/* ---- flood */

enum { FLOOD = 100000, BIG = 20000, ROUNDS = 3000 };
static gex_AM_Index_t count_index, ask_index, told_index;
static unsigned next, told;

static void on_count(gex_Token_t token, gex_AM_Arg_t number)
{
    (void)token;
    CHECK((unsigned)number == next, "%u instead of %u", (unsigned)number, next);
    next++;
}

static void on_told(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t number)
{
    (void)token;
    CHECK_PATTERN(memory, size, (uint64_t)number);
    told++;
}

static void on_ask(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t number)
{
    CHECK_PATTERN(memory, size, (uint64_t)number);
    gex_AM_ReplyMedium1(token, told_index, memory, size, GEX_EVENT_NOW, 0, number);
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_count, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_ask, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_told, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 3) == GASNET_OK);
    count_index = table[0].gex_index;
    ask_index = table[1].gex_index;
    told_index = table[2].gex_index;
}

static volatile unsigned *flag(void)
{
    return (volatile unsigned *)job.base;
}

/* Rank 0 does not poll until rank 1 has found its ring full; rank 1 begins when rank 0 has left the
 * previous barrier's last poll. */
static void full_is_said(void)
{
    const unsigned yes = 1;
    unsigned sent = 0, refused = 0;

    job_phase("full");
    if (job.rank == 0) {
        CHECK(gex_RMA_PutBlocking(job.tm, 1, job_remote(1, 0), &yes, sizeof yes, 0) == 0);
        while (!*flag())
            usleep(1000);
        GASNET_BLOCKUNTIL(next >= FLOOD);
        return;
    }
    if (job.rank > 1)
        return;
    GASNET_BLOCKUNTIL(*flag());
    while (sent < FLOOD) {
        if (gex_AM_RequestShort1(job.tm, 0, count_index, GEX_FLAG_IMMEDIATE, (gex_AM_Arg_t)sent) ==
            0) {
            sent++;
            continue;
        }
        if (refused++ > 0) {
            gasnet_AMPoll();
            continue;
        }
        CHECK(gex_AM_PrepareRequestMedium(job.tm, 0, NULL, 0, 8, NULL, GEX_FLAG_IMMEDIATE, 0) ==
              GEX_AM_SRCDESC_NO_OP);
        CHECK(gex_RMA_PutBlocking(job.tm, 0, job_remote(0, 0), &yes, sizeof yes, 0) == 0);
    }
    CHECK(refused > 0, "%d messages fit", FLOOD);
}

/* All ranks ask all for large answers: requests and answers fill the rings, and all ranks still
 * make progress. */
static void answers_get_through(void)
{
    char *memory = job_memory(BIG);

    job_phase("answers");
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t size = i % 7 ? i % 100 : BIG;
        job_fill(memory, size, i);
        gex_AM_RequestMedium1(job.tm, i % job.size, ask_index, memory, size, GEX_EVENT_NOW, 0,
                              (gex_AM_Arg_t)i);
    }
    GASNET_BLOCKUNTIL(told == ROUNDS);
    free(memory);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "flood";

    if (!strcmp(what, "hidden"))
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    job_start(&argc, &argv, GASNET_PAGESIZE);
    if (!strcmp(what, "shape")) {
        gex_Rank_t most = argc > 2 ? (gex_Rank_t)atoi(argv[2]) : 0;
        ranks_are_cut_in_order(most);
        addresses_are_true(most);
    } else {
        register_handlers();
        job_barrier();
        if (job.size > 1)
            full_is_said();
        job_barrier();
        answers_get_through();
    }
    job_end();
}
