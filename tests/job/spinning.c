/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks repeat one operation, on themselves, on a neighbour or on a rank over the network,
 * until each has served a Short of the other: requests, and puts and gets whose caller waits, must
 * poll often enough for that. Meanwhile only the ranks that are mere targets sleep or poll
 * otherwise. An argument is the name of one operation, for a job by hand. Owned by the one client
 * thread. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gasnet_vis.h"
#include "job.h"

enum { SEGMENT = 1 << 20, LARGEST = 4096, WARM_UP = 1000, LOOK_EACH = 512 };

static gex_AM_Index_t knock_index, over_index, nothing_index, many_index, payload_index, ask_index,
    answer_index;
static unsigned knocks, overs, answers; /* by handlers */
static gex_Rank_t target;
static char local[LARGEST];

static void knock(gex_Token_t token)
{
    (void)token;
    knocks++;
}

static void over(gex_Token_t token)
{
    (void)token;
    overs++;
}

static void nothing(gex_Token_t token)
{
    (void)token;
}

static void many(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c, gex_AM_Arg_t d)
{
    (void)token;
    CHECK(a == 1 && b == 2 && c == 3 && d == 4);
}

static void payload(gex_Token_t token, void *buffer, size_t nbytes)
{
    (void)token, (void)buffer, (void)nbytes;
}

static void ask(gex_Token_t token, void *buffer, size_t nbytes)
{
    gex_AM_ReplyMedium0(token, answer_index, buffer, nbytes, GEX_EVENT_NOW, 0);
}

static void answer(gex_Token_t token, void *buffer, size_t nbytes)
{
    (void)token, (void)buffer, (void)nbytes;
    answers++;
}

/* ---- The operations; `i` counts them ---- */

static void *there(void)
{
    return job_remote(target, SEGMENT / 2);
}

static size_t size_of(unsigned i)
{
    static const size_t sizes[] = {8, 1000, LARGEST};
    return sizes[i % 3];
}

static void short_request(unsigned i)
{
    if (i % 2)
        gex_AM_RequestShort0(job.tm, target, nothing_index, 0);
    else
        gex_AM_RequestShort4(job.tm, target, many_index, 0, 1, 2, 3, 4);
}

/* Immediate requests do not poll, whenever they are sent. */
static void short_or_immediate(unsigned i)
{
    gex_AM_RequestShort0(job.tm, target, nothing_index, i % 2 ? GEX_FLAG_IMMEDIATE : 0);
}

static void medium_request(unsigned i)
{
    gex_AM_RequestMedium0(job.tm, target, payload_index, local, size_of(i), GEX_EVENT_NOW, 0);
}

static void long_request(unsigned i)
{
    gex_AM_RequestLong0(job.tm, target, payload_index, local, size_of(i), there(), GEX_EVENT_NOW,
                        0);
}

static void negotiated_medium(unsigned i)
{
    const size_t size = size_of(i);
    const int is_ours = i / 3 % 2;
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(job.tm, target, is_ours ? local : NULL, size,
                                                      size, is_ours ? GEX_EVENT_NOW : NULL, 0, 0);
    memset(gex_AM_SrcDescAddr(sd), 1, size);
    gex_AM_CommitRequestMedium0(sd, payload_index, size);
}

static void negotiated_long(unsigned i)
{
    const size_t size = size_of(i);
    const int is_ours = i / 3 % 2;
    gex_AM_SrcDesc_t sd =
        gex_AM_PrepareRequestLong(job.tm, target, is_ours ? local : NULL, size, size, there(),
                                  is_ours ? GEX_EVENT_NOW : NULL, 0, 0);
    memset(gex_AM_SrcDescAddr(sd), 1, size);
    gex_AM_CommitRequestLong0(sd, payload_index, size, there());
}

static void question(unsigned i)
{
    const unsigned before = answers;
    gex_AM_RequestMedium0(job.tm, target, ask_index, local, size_of(i), GEX_EVENT_NOW, 0);
    GASNET_BLOCKUNTIL(answers > before);
}

static void put(unsigned i)
{
    if (i % 3)
        gex_RMA_PutBlocking(job.tm, target, there(), local, size_of(i), 0);
    else
        gex_RMA_PutBlockingVal(job.tm, target, there(), i, 8, 0);
}

static void get(unsigned i)
{
    if (i % 3)
        gex_RMA_GetBlocking(job.tm, local, target, there(), size_of(i), 0);
    else
        (void)gex_RMA_GetBlockingVal(job.tm, target, there(), 8, 0);
}

static void put_and_wait(unsigned i)
{
    gex_Event_Wait(gex_RMA_PutNB(job.tm, target, there(), local, size_of(i), GEX_EVENT_NOW, 0));
}

static void get_and_wait_for_all(unsigned i)
{
    gex_Event_t events[2];
    for (int k = 0; k < 2; k++)
        events[k] = gex_RMA_GetNB(job.tm, local, target, there(), size_of(i), 0);
    if (i % 2)
        gex_Event_WaitAll(events, 2, 0);
    else
        while (events[0] != GEX_EVENT_INVALID || events[1] != GEX_EVENT_INVALID)
            gex_Event_WaitSome(events, 2, 0);
}

static void implicit(unsigned i)
{
    gex_RMA_PutNBI(job.tm, target, there(), local, size_of(i), GEX_EVENT_DEFER, 0);
    gex_RMA_GetNBI(job.tm, local + LARGEST / 2, target, there(), 8, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static void strided(unsigned i)
{
    const ptrdiff_t stride = 64;
    const size_t count = 1 + i % 4;
    gex_VIS_StridedPutBlocking(job.tm, target, there(), &stride, local, &stride, 32, &count, 1, 0);
}

static const struct {
    const char *name;
    void (*once)(unsigned i);
} operations[] = {
    {"a Short", short_request},
    {"a Short, each other one immediate", short_or_immediate},
    {"a Medium", medium_request},
    {"a Long", long_request},
    {"a negotiated Medium", negotiated_medium},
    {"a negotiated Long", negotiated_long},
    {"a question", question},
    {"a put", put},
    {"a get", get},
    {"a put with wait", put_and_wait},
    {"gets with wait", get_and_wait_for_all},
    {"implicit ones with wait", implicit},
    {"a strided put", strided},
};

/* ---- */

/* A Short that came before the loop began does not count. */
static int is_served(unsigned i, unsigned *before)
{
    if (i < WARM_UP)
        *before = knocks;
    return i >= WARM_UP && (knocks > *before || overs > 0);
}

/* Sends few Shorts: unserved ones would fill a queue, and waiting for space polls. */
static int is_knocking(unsigned i)
{
    return i > WARM_UP && (i & (i - 1)) == 0;
}

static void spin(void (*once)(unsigned i), gex_Rank_t other)
{
    const double begin = job_seconds(), patience = (double)job_number("PATIENCE", 40);
    unsigned before = 0;
    for (unsigned i = 0; !is_served(i, &before); i++) {
        once(i);
        if (is_knocking(i))
            gex_AM_RequestShort0(job.tm, other, knock_index, 0);
        CHECK(i % LOOK_EACH || job_seconds() - begin < patience,
              "rank %u did not serve rank %u in %u operations on rank %u", job.rank, other, i,
              target);
    }
    gex_AM_RequestShort0(job.tm, other, over_index, 0);
}

/* Ranks 0 and 1 share memory, as 2 and 3 do. */
static gex_Rank_t at(const char *place)
{
    return !strcmp(place, "self")        ? job.rank
           : !strcmp(place, "neighbour") ? job.rank ^ 1
                                         : job.rank ^ 2;
}

static void pair(size_t operation, const char *place, gex_Rank_t with)
{
    job_phase("%s on %s, of ranks 0 and %u", operations[operation].name, place, with);
    target = at(place);
    job_barrier();
    overs = 0;
    job_barrier();
    if (job.rank == 0 || job.rank == with)
        spin(operations[operation].once, job.rank == 0 ? with : 0);
    job_barrier();
}

static int is_wanted(const char *name, size_t operation)
{
    return !name || !strcmp(name, operations[operation].name);
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)knock, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "knock"},
        {0, (gex_AM_Fn_t)over, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "over"},
        {0, (gex_AM_Fn_t)nothing, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "nothing"},
        {0, (gex_AM_Fn_t)many, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 4, NULL, "many"},
        {0, (gex_AM_Fn_t)payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0,
         NULL, "payload"},
        {0, (gex_AM_Fn_t)ask, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"},
        {0, (gex_AM_Fn_t)answer, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "answer"},
    };
    gex_AM_Index_t *const indices[] = {&knock_index,   &over_index, &nothing_index, &many_index,
                                       &payload_index, &ask_index,  &answer_index};
    static const char *const places[] = {"self", "neighbour", "network"};
    job_start(&argc, &argv, SEGMENT);
    CHECK(job.size == 4 && job_is_neighbour(job.rank ^ 1) && !job_is_neighbour(job.rank ^ 2));
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 7) == GASNET_OK);
    for (int i = 0; i < 7; i++)
        *indices[i] = table[i].gex_index;
    for (size_t operation = 0; operation < sizeof(operations) / sizeof(operations[0]); operation++)
        for (int place = 0; place < 3; place++)
            for (gex_Rank_t with = 1; with <= 2 && is_wanted(argv[1], operation); with++)
                pair(operation, places[place], with);
    job_end();
}
