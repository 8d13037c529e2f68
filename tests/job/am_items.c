/* SPDX-License-Identifier: BSD-3-Clause */
/* Promises of active messages that implementations have broken: one function for each of items
 * 1 to 21 of tests/rules.md. Missing here: item 3 (no order), which no test can see; item 8,
 * item 12 and half of items 1, 15 and 16, which are client errors and in misuse.c; item 14
 * (handlers.c) and item 21 (negotiated.c). The client thread owns everything; item 13 starts
 * other threads in PAR. */
#include "config.h"

#include "job.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { SEGMENT = 1 << 20, BIG = 300000, FLOOD = 300 };

static gex_AM_Index_t ask, tell, ask_payload, tell_payload, three, late;
static volatile int asked, told, payloads, threes, lates;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static gex_Rank_t asker;
static void *last_address;
static char *reply_source;

enum { SILENT, ANSWER, ANSWER_BIG };

static gex_Rank_t next(void)
{
    return (job.rank + 1) % job.size;
}

static gex_Rank_t before(void)
{
    return (job.rank + job.size - 1) % job.size;
}

static void on_ask(gex_Token_t token, gex_AM_Arg_t what)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    gex_HSL_Lock(&lock);
    asker = info.gex_srcrank;
    asked++;
    gex_HSL_Unlock(&lock);
    if (what == ANSWER)
        gex_AM_ReplyShort1(token, tell, 0, what);
    if (what == ANSWER_BIG) {
        job_fill(reply_source, BIG, info.gex_srcrank);
        gex_AM_ReplyLong0(token, tell_payload, reply_source, BIG,
                          job_remote(info.gex_srcrank, SEGMENT / 2), GEX_EVENT_NOW, 0);
        memset(reply_source, 0x55, BIG); /* ours again although a handler cannot poll */
    }
}

static void on_tell(gex_Token_t token, gex_AM_Arg_t what)
{
    (void)token, (void)what;
    gex_HSL_Lock(&lock);
    told++;
    gex_HSL_Unlock(&lock);
}

static void on_payload(gex_Token_t token, void *memory, size_t size)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_ALL);
    if (!info.gex_is_long)
        CHECK(size == 0 || (uintptr_t)memory % 8 == 0, "%p", memory);
    CHECK_PATTERN(memory, size, info.gex_is_req ? info.gex_srcrank : job.rank);
    gex_HSL_Lock(&lock);
    last_address = memory;
    payloads++;
    gex_HSL_Unlock(&lock);
}

static void on_three(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c)
{
    (void)token;
    CHECK(a == INT32_MIN && b == -1 && c == INT32_MAX, "%d %d %d", a, b, c);
    threes++;
}

static void on_late(gex_Token_t token)
{
    (void)token;
    lates++;
}

static gex_AM_Entry_t table[] = {
    {0, (gex_AM_Fn_t)on_ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, table, "ask"},
    {0, (gex_AM_Fn_t)on_tell, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "tell"},
    {0, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 0, NULL, "payload"},
    {0, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REPLY, 0, NULL, "answer"},
    {0, (gex_AM_Fn_t)on_three, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 3, NULL, "three"},
};

/* ---- one function for each item ---- */

static void item_01_none_or_one_reply(void)
{
    gex_AM_RequestShort1(job.tm, next(), ask, 0, SILENT);
    gex_AM_RequestShort1(job.tm, next(), ask, 0, ANSWER);
    GASNET_BLOCKUNTIL(asked == 2 && told == 1);
    job_barrier();
    for (int i = 0; i < 100; i++)
        gasnet_AMPoll();
    CHECK(asked == 2 && told == 1, "%d requests, %d replies", asked, told);
}

/* A handler runs inside our own call, and may take a lock that no one holds. */
static void item_02_handlers_run_inside_calls_that_poll(void)
{
    for (int i = 0; i < FLOOD; i++)
        gex_AM_RequestShort1(job.tm, job.rank, ask, 0, ANSWER);
    GASNET_BLOCKUNTIL(asked == FLOOD && told == FLOOD);
}

static void item_04_mediums_are_aligned(void)
{
    char source[70];

    for (size_t size = 1; size < 64; size++) {
        job_fill(source + size % 7, size, job.rank);
        gex_AM_RequestMedium0(job.tm, next(), ask_payload, source + size % 7, size, GEX_EVENT_NOW,
                              0);
    }
    GASNET_BLOCKUNTIL(payloads == 63);
}

static void item_05_an_empty_long_brings_its_address(void)
{
    for (int round = 1; round <= 2; round++) {
        gex_AM_RequestLong0(job.tm, round == 1 ? next() : job.rank, ask_payload, NULL, 0,
                            (void *)0x1234, GEX_EVENT_NOW, 0);
        GASNET_BLOCKUNTIL(payloads == round);
        CHECK(last_address == (void *)0x1234, "%p", last_address);
        last_address = NULL;
        job_barrier();
    }
}

static void item_06_the_payload_is_there_before_the_handler(void)
{
    char *source = job_memory(BIG);

    job_fill(source, BIG, job.rank);
    for (int i = 0; i < 20; i++) {
        int seen = payloads;
        memset(job.base, 0, BIG);
        job_barrier();
        gex_AM_RequestLong0(job.tm, next(), ask_payload, source, BIG, job_remote(next(), 0),
                            GEX_EVENT_NOW, 0);
        GASNET_BLOCKUNTIL(payloads > seen);
        job_barrier();
    }
}

static void item_07_the_source_is_free_when_now_returns(void)
{
    char *source = job.base + SEGMENT / 2; /* registered: the device reads it in place */

    job_fill(source, BIG, job.rank);
    gex_AM_RequestLong0(job.tm, next(), ask_payload, source, BIG, job_remote(next(), 0),
                        GEX_EVENT_NOW, 0);
    memset(source, 0xee, BIG);
    GASNET_BLOCKUNTIL(payloads == 1);
    job_barrier();
    gex_AM_RequestShort1(job.tm, next(), ask, 0, ANSWER_BIG);
    GASNET_BLOCKUNTIL(payloads == 2);
}

static void item_09_an_event_may_be_over_at_once(void)
{
    char source[8000];
    gex_Event_t events[2] = {GEX_EVENT_NO_OP, GEX_EVENT_NO_OP};

    job_fill(source, sizeof source, job.rank);
    gex_AM_RequestMedium0(job.tm, next(), ask_payload, source, 8, &events[0], 0);
    gex_AM_RequestMedium0(job.tm, next(), ask_payload, source, sizeof source, &events[1], 0);
    CHECK(events[0] != GEX_EVENT_NO_OP && events[1] != GEX_EVENT_NO_OP);
    gex_Event_Wait(events[0]);
    gex_Event_WaitAll(events + 1, 1, 0);
    GASNET_BLOCKUNTIL(payloads == 2);
}

/* The minimum over all ranks is the same on all ranks, and the query does not communicate. */
static void item_10_limits_need_no_communication(void)
{
    size_t least = gex_AM_MaxRequestMedium(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 5);

    for (gex_Rank_t r = 0; r < job.size; r++) {
        CHECK(gex_AM_MaxRequestMedium(job.tm, r, GEX_EVENT_NOW, 0, 5) >= least);
        CHECK(gex_AM_MaxReplyMedium(job.tm, r, GEX_EVENT_NOW, 0, 5) >= least);
    }
    CHECK(gex_AM_LUBRequestMedium() <= least && least >= 512);
    CHECK(gex_AM_MaxRequestLong(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 16) >=
          gex_AM_LUBRequestLong());
}

static void item_11_most_payload_may_be_anything(void)
{
    gex_Flags_t lent = GEX_FLAG_AM_PREPARE_LEAST_ALLOC;
    size_t medium = gex_AM_MaxRequestMedium(job.tm, next(), NULL, lent, 4);
    size_t large = gex_AM_MaxRequestLong(job.tm, next(), NULL, lent, 4);
    gex_AM_SrcDesc_t sd;

    sd = gex_AM_PrepareRequestMedium(job.tm, next(), NULL, medium, SIZE_MAX, NULL, 0, 4);
    CHECK(gex_AM_SrcDescSize(sd) >= medium);
    CHECK(gex_AM_CancelRequestMedium(sd, 0) == 0);
    sd = gex_AM_PrepareRequestLong(job.tm, next(), NULL, large, SIZE_MAX, NULL, NULL, 0, 4);
    CHECK(gex_AM_SrcDescSize(sd) >= large);
    CHECK(gex_AM_CancelRequestLong(sd, 0) == 0);
    sd = gex_AM_PrepareRequestMedium(job.tm, next(), NULL, 0, 0, NULL, 0, 0);
    gex_AM_CommitRequestMedium0(sd, ask_payload, 0);
    GASNET_BLOCKUNTIL(payloads == 1);
}

/* Each thread has its own descriptor, and its own bytes in it. */
static void *prepare_fill_commit(void *unused)
{
    for (int i = 0; i < FLOOD; i++) {
        gex_AM_SrcDesc_t sd =
            gex_AM_PrepareRequestMedium(job.tm, next(), NULL, 100, 3000, NULL, 0, 0);
        job_fill(gex_AM_SrcDescAddr(sd), gex_AM_SrcDescSize(sd), job.rank);
        gex_AM_CommitRequestMedium0(sd, ask_payload, gex_AM_SrcDescSize(sd));
    }
    return unused;
}

static void item_13_descriptors_belong_to_threads(void)
{
#if GASNET_PAR
    enum { THREADS = 4 };
#else
    enum { THREADS = 1 };
#endif
    pthread_t threads[THREADS];

    for (int i = 1; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, prepare_fill_commit, NULL) == 0);
    prepare_fill_commit(NULL);
    GASNET_BLOCKUNTIL(payloads == THREADS * FLOOD);
    for (int i = 1; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Registration is local: a rank may register long after others have sent and received. */
static void item_15_registration_may_come_late(void)
{
    gex_AM_Entry_t one = {
        130, (gex_AM_Fn_t)on_late, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};

    if (job.rank % 2)
        item_02_handlers_run_inside_calls_that_poll();
    CHECK(gex_EP_RegisterHandlers(job.ep, &one, 1) == GASNET_OK);
    job_barrier();
    gex_AM_RequestShort0(job.tm, next(), late, 0);
    GASNET_BLOCKUNTIL(lates == 1);
}

/* A release library must pass on what it does not check; a debug library checks it. */
static void item_16_a_wrong_count_is_passed_on(void)
{
    gex_AM_Entry_t one = {
        131, (gex_AM_Fn_t)on_three, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "says two"};

    CHECK(gex_EP_RegisterHandlers(job.ep, &one, 1) == GASNET_OK);
    job_barrier();
#if !GASNET_DEBUG
    gex_AM_RequestShort3(job.tm, next(), 131, 0, INT32_MIN, -1, INT32_MAX);
    GASNET_BLOCKUNTIL(threes == 1);
#endif
}

static void item_17_arguments_are_signed_and_counted(void)
{
    gex_AM_RequestShort(job.tm, next(), three, 0, INT32_MIN, -1, INT32_MAX);
    gex_AM_RequestShort(job.tm, job.rank, three, 0, INT32_MIN, -1, INT32_MAX);
    gex_AM_RequestShort(job.tm, next(), late, 0);
    GASNET_BLOCKUNTIL(threes == 2 && lates == 1);
}

/* All ranks send to all, and only blocked senders poll. */
static void item_18_floods_end(void)
{
    for (int i = 0; i < FLOOD; i++)
        for (gex_Rank_t r = 0; r < job.size; r++)
            gex_AM_RequestShort1(job.tm, r, ask, 0, ANSWER);
    GASNET_BLOCKUNTIL(asked == FLOOD * (int)job.size && told == FLOOD * (int)job.size);
}

/* If it returns zero, the message was sent and arrives once. Otherwise nothing happened, and after
 * polls it can be sent. */
static void item_19_immediate_sends_all_or_nothing(void)
{
    char *source = job_memory(BIG);
    int sent[4] = {0};

    job_fill(source, BIG, job.rank);
    for (int i = 0; i < 4 * FLOOD; i++) {
        int kind = i % 4, status;
        void *to = job_remote(next(), 0);

        do {
            if (kind == 0)
                status = gex_AM_RequestShort1(job.tm, next(), ask, GEX_FLAG_IMMEDIATE, ANSWER);
            else if (kind == 1)
                status = gex_AM_RequestMedium0(job.tm, next(), ask_payload, source, 9000,
                                               GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE);
            else
                status =
                    gex_AM_RequestLong0(job.tm, next(), ask_payload, source, kind == 2 ? 9000 : BIG,
                                        to, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE);
            if (status)
                gasnet_AMPoll();
        } while (status);
        sent[kind]++;
    }
    CHECK(sent[3] == FLOOD);
    GASNET_BLOCKUNTIL(asked == FLOOD && told == FLOOD && payloads == 3 * FLOOD);
    job_barrier();
    CHECK(asked == FLOOD && told == FLOOD && payloads == 3 * FLOOD, "%d, %d, %d", asked, told,
          payloads);
}

/* One request of each kind to a rank that does not poll and whose queues are full. */
static int refused_at_once(void *to)
{
    static char source[9000] = "not nothing";
    gex_Flags_t now = GEX_FLAG_IMMEDIATE;

    return gex_AM_RequestShort1(job.tm, next(), ask, now, SILENT) &&
           gex_AM_RequestMedium0(job.tm, next(), ask_payload, source, 9000, GEX_EVENT_NOW, now) &&
           gex_AM_RequestLong0(job.tm, next(), ask_payload, source, 10, to, GEX_EVENT_NOW, now) &&
           gex_AM_RequestLong0(job.tm, next(), ask_payload, source, 9000, to, GEX_EVENT_NOW, now) &&
           !gex_AM_PrepareRequestMedium(job.tm, next(), NULL, 1, 9, NULL, now, 0) &&
           !gex_AM_PrepareRequestLong(job.tm, next(), source, 1, 9000, to, GEX_EVENT_NOW, now, 0);
}

/* Rank 1 does not poll until rank 0, which fills all its queues, has put a number into its
 * memory. */
static void item_19_immediate_waits_for_nobody(void)
{
    volatile uint64_t *words = (uint64_t *)job.base;
    uint64_t sent = 1;

    words[0] = words[1] = 0;
    job_barrier();
    if (job.size > 1 && job.rank == 0) {
        for (int refused = 0; refused < FLOOD; refused++) {
            while (!gex_AM_RequestShort1(job.tm, next(), ask, GEX_FLAG_IMMEDIATE, SILENT))
                sent++;
            gasnet_AMPoll(); /* our own queue may have been full, not the receiver's */
        }
        CHECK(refused_at_once(job_remote(next(), 8)));
        gex_RMA_PutBlocking(job.tm, next(), job_remote(next(), 0), &sent, 8, 0);
    } else if (job.rank == 1) {
        while (!words[0])
            sched_yield();
        CHECK(words[1] == 0, "the payload of a message that was not sent came");
        GASNET_BLOCKUNTIL((uint64_t)asked == words[0] - 1);
    }
    job_barrier();
    CHECK(payloads == 0 && (job.rank == 1 || asked == 0), "%d, %d", asked, payloads);
}

static void item_20_the_token_names_a_job_rank(void)
{
    gex_AM_RequestShort1(job.tm, next(), ask, 0, SILENT);
    GASNET_BLOCKUNTIL(asked == 1);
    CHECK(asker == gex_TM_TranslateRankToJobrank(job.tm, before()), "%u", (unsigned)asker);
}

static const struct item {
    const char *name;
    void (*run)(void);
} items[] = {
#define ITEM(name)                                                                                 \
    {                                                                                              \
#        name, name                                                                                \
    }
    ITEM(item_01_none_or_one_reply),
    ITEM(item_02_handlers_run_inside_calls_that_poll),
    ITEM(item_04_mediums_are_aligned),
    ITEM(item_05_an_empty_long_brings_its_address),
    ITEM(item_06_the_payload_is_there_before_the_handler),
    ITEM(item_07_the_source_is_free_when_now_returns),
    ITEM(item_09_an_event_may_be_over_at_once),
    ITEM(item_10_limits_need_no_communication),
    ITEM(item_11_most_payload_may_be_anything),
    ITEM(item_13_descriptors_belong_to_threads),
    ITEM(item_15_registration_may_come_late),
    ITEM(item_16_a_wrong_count_is_passed_on),
    ITEM(item_17_arguments_are_signed_and_counted),
    ITEM(item_18_floods_end),
    ITEM(item_19_immediate_sends_all_or_nothing),
    ITEM(item_19_immediate_waits_for_nobody),
    ITEM(item_20_the_token_names_a_job_rank),
};

static void register_handlers(void)
{
    gex_AM_Index_t *indices[] = {&ask, &tell, &ask_payload, &tell_payload, &three};

    CHECK(gex_EP_RegisterHandlers(job.ep, table, sizeof table / sizeof *table) == GASNET_OK);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        *indices[i] = table[i].gex_index;
    late = 130;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, SEGMENT);
    reply_source = job_memory(BIG);
    register_handlers();
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        job_phase("%s", items[i].name);
        asked = told = payloads = threes = lates = 0;
        job_barrier();
        items[i].run();
        job_barrier();
    }
    job_end();
}
