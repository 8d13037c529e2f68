/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commits with GEX_FLAG_IMMEDIATE over a transport that refuses at each point where one may:
 * then nothing is sent or polled, and the descriptor is still valid for another Commit or a Cancel.
 * For each form of a prepared message. */
#include "config.h"

#include "event/event.h"
#include "event/nbi_now.h"
#include "fake_job.h"
#include "message/endpoint.h"
#include "message/message.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "stats/write.h"
#include "unit.h"

enum { handler = 160, asker = 161, nargs = 3, packed = 100, large = 5000, peer = 3 };

/* A prepared message; with lc NULL in a buffer of the library. */
static const struct form {
    enum tk_message_category category;
    size_t nbytes;
    gex_Event_t *lc;
} forms[] = {
    {TK_MEDIUM, packed, NULL},
    {TK_LONG, packed, NULL},
    {TK_MEDIUM, large, NULL},
    {TK_MEDIUM, 0, GEX_EVENT_NOW},
    {TK_LONG, 0, GEX_EVENT_NOW},
    {TK_MEDIUM, large, GEX_EVENT_NOW},
    {TK_LONG, packed, GEX_EVENT_NOW},
    {TK_LONG, large, GEX_EVENT_NOW},
    {TK_MEDIUM, large, GEX_EVENT_GROUP},
    {TK_LONG, packed, GEX_EVENT_GROUP},
    {TK_LONG, large, GEX_EVENT_GROUP},
    {TK_MEDIUM, large, &(gex_Event_t){NULL}},
    {TK_LONG, packed, &(gex_Event_t){NULL}},
    {TK_LONG, large, &(gex_Event_t){NULL}},
};
enum { form_count = sizeof(forms) / sizeof(*forms) };
#define UNTOUCHED ((gex_Event_t)forms) /* no event of the library's */

static _Alignas(8) char segment[65536];
static char source[65536];
static const gex_AM_Arg_t arguments[nargs] = {1, 22, 333};
static struct {
    unsigned calls;
    size_t nbytes;
    char bytes[large];
    bool is_request;
} got;
static void (*in_handler)(gex_Token_t token);

static void take(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t a, gex_AM_Arg_t b,
                 gex_AM_Arg_t c)
{
    assert_true(a == arguments[0] && b == arguments[1] && c == arguments[2]);
    got.calls++;
    got.nbytes = nbytes;
    got.is_request = tk_token_head(token).kind == TK_REQUEST;
    if (nbytes > 0)
        memcpy(got.bytes, buf, nbytes);
}

static void asked(gex_Token_t token)
{
    in_handler(token);
}

static gex_AM_Entry_t table[] = {
    {handler, (gex_AM_Fn_t)take, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP, nargs, NULL, ""},
    {asker, (gex_AM_Fn_t)asked, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, ""},
};

/* ---- the transport: its last arguments, and whether the call only checked for space ---- */

static enum tk_status (*fake_send)(struct tk_am_reservation *, struct tk_outgoing *);
static const struct tk_op *last_source;

static enum tk_status send_noted(struct tk_am_reservation *reservation, struct tk_outgoing *m)
{
    last_source = m->source;
    return fake_send(reservation, m);
}

static int set_up(void **state)
{
    (void)state;
    unit_settings("GASNET_PACKEDLONG_LIMIT=1000", NULL);
    fake_job_open(4);
    tk_message_open();
    memset(&got, 0, sizeof(got));
    memset(segment, 0, sizeof(segment));
    tk_segment_area = (struct tk_area){.base = segment, .size = sizeof(segment), .fd = -1};
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (char)(i * 13 + i / 256);
    fake_send = fake_transport.am.send_reserved;
    fake_transport.am.send_reserved = send_noted;
    last_source = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_transport.am.send_reserved = fake_send;
    fake_job_close();
    return 0;
}

/* ---- a message ---- */

static struct tk_message message(const struct form *form, gex_Event_t *event)
{
    return (struct tk_message){.peer = tk_peer(peer),
                               .category = (uint8_t)form->category,
                               .handler = handler,
                               .payload = form->lc ? source : NULL,
                               .nbytes = form->nbytes,
                               .dest = segment + 8,
                               .lc_opt = !form->lc                     ? NULL
                                         : form->lc == GEX_EVENT_NOW   ? GEX_EVENT_NOW
                                         : form->lc == GEX_EVENT_GROUP ? GEX_EVENT_GROUP
                                                                       : event,
                               .nargs = nargs,
                               .args = arguments};
}

static bool has_event(const struct form *form)
{
    return form->lc && form->lc != GEX_EVENT_NOW && form->lc != GEX_EVENT_GROUP;
}

static bool is_apart(const struct form *form)
{
    return form->category == TK_LONG && form->nbytes == large;
}

static gex_AM_SrcDesc_t prepare(gex_Token_t token, struct tk_message *m, size_t nbytes)
{
    gex_AM_SrcDesc_t sd =
        token ? tk_prepare_reply(token, m, nbytes) : tk_prepare_request(m, nbytes);
    assert_non_null(sd);
    assert_int_equal(sd->size, nbytes);
    if (!m->payload)
        memcpy(sd->address, source, nbytes);
    return sd;
}

static uint64_t counted(enum tk_counter counter)
{
    struct tk_stats sum;
    tk_stats_sum(&sum);
    return sum.counts[counter];
}

static uint64_t sent_so_far(void)
{
    return counted(tk_counter_medium_requests) + counted(tk_counter_long_requests) +
           counted(tk_counter_medium_replies) + counted(tk_counter_long_replies);
}

/* The state that a refused Commit must not change. */
struct before {
    struct trunkline_srcdesc sd;
    unsigned sent, polls, credits, places;
    uint64_t counted, refused;
};

static struct before look(gex_AM_SrcDesc_t sd)
{
    return (struct before){.sd = *sd,
                           .sent = fake_job.count,
                           .polls = fake_job.polls,
                           .credits = fake_job.credits_held,
                           .places = fake_job.places_held,
                           .counted = sent_so_far(),
                           .refused = counted(tk_counter_commits_refused)};
}

static void assert_refused(gex_AM_SrcDesc_t sd, const struct before *b, const struct form *form,
                           gex_Event_t event)
{
    assert_ptr_equal(tk_prepared(sd->reservation.kind), sd);
    assert_ptr_equal(sd->address, b->sd.address);
    assert_int_equal(sd->size, b->sd.size);
    assert_ptr_equal(sd->reservation.buffer, b->sd.reservation.buffer);
    assert_memory_equal(sd->address, source, form->nbytes);
    assert_int_equal(fake_job.count, b->sent);
    assert_int_equal(fake_job.polls, b->polls);
    assert_int_equal(fake_job.credits_held, b->credits);
    assert_int_equal(fake_job.places_held, b->places);
    assert_int_equal(sent_so_far(), b->counted);
    assert_int_equal(counted(tk_counter_commits_refused), b->refused + 1);
    assert_ptr_equal(event, UNTOUCHED);
    if (has_event(form) && last_source)
        assert_int_equal(tk_counter_read(&last_source->pending), tk_op_free);
    if (form->lc == GEX_EVENT_GROUP)
        assert_int_equal(tk_counter_read(&tk_nbi_op(TK_NBI_LC)->pending), 0);
    if (sd->reservation.kind == TK_REPLY)
        assert_false(sd->arrival->replied);
}

static void refuse(const struct form *form, unsigned where)
{
    if (!is_apart(form))
        fake_job.busy_sends = 1;
    else if (where % 2)
        fake_job.busy_rooms = 1;
    else
        fake_job.busy_rmas = 1;
}

static void commit_refused(gex_AM_SrcDesc_t sd, struct tk_message *m, const struct form *form,
                           unsigned where, const gex_Event_t *event)
{
    const struct before before = look(sd);
    refuse(form, where);
    assert_int_equal(tk_commit_at_once(sd, m), TK_BUSY);
    assert_int_equal(fake_job.busy_sends + fake_job.busy_rooms + fake_job.busy_rmas, 0);
    assert_refused(sd, &before, form, *event);
}

static void assert_taken(const struct form *form, bool is_request)
{
    while (fake_job_deliver())
        continue;
    assert_int_equal(got.calls, 1);
    assert_int_equal(got.is_request, is_request);
    assert_int_equal(got.nbytes, form->nbytes);
    assert_memory_equal(got.bytes, source, form->nbytes);
    got.calls = 0;
}

static void sync_source(const struct form *form, gex_Event_t event)
{
    while (tk_reap())
        continue;
    if (has_event(form))
        assert_true(event == GEX_EVENT_INVALID || tk_event_test(event));
    if (form->lc == GEX_EVENT_GROUP)
        assert_int_equal(tk_counter_read(&tk_nbi_op(TK_NBI_LC)->pending), 0);
}

/* ---- the promises ---- */

/* Commit may be refused any number of times, and then sends as if it had never been refused. */
static void a_commit_that_was_refused_is_made_again(void **state)
{
    (void)state;
    for (unsigned refusals = 0; refusals < 4; refusals++)
        for (int f = 0; f < form_count; f++) {
            gex_Event_t event = UNTOUCHED;
            struct tk_message m = message(&forms[f], &event);
            gex_AM_SrcDesc_t sd = prepare(NULL, &m, forms[f].nbytes);
            for (unsigned i = 0; i < refusals; i++)
                commit_refused(sd, &m, &forms[f], i, &event);
            const struct before before = look(sd);
            assert_int_equal(tk_commit_at_once(sd, &m), TK_OK);
            assert_int_equal(fake_job.polls, before.polls);
            assert_int_equal(sent_so_far(), before.counted + 1);
            assert_null(tk_prepared(TK_REQUEST));
            assert_int_equal(fake_job.credits_held + fake_job.places_held, 0);
            if (has_event(&forms[f]))
                assert_ptr_not_equal(event, UNTOUCHED);
            assert_taken(&forms[f], true);
            sync_source(&forms[f], event);
        }
}

static void a_commit_that_was_refused_is_cancelled(void **state)
{
    (void)state;
    for (int f = 0; f < form_count; f++) {
        gex_Event_t event = UNTOUCHED;
        struct tk_message m = message(&forms[f], &event);
        gex_AM_SrcDesc_t sd = prepare(NULL, &m, forms[f].nbytes);
        const uint64_t cancelled = counted(tk_counter_messages_cancelled);
        for (unsigned i = 0; i < 2; i++)
            commit_refused(sd, &m, &forms[f], i, &event);
        tk_cancel(sd);
        assert_null(tk_prepared(TK_REQUEST));
        assert_int_equal(fake_job.credits_held + fake_job.places_held + fake_job.count, 0);
        assert_int_equal(counted(tk_counter_messages_cancelled), cancelled + 1);
        assert_memory_equal(segment, (char[large + 8]){0}, large + 8);
    }
}

/* By a Commit that waits, or of another size and to another place. */
static void another_commit_may_be_another_one(void **state)
{
    const struct form half = {TK_LONG, large / 2, GEX_EVENT_NOW};
    gex_Event_t event = UNTOUCHED;
    struct tk_message m = message(&forms[7], &event);
    (void)state;
    gex_AM_SrcDesc_t sd = prepare(NULL, &m, large);
    commit_refused(sd, &m, &forms[7], 0, &event);
    commit_refused(sd, &m, &forms[7], 1, &event);
    m = message(&half, &event);
    m.dest = segment + 6000;
    fake_job.busy_sends = 3;
    tk_commit(sd, &m);
    assert_taken(&half, true);
    assert_memory_equal(segment, (char[6000]){0}, 6000);
    assert_int_equal(fake_job.credits_held + fake_job.places_held, 0);
}

/* The head waits for our own device then, and so do further pieces; neither polls. */
static void a_long_whose_payload_is_under_way_is_not_refused(void **state)
{
    (void)state;
    for (int f = 0; f < form_count; f++) {
        gex_Event_t event = UNTOUCHED;
        struct tk_message m = message(&forms[f], &event);
        if (!is_apart(&forms[f]))
            continue;
        for (int pieces = 0; pieces < 2; pieces++) {
            gex_AM_SrcDesc_t sd = prepare(NULL, &m, large);
            fake_job.busy_sends = 3;
            fake_job.rma_piece = pieces ? large / 4 : 0;
            fake_job.never_copies = true;
            assert_int_equal(tk_commit_at_once(sd, &m), TK_OK);
            assert_int_equal(fake_job.polls, 0);
            assert_int_equal(fake_job.credits_held + fake_job.places_held, 0);
            assert_taken(&forms[f], true);
            sync_source(&forms[f], event);
        }
    }
}

/* Waiting for a source polls for messages occasionally, but not here. */
static void waiting_for_a_source_serves_no_other_rank(void **state)
{
    (void)state;
    fake_job.never_copies = true;
    for (int i = 0; i < 2 * tk_serve_others; i++) {
        gex_Event_t event = UNTOUCHED;
        struct tk_message m = message(&forms[7], &event);
        assert_int_equal(tk_commit_at_once(prepare(NULL, &m, large), &m), TK_OK);
        assert_int_equal(fake_job.polls, 0);
        assert_taken(&forms[7], true);
    }
}

static int form_in_handler;

static void reply_at_last(gex_Token_t token)
{
    const struct form *form = &forms[form_in_handler];
    gex_Event_t event = UNTOUCHED;
    struct tk_message m = message(form, &event);
    gex_AM_SrcDesc_t sd = prepare(token, &m, form->nbytes);
    commit_refused(sd, &m, form, 0, &event);
    commit_refused(sd, &m, form, 1, &event);
    assert_int_equal(tk_commit_at_once(sd, &m), TK_OK);
    assert_true(token->arrival.replied);
    sync_source(form, event);
}

/* After a Cancel the handler may reply in another way, or not at all. */
static void reply_otherwise(gex_Token_t token)
{
    const struct form *form = &forms[form_in_handler];
    gex_Event_t event = UNTOUCHED;
    struct tk_message m = message(form, &event);
    gex_AM_SrcDesc_t sd = prepare(token, &m, form->nbytes);
    commit_refused(sd, &m, form, 0, &event);
    tk_cancel(sd);
    assert_null(tk_prepared(TK_REPLY));
    assert_false(token->arrival.replied);
    m = message(&forms[6], &event);
    assert_int_equal(tk_reply(token, &m), 0);
}

static void ask(void (*fn)(gex_Token_t token))
{
    struct tk_message m = {.peer = tk_peer(peer), .category = TK_SHORT, .handler = asker};
    in_handler = fn;
    assert_int_equal(tk_request(&m), 0);
    assert_true(fake_job_deliver());
}

static void a_reply_that_was_refused_is_no_reply(void **state)
{
    (void)state;
    for (form_in_handler = 0; form_in_handler < form_count; form_in_handler++) {
        if (forms[form_in_handler].lc == GEX_EVENT_GROUP)
            continue; /* not of replies */
        ask(reply_at_last);
        assert_taken(&forms[form_in_handler], false);
        ask(reply_otherwise);
        assert_taken(&forms[6], false);
        assert_int_equal(fake_job.credits_held + fake_job.places_held, 0);
        fake_job.count = fake_job.delivered = fake_job.reaped = 0;
    }
}

/* The fake transport accepts only peers of the table; the descriptor keeps the copy. */
static void messages_of_another_endpoint_use_the_connections_of_its_process(void **state)
{
    static struct tk_ep_peer copy;
    (void)state;
    for (unsigned f = 0; f < 2 * form_count; f++) {
        const struct form *form = &forms[f / 2];
        gex_Event_t event = UNTOUCHED;
        struct tk_message m = message(form, &event);
        m.peer = tk_ep_peer_open(&copy, tk_peer(peer), 1, 0);
        gex_AM_SrcDesc_t sd = prepare(NULL, &m, form->nbytes);
        commit_refused(sd, &m, form, 0, &event);
        commit_refused(sd, &m, form, 1, &event);
        assert_ptr_equal(sd->reservation.peer, m.peer);
        if (f % 2) {
            tk_cancel(sd);
        } else {
            assert_int_equal(tk_commit_at_once(sd, &m), TK_OK);
            assert_int_equal(fake_job.sent[fake_job.count - 1].head->handler, tk_handler_endpoint);
            sync_source(form, event);
        }
        assert_int_equal(fake_job.credits_held + fake_job.places_held, 0);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(a_commit_that_was_refused_is_made_again),
    TEST(a_commit_that_was_refused_is_cancelled),
    TEST(another_commit_may_be_another_one),
    TEST(a_long_whose_payload_is_under_way_is_not_refused),
    TEST(waiting_for_a_source_serves_no_other_rank),
    TEST(a_reply_that_was_refused_is_no_reply),
    TEST(messages_of_another_endpoint_use_the_connections_of_its_process),
};

int main(void)
{
    unit_deadline();
    if (tk_handlers_register(0, table, sizeof(table) / sizeof(table[0])) != GASNET_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
