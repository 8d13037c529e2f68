/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers between active messages, which take credits where barriers take none: credits are not
 * lost, messages arrive once, and up to three barriers are outstanding. Usage: barrier_credits
 * [ROUNDS]. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdlib.h>

enum { OUTSTANDING = 3 };

static unsigned came, answered;
static gex_AM_Index_t request_index, reply_index;

/* Half of the requests have a reply; the credits of the others come back by acknowledgements. */
static void on_request(gex_Token_t token, gex_AM_Arg_t round)
{
    came++;
    if (round % 2)
        gex_AM_ReplyShort1(token, reply_index, 0, round);
}

static void on_reply(gex_Token_t token, gex_AM_Arg_t round)
{
    (void)token;
    (void)round;
    answered++;
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    request_index = table[0].gex_index;
    reply_index = table[1].gex_index;
}

/* Each rank sends one message in each round, and gets one. */
static void one_round(unsigned round)
{
    gex_Rank_t to = (job.rank + 1 + round % (job.size - 1)) % job.size;
    gex_Event_t events[OUTSTANDING];
    size_t outstanding = 1 + round % OUTSTANDING;

    for (size_t i = 0; i < outstanding; i++) {
        events[i] = gex_Coll_BarrierNB(job.tm, 0);
        if (i == 0)
            gex_AM_RequestShort1(job.tm, to, request_index, 0, (gex_AM_Arg_t)round);
    }
    gex_Event_WaitAll(events, outstanding, 0);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 400;

    job_start(&argc, &argv, 4096);
    CHECK(job.size > 1);
    register_handlers();
    job_barrier();
    for (unsigned round = 0; round < rounds; round++) {
        job_phase("round %u", round);
        one_round(round);
    }
    job_phase("the last messages");
    GASNET_BLOCKUNTIL(came >= rounds && answered >= rounds / 2);
    job_barrier();
    CHECK(came == rounds, "%u messages", came);
    CHECK(answered == rounds / 2, "%u replies", answered);
    job_end();
}
