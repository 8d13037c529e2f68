/* SPDX-License-Identifier: BSD-3-Clause */
/* The last rank floods rank 0 with requests, large and small, some of which rank 0 answers; then
 * all ranks do, while rank 0 does not always poll; then the last one continues alone. Every message
 * comes once and whole. The script runs this with the minimum of receive buffers, so that ranks
 * that are connected on demand must wait for buffers that were lent to the first flood, and checks
 * the device's count of RNR events. Usage: many_to_one [MESSAGES], the number of each rank (default
 * 40). Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdlib.h>
#include <unistd.h>

static unsigned *got; /* by rank, on rank 0 */
static uint64_t *mixed;
static unsigned replies;
static gex_AM_Index_t short_index, medium_index, reply_index;

static void count(gex_Token_t token, gex_AM_Arg_t number)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    got[info.gex_srcrank]++;
    mixed[info.gex_srcrank] += job_mix((uint64_t)number, info.gex_srcrank);
    if (number % 3 == 0)
        gex_AM_ReplyShort0(token, reply_index, 0);
}

static void on_short(gex_Token_t token, gex_AM_Arg_t number)
{
    count(token, number);
}

static void on_medium(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t number)
{
    CHECK_PATTERN(memory, size, (uint64_t)number);
    count(token, number);
}

static void on_reply(gex_Token_t token)
{
    (void)token;
    replies++;
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 3) == GASNET_OK);
    short_index = table[0].gex_index;
    medium_index = table[1].gex_index;
    reply_index = table[2].gex_index;
}

static void send_all(unsigned first, unsigned messages)
{
    static char source[3000];
    unsigned answers = 0;

    replies = 0;
    for (unsigned i = first; i < first + messages; i++) {
        size_t size = job_mix(i, job.rank) % sizeof(source);
        answers += i % 3 == 0;
        if (i % 2) {
            CHECK(gex_AM_RequestShort1(job.tm, 0, short_index, 0, (gex_AM_Arg_t)i) == 0);
            continue;
        }
        job_fill(source, size, i);
        CHECK(gex_AM_RequestMedium1(job.tm, 0, medium_index, source, size, GEX_EVENT_NOW, 0,
                                    (gex_AM_Arg_t)i) == 0);
    }
    GASNET_BLOCKUNTIL(replies == answers);
}

static void expect(gex_Rank_t from, unsigned messages)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < messages; i++)
        sum += job_mix(i, from);
    job_phase("waiting for %u messages of rank %u", messages, from);
    GASNET_BLOCKUNTIL(got[from] >= messages);
    CHECK(got[from] == messages, "rank %u: %u", from, got[from]);
    CHECK(mixed[from] == sum, "rank %u: other messages", from);
}

/* What the rank has sent alone. */
static unsigned before(gex_Rank_t rank, unsigned messages)
{
    return rank == job.size - 1 ? 3 * messages : 0;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 0);
    unsigned messages = argc > 1 ? (unsigned)atoi(argv[1]) : 40;
    got = calloc(job.size, sizeof(*got));
    mixed = calloc(job.size, sizeof(*mixed));
    CHECK(got && mixed);
    register_handlers();
    job_barrier();
    if (job.rank == job.size - 1)
        send_all(0, 3 * messages);
    job_barrier();
    if (job.rank == 0)
        usleep(50000); /* by then everything has arrived that can be sent without a poll */
    else
        send_all(before(job.rank, messages), messages);
    for (gex_Rank_t from = 1; job.rank == 0 && from < job.size; from++)
        expect(from, before(from, messages) + messages);
    job_barrier();
    if (job.rank == job.size - 1)
        send_all(4 * messages, 4 * messages);
    if (job.rank == 0)
        expect(job.size - 1, 8 * messages);
    job_end();
}
