/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages with negotiated payload: every argument count, Medium and Long, requests and
 * replies, in the client's buffer and in the library's, every kind of local completion, every size
 * up to the limits, to others and to ourselves. Each rank asks the next one; a step is over when
 * all have their answer. Owned by the one client thread. */
#include "config.h"

#include "forms.h"
#include "job.h"

#include <stddef.h>
#include <string.h>

enum { MAX_ARGS = 16, SLOT = 1 << 20, GUARD = 64 };
enum completion { LENT, NOW, EVENT, GROUP, COMPLETIONS };

static struct step {
    unsigned number, nargs;
    int is_long;
    enum completion completion;
    size_t size;
    gex_Flags_t flags;
    int dest_late;
} step;
static unsigned requests_in, replies_in;
static gex_Event_t request_event, reply_event;
static char *request_source, *reply_source;

static gex_Rank_t next(void)
{
    return (job.rank + 1) % job.size;
}

static uint64_t seed_of(gex_Rank_t from, int is_reply)
{
    return job_mix(step.number * 2u + (unsigned)is_reply, from);
}

static void make_arguments(gex_AM_Arg_t *v, uint64_t seed)
{
    for (unsigned i = 0; i < MAX_ARGS; i++)
        v[i] = (gex_AM_Arg_t)job_mix(seed, i);
}

/* Requests land in the first half of a segment, replies in the second. */
static size_t landing(int is_reply)
{
    return (size_t)is_reply * SLOT + GUARD + step.number % 9;
}

static void arrived(gex_Token_t token, int is_long, void *memory, size_t size, unsigned nargs,
                    const gex_AM_Arg_t *args);

#define FORM(M)                                                                                    \
    static void medium_##M(gex_Token_t token, void *memory, size_t size PARAMETERS_##M)            \
    {                                                                                              \
        const gex_AM_Arg_t args[] = {0 ARGUMENTS_##M};                                             \
        arrived(token, 0, memory, size, M, args + 1);                                              \
    }                                                                                              \
    static void long_##M(gex_Token_t token, void *memory, size_t size PARAMETERS_##M)              \
    {                                                                                              \
        const gex_AM_Arg_t args[] = {0 ARGUMENTS_##M};                                             \
        arrived(token, 1, memory, size, M, args + 1);                                              \
    }                                                                                              \
    static int request_medium_##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t index, size_t n, void *to,   \
                                  gex_Flags_t flags, const gex_AM_Arg_t *v)                        \
    {                                                                                              \
        (void)v, (void)to;                                                                         \
        switch (step.number % 5) {                                                                 \
        case 0:                                                                                    \
            return gex_AM_CommitRequestMedium##M##_v2(sd, index, n, flags VALUES_##M);             \
        case 1:                                                                                    \
            gex_AM_CommitRequestMedium##M(sd, index, n VALUES_##M);                                \
            return 0;                                                                              \
        case 2:                                                                                    \
            return gex_AM_CommitRequestMedium_v2(sd, index, n, flags VALUES_##M);                  \
        case 3:                                                                                    \
            return gex_AM_CommitRequestMedium_v2(sd, index, n, 0 VALUES_##M);                      \
        default:                                                                                   \
            gex_AM_CommitRequestMedium(sd, index, n VALUES_##M);                                   \
            return 0;                                                                              \
        }                                                                                          \
    }                                                                                              \
    static int request_long_##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t index, size_t n, void *to,     \
                                gex_Flags_t flags, const gex_AM_Arg_t *v)                          \
    {                                                                                              \
        (void)v;                                                                                   \
        switch (step.number % 5) {                                                                 \
        case 0:                                                                                    \
            return gex_AM_CommitRequestLong##M##_v2(sd, index, n, to, flags VALUES_##M);           \
        case 1:                                                                                    \
            gex_AM_CommitRequestLong##M(sd, index, n, to VALUES_##M);                              \
            return 0;                                                                              \
        case 2:                                                                                    \
            return gex_AM_CommitRequestLong_v2(sd, index, n, to, flags VALUES_##M);                \
        case 3:                                                                                    \
            return gex_AM_CommitRequestLong_v2(sd, index, n, to, 0 VALUES_##M);                    \
        default:                                                                                   \
            gex_AM_CommitRequestLong(sd, index, n, to VALUES_##M);                                 \
            return 0;                                                                              \
        }                                                                                          \
    }                                                                                              \
    static int reply_medium_##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t index, size_t n, void *to,     \
                                gex_Flags_t flags, const gex_AM_Arg_t *v)                          \
    {                                                                                              \
        (void)v, (void)to;                                                                         \
        switch (step.number % 5) {                                                                 \
        case 0:                                                                                    \
            return gex_AM_CommitReplyMedium##M##_v2(sd, index, n, flags VALUES_##M);               \
        case 1:                                                                                    \
            gex_AM_CommitReplyMedium##M(sd, index, n VALUES_##M);                                  \
            return 0;                                                                              \
        case 2:                                                                                    \
            return gex_AM_CommitReplyMedium_v2(sd, index, n, flags VALUES_##M);                    \
        case 3:                                                                                    \
            return gex_AM_CommitReplyMedium_v2(sd, index, n, 0 VALUES_##M);                        \
        default:                                                                                   \
            gex_AM_CommitReplyMedium(sd, index, n VALUES_##M);                                     \
            return 0;                                                                              \
        }                                                                                          \
    }                                                                                              \
    static int reply_long_##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t index, size_t n, void *to,       \
                              gex_Flags_t flags, const gex_AM_Arg_t *v)                            \
    {                                                                                              \
        (void)v;                                                                                   \
        switch (step.number % 5) {                                                                 \
        case 0:                                                                                    \
            return gex_AM_CommitReplyLong##M##_v2(sd, index, n, to, flags VALUES_##M);             \
        case 1:                                                                                    \
            gex_AM_CommitReplyLong##M(sd, index, n, to VALUES_##M);                                \
            return 0;                                                                              \
        case 2:                                                                                    \
            return gex_AM_CommitReplyLong_v2(sd, index, n, to, flags VALUES_##M);                  \
        case 3:                                                                                    \
            return gex_AM_CommitReplyLong_v2(sd, index, n, to, 0 VALUES_##M);                      \
        default:                                                                                   \
            gex_AM_CommitReplyLong(sd, index, n, to VALUES_##M);                                   \
            return 0;                                                                              \
        }                                                                                          \
    }
FOR_EACH_COUNT(FORM)

typedef int (*commit_fn)(gex_AM_SrcDesc_t, gex_AM_Index_t, size_t, void *, gex_Flags_t,
                         const gex_AM_Arg_t *);

/* By argument count and Medium or Long. */
static const struct form {
    gex_AM_Fn_t handler[2];
    commit_fn request[2], reply[2];
} forms[] = {
#define ROW(M)                                                                                     \
    {{(gex_AM_Fn_t)medium_##M, (gex_AM_Fn_t)long_##M},                                             \
     {request_medium_##M, request_long_##M},                                                       \
     {reply_medium_##M, reply_long_##M}},
    FOR_EACH_COUNT(ROW)};

static gex_AM_Entry_t table[(MAX_ARGS + 1) * 4];

static gex_AM_Index_t index_of(unsigned nargs, int is_long, int is_reply)
{
    return table[nargs * 4 + (unsigned)is_long * 2 + (unsigned)is_reply].gex_index;
}

static void register_handlers(void)
{
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        table[i].gex_fnptr = forms[i / 4].handler[i / 2 % 2];
        table[i].gex_flags = (i / 2 % 2 ? GEX_FLAG_AM_LONG : GEX_FLAG_AM_MEDIUM) |
                             (i % 2 ? GEX_FLAG_AM_REPLY : GEX_FLAG_AM_REQUEST);
        table[i].gex_nargs = i / 4;
    }
    CHECK(gex_EP_RegisterHandlers(job.ep, table, sizeof table / sizeof *table) == GASNET_OK);
}

/* ---- sending ---- */

static gex_Event_t *completion_of(gex_Event_t *event, int is_reply)
{
    if (step.completion == LENT)
        return NULL;
    if (step.completion == EVENT)
        return event;
    return step.completion == GROUP && !is_reply ? GEX_EVENT_GROUP : GEX_EVENT_NOW;
}

static const gex_Event_t *event_of(int is_reply)
{
    return is_reply ? &reply_event : &request_event;
}

/* The size is between the requested minimum and maximum; the buffer is the client's, or aligned for
 * any type. */
static void check_descriptor(gex_AM_SrcDesc_t sd, size_t most, const char *source)
{
    size_t size = gex_AM_SrcDescSize(sd);

    CHECK(size >= step.size && size <= most, "%zu for %zu..%zu", size, step.size, most);
    if (source)
        CHECK(gex_AM_SrcDescAddr(sd) == source);
    else
        CHECK((uintptr_t)gex_AM_SrcDescAddr(sd) % _Alignof(max_align_t) == 0, "%p",
              gex_AM_SrcDescAddr(sd));
}

/* Forms with flags commit with IMMEDIATE. If that is refused, the descriptor and its buffer stay
 * valid. */
static void commit(gex_AM_SrcDesc_t sd, int is_reply, void *to, char *source)
{
    uint64_t seed = seed_of(job.rank, is_reply);
    const struct form *form = &forms[step.nargs];
    commit_fn fn = (is_reply ? form->reply : form->request)[step.is_long];
    gex_AM_Index_t index = index_of(step.nargs, step.is_long, is_reply);
    gex_AM_Arg_t v[MAX_ARGS];
    gex_Event_t event = *event_of(is_reply);

    make_arguments(v, seed);
    job_fill(gex_AM_SrcDescAddr(sd), step.size, seed);
    if (fn(sd, index, step.size, to, GEX_FLAG_IMMEDIATE, v) != 0) {
        CHECK(*event_of(is_reply) == event);
        CHECK_PATTERN(gex_AM_SrcDescAddr(sd), step.size, seed);
        CHECK(fn(sd, index, step.size, to, 0, v) == 0);
    }
    if (source && completion_of(NULL, is_reply) == GEX_EVENT_NOW)
        memset(source, 0xee, step.size); /* it is ours again */
}

static void ask(void)
{
    request_event = GEX_EVENT_NO_OP;
    gex_Event_t *lc = completion_of(&request_event, 0);
    char *source = step.completion == LENT ? NULL : request_source;
    void *to = job_remote(next(), landing(0)), *early = step.dest_late ? NULL : to;
    size_t most = step.size + step.number % 3 * 1000;
    gex_AM_SrcDesc_t sd;

    do {
        if (step.is_long)
            sd = gex_AM_PrepareRequestLong(job.tm, next(), source, step.size, most, early, lc,
                                           step.flags, step.nargs);
        else
            sd = gex_AM_PrepareRequestMedium(job.tm, next(), source, step.size, most, lc,
                                             step.flags, step.nargs);
        if (sd == GEX_AM_SRCDESC_NO_OP)
            gasnet_AMPoll();
    } while (sd == GEX_AM_SRCDESC_NO_OP && step.flags);
    CHECK(sd != GEX_AM_SRCDESC_NO_OP);
    check_descriptor(sd, most, source);
    commit(sd, 0, to, source);
    if (step.completion == EVENT)
        gex_Event_Wait(request_event);
    if (step.completion == GROUP) {
        gex_NBI_Wait(GEX_EC_AM, 0);
        memset(source, 0xee, step.size);
    }
}

static void answer(gex_Token_t token, gex_Rank_t to_rank)
{
    gex_Event_t *lc = completion_of(&reply_event, 1);
    char *source = step.completion == LENT ? NULL : reply_source;
    void *to = job_remote(to_rank, landing(1)), *early = step.dest_late ? NULL : to;
    size_t most = step.size + step.number % 5 * 1000;
    gex_AM_SrcDesc_t sd;

    if (step.is_long)
        sd = gex_AM_PrepareReplyLong(token, source, step.size, most, early, lc, 0, step.nargs);
    else
        sd = gex_AM_PrepareReplyMedium(token, source, step.size, most, lc, 0, step.nargs);
    CHECK(sd != GEX_AM_SRCDESC_NO_OP);
    check_descriptor(sd, most, source);
    commit(sd, 1, to, source);
}

/* ---- receiving ---- */

static void arrived(gex_Token_t token, int is_long, void *memory, size_t size, unsigned nargs,
                    const gex_AM_Arg_t *args)
{
    gex_Token_Info_t info;
    gex_AM_Arg_t expected[MAX_ARGS];

    gex_Token_Info(token, &info, GEX_TI_ALL);
    uint64_t seed = seed_of(info.gex_srcrank, !info.gex_is_req);
    make_arguments(expected, seed);
    CHECK(is_long == step.is_long && nargs == step.nargs && size == step.size, "%zu bytes", size);
    CHECK(info.gex_is_long == is_long);
    CHECK(memcmp(args, expected, nargs * sizeof *args) == 0, "arguments of step %u", step.number);
    CHECK_PATTERN(memory, size, seed);
    if (is_long)
        CHECK(memory == job.base + landing(!info.gex_is_req), "%p", memory);
    else
        CHECK(size == 0 || (uintptr_t)memory % 8 == 0, "%p", memory);
    if (info.gex_is_req)
        answer(token, info.gex_srcrank);
    *(info.gex_is_req ? &requests_in : &replies_in) += 1;
}

static void one_step(unsigned nargs, int is_long, enum completion completion, size_t size)
{
    step.number++;
    step.nargs = nargs;
    step.is_long = is_long;
    step.completion = completion;
    step.size = size;
    step.flags = step.number % 4 ? 0 : GEX_FLAG_IMMEDIATE;
    step.dest_late = step.number % 7 == 0;
    job_phase("step %u: %u arguments, %s, completion %d, %zu bytes", step.number, nargs,
              is_long ? "Long" : "Medium", completion, size);
    requests_in = replies_in = 0;
    reply_event = GEX_EVENT_INVALID;
    job_barrier();
    ask();
    GASNET_BLOCKUNTIL(requests_in && replies_in);
    gex_Event_Wait(reply_event);
    CHECK(requests_in == 1 && replies_in == 1);
    job_barrier();
}

/* ---- the promises ---- */

static size_t limit(int is_long, enum completion completion, unsigned nargs)
{
    gex_Flags_t flags =
        completion == LENT ? GEX_FLAG_AM_PREPARE_LEAST_ALLOC : GEX_FLAG_AM_PREPARE_LEAST_CLIENT;
    gex_Event_t *lc = completion == LENT ? NULL : GEX_EVENT_NOW;

    return is_long ? gex_AM_MaxRequestLong(job.tm, next(), lc, flags, nargs)
                   : gex_AM_MaxRequestMedium(job.tm, next(), lc, flags, nargs);
}

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

static void every_form_and_size(void)
{
    static const size_t sizes[] = {0, 1, 40, 100, 4000, 5000, 30000};

    for (unsigned nargs = 0; nargs <= MAX_ARGS; nargs++)
        for (int is_long = 0; is_long < 2; is_long++)
            for (int completion = 0; completion < COMPLETIONS; completion++)
                one_step(nargs, is_long, (enum completion)completion,
                         least(sizes[step.number % 7],
                               limit(is_long, (enum completion)completion, nargs)));
}

/* Every least_payload that the query allows is granted, for each number of arguments. */
static void the_largest(void)
{
    for (unsigned nargs = 0; nargs <= MAX_ARGS; nargs++)
        for (int is_long = 0; is_long < 2; is_long++)
            for (int completion = 0; completion < COMPLETIONS; completion++) {
                size_t most = limit(is_long, (enum completion)completion, nargs);

                CHECK(most >= 512);
                if (most > SLOT - 2 * GUARD)
                    most = SLOT - 2 * GUARD;
                one_step(nargs, is_long, (enum completion)completion, most);
            }
}

/* A Cancel returns everything: there are many more of them than credits, slots and buffers. */
static void cancel(void)
{
    job_phase("cancel");
    for (int i = 0; i < 3000; i++) {
        gex_AM_SrcDesc_t sd;

        sd = gex_AM_PrepareRequestMedium(job.tm, next(), NULL, 1, 1000, NULL, 0, 3);
        memset(gex_AM_SrcDescAddr(sd), 0xaa, gex_AM_SrcDescSize(sd));
        CHECK(gex_AM_CancelRequestMedium(sd, 0) == 0);
        sd = gex_AM_PrepareRequestLong(job.tm, next(), request_source, 1, 1000, NULL, GEX_EVENT_NOW,
                                       0, 3);
        CHECK(gex_AM_CancelRequestLong(sd, 0) == 0);
    }
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 2 * SLOT);
    request_source = job_memory(SLOT);
    reply_source = job_memory(SLOT);
    register_handlers();
    job_barrier();
    every_form_and_size();
    cancel();
    the_largest();
    job_end();
}
