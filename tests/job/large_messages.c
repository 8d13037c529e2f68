/* SPDX-License-Identifier: BSD-3-Clause */
/* Mediums of every size around the size of a receive buffer of a shared queue, requests and
 * replies, by every call that sends them: each arrives once and complete, from any number of ranks.
 * Usage:
 *
 *     large_messages [MESSAGES [THREADS]]
 *         all to all, then all to rank 0, which polls late: MESSAGES for each pair (default 40)
 *
 *     large_messages whole SIZE MESSAGES
 *         no payload is larger than SIZE, and each has 16 arguments
 *
 *     large_messages computing MESSAGES
 *         rank 0 computes and never polls; its progress thread answers, few answers take over 10 ms
 *
 *     large_messages exit|kill MESSAGES
 *         rank 1 leaves by gasnet_exit(5), or dies, after MESSAGES; all others send without end
 *
 * The contents of a message follow from its number and its sender, so its receiver knows what to
 * expect. Counters are atomic: in PAR several threads send, and handlers run in all of them. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RANKS = 8, MAX_ARGS = 16, THREADS_MAX = 8 };
enum way { COPIED, BY_EVENT, IN_GROUP, AT_ONCE, NEGOTIATED, NEGOTIATED_IN_PLACE, WAYS };
enum answer { NONE, SHORT, MEDIUM, PREPARED, ANSWERS };

static struct {
    atomic_uint requests, answers;
    _Atomic uint64_t mixed;
} got[MAX_RANKS];
static size_t size_max;
static int only_whole;
static unsigned threads = 1;
static gex_AM_Index_t ask_index, ask_all_index, short_index, answer_index;

/* ---- what a message is ---- */

static uint64_t seed_of(unsigned number, gex_Rank_t from)
{
    return job_mix(number, from);
}

/* Half of the sizes are around the size of a buffer, wherever that counts from; others are small,
 * or of any size. */
static size_t size_of(uint64_t seed)
{
    uint64_t choice = job_mix(seed, 1), random = job_mix(seed, 2);
    size_t size = random % (size_max + 1);
    if (choice % 8 < 4)
        size = 4096 - 8 + random % 160;
    else if (choice % 8 == 4)
        size = random % 300;
    else if (choice % 8 == 5)
        size = size_max - random % 3;
    else if (choice % 8 == 6 && random % 2)
        size = 0;
    return size > size_max ? size_max : size;
}

static enum way way_of(uint64_t seed)
{
    return only_whole ? COPIED : (enum way)(job_mix(seed, 3) % WAYS);
}

static enum answer answer_of(uint64_t seed)
{
    return only_whole ? NONE : (enum answer)(job_mix(seed, 4) % ANSWERS);
}

/* ---- handlers ---- */

static _Thread_local char *reply_source;

static void *make_source(char **source)
{
    if (!*source)
        *source = malloc(size_max + 1);
    CHECK(*source);
    return *source;
}

static void reply_prepared(gex_Token_t token, uint64_t seed, unsigned number, size_t size)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyMedium(token, NULL, size, size_max, NULL, 0, 1);
    CHECK(sd != GEX_AM_SRCDESC_NO_OP && gex_AM_SrcDescSize(sd) >= size);
    job_fill(gex_AM_SrcDescAddr(sd), size, seed + 1);
    gex_AM_CommitReplyMedium1(sd, answer_index, size, (gex_AM_Arg_t)number);
}

static void reply(gex_Token_t token, uint64_t seed, unsigned number)
{
    size_t size = size_of(seed + 1);
    switch (answer_of(seed)) {
    case SHORT:
        CHECK(gex_AM_ReplyShort1(token, short_index, 0, (gex_AM_Arg_t)number) == 0);
        break;
    case MEDIUM:
        job_fill(make_source(&reply_source), size, seed + 1);
        CHECK(gex_AM_ReplyMedium1(token, answer_index, reply_source, size, GEX_EVENT_NOW, 0,
                                  (gex_AM_Arg_t)number) == 0);
        memset(reply_source, 0, size);
        break;
    case PREPARED:
        reply_prepared(token, seed, number, size);
        break;
    default:
        break;
    }
}

static gex_Rank_t sender_of(gex_Token_t token)
{
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return info.gex_srcrank;
}

static void on_ask(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t number)
{
    gex_Rank_t from = sender_of(token);
    uint64_t seed = seed_of((unsigned)number, from);
    CHECK(size == size_of(seed), "message %d of rank %u: %zu bytes, not %zu", number, from, size,
          size_of(seed));
    CHECK_PATTERN(memory, size, seed);
    reply(token, seed, (unsigned)number);
    atomic_fetch_add(&got[from].mixed, seed);
    atomic_fetch_add(&got[from].requests, 1);
}

#define ARGUMENTS                                                                                  \
    gex_AM_Arg_t a1, gex_AM_Arg_t a2, gex_AM_Arg_t a3, gex_AM_Arg_t a4, gex_AM_Arg_t a5,           \
        gex_AM_Arg_t a6, gex_AM_Arg_t a7, gex_AM_Arg_t a8, gex_AM_Arg_t a9, gex_AM_Arg_t a10,      \
        gex_AM_Arg_t a11, gex_AM_Arg_t a12, gex_AM_Arg_t a13, gex_AM_Arg_t a14, gex_AM_Arg_t a15

static void on_ask_all(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t number, ARGUMENTS)
{
    CHECK(a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15 == 120);
    on_ask(token, memory, size, number);
}

static void on_short(gex_Token_t token, gex_AM_Arg_t number)
{
    (void)number;
    atomic_fetch_add(&got[sender_of(token)].answers, 1);
}

static void on_answer(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t number)
{
    uint64_t seed = seed_of((unsigned)number, job.rank) + 1;
    CHECK(size == size_of(seed), "answer to message %d: %zu bytes, not %zu", number, size,
          size_of(seed));
    CHECK_PATTERN(memory, size, seed);
    atomic_fetch_add(&got[sender_of(token)].answers, 1);
}

static void register_handlers(void)
{
    const gex_Flags_t request = GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST;
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_ask, request, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_ask_all, request, MAX_ARGS, NULL, NULL},
        {0, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
        {0, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
    };
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 4) == GASNET_OK);
    ask_index = table[0].gex_index;
    ask_all_index = table[1].gex_index;
    short_index = table[2].gex_index;
    answer_index = table[3].gex_index;
}

/* ---- sending ---- */

static int plain(gex_Rank_t to, unsigned number, const char *source, size_t size, gex_Event_t *lc,
                 gex_Flags_t flags)
{
    gex_AM_Arg_t n = (gex_AM_Arg_t)number;
    if (number % 3 == 0 || only_whole)
        return gex_AM_RequestMedium16(job.tm, to, ask_all_index, source, size, lc, flags, n, 1, 2,
                                      3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return gex_AM_RequestMedium1(job.tm, to, ask_index, source, size, lc, flags, n);
}

static void send_prepared(gex_Rank_t to, unsigned number, const char *source, size_t size)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(
        job.tm, to, source, size, source ? size : size_max, source ? GEX_EVENT_NOW : NULL, 0, 1);
    CHECK(sd != GEX_AM_SRCDESC_NO_OP && gex_AM_SrcDescSize(sd) >= size);
    if (!source)
        job_fill(gex_AM_SrcDescAddr(sd), size, seed_of(number, job.rank));
    gex_AM_CommitRequestMedium1(sd, ask_index, size, (gex_AM_Arg_t)number);
}

/* The source is overwritten as soon as it may be. */
static void request(gex_Rank_t to, unsigned number, char *source)
{
    uint64_t seed = seed_of(number, job.rank);
    size_t size = size_of(seed);
    gex_Event_t event;
    job_fill(source, size, seed);
    switch (way_of(seed)) {
    case COPIED:
        CHECK(plain(to, number, source, size, GEX_EVENT_NOW, 0) == 0);
        break;
    case BY_EVENT:
        CHECK(plain(to, number, source, size, &event, 0) == 0);
        gex_Event_Wait(event);
        break;
    case IN_GROUP:
        CHECK(plain(to, number, source, size, GEX_EVENT_GROUP, 0) == 0);
        gex_NBI_Wait(GEX_EC_AM, 0);
        break;
    case AT_ONCE:
        while (plain(to, number, source, size, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE) != 0)
            gasnet_AMPoll();
        break;
    case NEGOTIATED:
        send_prepared(to, number, source, size);
        break;
    default:
        send_prepared(to, number, NULL, size);
        break;
    }
    memset(source, 0xee, size);
}

/* One thread's share of what goes to the first `count` ranks. */
struct share {
    unsigned thread, from, to; /* numbers of messages */
    gex_Rank_t count;
};

static void *send_share(void *argument)
{
    const struct share *share = argument;
    char *source = NULL;
    make_source(&source);
    for (unsigned i = share->from + share->thread; i < share->to; i += threads)
        for (gex_Rank_t k = 0; k < share->count; k++) {
            gex_Rank_t to = (job.rank + k) % share->count;
            if (to != job.rank)
                request(to, i, source);
        }
    free(source);
    free(reply_source); /* of handlers that ran in this thread */
    reply_source = NULL;
    return NULL;
}

static void send_all(struct share share)
{
    pthread_t thread[THREADS_MAX];
    struct share shares[THREADS_MAX];
    for (unsigned t = 0; t < threads; t++) {
        shares[t] = share;
        shares[t].thread = t;
        if (t > 0)
            CHECK(pthread_create(&thread[t], NULL, send_share, &shares[t]) == 0);
    }
    send_share(&shares[0]);
    for (unsigned t = 1; t < threads; t++)
        CHECK(pthread_join(thread[t], NULL) == 0);
}

/* ---- what has come ---- */

static void expect_requests(gex_Rank_t from, unsigned messages)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < messages; i++)
        sum += seed_of(i, from);
    job_phase("waiting for %u messages of rank %u", messages, from);
    GASNET_BLOCKUNTIL(atomic_load(&got[from].requests) >= messages);
    CHECK(atomic_load(&got[from].requests) == messages, "of rank %u: %u", from,
          atomic_load(&got[from].requests));
    CHECK(atomic_load(&got[from].mixed) == sum, "other messages of rank %u", from);
}

static void expect_answers(gex_Rank_t from, unsigned messages)
{
    unsigned answers = 0;
    for (unsigned i = 0; i < messages; i++)
        answers += answer_of(seed_of(i, job.rank)) != NONE;
    job_phase("waiting for %u answers of rank %u", answers, from);
    GASNET_BLOCKUNTIL(atomic_load(&got[from].answers) >= answers);
    CHECK(atomic_load(&got[from].answers) == answers);
}

static void all_to_all(unsigned messages)
{
    job_phase("all to all");
    send_all((struct share){.to = messages, .count = job.size});
    for (gex_Rank_t r = 0; r < job.size; r++) {
        if (r == job.rank)
            continue;
        expect_requests(r, messages);
        expect_answers(r, messages);
    }
    job_barrier();
}

/* By then everything has arrived that can be sent without a poll of the receiver. */
static void all_to_one(unsigned from, unsigned to)
{
    job_phase("all to rank 0");
    if (job.rank != 0)
        send_all((struct share){.from = from, .to = to, .count = 1});
    else
        usleep(50000);
    for (gex_Rank_t r = 1; r < job.size && job.rank == 0; r++)
        expect_requests(r, to);
    if (job.rank != 0)
        expect_answers(0, to);
    job_barrier();
}

/* ---- a receiver that computes ---- */

/* Is the message, or the reply to it, read from its sender's memory? */
static bool is_large(uint64_t seed)
{
    enum answer answer = answer_of(seed);
    return size_of(seed) > 4096 ||
           ((answer == MEDIUM || answer == PREPARED) && size_of(seed + 1) > 4096);
}

/* Returns by how much the share of slow answers is larger among large messages than among small
 * ones. */
static double slower_by(unsigned from, unsigned to, char *source, unsigned *answers)
{
    unsigned slow[2] = {0, 0}, all[2] = {1, 1}; /* small ones, large ones */
    for (unsigned i = from; i < to; i++) {
        bool large = is_large(seed_of(i, 1));
        double begin = job_seconds();
        request(0, i, source);
        *answers += answer_of(seed_of(i, 1)) != NONE;
        GASNET_BLOCKUNTIL(atomic_load(&got[0].answers) == *answers);
        slow[large] += job_seconds() - begin > 0.01;
        all[large]++;
    }
    return (double)slow[1] / all[1] - (double)slow[0] / all[0];
}

/* Takes the best of several runs: on a busy machine all answers also wait for a CPU, and those that
 * need several CPUs wait longer. */
static void to_one_that_computes(unsigned messages)
{
    enum { turns = 4 };
    unsigned answers = 0;
    double least = 1;
    char *source = NULL;
    make_source(&source);
    job_barrier();
    while (job.rank == 0 && atomic_load(&got[1].requests) < turns * messages)
        usleep(1000);
    for (unsigned i = 0; job.rank == 1 && i < turns; i++) {
        double slower = slower_by(i * messages, (i + 1) * messages, source, &answers);
        least = slower < least ? slower : least;
    }
    CHECK(job.rank != 1 || least < 0.2,
          "answers to large messages took more than 10 ms more often by %.0f %%", 100 * least);
    free(source);
}

/* ---- ends in the middle ---- */

static void never_end(unsigned messages, int is_killed)
{
    char *source = NULL;
    make_source(&source);
    job_barrier();
    for (unsigned i = 0;; i++) {
        if (job.rank == 1 && i == messages && is_killed)
            raise(SIGKILL);
        if (job.rank == 1 && i == messages)
            gasnet_exit(5);
        for (gex_Rank_t k = 1; k < job.size; k++)
            request((job.rank + k) % job.size, i, source);
    }
}

static unsigned number_at(char **argv, int argc, int at, unsigned otherwise)
{
    return argc > at ? (unsigned)atoi(argv[at]) : otherwise;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 1 << 20);
    CHECK(job.size <= MAX_RANKS);
    size_max = gex_AM_MaxRequestMedium(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, MAX_ARGS);
    CHECK(size_max == gex_AM_LUBRequestMedium() && size_max == gex_AM_LUBReplyMedium());
    const char *how = argc > 1 ? argv[1] : "";
    only_whole = strcmp(how, "whole") == 0;
    if (only_whole)
        size_max = number_at(argv, argc, 2, 4096);
    register_handlers();
    job_barrier();
    if (strcmp(how, "exit") == 0 || strcmp(how, "kill") == 0)
        never_end(number_at(argv, argc, 2, 20), strcmp(how, "kill") == 0);
    if (strcmp(how, "computing") == 0) {
        to_one_that_computes(number_at(argv, argc, 2, 40));
        job_end();
    }
    unsigned messages = number_at(argv, argc, only_whole ? 3 : 1, 40);
    threads = number_at(argv, argc, only_whole ? 9 : 2, 1);
    CHECK(threads >= 1 && threads <= THREADS_MAX);
    all_to_all(messages);
    all_to_one(messages, 2 * messages);
    job_end();
}
