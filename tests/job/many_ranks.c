/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As many ranks as a host may have: each sends a message and puts a word to each of the others, and
 * gets what it is to get from all of them. */
#include <stdlib.h>

#include "job.h"

static gex_AM_Index_t from_index, back_index;
static unsigned *came;
static unsigned answers;

static void on_from(gex_Token_t token, gex_AM_Arg_t rank)
{
    came[rank]++;
    gex_AM_ReplyShort1(token, back_index, 0, rank);
}

static void on_back(gex_Token_t token, gex_AM_Arg_t rank)
{
    (void)token;
    CHECK((gex_Rank_t)rank == job.rank);
    answers++;
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_from, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_back, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
    };
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    from_index = table[0].gex_index;
    back_index = table[1].gex_index;
}

/* Each begins with another, or all would write to one at a time. */
static gex_Rank_t nth(gex_Rank_t n)
{
    return (job.rank + n) % job.size;
}

static void speak_to_all(void)
{
    for (gex_Rank_t n = 0; n < job.size; n++) {
        uint64_t word = job_mix(job.rank, nth(n));
        gex_AM_RequestShort1(job.tm, nth(n), from_index, 0, (gex_AM_Arg_t)job.rank);
        gex_RMA_PutBlocking(job.tm, nth(n), job_remote(nth(n), job.rank * sizeof word), &word,
                            sizeof word, 0);
    }
    GASNET_BLOCKUNTIL(answers == job.size);
    job_barrier();
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, (size_t)1 << 16);
    came = job_memory(job.size * sizeof *came);
    for (gex_Rank_t r = 0; r < job.size; r++)
        came[r] = 0;
    register_handlers();
    job_barrier();
    speak_to_all();
    for (gex_Rank_t r = 0; r < job.size; r++)
        CHECK(came[r] == 1 && ((uint64_t *)(void *)job.base)[r] == job_mix(r, job.rank),
              "rank %u: %u messages", r, came[r]);
    job_end();
}
