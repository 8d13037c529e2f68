/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix of active messages: each category with every argument count and with payloads around
 * every limit, answered by each category or not at all, to self and to all others, with the source
 * free on return or on an event. All ranks execute the same list of steps. In a step each rank
 * sends one request to every rank, so a handler can compute which message it must get. Owned by the
 * one client thread; handlers run in its polls. */
#include "config.h"

#include "forms.h"
#include "job.h"

#include <stdlib.h>
#include <string.h>

enum category { SHORT, MEDIUM, LONG, NOTHING };
enum { MAX_RANKS = 8, MAX_ARGS = 16, BIGGEST = 1 << 20, GUARD = 64, SLOT = BIGGEST + 4096 };

struct message {
    enum category category;
    unsigned nargs;
    size_t size;
    int event; /* local completion by event, not NOW */
};

struct step {
    unsigned number;
    struct message request, reply;
};

static struct step step;
static unsigned requests_in, replies_in;
static char *request_sources, *reply_sources; /* one slot for each peer */
static gex_Event_t *request_events, *reply_events;

static uint64_t seed_of(gex_Rank_t from, gex_Rank_t to, int is_reply)
{
    return job_mix(step.number * 2u + (unsigned)is_reply, (uint64_t)from << 20 | to);
}

static void make_arguments(gex_AM_Arg_t *v, uint64_t seed)
{
    for (unsigned i = 0; i < MAX_ARGS; i++)
        v[i] = (gex_AM_Arg_t)job_mix(seed, i);
}

/* Unaligned addresses, so that nothing depends on alignment; the receiver computes them too. */
static size_t skew(void)
{
    return step.number % 9;
}

/* Where a Long from `from` lands in the receiver's segment. */
static size_t landing(gex_Rank_t from, int is_reply)
{
    return (2 * (size_t)from + (size_t)is_reply) * SLOT + GUARD + skew();
}

/* ---- sending ---- */

static void answer(gex_Token_t token, gex_Rank_t to);
static void arrived(gex_Token_t token, enum category category, void *memory, size_t size,
                    unsigned nargs, const gex_AM_Arg_t *args);

/* Handlers and senders of every argument count. The forms without a number count for themselves:
 * even steps use them. */
#define FORM(M)                                                                                    \
    static void short_##M(gex_Token_t token PARAMETERS_##M)                                        \
    {                                                                                              \
        const gex_AM_Arg_t args[] = {0 ARGUMENTS_##M};                                             \
        arrived(token, SHORT, NULL, 0, M, args + 1);                                               \
    }                                                                                              \
    static void medium_##M(gex_Token_t token, void *memory, size_t size PARAMETERS_##M)            \
    {                                                                                              \
        const gex_AM_Arg_t args[] = {0 ARGUMENTS_##M};                                             \
        arrived(token, MEDIUM, memory, size, M, args + 1);                                         \
    }                                                                                              \
    static void long_##M(gex_Token_t token, void *memory, size_t size PARAMETERS_##M)              \
    {                                                                                              \
        const gex_AM_Arg_t args[] = {0 ARGUMENTS_##M};                                             \
        arrived(token, LONG, memory, size, M, args + 1);                                           \
    }                                                                                              \
    static int request_short_##M(gex_Rank_t to, gex_AM_Index_t index, const gex_AM_Arg_t *v)       \
    {                                                                                              \
        (void)v;                                                                                   \
        if (step.number % 2)                                                                       \
            return gex_AM_RequestShort##M(job.tm, to, index, 0 VALUES_##M);                        \
        return gex_AM_RequestShort(job.tm, to, index, 0 VALUES_##M);                               \
    }                                                                                              \
    static int request_medium_##M(gex_Rank_t to, gex_AM_Index_t index, const void *from,           \
                                  size_t size, gex_Event_t *lc, const gex_AM_Arg_t *v)             \
    {                                                                                              \
        (void)v;                                                                                   \
        if (step.number % 2)                                                                       \
            return gex_AM_RequestMedium##M(job.tm, to, index, from, size, lc, 0 VALUES_##M);       \
        return gex_AM_RequestMedium(job.tm, to, index, from, size, lc, 0 VALUES_##M);              \
    }                                                                                              \
    static int request_long_##M(gex_Rank_t to, gex_AM_Index_t index, const void *from,             \
                                size_t size, void *dest, gex_Event_t *lc, const gex_AM_Arg_t *v)   \
    {                                                                                              \
        (void)v;                                                                                   \
        if (step.number % 2)                                                                       \
            return gex_AM_RequestLong##M(job.tm, to, index, from, size, dest, lc, 0 VALUES_##M);   \
        return gex_AM_RequestLong(job.tm, to, index, from, size, dest, lc, 0 VALUES_##M);          \
    }                                                                                              \
    static int reply_short_##M(gex_Token_t to, gex_AM_Index_t index, const gex_AM_Arg_t *v)        \
    {                                                                                              \
        (void)v;                                                                                   \
        if (step.number % 2)                                                                       \
            return gex_AM_ReplyShort##M(to, index, 0 VALUES_##M);                                  \
        return gex_AM_ReplyShort(to, index, 0 VALUES_##M);                                         \
    }                                                                                              \
    static int reply_medium_##M(gex_Token_t to, gex_AM_Index_t index, const void *from,            \
                                size_t size, gex_Event_t *lc, const gex_AM_Arg_t *v)               \
    {                                                                                              \
        (void)v;                                                                                   \
        if (step.number % 2)                                                                       \
            return gex_AM_ReplyMedium##M(to, index, from, size, lc, 0 VALUES_##M);                 \
        return gex_AM_ReplyMedium(to, index, from, size, lc, 0 VALUES_##M);                        \
    }                                                                                              \
    static int reply_long_##M(gex_Token_t to, gex_AM_Index_t index, const void *from, size_t size, \
                              void *dest, gex_Event_t *lc, const gex_AM_Arg_t *v)                  \
    {                                                                                              \
        (void)v;                                                                                   \
        if (step.number % 2)                                                                       \
            return gex_AM_ReplyLong##M(to, index, from, size, dest, lc, 0 VALUES_##M);             \
        return gex_AM_ReplyLong(to, index, from, size, dest, lc, 0 VALUES_##M);                    \
    }

FOR_EACH_COUNT(FORM)

static const struct form {
    gex_AM_Fn_t handler[3];
    int (*request_short)(gex_Rank_t, gex_AM_Index_t, const gex_AM_Arg_t *);
    int (*request_medium)(gex_Rank_t, gex_AM_Index_t, const void *, size_t, gex_Event_t *,
                          const gex_AM_Arg_t *);
    int (*request_long)(gex_Rank_t, gex_AM_Index_t, const void *, size_t, void *, gex_Event_t *,
                        const gex_AM_Arg_t *);
    int (*reply_short)(gex_Token_t, gex_AM_Index_t, const gex_AM_Arg_t *);
    int (*reply_medium)(gex_Token_t, gex_AM_Index_t, const void *, size_t, gex_Event_t *,
                        const gex_AM_Arg_t *);
    int (*reply_long)(gex_Token_t, gex_AM_Index_t, const void *, size_t, void *, gex_Event_t *,
                      const gex_AM_Arg_t *);
} forms[] = {
#define ROW(M)                                                                                     \
    {{(gex_AM_Fn_t)short_##M, (gex_AM_Fn_t)medium_##M, (gex_AM_Fn_t)long_##M},                     \
     request_short_##M,                                                                            \
     request_medium_##M,                                                                           \
     request_long_##M,                                                                             \
     reply_short_##M,                                                                              \
     reply_medium_##M,                                                                             \
     reply_long_##M},
    FOR_EACH_COUNT(ROW)};

/* One entry for each count, category and direction; indices are the library's choice. */
static gex_AM_Entry_t table[(MAX_ARGS + 1) * 6];
static const char handler_data[(MAX_ARGS + 1) * 6];

static gex_AM_Entry_t *entry_of(unsigned nargs, enum category category, int is_reply)
{
    return &table[nargs * 6 + (unsigned)category * 2 + (unsigned)is_reply];
}

static void register_handlers(void)
{
    static const gex_Flags_t category_flags[] = {GEX_FLAG_AM_SHORT, GEX_FLAG_AM_MEDIUM,
                                                 GEX_FLAG_AM_LONG};

    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        unsigned category = i % 6 / 2;

        table[i].gex_fnptr = forms[i / 6].handler[category];
        table[i].gex_flags =
            category_flags[category] | (i % 2 ? GEX_FLAG_AM_REPLY : GEX_FLAG_AM_REQUEST);
        table[i].gex_nargs = i / 6;
        table[i].gex_cdata = handler_data + i;
        table[i].gex_name = "matrix";
    }
    CHECK(gex_EP_RegisterHandlers(job.ep, table, sizeof table / sizeof *table) == GASNET_OK);
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        CHECK(table[i].gex_index == 255 - i, "entry %u got %u", i, table[i].gex_index);
}

static void send_request(gex_Rank_t to)
{
    const struct message *m = &step.request;
    gex_AM_Index_t index = entry_of(m->nargs, m->category, 0)->gex_index;
    uint64_t seed = seed_of(job.rank, to, 0);
    char *source = request_sources + to * (size_t)SLOT + (skew() * 5 & 7);
    gex_Event_t *lc = m->event ? &request_events[to] : GEX_EVENT_NOW;
    gex_AM_Arg_t v[MAX_ARGS];
    int status;

    make_arguments(v, seed);
    if (m->category != SHORT)
        job_fill(source, m->size, seed);
    if (m->category == SHORT)
        status = forms[m->nargs].request_short(to, index, v);
    else if (m->category == MEDIUM)
        status = forms[m->nargs].request_medium(to, index, source, m->size, lc, v);
    else
        status = forms[m->nargs].request_long(to, index, source, m->size,
                                              job_remote(to, landing(job.rank, 0)), lc, v);
    CHECK(status == 0, "request returned %d", status);
    if (m->category != SHORT && !m->event)
        memset(source, 0xee, m->size); /* it is ours again */
}

static void answer(gex_Token_t token, gex_Rank_t to)
{
    const struct message *m = &step.reply;
    gex_AM_Index_t index;
    uint64_t seed = seed_of(job.rank, to, 1);
    char *source = reply_sources + to * (size_t)SLOT + (skew() * 3 & 7);
    gex_Event_t *lc = m->event ? &reply_events[to] : GEX_EVENT_NOW;
    gex_AM_Arg_t v[MAX_ARGS];
    int status;

    if (m->category == NOTHING)
        return;
    index = entry_of(m->nargs, m->category, 1)->gex_index;
    make_arguments(v, seed);
    if (m->category != SHORT)
        job_fill(source, m->size, seed);
    if (m->category == SHORT) {
        status = forms[m->nargs].reply_short(token, index, v);
    } else if (m->category == MEDIUM) {
        CHECK(gex_Token_MaxReplyMedium(token, lc, 0, m->nargs) >= m->size);
        status = forms[m->nargs].reply_medium(token, index, source, m->size, lc, v);
    } else {
        CHECK(gex_Token_MaxReplyLong(token, lc, 0, m->nargs) >= m->size);
        status = forms[m->nargs].reply_long(token, index, source, m->size,
                                            job_remote(to, landing(job.rank, 1)), lc, v);
    }
    CHECK(status == 0, "reply returned %d", status);
    if (m->category != SHORT && !m->event)
        memset(source, 0xee, m->size);
}

/* ---- receiving ---- */

static gex_Token_Info_t check_token(gex_Token_t token, enum category category, unsigned nargs)
{
    gex_Token_Info_t info;
    gex_TI_t valid = gex_Token_Info(token, &info, GEX_TI_ALL);
    const gex_AM_Entry_t *expected;

    CHECK((valid & GEX_TI_ALL) == GEX_TI_ALL, "fields %#x", valid);
    CHECK(info.gex_srcrank < job.size, "from %u", (unsigned)info.gex_srcrank);
    CHECK(info.gex_ep == job.ep);
    CHECK(info.gex_is_long == (category == LONG));
    CHECK(info.gex_is_req == 0 || info.gex_is_req == 1);
    expected = entry_of(nargs, category, !info.gex_is_req);
    CHECK(info.gex_entry->gex_index == expected->gex_index);
    CHECK(info.gex_entry->gex_fnptr == expected->gex_fnptr);
    CHECK(info.gex_entry->gex_flags == expected->gex_flags);
    CHECK(info.gex_entry->gex_nargs == nargs);
    CHECK(info.gex_entry->gex_cdata == expected->gex_cdata);
    CHECK(info.gex_entry->gex_name == expected->gex_name);
    return info;
}

static void check_payload(const struct message *m, const void *memory, size_t size, gex_Rank_t from,
                          int is_reply, uint64_t seed)
{
    const unsigned char *around = memory;

    if (m->category == SHORT)
        return;
    CHECK(size == m->size, "%zu bytes instead of %zu", size, m->size);
    if (m->category == LONG)
        CHECK(memory == job.base + landing(from, is_reply), "payload at %p", memory);
    if (m->category == MEDIUM && size)
        CHECK((uintptr_t)memory % 8 == 0, "payload at %p", memory);
    CHECK_PATTERN(memory, size, seed);
    for (int i = 1; m->category == LONG && i <= 8; i++)
        CHECK(around[-i] == 0 && around[size + (size_t)i - 1] == 0, "written outside");
}

static void arrived(gex_Token_t token, enum category category, void *memory, size_t size,
                    unsigned nargs, const gex_AM_Arg_t *args)
{
    gex_Token_Info_t info = check_token(token, category, nargs);
    const struct message *m = info.gex_is_req ? &step.request : &step.reply;
    uint64_t seed = seed_of(info.gex_srcrank, job.rank, !info.gex_is_req);
    gex_AM_Arg_t expected[MAX_ARGS];

    CHECK(m->category == category && m->nargs == nargs, "step %u", step.number);
    make_arguments(expected, seed);
    for (unsigned i = 0; i < nargs; i++)
        CHECK(args[i] == expected[i], "argument %u of %u is %d, not %d", i, nargs, args[i],
              expected[i]);
    check_payload(m, memory, size, info.gex_srcrank, !info.gex_is_req, seed);
    if (category == LONG)
        memset(memory, 0, size); /* the next message expects cleared memory around it */
    if (info.gex_is_req) {
        answer(token, info.gex_srcrank);
        __atomic_fetch_add(&requests_in, 1, __ATOMIC_ACQ_REL);
    } else {
        __atomic_fetch_add(&replies_in, 1, __ATOMIC_ACQ_REL);
    }
}

/* ---- the list of steps ---- */

/* Sets the step before the barrier: a rank may still be in the barrier when the first request of
 * the next step arrives. */
static void run(struct message request, struct message reply)
{
    unsigned replies = reply.category == NOTHING ? 0 : job.size;

    step.number++;
    step.request = request;
    step.reply = reply;
    requests_in = replies_in = 0;
    job_phase("step %u: request %d/%u/%zu, reply %d/%u/%zu", step.number, (int)request.category,
              request.nargs, request.size, (int)reply.category, reply.nargs, reply.size);
    job_barrier();
    for (gex_Rank_t i = 0; i < job.size; i++)
        send_request((job.rank + i) % job.size);
    GASNET_BLOCKUNTIL(requests_in == job.size && replies_in == replies);
    if (request.event && request.category != SHORT)
        gex_Event_WaitAll(request_events, job.size, 0);
    if (reply.event && (reply.category == MEDIUM || reply.category == LONG))
        gex_Event_WaitAll(reply_events, job.size, 0);
}

static struct message message(enum category category, unsigned nargs, size_t size, int event)
{
    return (struct message){category, nargs, category == SHORT ? 0 : size, event};
}

static void all_argument_counts(void)
{
    static const size_t sizes[] = {0, 100};

    for (unsigned nargs = 0; nargs <= MAX_ARGS; nargs++)
        for (int c = SHORT; c <= LONG; c++)
            for (int i = 0; i < 2; i++)
                run(message(c, nargs, sizes[i], i),
                    message((c + nargs) % 3, MAX_ARGS - nargs, sizes[1 - i], i));
}

/* The same size as request and as reply, answered by each category in turn, or not at all. */
static void one_size(enum category category, size_t size, unsigned nargs)
{
    static unsigned turn;
    enum category back = (enum category)(turn % 4);
    int event = (int)(turn / 4 % 2);

    if (size > (category == LONG ? gex_AM_LUBRequestLong() : gex_AM_LUBRequestMedium()))
        return; /* of a library with small messages (--with-ibv-max-medium) */
    turn++;
    if (back == MEDIUM && size > gex_AM_LUBReplyMedium())
        back = LONG;
    if (back == LONG && size > gex_AM_LUBReplyLong())
        back = SHORT;
    run(message(category, nargs, size, event), message(back, nargs, size, event));
    if (turn % 4 == 0)
        run(message(SHORT, nargs, 0, 0), message(category, nargs, size, !event));
}

/* For each argument count these sizes cross the inline limit. */
static void small_sizes(void)
{
    unsigned stride = job.size > 4 ? 3 : 1;

    for (size_t size = 0; size <= 136; size += stride) {
        one_size(MEDIUM, size, 0);
        if (size % (3 * stride) == 0)
            one_size(LONG, size, 0);
        if (size % (8 * stride) == 0)
            one_size(MEDIUM, size, 16);
    }
}

static void around(enum category category, size_t size, unsigned nargs)
{
    one_size(category, size - 1, nargs);
    one_size(category, size, nargs);
    one_size(category, size + 1, nargs);
}

/* Sizes around the defaults of GASNET_LONG_PUT_MIN, GASNET_AM_GATHER_MIN and
 * GASNET_PACKEDLONG_LIMIT, around a page, around the smallest Medium that is sent in place, and a
 * large odd size. */
static void limits(void)
{
    static const unsigned counts[] = {0, 1, 16};
    static const size_t sizes[] = {1024, 1500, 4012, 4096, 8192, 30001};

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 6; k++) {
            around(MEDIUM, sizes[k], counts[i]);
            around(LONG, sizes[k], counts[i]);
        }
}

static void biggest(void)
{
    size_t most = gex_AM_LUBRequestLong() < BIGGEST ? gex_AM_LUBRequestLong() : BIGGEST;

    for (unsigned nargs = 0; nargs <= MAX_ARGS; nargs += 4) {
        size_t request = gex_AM_MaxRequestMedium(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, nargs);
        size_t reply = gex_AM_MaxReplyMedium(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, nargs);

        run(message(MEDIUM, nargs, request, 0), message(MEDIUM, nargs, reply, 1));
        run(message(MEDIUM, nargs, request - 1, 1), message(MEDIUM, nargs, reply - 1, 0));
    }
    if (gex_AM_LUBRequestLong() > 65536) /* not of segments LARGE and EVERYTHING */
        around(LONG, 65536, 3);
    run(message(LONG, 16, most, 0), message(LONG, 0, most, 1));
    run(message(LONG, 1, most, 1), message(LONG, 16, most - 1, 0));
}

/* The address of an empty Long is delivered as it was given. */
static const void *literal_seen;

static void literal(gex_Token_t token, void *memory, size_t size)
{
    (void)token;
    CHECK(size == 0);
    literal_seen = memory;
}

static void empty_long_anywhere(void)
{
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)literal, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
    void *nowhere = (void *)(uintptr_t)0x1234;

    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    job_barrier();
    gex_AM_RequestLong0(job.tm, (job.rank + 1) % job.size, entry.gex_index, NULL, 0, nowhere,
                        GEX_EVENT_NOW, 0);
    GASNET_BLOCKUNTIL(literal_seen);
    CHECK(literal_seen == nowhere, "delivered %p", literal_seen);
}

/* Sources of Longs are in the segment on odd ranks, and outside of it on even ones. */
static void place_sources(void)
{
    size_t half = job.size * (size_t)SLOT;

    request_sources = job.rank % 2 ? job.base + 2 * half : job_memory(half);
    reply_sources = job.rank % 2 ? job.base + 3 * half : job_memory(half);
    request_events = job_memory(job.size * sizeof *request_events);
    reply_events = job_memory(job.size * sizeof *reply_events);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 4 * (size_t)SLOT * MAX_RANKS);
    CHECK(job.size <= MAX_RANKS, "made for at most %d ranks", MAX_RANKS);
    place_sources();
    register_handlers();
    empty_long_anywhere();
    all_argument_counts();
    small_sizes();
    limits();
    biggest();
    job_end();
}
