/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages of the mix: requests and replies of every category, fixed and negotiated, with 2,
 * 7 and 16 arguments, every kind of local completion, immediate or not. A request has a serial
 * number, from which both sides compute its arguments and payload and those of the answer; its slot
 * is busy until the answer comes. Replies that are not locally complete leave a parcel, which any
 * thread takes later. Owns the slots (atomic), the parcels and the notes (under gex_HSL_t). */
#include "config.h"

#include "forms.h"
#include "random_mix.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 16, PARCELS = 64 };
enum kind { SHORT, MEDIUM, LONG, PREPARED_MEDIUM, PREPARED_LONG, KINDS };

static atomic_int busy[MAX_THREADS][WINDOW];

static gex_HSL_t notes_lock = GEX_HSL_INITIALIZER;
static uint64_t notes_in, notes_sum;

static gex_HSL_t parcels_lock = GEX_HSL_INITIALIZER;
static struct parcel {
    gex_Event_t event;
    void *payload;
} parcels[PARCELS];
static unsigned parcel_count, parcels_reserved;

/* ---- the forms ---- */

/* A message to be sent by any of the calls: a reply to `token`, or a request to rank `to`. */
struct message {
    gex_Token_t token;
    gex_Rank_t to;
    enum kind kind;
    gex_AM_Index_t index;
    void *payload, *dest;
    size_t size;
    gex_Event_t *lc;
    gex_Flags_t flags;
    const gex_AM_Arg_t *v;
};

static void arrived(gex_Token_t token, void *memory, size_t size, unsigned nargs,
                    const gex_AM_Arg_t *args);

#define FOR_SOME_COUNTS(X) X(2) X(7) X(16)

#define FORM(M)                                                                                    \
    static void short_##M(gex_Token_t token PARAMETERS_##M)                                        \
    {                                                                                              \
        const gex_AM_Arg_t args[] = {0 ARGUMENTS_##M};                                             \
        arrived(token, NULL, 0, M, args + 1);                                                      \
    }                                                                                              \
    static void payload_##M(gex_Token_t token, void *memory, size_t size PARAMETERS_##M)           \
    {                                                                                              \
        const gex_AM_Arg_t args[] = {0 ARGUMENTS_##M};                                             \
        arrived(token, memory, size, M, args + 1);                                                 \
    }                                                                                              \
    static int request_##M(const struct message *m)                                                \
    {                                                                                              \
        const gex_AM_Arg_t *v = m->v;                                                              \
        if (m->kind == SHORT)                                                                      \
            return gex_AM_RequestShort##M(job.tm, m->to, m->index, m->flags VALUES_##M);           \
        if (m->kind == MEDIUM)                                                                     \
            return gex_AM_RequestMedium##M(job.tm, m->to, m->index, m->payload, m->size, m->lc,    \
                                           m->flags VALUES_##M);                                   \
        return gex_AM_RequestLong##M(job.tm, m->to, m->index, m->payload, m->size, m->dest, m->lc, \
                                     m->flags VALUES_##M);                                         \
    }                                                                                              \
    static int reply_##M(const struct message *m)                                                  \
    {                                                                                              \
        const gex_AM_Arg_t *v = m->v;                                                              \
        if (m->kind == SHORT)                                                                      \
            return gex_AM_ReplyShort##M(m->token, m->index, m->flags VALUES_##M);                  \
        if (m->kind == MEDIUM)                                                                     \
            return gex_AM_ReplyMedium##M(m->token, m->index, m->payload, m->size, m->lc,           \
                                         m->flags VALUES_##M);                                     \
        return gex_AM_ReplyLong##M(m->token, m->index, m->payload, m->size, m->dest, m->lc,        \
                                   m->flags VALUES_##M);                                           \
    }                                                                                              \
    static int commit_##M(const struct message *m, gex_AM_SrcDesc_t sd, gex_Flags_t flags)         \
    {                                                                                              \
        const gex_AM_Arg_t *v = m->v;                                                              \
        if (m->kind == PREPARED_MEDIUM && m->token)                                                \
            return gex_AM_CommitReplyMedium##M##_v2(sd, m->index, m->size, flags VALUES_##M);      \
        if (m->kind == PREPARED_MEDIUM)                                                            \
            return gex_AM_CommitRequestMedium##M##_v2(sd, m->index, m->size, flags VALUES_##M);    \
        if (m->token)                                                                              \
            return gex_AM_CommitReplyLong##M##_v2(sd, m->index, m->size, m->dest,                  \
                                                  flags VALUES_##M);                               \
        return gex_AM_CommitRequestLong##M##_v2(sd, m->index, m->size, m->dest, flags VALUES_##M); \
    }
FOR_SOME_COUNTS(FORM)

static const struct form {
    unsigned nargs;
    gex_AM_Fn_t handler[2]; /* Short, or with payload */
    int (*request)(const struct message *);
    int (*reply)(const struct message *);
    int (*commit)(const struct message *, gex_AM_SrcDesc_t, gex_Flags_t);
} forms[] = {
#define ROW(M)                                                                                     \
    {M, {(gex_AM_Fn_t)short_##M, (gex_AM_Fn_t)payload_##M}, request_##M, reply_##M, commit_##M},
    FOR_SOME_COUNTS(ROW)};
enum { FORMS = sizeof forms / sizeof *forms };

static gex_AM_Entry_t table[2 * FORMS + 1];

static void on_note(gex_Token_t token, gex_AM_Arg_t number)
{
    (void)token;
    gex_HSL_Lock(&notes_lock);
    notes_in++;
    notes_sum += (unsigned)number;
    gex_HSL_Unlock(&notes_lock);
}

void mix_am_start(void)
{
    for (unsigned i = 0; i < 2 * FORMS; i++) {
        table[i].gex_fnptr = forms[i / 2].handler[i % 2];
        table[i].gex_flags = (i % 2 ? GEX_FLAG_AM_MEDLONG : GEX_FLAG_AM_SHORT) | GEX_FLAG_AM_REQREP;
        table[i].gex_nargs = forms[i / 2].nargs;
    }
    table[2 * FORMS].gex_fnptr = (gex_AM_Fn_t)on_note;
    table[2 * FORMS].gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;
    table[2 * FORMS].gex_nargs = 1;
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2 * FORMS + 1) == GASNET_OK);
}

/* ---- parcels ---- */

/* A handler can't wait for a free parcel, so it reserves one before it creates a reply that needs
 * it. */
static int reserve_parcel(void)
{
    int reserved;

    gex_HSL_Lock(&parcels_lock);
    reserved = parcel_count + parcels_reserved < PARCELS;
    parcels_reserved += (unsigned)reserved;
    gex_HSL_Unlock(&parcels_lock);
    return reserved;
}

static void leave_parcel(gex_Event_t event, void *payload)
{
    gex_HSL_Lock(&parcels_lock);
    parcels_reserved--;
    parcels[parcel_count++] = (struct parcel){event, payload};
    gex_HSL_Unlock(&parcels_lock);
}

static int pick_parcel(void)
{
    struct parcel parcel = {GEX_EVENT_INVALID, NULL};

    gex_HSL_Lock(&parcels_lock);
    if (parcel_count > 0)
        parcel = parcels[--parcel_count];
    gex_HSL_Unlock(&parcels_lock);
    if (!parcel.payload)
        return 0;
    gex_Event_Wait(parcel.event);
    free(parcel.payload);
    return 1;
}

/* ---- arguments and payload ---- */

static uint64_t seed_of(gex_Rank_t asker, unsigned thread, unsigned serial, int is_reply)
{
    return job_mix(job_mix(asker * MAX_THREADS + thread, serial), (unsigned)is_reply);
}

static void make_arguments(gex_AM_Arg_t *v, unsigned thread, unsigned serial, uint64_t seed)
{
    v[0] = (gex_AM_Arg_t)thread;
    v[1] = (gex_AM_Arg_t)serial;
    for (unsigned i = 2; i < MAX_ARGS; i++)
        v[i] = (gex_AM_Arg_t)job_mix(seed, i);
}

static void cancel(const struct message *m, gex_AM_SrcDesc_t sd)
{
    if (m->token)
        CHECK((m->kind == PREPARED_LONG ? gex_AM_CancelReplyLong
                                        : gex_AM_CancelReplyMedium)(sd, 0) == 0);
    else
        CHECK((m->kind == PREPARED_LONG ? gex_AM_CancelRequestLong
                                        : gex_AM_CancelRequestMedium)(sd, 0) == 0);
}

/* Commits some with IMMEDIATE, and cancels a refused one if the message says so. */
static int commit_or_cancel(const struct message *m, const struct form *form, gex_AM_SrcDesc_t sd,
                            int at_once)
{
    if (at_once && form->commit(m, sd, GEX_FLAG_IMMEDIATE) == 0)
        return 1;
    if (at_once && m->flags) {
        cancel(m, sd);
        return 0;
    }
    CHECK(form->commit(m, sd, 0) == 0);
    return 1;
}

/* Sends in the library's buffer, not the client's. Returns 0 if there was no space at once. */
static int send_prepared(struct message *m, const struct form *form, uint64_t seed)
{
    int is_long = m->kind == PREPARED_LONG;
    void *early = seed % 2 ? m->dest : NULL;
    size_t most = m->size + seed % 100;
    gex_AM_SrcDesc_t sd;

    if (m->token && is_long)
        sd = gex_AM_PrepareReplyLong(m->token, m->payload, m->size, most, early, m->lc, m->flags,
                                     form->nargs);
    else if (m->token)
        sd = gex_AM_PrepareReplyMedium(m->token, m->payload, m->size, most, m->lc, m->flags,
                                       form->nargs);
    else if (is_long)
        sd = gex_AM_PrepareRequestLong(job.tm, m->to, m->payload, m->size, most, early, m->lc,
                                       m->flags, form->nargs);
    else
        sd = gex_AM_PrepareRequestMedium(job.tm, m->to, m->payload, m->size, most, m->lc, m->flags,
                                         form->nargs);
    if (sd == GEX_AM_SRCDESC_NO_OP)
        return 0;
    CHECK(gex_AM_SrcDescSize(sd) >= m->size && gex_AM_SrcDescSize(sd) <= most);
    job_fill(gex_AM_SrcDescAddr(sd), m->size, seed);
    return commit_or_cancel(m, form, sd, seed % 3 > 0);
}

static int send(struct message *m, const struct form *form, uint64_t seed)
{
    int sent;

    m->index = table[2 * (form - forms) + (m->kind != SHORT)].gex_index;
    if (m->kind >= PREPARED_MEDIUM)
        sent = send_prepared(m, form, seed);
    else
        sent = (m->token ? form->reply : form->request)(m) == 0;
    CHECK(sent || (m->flags & GEX_FLAG_IMMEDIATE), "kind %d", m->kind);
    return sent;
}

/* ---- answers ---- */

static void answer(gex_Token_t token, gex_Rank_t asker, unsigned thread, unsigned serial)
{
    uint64_t seed = seed_of(asker, thread, serial, 1), choice = job_mix(seed, 1);
    gex_AM_Arg_t v[MAX_ARGS];
    gex_Event_t event;
    struct message m = {.token = token,
                        .kind = (enum kind)(choice % KINDS),
                        .dest = mix_reply_cell(asker, thread, serial % WINDOW),
                        .size = 1 + choice / KINDS % (CELL - 1),
                        .payload = job_memory(CELL),
                        .lc = GEX_EVENT_NOW,
                        .v = v};

    make_arguments(v, thread, serial, seed);
    job_fill(m.payload, m.size, seed);
    if (m.kind >= PREPARED_MEDIUM && choice / 256 % 2) {
        free(m.payload);
        m.payload = m.lc = NULL;
    } else if (m.kind != SHORT && choice / 64 % 3 == 0 && reserve_parcel())
        m.lc = &event;
    send(&m, &forms[choice / 512 % FORMS], seed);
    if (m.lc == &event)
        leave_parcel(event, m.payload);
    else
        free(m.payload);
}

static void arrived(gex_Token_t token, void *memory, size_t size, unsigned nargs,
                    const gex_AM_Arg_t *args)
{
    unsigned thread = (unsigned)args[0], serial = (unsigned)args[1], slot = serial % WINDOW;
    gex_AM_Arg_t expected[MAX_ARGS];
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_ALL);
    gex_Rank_t asker = info.gex_is_req ? info.gex_srcrank : job.rank;
    uint64_t seed = seed_of(asker, thread, serial, !info.gex_is_req);
    make_arguments(expected, thread, serial, seed);
    CHECK(memcmp(args, expected, nargs * sizeof *args) == 0, "%u arguments", nargs);
    CHECK(info.gex_ep == job.ep && info.gex_entry->gex_nargs == nargs);
    if (info.gex_is_long)
        CHECK(memory == (info.gex_is_req ? mix_request_cell(job.rank, asker, thread, slot)
                                         : mix_reply_cell(job.rank, thread, slot)));
    if (memory)
        CHECK_PATTERN(memory, size, seed);
    if (info.gex_is_req)
        answer(token, asker, thread, serial);
    else
        CHECK(atomic_exchange(&busy[thread][slot], 0) == 1, "a second answer");
}

/* ---- requests ---- */

static void complete(struct worker *w, struct message *m, gex_Event_t event)
{
    if (m->kind == SHORT || !m->lc)
        return;
    if (m->lc == GEX_EVENT_GROUP) {
        if (mix_below(w, 2))
            gex_NBI_Wait(GEX_EC_AM, 0);
        else
            while (gex_NBI_Test(GEX_EC_AM, 0))
                gasnet_AMPoll();
    } else if (m->lc != GEX_EVENT_NOW) {
        while (mix_below(w, 4) && gex_Event_Test(event))
            gasnet_AMPoll();
        if (gex_Event_Test(event))
            gex_Event_Wait(event);
    }
    memset(m->payload, 0xee, m->size);
}

static void request(struct worker *w, gex_Rank_t to, enum kind kind, gex_Flags_t flags)
{
    unsigned serial = ++w->serial & 0x7fffffff, slot = serial % WINDOW;
    uint64_t seed = seed_of(job.rank, w->id, serial, 0);
    gex_Event_t event = GEX_EVENT_INVALID, *const completions[] = {GEX_EVENT_NOW, GEX_EVENT_GROUP,
                                                                   &event};
    gex_AM_Arg_t v[MAX_ARGS];
    struct message m = {.to = to,
                        .kind = kind,
                        .payload = w->data,
                        .dest = mix_request_cell(to, job.rank, w->id, slot),
                        .size = mix_below(w, CELL),
                        .lc = completions[mix_below(w, 3)],
                        .flags = flags,
                        .v = v};
    const struct form *form = &forms[mix_below(w, FORMS)];

    GASNET_BLOCKUNTIL(atomic_load(&busy[w->id][slot]) == 0);
    atomic_store(&busy[w->id][slot], 1);
    make_arguments(v, w->id, serial, seed);
    if (kind >= PREPARED_MEDIUM && mix_below(w, 2)) {
        m.payload = m.lc = NULL;
        m.size += m.size == 0;
    } else
        job_fill(w->data, m.size, seed);
    if (!send(&m, form, seed)) {
        atomic_store(&busy[w->id][slot], 0);
        gasnet_AMPoll();
        return;
    }
    complete(w, &m, event);
}

static void short_request(struct worker *w, gex_Rank_t to)
{
    request(w, to, SHORT, 0);
}

static void medium_request(struct worker *w, gex_Rank_t to)
{
    request(w, to, MEDIUM, 0);
}

static void long_request(struct worker *w, gex_Rank_t to)
{
    request(w, to, LONG, 0);
}

static void prepared_request(struct worker *w, gex_Rank_t to)
{
    request(w, to, mix_below(w, 2) ? PREPARED_MEDIUM : PREPARED_LONG, 0);
}

static void immediate_request(struct worker *w, gex_Rank_t to)
{
    request(w, to, (enum kind)mix_below(w, KINDS), GEX_FLAG_IMMEDIATE);
}

/* Sends a request that gets no answer of the client. Half of them by GASNet-1. */
static void note(struct worker *w, gex_Rank_t to)
{
    gex_AM_Index_t index = table[2 * FORMS].gex_index;

    to = (job.rank + 1) % job.size;
    w->notes++;
    if (w->notes % 2)
        gex_AM_RequestShort1(job.tm, to, index, 0, (gex_AM_Arg_t)w->notes);
    else
        CHECK(gasnet_AMRequestShort1(to, index, (gasnet_handlerarg_t)w->notes) == GASNET_OK);
}

/* Prepares a request and cancels it. */
static void cancelled_request(struct worker *w, gex_Rank_t to)
{
    gex_AM_SrcDesc_t sd =
        gex_AM_PrepareRequestMedium(job.tm, to, NULL, 1, 1 + mix_below(w, CELL), NULL, 0, 3);

    memset(gex_AM_SrcDescAddr(sd), 0xaa, gex_AM_SrcDescSize(sd));
    CHECK(gex_AM_CancelRequestMedium(sd, 0) == 0);
}

static void pick(struct worker *w, gex_Rank_t to)
{
    (void)w, (void)to;
    while (pick_parcel())
        ;
}

static void poll(struct worker *w, gex_Rank_t to)
{
    (void)to;
    for (unsigned i = mix_below(w, 10); i > 0; i--)
        gasnet_AMPoll();
}

static mix_action *const actions[] = {short_request,
                                      medium_request,
                                      long_request,
                                      prepared_request,
                                      prepared_request,
                                      immediate_request,
                                      note,
                                      cancelled_request,
                                      pick,
                                      poll};
const struct mix_part mix_am = {actions, sizeof actions / sizeof *actions};

void mix_am_finish(struct worker *w)
{
    for (unsigned slot = 0; slot < WINDOW; slot++)
        GASNET_BLOCKUNTIL(atomic_load(&busy[w->id][slot]) == 0);
    pick(w, 0);
}

void mix_am_totals(uint64_t *count, uint64_t *sum)
{
    gex_HSL_Lock(&notes_lock);
    *count = notes_in;
    *sum = notes_sum;
    gex_HSL_Unlock(&notes_lock);
}
