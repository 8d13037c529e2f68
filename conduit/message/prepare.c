/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Negotiated payload: a message in two calls. Prepare acquires what depends on other processes, a
 * request's credit, so that Commit waits for our own device at most. With a buffer of the library
 * it acquires all that the message needs, and the client writes its payload where the device will
 * read it. Owns the descriptors, one pair for each thread: no lock. */
#include "config.h"

#include "base/bits.h"
#include "base/thread_own.h"
#include "event/event.h"
#include "event/nbi_now.h"
#include "message/message_private.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "trace/trace.h"

struct prepared {
    struct trunkline_srcdesc request, reply;
};

static struct prepared *prepared(void)
{
    return tk_thread_own(TK_OWN_PREPARED, sizeof(struct prepared));
}

const struct trunkline_srcdesc *tk_prepared(enum tk_message_kind kind)
{
    const struct prepared *mine = tk_thread_owned(TK_OWN_PREPARED);
    if (!mine)
        return NULL;
    const struct trunkline_srcdesc *sd = kind == TK_REQUEST ? &mine->request : &mine->reply;
    return sd->open ? sd : NULL;
}

/* In a provided buffer the payload is aligned to 16 bytes: it may be of any type. */
static size_t payload_offset(const struct trunkline_srcdesc *sd)
{
    return tk_align_up(tk_message_front(sd->category == TK_LONG, sd->nargs),
                       tk_am_buffer_alignment);
}

static gex_AM_SrcDesc_t prepare(struct trunkline_srcdesc *sd, const struct tk_message *m,
                                enum tk_message_kind kind, size_t nbytes_max)
{
    bool with_buffer = m->payload == NULL;
    size_t limit = m->category == TK_MEDIUM ? tk_medium_max(m->nargs)
                   : with_buffer            ? tk_long_packed_max(m->nargs)
                                            : tk_long_max();
    sd->reservation.peer = m->peer;
    sd->reservation.kind = (uint8_t)kind;
    if (tk_wait_reserve(&sd->reservation, with_buffer, with_buffer, m->immediate) != TK_OK)
        return GEX_AM_SRCDESC_NO_OP;
    sd->category = m->category;
    sd->nargs = m->nargs;
    sd->dest = m->dest;
    sd->lc_opt = m->lc_opt;
    sd->size = tk_min(nbytes_max, limit);
    sd->address = with_buffer ? sd->reservation.buffer + payload_offset(sd) : (void *)m->payload;
    sd->open = true;
    return sd;
}

gex_AM_SrcDesc_t tk_prepare_request(const struct tk_message *m, size_t nbytes_max)
{
    return prepare(&prepared()->request, m, TK_REQUEST, nbytes_max);
}

gex_AM_SrcDesc_t tk_prepare_reply(gex_Token_t token, struct tk_message *m, size_t nbytes_max)
{
    struct trunkline_srcdesc *reply = &prepared()->reply;
    m->peer = token->arrival.peer;
    reply->arrival = &token->arrival;
    return prepare(reply, m, TK_REPLY, nbytes_max);
}

/* A Long in a provided buffer is always packed with its head: the buffer is needed for nothing
 * else. */
static inline enum tk_status __attribute__((always_inline))
send_in_buffer(struct tk_am_reservation *reservation, const struct tk_message *m, char *payload,
               bool may_wait)
{
    bool packed = m->category == TK_LONG && m->nbytes > 0;
    size_t size = tk_message_front(m->category == TK_LONG, m->nargs);
    struct tk_outgoing out = {.head = (struct tk_message_head *)(void *)(payload - size),
                              .head_size = size,
                              .payload = payload,
                              .nbytes = m->nbytes};
    tk_front_build(out.head, m, reservation->kind, packed);
    if (!may_wait)
        return tk_peer_transport(reservation->peer)->am.send_reserved(reservation, &out);
    tk_wait_send_reserved(reservation, &out);
    return TK_OK;
}

static void commit_in_buffer(struct tk_am_reservation *reservation, struct tk_message *m,
                             char *payload)
{
    send_in_buffer(reservation, m, payload, true);
}

/* `op` counts the pieces that still read the source; with `copy` the source is copied where that
 * frees it sooner. */
static void commit_from(struct tk_am_reservation *reservation, struct tk_message *m,
                        struct tk_op *op, bool copy)
{
    union tk_front front;
    bool packed = tk_is_packed(m);
    struct tk_rma_state state = {.done = 0};
    struct tk_outgoing out = {.head = &front.head};
    out.head_size = tk_front_build(&front, m, reservation->kind, packed);
    if (m->category == TK_LONG && !packed && tk_is_payload_striped(m)) {
        struct tk_op all;
        tk_op_init(&all);
        struct tk_rma rma = tk_stripe_put(m, &all);
        tk_wait_rma_reserved(m->peer, &rma, &state);
        tk_wait_done_reserved(m->peer, &all);
    } else if (m->category == TK_LONG && m->nbytes > 0 && !packed) {
        struct tk_rma rma = tk_payload_put(m, op, copy);
        tk_wait_rma_reserved(m->peer, &rma, &state);
    } else {
        out.payload = m->payload;
        out.nbytes = m->nbytes;
        out.source = copy ? NULL : op;
    }
    tk_wait_send_reserved(reservation, &out);
}

static void commit_now(struct tk_am_reservation *reservation, struct tk_message *m)
{
    struct tk_op op;
    tk_op_init(&op);
    bool is_lent = tk_is_lent(m, tk_is_packed(m));
    commit_from(reservation, m, &op, !is_lent);
    if (is_lent)
        tk_source_look(&op.pending);
    tk_wait_done(&op);
}

static void commit_with_event(struct tk_am_reservation *reservation, struct tk_message *m)
{
    struct tk_op *op = tk_op_take();
    tk_counter_set(&op->pending, 1);
    commit_from(reservation, m, op, false);
    tk_counter_add(&op->pending, -1);
    *m->lc_opt = tk_event_of(op);
}

static void commit_in_group(struct tk_am_reservation *reservation, struct tk_message *m)
{
    struct tk_op *op = tk_nbi_op(TK_NBI_LC);
    tk_counter_add(&op->pending, 1);
    commit_from(reservation, m, op, false);
    tk_counter_add(&op->pending, -1);
}

/* The descriptor is read before anything is sent: waiting may run handlers, which may prepare
 * messages of their own. */
static inline struct tk_am_reservation __attribute__((always_inline))
commit_begin(gex_AM_SrcDesc_t sd, struct tk_message *m)
{
    struct tk_am_reservation reservation = sd->reservation;
    m->peer = reservation.peer;
    m->category = sd->category;
    m->payload = sd->address;
    m->lc_opt = sd->lc_opt;
    sd->open = false;
    if (reservation.kind == TK_REPLY)
        sd->arrival->replied = true;
    return reservation;
}

void tk_commit(gex_AM_SrcDesc_t sd, struct tk_message *m)
{
    struct tk_am_reservation reservation = commit_begin(sd, m);
    if (reservation.buffer)
        commit_in_buffer(&reservation, m, sd->address);
    else if (m->lc_opt == GEX_EVENT_NOW)
        commit_now(&reservation, m);
    else if (m->lc_opt == GEX_EVENT_GROUP)
        commit_in_group(&reservation, m);
    else
        commit_with_event(&reservation, m);
    tk_message_count(m, reservation.kind);
}

/* ---- commits that may send nothing: one check for space, no poll ---- */

/* The payload by rma.post(): the head gets its place first, since the thread may not wait for one
 * after the payload. The payload is not striped: the head could then follow only when all queue
 * pairs have completed it. */
static enum tk_status try_apart(struct tk_am_reservation *reservation, struct tk_message *m,
                                struct tk_op *op, bool copy)
{
    union tk_front front;
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, m, reservation->kind, false)};
    const struct tk_rma rma = tk_payload_put(m, op, copy);
    if (tk_peer_transport(m->peer)->am.reserve_place(reservation) != TK_OK)
        return TK_BUSY;
    return tk_send_apart_reserved(reservation, &rma, &out, true);
}

static enum tk_status try_from(struct tk_am_reservation *reservation, struct tk_message *m,
                               struct tk_op *op, bool copy)
{
    union tk_front front;
    bool packed = tk_is_packed(m);
    if (m->category == TK_LONG && m->nbytes > 0 && !packed)
        return try_apart(reservation, m, op, copy);
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, m, reservation->kind, packed),
                              .payload = m->payload,
                              .nbytes = m->nbytes,
                              .source = copy ? NULL : op};
    return tk_peer_transport(m->peer)->am.send_reserved(reservation, &out);
}

/* The source is copied, so that there is nothing to wait for, unless it is too large for that. */
static enum tk_status try_now(struct tk_am_reservation *reservation, struct tk_message *m)
{
    struct tk_op op;
    tk_op_init(&op);
    enum tk_status status = try_from(reservation, m, &op, true);
    tk_wait_done_reserved(m->peer, &op);
    return status;
}

static enum tk_status try_with_event(struct tk_am_reservation *reservation, struct tk_message *m)
{
    struct tk_op *op = tk_op_take();
    tk_counter_set(&op->pending, 1);
    enum tk_status status = try_from(reservation, m, op, false);
    tk_counter_add(&op->pending, -1);
    if (status == TK_OK)
        *m->lc_opt = tk_event_of(op);
    else
        tk_op_give(op);
    return status;
}

static enum tk_status try_in_group(struct tk_am_reservation *reservation, struct tk_message *m)
{
    struct tk_op *op = tk_nbi_op(TK_NBI_LC);
    tk_counter_add(&op->pending, 1);
    enum tk_status status = try_from(reservation, m, op, false);
    tk_counter_add(&op->pending, -1);
    return status;
}

static enum tk_status try_commit(struct tk_am_reservation *reservation, struct tk_message *m)
{
    if (reservation->buffer)
        return send_in_buffer(reservation, m, (char *)m->payload, false);
    if (m->lc_opt == GEX_EVENT_NOW)
        return try_now(reservation, m);
    if (m->lc_opt == GEX_EVENT_GROUP)
        return try_in_group(reservation, m);
    return try_with_event(reservation, m);
}

enum tk_status tk_commit_at_once(gex_AM_SrcDesc_t sd, struct tk_message *m)
{
    struct tk_am_reservation reservation = commit_begin(sd, m);
    if (try_commit(&reservation, m) == TK_OK) {
        tk_message_count(m, reservation.kind);
        return TK_OK;
    }
    sd->open = true;
    if (reservation.kind == TK_REPLY)
        sd->arrival->replied = false;
    tk_count(tk_counter_commits_refused);
    if (tk_is_traced)
        tk_trace_unsent();
    return TK_BUSY;
}

void tk_cancel(gex_AM_SrcDesc_t sd)
{
    sd->open = false;
    tk_peer_transport(sd->reservation.peer)->am.release(&sd->reservation, false);
    tk_count(tk_counter_messages_cancelled);
}

/* ---- the library's own ---- */

enum tk_status tk_internal_prepare(struct tk_am_reservation *reservation, unsigned nargs,
                                   char **payload)
{
    enum tk_status status =
        tk_wait_reserve(reservation, true, true, reservation->kind == TK_REQUEST);
    if (status == TK_OK)
        *payload = reservation->buffer +
                   tk_align_up(tk_message_front(false, nargs), tk_am_buffer_alignment);
    return status;
}

void tk_internal_commit(struct tk_am_reservation *reservation,
                        const struct tk_internal_medium *medium)
{
    struct tk_message m = {.category = TK_MEDIUM,
                           .handler = (uint8_t)medium->handler,
                           .nbytes = medium->nbytes,
                           .nargs = medium->nargs,
                           .args = medium->args};
    commit_in_buffer(reservation, &m, (char *)medium->payload);
    tk_count(tk_counter_internal_sent);
}
