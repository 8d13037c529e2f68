/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control: floods, streams and exchanges that must come to an end under any setting of the
 * credit and buffer variables, with each message delivered exactly once. The script runs this under
 * many settings and looks at the device's count of RNR events. Usage: credits [MESSAGES], the
 * number for each pair of ranks (default 200). Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_RANKS = 8, CELL = 20480, CELLS = 32, MAX_LONG = 20000 };
enum { SEGMENT = MAX_RANKS * CELLS * CELL };
enum pattern { TO_ONE, TO_ALL, STREAM, PING, LATE, BACK_AND_FORTH, HURRIED, PATTERNS };

struct sum {
    unsigned count;
    uint64_t mixed;
};

static struct sum got[PATTERNS][MAX_RANKS];
static unsigned replies;
static gex_AM_Index_t short_index, medium_index, long_index, reply_index, reply_medium_index;
static unsigned messages;
static char *source;

/* ---- handlers ---- */

static void count(gex_Token_t token, gex_AM_Arg_t pattern, gex_AM_Arg_t number, gex_Rank_t *from)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    CHECK(pattern >= 0 && pattern < PATTERNS, "pattern %d", pattern);
    got[pattern][info.gex_srcrank].mixed += job_mix((uint64_t)number, info.gex_srcrank);
    got[pattern][info.gex_srcrank].count++;
    *from = info.gex_srcrank;
}

/* A third of the messages has no answer, a third a large one. */
static void answer(gex_Token_t token, gex_AM_Arg_t pattern, gex_AM_Arg_t number)
{
    static char big[5000];

    if (pattern == STREAM || pattern == PING || number % 3 == 0)
        return;
    if (number % 3 == 1)
        gex_AM_ReplyShort1(token, reply_index, 0, number);
    else
        gex_AM_ReplyMedium1(token, reply_medium_index, big, sizeof big, GEX_EVENT_NOW, 0, number);
}

static unsigned answers_for(unsigned number_of_messages)
{
    return number_of_messages - (number_of_messages + 2) / 3;
}

static void on_short(gex_Token_t token, gex_AM_Arg_t pattern, gex_AM_Arg_t number)
{
    gex_Rank_t from;

    count(token, pattern, number, &from);
    answer(token, pattern, number);
}

static void on_payload(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t pattern,
                       gex_AM_Arg_t number)
{
    gex_Rank_t from;

    count(token, pattern, number, &from);
    CHECK_PATTERN(memory, size, job_mix((uint64_t)number, from));
    answer(token, pattern, number);
}

static void on_reply(gex_Token_t token, gex_AM_Arg_t number)
{
    (void)token;
    (void)number;
    replies++;
}

static void on_reply_medium(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t number)
{
    (void)memory;
    CHECK(size == 5000);
    on_reply(token, number);
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
        {0, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
        {0, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
        {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_reply_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 5) == GASNET_OK);
    short_index = table[0].gex_index;
    medium_index = table[1].gex_index;
    long_index = table[2].gex_index;
    reply_index = table[3].gex_index;
    reply_medium_index = table[4].gex_index;
}

/* ---- sending ---- */

/* A cell is free again when the credit of its message has come back. Every tested setting allows
 * fewer than CELLS messages in flight to one peer: the payload of one more may be written before
 * its header gets a credit. */
static void *cell_at(gex_Rank_t to, unsigned number)
{
    return job_remote(to, ((size_t)job.rank * CELLS + number % CELLS) * CELL);
}

/* Returns 0, or what the library returned instead of sending (with GEX_FLAG_IMMEDIATE only). */
static int try_to_send(enum pattern pattern, gex_Rank_t to, unsigned number, gex_Flags_t flags)
{
    static const size_t sizes[] = {0, 8, 60, 100, 1499, 1500, 4012, 4096};
    static const size_t long_sizes[] = {0, 33, 1024, 4012, 4013, MAX_LONG};
    uint64_t seed = job_mix(number, job.rank);
    size_t size;

    if (number % 4 == 0)
        return gex_AM_RequestShort2(job.tm, to, short_index, flags, pattern, (gex_AM_Arg_t)number);
    if (number % 4 == 3) {
        size = long_sizes[number / 4 % 6];
        job_fill(source, size, seed);
        return gex_AM_RequestLong2(job.tm, to, long_index, source, size, cell_at(to, number),
                                   GEX_EVENT_NOW, flags, pattern, (gex_AM_Arg_t)number);
    }
    size = number % 32 == 1 ? gex_AM_LUBRequestMedium() : sizes[number / 2 % 8];
    job_fill(source, size, seed);
    return gex_AM_RequestMedium2(job.tm, to, medium_index, source, size, GEX_EVENT_NOW, flags,
                                 pattern, (gex_AM_Arg_t)number);
}

static void send(enum pattern pattern, gex_Rank_t to, unsigned number)
{
    CHECK(try_to_send(pattern, to, number, 0) == 0, "not sent");
}

static struct sum sum_from(gex_Rank_t from, unsigned number_of_messages)
{
    struct sum sum = {number_of_messages, 0};

    for (unsigned i = 0; i < number_of_messages; i++)
        sum.mixed += job_mix(i, from);
    return sum;
}

static void expect(enum pattern pattern, gex_Rank_t from, unsigned number_of_messages)
{
    struct sum sum = sum_from(from, number_of_messages);

    job_phase("pattern %d: waiting for %u messages of rank %u", pattern, number_of_messages, from);
    GASNET_BLOCKUNTIL(got[pattern][from].count >= number_of_messages);
    CHECK(got[pattern][from].count == sum.count, "rank %u: %u", from, got[pattern][from].count);
    CHECK(got[pattern][from].mixed == sum.mixed, "rank %u: other messages", from);
}

static void expect_replies(unsigned number)
{
    job_phase("waiting for %u replies", number);
    GASNET_BLOCKUNTIL(replies >= number);
    CHECK(replies == number, "%u replies", replies);
    replies = 0;
}

/* ---- patterns ---- */

static void to_one(void)
{
    for (unsigned i = 0; i < messages; i++)
        send(TO_ONE, 0, i);
    for (gex_Rank_t from = 0; job.rank == 0 && from < job.size; from++)
        expect(TO_ONE, from, messages);
    expect_replies(answers_for(messages));
}

static void to_all(enum pattern pattern)
{
    for (unsigned i = 0; i < messages; i++)
        for (gex_Rank_t to = 0; to < job.size; to++)
            send(pattern, (job.rank + to) % job.size, i);
    for (gex_Rank_t from = 0; from < job.size; from++)
        expect(pattern, from, messages);
    expect_replies(answers_for(messages) * job.size);
}

/* Nothing is sent in the other direction, so only hidden messages return credits. */
static void stream(void)
{
    if (job.rank % 2 == 0)
        for (unsigned i = 0; i < messages; i++)
            send(STREAM, (job.rank + 1) % job.size, i);
    if (job.rank % 2 == 1 || (job.rank == 0 && job.size % 2 == 1))
        expect(STREAM, (job.rank + job.size - 1) % job.size, messages);
}

/* Requests in both directions and no reply: each side's requests return the other's credits. */
static void ping(void)
{
    gex_Rank_t partner = job.rank ^ 1;

    if (partner >= job.size)
        return;
    for (unsigned i = 0; i < messages; i++) {
        if (job.rank % 2 == 0)
            send(PING, partner, i);
        GASNET_BLOCKUNTIL(got[PING][partner].count > i);
        if (job.rank % 2 == 1)
            send(PING, partner, i);
    }
    expect(PING, partner, messages);
}

/* A refused message was not sent: it is tried again until it is sent, and arrives once. */
static void hurried(void)
{
    for (unsigned i = 0; i < messages; i++)
        for (gex_Rank_t to = 0; to < job.size; to++)
            while (try_to_send(HURRIED, (job.rank + to) % job.size, i, GEX_FLAG_IMMEDIATE))
                gasnet_AMPoll();
    for (gex_Rank_t from = 0; from < job.size; from++)
        expect(HURRIED, from, messages);
    expect_replies(answers_for(messages) * job.size);
}

/* Rank 0 stays away from the library while the others fill its receive queues. */
static void late(void)
{
    struct timespec nap = {0, 30 * 1000 * 1000};

    if (job.rank == 0)
        nanosleep(&nap, NULL);
    to_all(LATE);
}

/* Bursts from each side in turn: credits that are held back must not be lost when the direction
 * changes. */
static void back_and_forth(void)
{
    gex_Rank_t partner = job.rank ^ 1;
    unsigned burst = 16, sent = 0;

    if (partner >= job.size)
        return;
    for (unsigned round = 0; round < messages / burst; round++) {
        if (round % 2 == job.rank % 2)
            for (unsigned i = 0; i < burst; i++)
                send(BACK_AND_FORTH, partner, sent++);
        else
            GASNET_BLOCKUNTIL(got[BACK_AND_FORTH][partner].count >= (round / 2 + 1) * burst);
    }
    expect_replies(answers_for(sent));
}

static void run(const char *name, void (*pattern)(void))
{
    job_phase("%s", name);
    job_barrier();
    pattern();
}

static void all_to_all(void)
{
    to_all(TO_ALL);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, (size_t)SEGMENT);
    CHECK(job.size <= MAX_RANKS);
    messages = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    source = job_memory(gex_AM_LUBRequestMedium() + MAX_LONG);
    register_handlers();
    run("all to one", to_one);
    run("all to all", all_to_all);
    run("stream", stream);
    run("ping", ping);
    run("late", late);
    run("back and forth", back_and_forth);
    run("hurried", hurried);
    job_end();
}
