/* SPDX-License-Identifier: BSD-3-Clause */
/* Verified traffic of every kind, while a script takes its ports down and up: numbered messages of
 * each category, which must come once and in order; puts that the target checks when their
 * initiator knows that they are complete; gets of constant data. usage: flap COMMAND [ROUNDS].
 * Every 20 rounds, or ROUNDS, rank 0 runs "COMMAND N", N from 0 on, while it has operations in
 * flight: status 0 asks for the next N, 1 for the same again, 2 for the end. All ranks execute the
 * same rounds. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    ranks_most = 8,
    large = 160 << 10, /* goes over all ports, in pieces */
    small = 200,
    payload_most = 4000,
    messages = 12, /* of a rank to each other in a round */
    /* The parts of a segment: a word for the end; data that others get; for each rank the target of
     * its puts, and that of its Longs. */
    constant_at = 4096,
    puts_at = constant_at + large,
    longs_at = puts_at + ranks_most * 2 * large,
    own_at = longs_at + ranks_most * messages * payload_most,
    segment = own_at + 2 * large
};
enum { SHORT = 200, MEDIUM, LONG, LOOK, ANSWER };
enum { GO_ON = 0, AGAIN = 1, OVER = 2 };

static volatile uint32_t came[ranks_most]; /* numbered messages from each rank */
static volatile uint32_t answers;
static uint32_t sent[ranks_most], asked;

/* ---- messages ---- */

static gex_Rank_t sender_of(gex_Token_t token)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return info.gex_srcrank;
}

static uint64_t seed_of(gex_Rank_t from, gex_Rank_t to, uint32_t number)
{
    return job_mix(from * ranks_most + to, number);
}

static void count(gex_Token_t token, uint32_t number)
{
    gex_Rank_t from = sender_of(token);

    CHECK(number == came[from], "message %u of rank %u, not %u", number, from, came[from]);
    came[from]++;
    gex_AM_ReplyShort0(token, ANSWER, 0);
}

static void on_short(gex_Token_t token, gex_AM_Arg_t number)
{
    count(token, (uint32_t)number);
}

static void on_payload(gex_Token_t token, void *payload, size_t size, gex_AM_Arg_t number)
{
    CHECK_PATTERN(payload, size, seed_of(sender_of(token), job.rank, (uint32_t)number));
    count(token, (uint32_t)number);
}

static void on_look(gex_Token_t token, gex_AM_Arg_t offset, gex_AM_Arg_t size, gex_AM_Arg_t high,
                    gex_AM_Arg_t low)
{
    CHECK_PATTERN(job.base + offset, (size_t)size, (uint64_t)(uint32_t)high << 32 | (uint32_t)low);
    memset(job.base + offset, 0, (size_t)size);
    gex_AM_ReplyShort0(token, ANSWER, 0);
}

static void on_answer(gex_Token_t token)
{
    (void)token;
    answers++;
}

static gex_AM_Entry_t handlers[] = {
    {SHORT, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
    {MEDIUM, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
    {LONG, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
    {LOOK, (gex_AM_Fn_t)on_look, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 4, NULL, NULL},
    {ANSWER, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
};

static void send_one(gex_Rank_t to)
{
    static char payload[payload_most];
    uint32_t number = sent[to]++, slot = number % messages;
    uint64_t seed = seed_of(job.rank, to, number);
    size_t size = seed % payload_most,
           at = longs_at + ((size_t)job.rank * messages + slot) * payload_most;
    gex_AM_Arg_t arg = (gex_AM_Arg_t)number;

    asked++;
    if (number % 3 == 0) {
        gex_AM_RequestShort1(job.tm, to, SHORT, 0, arg);
        return;
    }
    job_fill(payload, size, seed);
    if (number % 3 == 1)
        gex_AM_RequestMedium1(job.tm, to, MEDIUM, payload, size, GEX_EVENT_NOW, 0, arg);
    else
        gex_AM_RequestLong1(job.tm, to, LONG, payload, size, job_remote(to, at), GEX_EVENT_NOW, 0,
                            arg);
}

/* ---- puts and gets ---- */

struct transfer {
    gex_Event_t puts[2], get;
    uint64_t seed;
    gex_Rank_t with;
};

static char *sources[ranks_most], *results[ranks_most];
static char smalls[ranks_most][small];

static size_t put_at(gex_Rank_t from)
{
    return puts_at + from * (size_t)2 * large;
}

static void begin(struct transfer *t, gex_Rank_t with, uint32_t round)
{
    t->with = with;
    t->seed = seed_of(job.rank, with, round) ^ 0x9999;
    job_fill(sources[with], large, t->seed);
    job_fill(smalls[with], small, t->seed + 1);
    t->puts[0] = gex_RMA_PutNB(job.tm, with, job_remote(with, put_at(job.rank)), sources[with],
                               large, GEX_EVENT_DEFER, 0);
    t->puts[1] = gex_RMA_PutNB(job.tm, with, job_remote(with, put_at(job.rank) + large),
                               smalls[with], 1 + round % small, GEX_EVENT_DEFER, 0);
    memset(results[with], 0, large);
    t->get = gex_RMA_GetNB(job.tm, results[with], with, job_remote(with, constant_at), large, 0);
}

static void let_look(gex_Rank_t at, size_t offset, size_t size, uint64_t seed)
{
    asked++;
    gex_AM_RequestShort4(job.tm, at, LOOK, 0, (gex_AM_Arg_t)offset, (gex_AM_Arg_t)size,
                         (gex_AM_Arg_t)(uint32_t)(seed >> 32), (gex_AM_Arg_t)(uint32_t)seed);
}

static void end(struct transfer *t, uint32_t round)
{
    gex_Event_Wait(t->puts[0]);
    let_look(t->with, put_at(job.rank), large, t->seed);
    gex_Event_Wait(t->puts[1]);
    let_look(t->with, put_at(job.rank) + large, 1 + round % small, t->seed + 1);
    gex_Event_Wait(t->get);
    CHECK_PATTERN(results[t->with], large, t->with);
}

/* ---- rounds ---- */

static int step(const char *command, int number)
{
    char line[400];

    snprintf(line, sizeof line, "%s %d", command, number);
    int status = system(line);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= OVER, "%s: status %d", line, status);
    return WEXITSTATUS(status);
}

/* Before the barrier of the last round rank 0 announces its number, because others may not have
 * begun it. */
static void say_over(uint32_t last)
{
    for (gex_Rank_t to = 0; to < job.size; to++)
        gex_RMA_PutBlockingVal(job.tm, to, job_remote(to, 0), last + 1, 8, 0);
}

static int is_over(uint32_t rounds)
{
    return __atomic_load_n((uint64_t *)job.base, __ATOMIC_ACQUIRE) == rounds && rounds > 0;
}

static uint32_t between = 20; /* rounds; a command takes several */

static void act(const char *command, uint32_t round)
{
    static int number;

    if (job.rank > 0 || round % between)
        return;
    int status = step(command, number);
    number += status == GO_ON;
    if (status == OVER)
        say_over(round);
}

static void go_round(const char *command, uint32_t round)
{
    struct transfer transfers[ranks_most];

    job_phase("round %u", round);
    for (gex_Rank_t r = 0; r < job.size; r++)
        if (r != job.rank)
            begin(&transfers[r], r, round);
    for (int i = 0; i < messages; i++) {
        if (i == messages / 2)
            act(command, round);
        for (gex_Rank_t r = 0; r < job.size; r++)
            if (r != job.rank)
                send_one(r);
    }
    for (gex_Rank_t r = 0; r < job.size; r++)
        if (r != job.rank)
            end(&transfers[r], round);
    GASNET_BLOCKUNTIL(answers == asked);
    job_barrier();
    for (gex_Rank_t r = 0; r < job.size; r++)
        CHECK(r == job.rank || came[r] == (round + 1) * messages, "%u of rank %u", came[r], r);
    job_barrier();
}

/* Our local memory is in the segment for one rank, on the heap for others. */
static void place(void)
{
    for (gex_Rank_t r = 0; r < job.size; r++) {
        int is_next = r == (job.rank + 1) % job.size;
        sources[r] = is_next ? job.base + own_at : job_memory(large);
        results[r] = is_next ? job.base + own_at + large : job_memory(large);
    }
}

int main(int argc, char **argv)
{
    uint32_t round = 0;

    job_start(&argc, &argv, (segment + 65535) / 65536 * 65536);
    CHECK(argc >= 2 && argc <= 3 && job.size <= ranks_most);
    if (argc == 3)
        between = (uint32_t)atoi(argv[2]);
    CHECK(between > 0, "ROUNDS is %s, not 1 or more", argv[2]);
    CHECK(gex_EP_RegisterHandlers(job.ep, handlers, sizeof handlers / sizeof *handlers) ==
          GASNET_OK);
    place();
    job_fill(job.base + constant_at, large, job.rank);
    job_barrier();
    while (!is_over(round))
        go_round(argv[1], round++);
    if (job.rank == 0)
        printf("%u rounds\n", round);
    job_end();
}
