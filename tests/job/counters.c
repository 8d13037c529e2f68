/* SPDX-License-Identifier: BSD-3-Clause */
/* Does a random mix of puts, gets and messages, of which some are prepared and a third of these
 * cancelled, counts them itself, and leaves what it counted in the file EXPECTED.RANK, one "name
 * number" a line, for counters.sh to compare with the statistics of the library. COUNTERS_THREADS
 * threads do it, in two generations. COUNTERS_END: how it ends (exit, abort, segv, signal).
 * Compiled as for a library with --enable-stats, so that operations on neighbours call the library
 * too. */
#define GASNET_STATS 1
#include "config.h"

#include "job.h"

#include "gasnet_tools.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 150, SIZE_MAX_LOG = 17, THREADS_MAX = 4, CLASSES = 48 };
enum { SLOT = 1 << (SIZE_MAX_LOG + 1), NUMBER = 2 * THREADS_MAX * SLOT };
enum { SEGMENT = NUMBER + 65536 };
enum { REQUEST_SHORT = 200, REQUEST_MEDIUM, REQUEST_LONG, REPLY_SHORT, REPLY_MEDIUM };

struct counted {
    atomic_ulong puts, gets, put_bytes, get_bytes, put_sizes[CLASSES], get_sizes[CLASSES];
    atomic_ulong short_requests, medium_requests, long_requests, short_replies, medium_replies;
    atomic_ulong shorts_received, mediums_received, longs_received, message_bytes;
    atomic_ulong messages_cancelled, commits_refused;
    atomic_ulong answered;
};

static struct counted counted;

static unsigned log2_of(size_t number)
{
    unsigned log = 0;

    while (number >>= 1)
        log++;
    return log;
}

static void count_put(size_t nbytes)
{
    if (nbytes == 0)
        return;
    counted.puts++;
    counted.put_bytes += nbytes;
    counted.put_sizes[log2_of(nbytes)]++;
}

static void count_get(size_t nbytes)
{
    if (nbytes == 0)
        return;
    counted.gets++;
    counted.get_bytes += nbytes;
    counted.get_sizes[log2_of(nbytes)]++;
}

/* ---- prepared messages: a third is cancelled, a third committed at once or not at all ---- */

enum end { CANCELLED, AT_ONCE, COMMITTED, ENDS };

/* Decides what happens with a message that could not be sent at once. */
static enum end refused(gex_AM_Arg_t arg)
{
    counted.commits_refused++;
    return arg & 1 ? COMMITTED : CANCELLED;
}

#define END_PREPARED(name, form, index, ...)                                                       \
    static int name(gex_AM_SrcDesc_t sd, enum end end, size_t nbytes, char *to, gex_AM_Arg_t arg)  \
    {                                                                                              \
        (void)to;                                                                                  \
        if (end == AT_ONCE) {                                                                      \
            if (gex_AM_Commit##form##1_v2(sd, index, nbytes, __VA_ARGS__ GEX_FLAG_IMMEDIATE,       \
                                          arg) == 0)                                               \
                return 1;                                                                          \
            end = refused(arg);                                                                    \
        }                                                                                          \
        if (end == CANCELLED) {                                                                    \
            CHECK(gex_AM_Cancel##form(sd, 0) == 0);                                                \
            counted.messages_cancelled++;                                                          \
            return 0;                                                                              \
        }                                                                                          \
        gex_AM_Commit##form##1(sd, index, nbytes, __VA_ARGS__ arg);                                \
        return 1;                                                                                  \
    }
END_PREPARED(end_medium_request, RequestMedium, REQUEST_MEDIUM, )
END_PREPARED(end_long_request, RequestLong, REQUEST_LONG, to, )
END_PREPARED(end_medium_reply, ReplyMedium, REPLY_MEDIUM, )

/* ---- handlers ---- */

static void on_short(gex_Token_t token, gex_AM_Arg_t arg)
{
    counted.shorts_received++;
    if (arg & 1) {
        if (gex_AM_ReplyShort1(token, REPLY_SHORT, arg & 2 ? GEX_FLAG_IMMEDIATE : 0, arg) == 0)
            counted.short_replies++;
        else {
            CHECK(gex_AM_ReplyShort1(token, REPLY_SHORT, 0, arg) == 0);
            counted.short_replies++;
        }
    }
}

static void on_medium(gex_Token_t token, void *buffer, size_t nbytes, gex_AM_Arg_t arg)
{
    counted.mediums_received++;
    if (arg & 1) {
        gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyMedium(
            token, arg & 2 ? NULL : buffer, nbytes, nbytes, arg & 2 ? NULL : GEX_EVENT_NOW, 0, 1);
        if (arg & 2)
            memcpy(gex_AM_SrcDescAddr(sd), buffer, nbytes);
        if (!end_medium_reply(sd, counted.mediums_received % ENDS, nbytes, NULL, arg))
            CHECK(gex_AM_ReplyMedium1(token, REPLY_MEDIUM, buffer, nbytes, GEX_EVENT_NOW, 0, arg) ==
                  0);
        counted.medium_replies++;
        counted.message_bytes += nbytes;
    }
}

static void on_long(gex_Token_t token, void *buffer, size_t nbytes, gex_AM_Arg_t arg)
{
    (void)token, (void)buffer, (void)nbytes, (void)arg;
    counted.longs_received++;
}

static void on_short_reply(gex_Token_t token, gex_AM_Arg_t arg)
{
    (void)token, (void)arg;
    counted.shorts_received++;
    counted.answered++;
}

static void on_medium_reply(gex_Token_t token, void *buffer, size_t nbytes, gex_AM_Arg_t arg)
{
    (void)token, (void)buffer, (void)nbytes, (void)arg;
    counted.mediums_received++;
    counted.answered++;
}

/* ---- the mix ---- */

struct worker {
    pthread_t thread;
    unsigned number;
    uint64_t random;
    unsigned long asked; /* replies that must come */
    char *local;
};

static size_t some_size(struct worker *w)
{
    return (size_t)(job_random(&w->random) &
                    ((UINT64_C(2) << job_random(&w->random) % SIZE_MAX_LOG) - 1));
}

static enum end some_end(struct worker *w)
{
    return (enum end)((job_random(&w->random) >> 20) % ENDS);
}

static void transfer(struct worker *w, gex_Rank_t peer, unsigned what)
{
    size_t nbytes = some_size(w);
    char *there = job_remote(peer, (size_t)w->number * SLOT);
    char *ours = what & 4 ? job.base + (THREADS_MAX + w->number) * SLOT : w->local;
    gex_Flags_t flags = what & 8 ? GEX_FLAG_IMMEDIATE : 0;

    switch (what & 3) {
    case 0:
        if (gex_RMA_PutBlocking(job.tm, peer, there, ours, nbytes, flags) == 0)
            count_put(nbytes);
        break;
    case 1:
        if (gex_RMA_GetBlocking(job.tm, ours, peer, there, nbytes, flags) == 0)
            count_get(nbytes);
        break;
    case 2: {
        gex_Event_t event =
            gex_RMA_PutNB(job.tm, peer, there, ours, nbytes, GEX_EVENT_DEFER, flags);
        if (event == GEX_EVENT_NO_OP)
            break;
        count_put(nbytes);
        gex_Event_Wait(event);
        break;
    }
    default:
        if (gex_RMA_GetNBI(job.tm, ours, peer, there, nbytes, flags) == 0)
            count_get(nbytes);
        gex_NBI_Wait(GEX_EC_ALL, 0);
    }
}

static void short_message(struct worker *w, gex_Rank_t peer, gex_AM_Arg_t arg, gex_Flags_t flags)
{
    if (gex_AM_RequestShort1(job.tm, peer, REQUEST_SHORT, flags, arg) != 0)
        return;
    counted.short_requests++;
    w->asked += arg & 1;
}

static void medium_message(struct worker *w, gex_Rank_t peer, gex_AM_Arg_t arg, gex_Flags_t flags)
{
    size_t nbytes = some_size(w) % (gex_AM_LUBRequestMedium() + 1);

    if (arg & 2) {
        gex_AM_SrcDesc_t sd =
            gex_AM_PrepareRequestMedium(job.tm, peer, NULL, nbytes, nbytes, NULL, flags, 1);
        if (sd == GEX_AM_SRCDESC_NO_OP)
            return;
        memset(gex_AM_SrcDescAddr(sd), 1, nbytes);
        if (!end_medium_request(sd, some_end(w), nbytes, NULL, arg))
            return;
    } else if (gex_AM_RequestMedium1(job.tm, peer, REQUEST_MEDIUM, w->local, nbytes, GEX_EVENT_NOW,
                                     flags, arg) != 0) {
        return;
    }
    counted.medium_requests++;
    counted.message_bytes += nbytes;
    w->asked += arg & 1;
}

static void long_message(struct worker *w, gex_Rank_t peer, gex_AM_Arg_t arg, gex_Flags_t flags)
{
    size_t nbytes = some_size(w);
    char *there = job_remote(peer, (size_t)w->number * SLOT);

    if (arg & 2) {
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestLong(job.tm, peer, w->local, nbytes, nbytes,
                                                        NULL, GEX_EVENT_NOW, flags, 1);
        if (sd == GEX_AM_SRCDESC_NO_OP || !end_long_request(sd, some_end(w), nbytes, there, arg))
            return;
    } else if (gex_AM_RequestLong1(job.tm, peer, REQUEST_LONG, w->local, nbytes, there,
                                   GEX_EVENT_NOW, flags, arg) != 0) {
        return;
    }
    counted.long_requests++;
    counted.message_bytes += nbytes;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    gex_Rank_t peer = (job.rank + 1) % job.size;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t r = job_random(&w->random);
        gex_AM_Arg_t arg = (gex_AM_Arg_t)(r >> 32 & 3);
        gex_Flags_t flags = r & 64 ? GEX_FLAG_IMMEDIATE : 0;

        switch (r & 7) {
        case 0:
        case 1:
            short_message(w, peer, arg, flags);
            break;
        case 2:
            medium_message(w, peer, arg, flags);
            break;
        case 3:
            long_message(w, peer, arg, flags);
            break;
        default:
            transfer(w, peer, (unsigned)(r >> 8));
        }
    }
    return NULL;
}

/* ---- */

static unsigned long asked_by(struct worker *workers, unsigned count)
{
    unsigned long sum = 0;

    for (unsigned i = 0; i < count; i++)
        sum += workers[i].asked;
    return sum;
}

static void generation(struct worker *workers, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    work(&workers[0]);
    for (unsigned i = 1; i < count; i++)
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
}

static void line(FILE *out, const char *name, atomic_ulong *number)
{
    CHECK(fprintf(out, "%s %lu\n", name, (unsigned long)*number) > 0);
}

static void write_sizes(FILE *out, const char *name, atomic_ulong *sizes)
{
    for (unsigned i = 0; i < CLASSES; i++)
        if (sizes[i])
            CHECK(fprintf(out, "%s%llu %lu\n", name, 1ULL << i, (unsigned long)sizes[i]) > 0);
}

static void write_counted(const char *path)
{
    char name[4096];

    snprintf(name, sizeof(name), "%s.%u", path, (unsigned)job.rank);
    FILE *out = fopen(name, "w");
    CHECK(out, "%s", name);
    line(out, "puts", &counted.puts);
    line(out, "gets", &counted.gets);
    line(out, "put_bytes", &counted.put_bytes);
    line(out, "get_bytes", &counted.get_bytes);
    line(out, "message_bytes", &counted.message_bytes);
    line(out, "short_requests", &counted.short_requests);
    line(out, "medium_requests", &counted.medium_requests);
    line(out, "long_requests", &counted.long_requests);
    line(out, "short_replies", &counted.short_replies);
    line(out, "medium_replies", &counted.medium_replies);
    line(out, "shorts_received", &counted.shorts_received);
    line(out, "mediums_received", &counted.mediums_received);
    line(out, "longs_received", &counted.longs_received);
    line(out, "messages_cancelled", &counted.messages_cancelled);
    line(out, "commits_refused", &counted.commits_refused);
    write_sizes(out, "puts:", counted.put_sizes);
    write_sizes(out, "gets:", counted.get_sizes);
    CHECK(fclose(out) == 0);
}

/* Tells the receivers how many messages without an answer come. The number goes to separate memory:
 * payloads of earlier messages may be copied after it. */
static atomic_ulong to_come;

static void serve_all(struct worker *workers, unsigned count)
{
    unsigned long sent = counted.short_requests + counted.medium_requests + counted.long_requests;
    char *mine = job.base + NUMBER, *there = job_remote((job.rank + 1) % job.size, NUMBER);

    while (counted.answered < asked_by(workers, count))
        gasnet_AMPoll();
    job_barrier();
    CHECK(gex_RMA_PutBlocking(job.tm, (job.rank + 1) % job.size, there, &sent, sizeof(sent), 0) ==
          0);
    count_put(sizeof(sent));
    job_barrier();
    memcpy(&sent, mine, sizeof(sent));
    to_come = sent;
    while (counted.shorts_received + counted.mediums_received + counted.longs_received <
           to_come + counted.answered)
        gasnet_AMPoll();
    job_barrier();
}

/* Adds text of the program, and resets counts. */
static void at_end(void (*print)(const char *format, ...))
{
    print("counted at the end: %d", 17);
}

static void use_tools(void)
{
    int evaluated = 0;

    CHECK(GASNETT_STATS_INIT(at_end) == (getenv("GASNET_STATSFILE") != NULL));
    GASNETT_STATS_SETMASK("PA");
    CHECK(!strcmp(GASNETT_STATS_GETMASK(), getenv("GASNET_STATSFILE") ? "PA" : ""));
    GASNETT_STATS_PRINTF("masked %d", ++evaluated);
    CHECK(evaluated == 0);
    GASNETT_STATS_PRINTF_FORCE("forced \"%d\"", 1);
    GASNETT_STATS_SETMASK("PHA");
    GASNETT_STATS_PRINTF("not masked %d", ++evaluated);
    CHECK(evaluated == (getenv("GASNET_STATSFILE") != NULL));
    GASNETT_STATS_DUMP(1);
}

static void leave(const char *how)
{
    if (!strcmp(how, "abort") && job.rank == 0)
        abort();
    if (!strcmp(how, "segv") && job.rank == 0)
        raise(SIGSEGV);
    if (!strcmp(how, "signal") && job.rank == 0)
        raise(SIGTERM);
    if (!strcmp(how, "exit"))
        job_end();
    for (;;)
        gasnet_AMPoll();
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {{REQUEST_SHORT, (gex_AM_Fn_t)on_short,
                               GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 1, NULL, "short"},
                              {REQUEST_MEDIUM, (gex_AM_Fn_t)on_medium,
                               GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 1, NULL, "medium"},
                              {REQUEST_LONG, (gex_AM_Fn_t)on_long,
                               GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_LONG, 1, NULL, "long"},
                              {REPLY_SHORT, (gex_AM_Fn_t)on_short_reply,
                               GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 1, NULL, "short reply"},
                              {REPLY_MEDIUM, (gex_AM_Fn_t)on_medium_reply,
                               GEX_FLAG_AM_REPLY | GEX_FLAG_AM_MEDIUM, 1, NULL, "medium reply"}};
    struct worker workers[THREADS_MAX] = {{0}};
    unsigned count = (unsigned)job_number("COUNTERS_THREADS", 1);
    const char *how = getenv("COUNTERS_END");

    CHECK(argc == 2, "usage: counters EXPECTED");
    job_start(&argc, &argv, 0);
    CHECK(gex_EP_RegisterHandlers(job.ep, table, sizeof(table) / sizeof(table[0])) == GASNET_OK);
    job_attach(SEGMENT);
    CHECK(count >= 1 && count <= THREADS_MAX);
    for (unsigned i = 0; i < count; i++) {
        workers[i].number = i;
        workers[i].random = job_mix((uint64_t)job_number("COUNTERS_SEED", 1), job.rank * 100 + i);
        workers[i].local = job_memory(SLOT);
        memset(workers[i].local, 1, SLOT);
    }
    job_phase("first generation");
    generation(workers, count);
    job_phase("second generation");
    generation(workers, count);
    job_phase("replies");
    serve_all(workers, count);
    write_counted(argv[1]);
    if (getenv("COUNTERS_TOOLS"))
        use_tools();
    job_barrier();
    leave(how ? how : "exit");
}
