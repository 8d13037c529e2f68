/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As many ranks as a host may have: each sends a message and puts a word to each of the others, and
 * receives theirs. Usage: many_ranks [COUNT]: only to COUNT ranks, beginning with itself (default:
 * all); 2 is a ring. */
#include <stdbool.h>
#include <stdlib.h>

#include "job.h"

static gex_AM_Index_t from_index, back_index;
static unsigned *came;
static unsigned answers, count;

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

/* Each rank begins with another target, or all would write to the same one. */
static gex_Rank_t nth(gex_Rank_t n)
{
    return (job.rank + n) % job.size;
}

static void speak(void)
{
    for (gex_Rank_t n = 0; n < count; n++) {
        uint64_t word = job_mix(job.rank, nth(n));
        gex_AM_RequestShort1(job.tm, nth(n), from_index, 0, (gex_AM_Arg_t)job.rank);
        gex_RMA_PutBlocking(job.tm, nth(n), job_remote(nth(n), job.rank * sizeof word), &word,
                            sizeof word, 0);
    }
    GASNET_BLOCKUNTIL(answers == count);
    job_barrier();
}

static void check_from(gex_Rank_t r)
{
    bool is_mine = (job.rank + job.size - r) % job.size < count;
    uint64_t word = ((uint64_t *)(void *)job.base)[r];
    CHECK(came[r] == (is_mine ? 1U : 0U) && word == (is_mine ? job_mix(r, job.rank) : 0),
          "rank %u: %u messages, word %#llx", r, came[r], (unsigned long long)word);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, (size_t)1 << 16);
    count = argc > 1 ? (unsigned)atoi(argv[1]) : job.size;
    CHECK(count >= 1 && count <= job.size, "%u ranks out of %u", count, job.size);
    came = job_memory(job.size * sizeof *came);
    for (gex_Rank_t r = 0; r < job.size; r++)
        came[r] = 0;
    register_handlers();
    job_barrier();
    job_phase("messages");
    speak();
    for (gex_Rank_t r = 0; r < job.size; r++)
        check_from(r);
    job_end();
}
