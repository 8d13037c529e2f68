/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNet-1 active messages: the seven calls with all seventeen argument counts, by number and
 * counted, between all pairs of ranks, sources free on return; the sender's rank, automatic
 * indices, and arguments of other types. See legacy.h. */
#include "config.h"

#include "forms.h"
#include "legacy.h"

#include <string.h>

enum { MAX_ARGS = 16, PAYLOAD = 3000, LONG_AT = 64 };
enum category { SHORT, MEDIUM, LONG };

/* The message in flight: `count` arguments, and its reply has as many. */
static unsigned count;
static enum category category;
static int counted; /* the forms without a number */
static unsigned requests_in, replies_in;

static gasnet_handler_t request_of[MAX_ARGS + 1][3], reply_of[MAX_ARGS + 1][3];

static void make_arguments(gasnet_handlerarg_t *v, uint64_t seed)
{
    for (unsigned i = 0; i < MAX_ARGS; i++)
        v[i] = (gasnet_handlerarg_t)job_mix(seed, i);
}

static uint64_t seed_of(gasnet_node_t from, gasnet_node_t to, int is_reply)
{
    return from * 1000u + to * 10u + (unsigned)is_reply + count * 100000u;
}

static void check_message(gasnet_node_t from, int is_reply, enum category seen, void *memory,
                          size_t size, unsigned nargs, const gasnet_handlerarg_t *args)
{
    uint64_t seed = seed_of(from, job.rank, is_reply);
    gasnet_handlerarg_t expected[MAX_ARGS];

    CHECK(seen == category && nargs == count, "category %d, %u arguments", (int)seen, nargs);
    make_arguments(expected, seed);
    CHECK(memcmp(args, expected, nargs * sizeof *args) == 0, "%u arguments", nargs);
    if (seen == SHORT)
        return;
    CHECK(size == PAYLOAD);
    if (seen == LONG)
        CHECK(memory == legacy_my_slot(from) + LONG_AT + (is_reply ? PAYLOAD : 0));
    CHECK_PATTERN(memory, size, seed);
}

static void answer(gasnet_token_t token, gasnet_node_t to);

static void request_came(gasnet_token_t token, enum category seen, void *memory, size_t size,
                         unsigned nargs, const gasnet_handlerarg_t *args)
{
    gasnet_node_t from = GEX_RANK_INVALID;

    CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK && from < job.size);
    check_message(from, 0, seen, memory, size, nargs, args);
    answer(token, from);
    requests_in++;
}

static void reply_came(gasnet_token_t token, enum category seen, void *memory, size_t size,
                       unsigned nargs, const gasnet_handlerarg_t *args)
{
    gasnet_node_t from = GEX_RANK_INVALID;

    CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK && from < job.size);
    check_message(from, 1, seen, memory, size, nargs, args);
    replies_in++;
}

/* For each count: handlers of requests and replies, and the calls, by number and counted. A long
 * argument in place of the first shows that they are converted. */
#define LONG_0
#define LONG_1  , (long long)v[0] + (1LL << 40)
#define LONG_2  LONG_1, v[1]
#define LONG_3  LONG_2, v[2]
#define LONG_4  LONG_3, v[3]
#define LONG_5  LONG_4, v[4]
#define LONG_6  LONG_5, v[5]
#define LONG_7  LONG_6, v[6]
#define LONG_8  LONG_7, v[7]
#define LONG_9  LONG_8, v[8]
#define LONG_10 LONG_9, v[9]
#define LONG_11 LONG_10, v[10]
#define LONG_12 LONG_11, v[11]
#define LONG_13 LONG_12, v[12]
#define LONG_14 LONG_13, v[13]
#define LONG_15 LONG_14, v[14]
#define LONG_16 LONG_15, v[15]

#define HANDLERS(M)                                                                                \
    static void request_short_##M(gasnet_token_t token PARAMETERS_##M)                             \
    {                                                                                              \
        const gasnet_handlerarg_t v[MAX_ARGS + 1] = {0 ARGUMENTS_##M};                             \
        request_came(token, SHORT, NULL, 0, M, v + 1);                                             \
    }                                                                                              \
    static void request_medium_##M(gasnet_token_t token, void *memory, size_t size PARAMETERS_##M) \
    {                                                                                              \
        const gasnet_handlerarg_t v[MAX_ARGS + 1] = {0 ARGUMENTS_##M};                             \
        request_came(token, MEDIUM, memory, size, M, v + 1);                                       \
    }                                                                                              \
    static void request_long_##M(gasnet_token_t token, void *memory, size_t size PARAMETERS_##M)   \
    {                                                                                              \
        const gasnet_handlerarg_t v[MAX_ARGS + 1] = {0 ARGUMENTS_##M};                             \
        request_came(token, LONG, memory, size, M, v + 1);                                         \
    }                                                                                              \
    static void reply_short_##M(gasnet_token_t token PARAMETERS_##M)                               \
    {                                                                                              \
        const gasnet_handlerarg_t v[MAX_ARGS + 1] = {0 ARGUMENTS_##M};                             \
        reply_came(token, SHORT, NULL, 0, M, v + 1);                                               \
    }                                                                                              \
    static void reply_medium_##M(gasnet_token_t token, void *memory, size_t size PARAMETERS_##M)   \
    {                                                                                              \
        const gasnet_handlerarg_t v[MAX_ARGS + 1] = {0 ARGUMENTS_##M};                             \
        reply_came(token, MEDIUM, memory, size, M, v + 1);                                         \
    }                                                                                              \
    static void reply_long_##M(gasnet_token_t token, void *memory, size_t size PARAMETERS_##M)     \
    {                                                                                              \
        const gasnet_handlerarg_t v[MAX_ARGS + 1] = {0 ARGUMENTS_##M};                             \
        reply_came(token, LONG, memory, size, M, v + 1);                                           \
    }                                                                                              \
    static int send_short_##M(gasnet_node_t to, gasnet_handler_t h, const gasnet_handlerarg_t *v)  \
    {                                                                                              \
        (void)v;                                                                                   \
        return counted ? gasnet_AMRequestShort(to, h, M VALUES_##M)                                \
                       : gasnet_AMRequestShort##M(to, h LONG_##M);                                 \
    }                                                                                              \
    static int send_medium_##M(gasnet_node_t to, gasnet_handler_t h, void *source,                 \
                               const gasnet_handlerarg_t *v)                                       \
    {                                                                                              \
        (void)v;                                                                                   \
        return counted ? gasnet_AMRequestMedium(to, h, source, PAYLOAD, M VALUES_##M)              \
                       : gasnet_AMRequestMedium##M(to, h, source, PAYLOAD LONG_##M);               \
    }                                                                                              \
    static int send_long_##M(gasnet_node_t to, gasnet_handler_t h, void *source, void *dest,       \
                             const gasnet_handlerarg_t *v)                                         \
    {                                                                                              \
        (void)v;                                                                                   \
        if (to % 2)                                                                                \
            return counted ? gasnet_AMRequestLong(to, h, source, PAYLOAD, dest, M VALUES_##M)      \
                           : gasnet_AMRequestLong##M(to, h, source, PAYLOAD, dest LONG_##M);       \
        return counted ? gasnet_AMRequestLongAsync(to, h, source, PAYLOAD, dest, M VALUES_##M)     \
                       : gasnet_AMRequestLongAsync##M(to, h, source, PAYLOAD, dest LONG_##M);      \
    }                                                                                              \
    static int answer_short_##M(gasnet_token_t to, gasnet_handler_t h,                             \
                                const gasnet_handlerarg_t *v)                                      \
    {                                                                                              \
        (void)v;                                                                                   \
        return counted ? gasnet_AMReplyShort(to, h, M VALUES_##M)                                  \
                       : gasnet_AMReplyShort##M(to, h LONG_##M);                                   \
    }                                                                                              \
    static int answer_medium_##M(gasnet_token_t to, gasnet_handler_t h, void *source,              \
                                 const gasnet_handlerarg_t *v)                                     \
    {                                                                                              \
        (void)v;                                                                                   \
        return counted ? gasnet_AMReplyMedium(to, h, source, PAYLOAD, M VALUES_##M)                \
                       : gasnet_AMReplyMedium##M(to, h, source, PAYLOAD LONG_##M);                 \
    }                                                                                              \
    static int answer_long_##M(gasnet_token_t to, gasnet_handler_t h, void *source, void *dest,    \
                               const gasnet_handlerarg_t *v)                                       \
    {                                                                                              \
        (void)v;                                                                                   \
        return counted ? gasnet_AMReplyLong(to, h, source, PAYLOAD, dest, M VALUES_##M)            \
                       : gasnet_AMReplyLong##M(to, h, source, PAYLOAD, dest LONG_##M);             \
    }

FOR_EACH_COUNT(HANDLERS)

typedef int send_short_fn(gasnet_node_t, gasnet_handler_t, const gasnet_handlerarg_t *);
typedef int send_medium_fn(gasnet_node_t, gasnet_handler_t, void *, const gasnet_handlerarg_t *);
typedef int send_long_fn(gasnet_node_t, gasnet_handler_t, void *, void *,
                         const gasnet_handlerarg_t *);
typedef int answer_short_fn(gasnet_token_t, gasnet_handler_t, const gasnet_handlerarg_t *);
typedef int answer_medium_fn(gasnet_token_t, gasnet_handler_t, void *, const gasnet_handlerarg_t *);
typedef int answer_long_fn(gasnet_token_t, gasnet_handler_t, void *, void *,
                           const gasnet_handlerarg_t *);

#define ROW(M)                                                                                     \
    {send_short_##M,   send_medium_##M,   send_long_##M,                                           \
     answer_short_##M, answer_medium_##M, answer_long_##M},
static const struct {
    send_short_fn *send_short;
    send_medium_fn *send_medium;
    send_long_fn *send_long;
    answer_short_fn *answer_short;
    answer_medium_fn *answer_medium;
    answer_long_fn *answer_long;
} calls[] = {FOR_EACH_COUNT(ROW)};

/* All indices are the library's choice: 255 downwards in this order. */
#define ENTRIES(M)                                                                                 \
    {0, (gex_AM_Fn_t)request_short_##M}, {0, (gex_AM_Fn_t)reply_short_##M},                        \
        {0, (gex_AM_Fn_t)request_medium_##M}, {0, (gex_AM_Fn_t)reply_medium_##M},                  \
        {0, (gex_AM_Fn_t)request_long_##M}, {0, (gex_AM_Fn_t)reply_long_##M},
static gasnet_handlerentry_t table[] = {FOR_EACH_COUNT(ENTRIES)};

gasnet_handlerentry_t *legacy_am_table(int *entries)
{
    *entries = (int)(sizeof table / sizeof *table);
    return table;
}

static void find_indices(void)
{
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        CHECK(table[i].index == 255 - i, "entry %u got %u", i, table[i].index);
        if (i % 2)
            reply_of[i / 6][i % 6 / 2] = table[i].index;
        else
            request_of[i / 6][i % 6 / 2] = table[i].index;
    }
}

/* The source is free on return, also with LongAsync, so it is overwritten at once. */
static void answer(gasnet_token_t token, gasnet_node_t to)
{
    static char source[PAYLOAD];
    gasnet_handler_t h = reply_of[count][category];
    uint64_t seed = seed_of(job.rank, to, 1);
    gasnet_handlerarg_t v[MAX_ARGS];
    int status;

    make_arguments(v, seed);
    job_fill(source, PAYLOAD, seed);
    if (category == SHORT)
        status = calls[count].answer_short(token, h, v);
    else if (category == MEDIUM)
        status = calls[count].answer_medium(token, h, source, v);
    else
        status = calls[count].answer_long(token, h, source, legacy_slot(to, LONG_AT + PAYLOAD), v);
    CHECK(status == GASNET_OK);
    memset(source, 0xee, sizeof source);
}

static void ask(gasnet_node_t to)
{
    static char source[PAYLOAD];
    gasnet_handler_t h = request_of[count][category];
    uint64_t seed = seed_of(job.rank, to, 0);
    gasnet_handlerarg_t v[MAX_ARGS];
    int status;

    make_arguments(v, seed);
    job_fill(source, PAYLOAD, seed);
    if (category == SHORT)
        status = calls[count].send_short(to, h, v);
    else if (category == MEDIUM)
        status = calls[count].send_medium(to, h, source, v);
    else
        status = calls[count].send_long(to, h, source, legacy_slot(to, LONG_AT), v);
    CHECK(status == GASNET_OK);
    memset(source, 0xee, sizeof source);
}

/* Sets the step before the barrier, because a request of the next step may come during the
 * barrier. */
static void step(unsigned nargs, enum category of, int by_count)
{
    count = nargs;
    category = of;
    counted = by_count;
    requests_in = replies_in = 0;
    job_phase("messages of category %d with %u arguments, counted %d", (int)of, nargs, by_count);
    legacy_barrier();
    for (gasnet_node_t i = 0; i < job.size; i++)
        ask((job.rank + i) % job.size);
    GASNET_BLOCKUNTIL(requests_in == job.size && replies_in == job.size);
}

void legacy_am(void)
{
    find_indices();
    for (unsigned nargs = 0; nargs <= MAX_ARGS; nargs++)
        for (int c = SHORT; c <= LONG; c++) {
            step(nargs, (enum category)c, 0);
            step(nargs, (enum category)c, 1);
        }
    legacy_barrier();
}
