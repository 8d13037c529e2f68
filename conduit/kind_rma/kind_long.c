/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See kind_long.h. Owns the queue of Longs whose payload is under way or whose message found no
 * space; guarded by the lock of the room. Messages are sent without the lock: one to this process
 * runs its handler at once, which may reply by another Long. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "event/event.h"
#include "event/nbi_now.h"
#include "kind_rma/kind_long.h"
#include "kind_rma/kind_rma_private.h"
#include "op/op.h"
#include "progress/progress.h"
#include "team/objects.h"
#include "trace/trace.h"

struct queued {
    struct queued *next; /* in the queue, or free */
    struct tk_op payload;
    struct tk_ep_peer copy;
    struct tk_message m;
    gex_AM_Arg_t args[tk_max_args];
    enum tk_message_kind kind;
    bool lacks_space; /* counted in tk_deferred_work_lacks_space */
    void *source;     /* a copy of the payload; NULL: it is read where the client has it */
};

static struct queued *queue, **queue_end = &queue, *free_ones;
static tk_counter_t queued_now;
enum { requests_max = 256 /* beyond, requests wait; each reply holds a credit of its requester */ };

static struct queued *queued_take(const struct tk_message *m, enum tk_message_kind kind)
{
    const struct tk_ep_peer *copy = (const struct tk_ep_peer *)(const void *)m->peer;
    tk_lock(&tk_kind_lock);
    struct queued *q = free_ones;
    if (q)
        free_ones = q->next;
    tk_unlock(&tk_kind_lock);
    if (!q && !(q = malloc(sizeof(*q))))
        tk_panic("out of memory for a Long with device memory");
    q->next = NULL;
    tk_op_init(&q->payload);
    q->m = *m;
    memcpy(q->args, m->args, m->nargs * sizeof(*m->args));
    q->m.args = q->args;
    q->m.peer = tk_ep_peer_open(&q->copy, copy->real, copy->ours, copy->theirs);
    q->kind = kind;
    q->lacks_space = false;
    q->source = NULL;
    return q;
}

/* ---- the messages ---- */

static void append(struct queued *q)
{
    q->next = NULL;
    *queue_end = q;
    queue_end = &q->next;
}

/* Takes the messages whose payload is complete off the queue, in order. */
static struct queued *take_complete(void)
{
    struct queued *complete = NULL, **end = &complete, *all = queue;
    queue = NULL;
    queue_end = &queue;
    for (struct queued *next; all; all = next) {
        next = all->next;
        if (!tk_op_done(&all->payload)) {
            append(all);
            continue;
        }
        all->next = NULL;
        *end = all;
        end = &all->next;
    }
    return complete;
}

static void note_space(struct queued *q, bool lacks)
{
    if (q->lacks_space != lacks)
        tk_counter_add(&tk_deferred_work_lacks_space, lacks ? 1 : -1);
    q->lacks_space = lacks;
}

static void settle(struct queued *q, bool is_sent)
{
    note_space(q, !is_sent);
    if (is_sent) {
        free(q->source);
        tk_counter_add(&tk_deferred_work_wanted, -1);
        tk_counter_add(&queued_now, -1);
    }
    tk_lock(&tk_kind_lock);
    if (is_sent) {
        q->next = free_ones;
        free_ones = q;
    } else
        append(q);
    tk_unlock(&tk_kind_lock);
}

static bool send_complete(void)
{
    bool any = false;
    tk_lock(&tk_kind_lock);
    struct queued *q = take_complete();
    tk_unlock(&tk_kind_lock);
    for (struct queued *next; q; q = next) {
        next = q->next;
        bool is_sent = tk_message_send_placed(&q->m, q->kind) == TK_OK;
        settle(q, is_sent);
        any |= is_sent;
    }
    return any;
}

/* ---- the payloads ---- */

/* Only our device copies: no other process and no message is needed. */
static void copy_from_device(struct tk_kind_copy *copy)
{
    bool is_begun = false, is_over = false, has_failed = false, lacks;
    while (!is_over && !has_failed) {
        tk_lock(&tk_kind_lock);
        if (!is_begun && !(is_begun = tk_kind_copy_start(copy)))
            tk_kind_pieces_progress(&lacks); /* ends copies that hold the device's events */
        is_over = is_begun && tk_kind_copy_done(copy);
        has_failed = tk_kind_copy_has_failed();
        tk_unlock(&tk_kind_lock);
    }
    if (!is_over) /* only while the job leaves: otherwise the failed copy has ended it */
        tk_panic("the payload of a Long could not be copied from its device while the job ends");
}

/* GEX_EVENT_NOW in places where waiting for the source is not allowed. */
static bool needs_copy(const struct tk_message *m)
{
    return m->lc_opt == GEX_EVENT_NOW && (tk_in_handler || m->immediate);
}

static void *copy_of_payload(const struct tk_message *m, const struct tk_kind_memory *local)
{
    void *bytes = malloc(m->nbytes);
    if (!bytes)
        tk_panic("out of memory for the payload of a Long (%zu bytes)", m->nbytes);
    if (local) {
        struct tk_kind_copy copy = {.to = (uintptr_t)bytes,
                                    .from = (uintptr_t)m->payload,
                                    .nbytes = m->nbytes,
                                    .from_device = local->device};
        copy_from_device(&copy);
    } else
        memcpy(bytes, m->payload, m->nbytes);
    return bytes;
}

static struct tk_kind_transfer transfer_of(const struct queued *q)
{
    const struct tk_bound bound = tk_bound_of(q->copy.real->rank, q->copy.theirs);
    const struct trunkline_ep *local = tk_ep_at(q->copy.ours);
    struct tk_kind_transfer k = {
        .t = {.peer = q->copy.real,
              .rma = {.remote = (uintptr_t)q->m.dest,
                      .local = (char *)q->m.payload,
                      .nbytes = q->m.nbytes,
                      .is_put = true,
                      .is_pair = true,
                      .endpoint = q->copy.theirs,
                      .remote_keys = bound.keys,
                      .home = local->segment ? &local->segment->region : NULL}},
        .local = tk_kind_memory_of(q->copy.ours),
        .remote = bound.kind};
    TK_CHECK(!k.local || tk_region_holds(k.t.rma.home, k.t.rma.local, k.t.rma.nbytes),
             "the payload [%p, +%zu) of a Long is not inside the device segment of the local "
             "endpoint %u",
             (void *)k.t.rma.local, k.t.rma.nbytes, (unsigned)q->copy.ours);
    return k;
}

static void post(struct queued *q, struct tk_kind_transfer *k, tk_counter_t *sources)
{
    tk_kind_post(k, &q->payload, sources);
    tk_counter_add(&tk_deferred_work_wanted, 1);
    tk_counter_add(&queued_now, 1);
    tk_lock(&tk_kind_lock);
    append(q);
    tk_unlock(&tk_kind_lock);
    if (!tk_in_handler)
        send_complete();
}

static void post_now(struct queued *q, struct tk_kind_transfer *k)
{
    struct tk_op mine;
    tk_op_init(&mine);
    post(q, k, &mine.sources);
    tk_wait_source_free(&mine);
}

static void post_copy(struct queued *q, struct tk_kind_transfer *k)
{
    q->source = k->t.rma.local = copy_of_payload(&q->m, k->local);
    k->local = NULL;
    k->t.rma.home = NULL;
    post(q, k, NULL);
}

static void post_with_event(struct queued *q, struct tk_kind_transfer *k, gex_Event_t *lc_opt)
{
    struct tk_op *op = tk_op_take_with(1);
    post(q, k, &op->pending);
    tk_counter_add(&op->pending, -1);
    *lc_opt = tk_event_of(op);
}

static bool has_space(const void *unused)
{
    (void)unused;
    return tk_kind_has_space() && tk_counter_read(&queued_now) < requests_max;
}

static int send(const struct tk_message *m, enum tk_message_kind kind)
{
    if (m->immediate && !has_space(NULL)) {
        if (tk_is_traced)
            tk_trace_unsent();
        return 1;
    }
    if (kind == TK_REQUEST)
        tk_wait_until(has_space, NULL);
    struct queued *q = queued_take(m, kind);
    struct tk_kind_transfer k = transfer_of(q);
    if (needs_copy(m))
        post_copy(q, &k);
    else if (m->lc_opt == GEX_EVENT_NOW)
        post_now(q, &k);
    else if (m->lc_opt == GEX_EVENT_GROUP)
        post(q, &k, &tk_nbi_op(TK_NBI_LC)->pending);
    else
        post_with_event(q, &k, m->lc_opt);
    return 0;
}

/* With host memory as the target, the copied payload is sent as an ordinary Long. */
static void *copy_for_host(struct tk_message *m)
{
    const struct tk_ep_peer *copy = (const struct tk_ep_peer *)(const void *)m->peer;
    void *bytes = NULL;
    if (needs_copy(m) && !copy->is_on_device)
        m->payload = bytes = copy_of_payload(m, tk_kind_memory_of(copy->ours));
    return bytes;
}

/* ---- calls ---- */

bool tk_kind_long_is_on_device(const struct tk_peer *peer)
{
    const struct tk_ep_peer *copy = (const struct tk_ep_peer *)(const void *)peer;
    return copy->is_on_device || tk_kind_memory_of(copy->ours);
}

int tk_kind_long_request(struct tk_message *m)
{
    void *bytes = copy_for_host(m);
    int status = bytes ? tk_request(m) : send(m, TK_REQUEST);
    free(bytes);
    return status;
}

/* The reply returns the credit of the request when it is sent. */
int tk_kind_long_reply(gex_Token_t token, struct tk_message *m)
{
    void *bytes = copy_for_host(m);
    int status = bytes ? tk_reply(token, m) : send(m, TK_REPLY);
    if (status == 0)
        token->arrival.replied = true;
    free(bytes);
    return status;
}

void tk_kind_long_open(void)
{
    tk_progress_add(send_complete);
}
