/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Builds and sends messages. Requests wait by polling; replies wait only for our own earlier sends,
 * which the device completes without help of any other process, so they always make progress. No
 * lock of its own. */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "event/event.h"
#include "event/nbi_now.h"
#include "memory/memory.h"
#include "message/medium.h"
#include "message/message_private.h"
#include "message/short.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "trace/trace.h"

static void uncount_short(bool is_reply)
{
    if (is_reply)
        tk_uncount(tk_counter_short_replies);
    else
        tk_stats_uncount_short_request();
}

enum tk_status tk_short_refused(struct tk_peer *peer, struct tk_message_head head,
                                const int32_t *args)
{
    (void)peer, (void)args;
    uncount_short(head.kind == TK_REPLY);
    return TK_BUSY;
}

enum tk_status tk_small_refused(struct tk_peer *peer, unsigned tag, uint64_t args)
{
    (void)peer, (void)args;
    uncount_short(tag & tk_tag_reply);
    return TK_BUSY;
}

enum tk_status tk_medium_refused(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                 const void *payload, size_t nbytes)
{
    (void)args, (void)payload;
    tk_uncount(tk_medium_counter(head));
    tk_count_more(tk_message_bytes(peer), -(uint64_t)nbytes);
    if (tk_is_traced)
        tk_trace_unsent();
    return TK_BUSY;
}

int tk_medium_direct_first(struct tk_peer *peer, uint64_t head, const gex_AM_Arg_t *args,
                           const void *payload, size_t nbytes, tk_medium_busy *busy)
{
    tk_stats_begin_thread();
    return tk_medium_direct(peer, head, args, payload, nbytes, busy);
}

int tk_small_request_poll(struct tk_peer *peer, unsigned tag, uint64_t args, tk_small_busy *busy)
{
    tk_request_poll(busy == tk_small_refused);
    return tk_small_request(peer, tag, args, busy);
}

int tk_small_reply_first(gex_Token_t token, uint8_t handler, unsigned nargs, uint64_t args)
{
    tk_stats_begin_thread();
    return tk_small_reply(token, handler, nargs, args);
}

tk_medium_busy *const tk_medium_if_busy[2] = {tk_wait_send_medium, tk_medium_refused};

size_t tk_medium_max(unsigned nargs)
{
    return tk_message_max - tk_message_front(false, nargs);
}

/* A Long's length travels in 32 bits. With on-demand registration a Long is one message whatever
 * its size, because handlers cannot wait until remote memory has been registered. */
size_t tk_long_max(void)
{
    return tk_is_on_demand ? tk_long_packed_max(tk_max_args) : INT32_MAX;
}

size_t tk_long_packed_max(unsigned nargs)
{
    return tk_message_max - tk_message_front(true, nargs);
}

/* For traces: the path of a message that does not go over the network. */
static inline void path_near(enum tk_reach reach)
{
    if (reach != TK_REACH_NETWORK)
        tk_path_taken = 1 + (reach == TK_REACH_SELF ? tk_path_puts_self : tk_path_puts_shared);
}

/* The mark of a message between endpoints takes the place of the trace number (endpoint.h). */
uint16_t tk_message_number(const struct tk_peer *peer, uint8_t handler)
{
    if (handler < GEX_AM_INDEX_BASE)
        return 0;
    if (tk_is_traced)
        path_near(tk_peer_transport(peer)->reach);
    return tk_trace_number(peer->rank, handler, peer == tk_peer(peer->rank));
}

size_t tk_front_build(void *front, const struct tk_message *m, enum tk_message_kind kind,
                      bool packed)
{
    uint16_t number = 0;
    char *at = (char *)front + sizeof(struct tk_message_head);
    tk_if_unlikely(tk_trace_has(tk_trace_bit_request_short)) number =
        tk_message_number(m->peer, m->handler);
    *(struct tk_message_head *)front = (struct tk_message_head){.kind = (uint8_t)kind,
                                                                .category = m->category,
                                                                .nargs = (uint8_t)m->nargs,
                                                                .handler = m->handler,
                                                                .packed = packed,
                                                                .reserved = number};
    if (m->category == TK_LONG) {
        struct tk_long_head place = {.dest = (uintptr_t)m->dest, .nbytes = (uint32_t)m->nbytes};
        memcpy(at, &place, sizeof(place));
        at += sizeof(place);
    }
    int32_t *args = (int32_t *)at;
    for (unsigned i = 0; i < m->nargs; i++)
        args[i] = m->args[i];
    if (m->nargs & 1)
        args[m->nargs] = 0; /* padding must not leak stack contents */
    return tk_message_front(m->category == TK_LONG, m->nargs);
}

/* The device sends it from there without a copy, and the receiver needs none either. */
static bool is_better_put(const struct tk_message *m)
{
    return m->nbytes >= tk_settings.long_put_min &&
           tk_peer_transport(m->peer)->reach == TK_REACH_NETWORK &&
           tk_area_holds(&tk_segment_area, m->payload, m->nbytes);
}

bool tk_is_packed(const struct tk_message *m)
{
    size_t max = tk_peer_transport(m->peer)->am.packed_max;
    if (!tk_is_on_demand)
        max = tk_min(tk_settings.packedlong_limit, max);
    if (m->category != TK_LONG || m->nbytes - 1 >= max) /* a payload of 0 bytes is not packed */
        return false;
    return tk_is_on_demand || !is_better_put(m);
}

struct tk_rma tk_payload_put(const struct tk_message *m, struct tk_op *op, bool copy)
{
    return (struct tk_rma){.remote = (uintptr_t)m->dest,
                           .local = (char *)m->payload,
                           .nbytes = m->nbytes,
                           .op = op,
                           .is_put = true,
                           .is_payload = true,
                           .copy_source = copy,
                           .is_lent = !copy && m->lc_opt == GEX_EVENT_NOW,
                           .sources_only = true};
}

/* A Long in two parts is sent entirely or not at all. Both reserve their resources before the first
 * is posted. A payload of many pieces then releases the reservation of its head, or threads in the
 * same state could wait for each other. */
enum tk_status tk_send_apart_reserved(struct tk_am_reservation *reservation,
                                      const struct tk_rma *rma, struct tk_outgoing *out,
                                      bool keep_credit)
{
    struct tk_peer *peer = reservation->peer;
    struct tk_rma_state state = {.done = 0};
    enum tk_status status = tk_peer_transport(peer)->rma.post(peer, rma, &state);
    if (status != TK_OK) {
        tk_peer_transport(peer)->am.release(reservation, keep_credit || state.done > 0);
        if (state.done == 0)
            return TK_BUSY;
        tk_wait_rma_reserved(peer, rma, &state);
    }
    tk_wait_send_reserved(reservation, out);
    return TK_OK;
}

static enum tk_status send_apart_at_once(struct tk_message *m, enum tk_message_kind kind,
                                         const struct tk_rma *rma, struct tk_outgoing *out)
{
    struct tk_am_reservation reservation = {.peer = m->peer, .kind = (uint8_t)kind};
    if (tk_wait_reserve(&reservation, true, false, true) != TK_OK)
        return TK_BUSY;
    return tk_send_apart_reserved(&reservation, rma, out, false);
}

bool tk_is_payload_striped(const struct tk_message *m)
{
    size_t min = tk_peer_transport(m->peer)->am.stripe_min;
    return min > 0 && m->nbytes >= min;
}

struct tk_rma tk_stripe_put(const struct tk_message *m, struct tk_op *all)
{
    struct tk_rma rma = tk_payload_put(m, all, false);
    rma.is_lent = false;
    rma.sources_only = false;
    rma.is_blocking = true;
    return rma;
}

/* Striped queue pairs are not ordered: the head is sent when the payload is complete on all of
 * them, which also frees the source. */
static enum tk_status send_behind(struct tk_message *m, struct tk_outgoing *out)
{
    struct tk_op all;
    tk_op_init(&all);
    struct tk_rma rma = tk_stripe_put(m, &all);
    tk_wait_rma(m->peer, &rma);
    tk_wait_done(&all);
    return tk_wait_send(m->peer, out, false);
}

/* In two steps. An immediate payload is not striped, because it cannot wait. */
static enum tk_status __attribute__((noinline))
send_in_two(struct tk_message *m, const struct tk_outgoing *whole, struct tk_op *op, bool copy)
{
    struct tk_outgoing out = {.head = whole->head, .head_size = whole->head_size};
    const struct tk_rma rma = tk_payload_put(m, op, copy);
    if (m->immediate)
        return send_apart_at_once(m, (enum tk_message_kind)out.head->kind, &rma, &out);
    if (tk_is_payload_striped(m))
        return send_behind(m, &out);
    tk_wait_rma(m->peer, &rma);
    return tk_wait_send(m->peer, &out, false);
}

/* The payload of a Long that does not fit beside its head is sent first, over the same queue pair:
 * the head cannot overtake it. */
static inline enum tk_status send_apart(struct tk_message *m, enum tk_message_kind kind,
                                        struct tk_op *op, bool copy)
{
    const struct tk_transport *transport = tk_peer_transport(m->peer);
    union tk_front front;
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, m, kind, false),
                              .payload = m->payload,
                              .nbytes = m->nbytes,
                              .source = op};
    /* the handler of a message that came over a connection may be the first to use it from here */
    if (kind == TK_REPLY && transport->am.before_reply)
        transport->am.before_reply(m->peer);
    if (!copy && transport->am.send_long && (m->immediate || !tk_is_payload_striped(m)) &&
        transport->am.send_long(m->peer, &out, (uintptr_t)m->dest))
        return TK_OK;
    return send_in_two(m, &out, op, copy);
}

static enum tk_status send_whole(struct tk_message *m, enum tk_message_kind kind, struct tk_op *op,
                                 bool packed, bool copy)
{
    union tk_front front;
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, m, kind, packed),
                              .payload = m->payload,
                              .nbytes = m->nbytes,
                              .source = copy ? NULL : op};
    return tk_wait_send(m->peer, &out, m->immediate);
}

static inline enum tk_status inject(struct tk_message *m, enum tk_message_kind kind,
                                    struct tk_op *op, bool packed, bool copy)
{
    return m->category == TK_LONG && m->nbytes > 0 && !packed
               ? send_apart(m, kind, op, copy)
               : send_whole(m, kind, op, packed, copy);
}

bool tk_is_lent(const struct tk_message *m, bool packed)
{
    bool is_behind = m->category == TK_MEDIUM || packed;
    return m->nbytes >= (is_behind ? (size_t)tk_medium_lent_min : 1) && tk_source_lend();
}

static enum tk_status send_now(struct tk_message *m, enum tk_message_kind kind)
{
    struct tk_op op;
    bool packed = tk_is_packed(m);
    if (m->nbytes < tk_medium_lent_min && (packed || m->category == TK_MEDIUM))
        return send_whole(m, kind, NULL, packed, true); /* always copied */
    tk_op_init(&op);
    bool is_lent = tk_is_lent(m, packed);
    enum tk_status status = inject(m, kind, &op, packed, !is_lent);
    if (is_lent)
        tk_source_look(&op.pending);
    tk_wait_done(&op);
    return status;
}

static enum tk_status send_with_event(struct tk_message *m, enum tk_message_kind kind)
{
    struct tk_op *op = tk_op_take();
    tk_counter_set(&op->pending, 1);
    enum tk_status status = inject(m, kind, op, tk_is_packed(m), false);
    tk_counter_add(&op->pending, -1);
    *m->lc_opt = tk_event_of(op);
    return status;
}

/* Counted among the thread's implicit operations; while it is being posted the counter must not
 * reach zero. */
static enum tk_status send_in_group(struct tk_message *m, enum tk_message_kind kind)
{
    struct tk_op *op = tk_nbi_op(TK_NBI_LC);
    tk_counter_add(&op->pending, 1);
    enum tk_status status = inject(m, kind, op, tk_is_packed(m), false);
    tk_counter_add(&op->pending, -1);
    return status;
}

enum tk_status tk_short_send_traced(struct tk_peer *peer, struct tk_message_head head,
                                    bool immediate, const gex_AM_Arg_t *args)
{
    union tk_front front;
    const struct tk_message m = {.peer = peer,
                                 .category = TK_SHORT,
                                 .handler = head.handler,
                                 .nargs = head.nargs,
                                 .args = args};
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, &m, head.kind, false)};
    enum tk_status status = tk_wait_send(peer, &out, immediate);
    if (status != TK_OK) {
        uncount_short(head.kind == TK_REPLY);
        tk_trace_unsent();
    }
    return status;
}

static enum tk_status send(struct tk_message *m, enum tk_message_kind kind)
{
    if (m->category == TK_SHORT)
        return tk_short_send(m->peer, kind, m->handler, m->immediate, m->nargs, m->args);
    if (m->lc_opt == GEX_EVENT_NOW)
        return send_now(m, kind);
    if (m->lc_opt == GEX_EVENT_GROUP)
        return send_in_group(m, kind);
    return send_with_event(m, kind);
}

void tk_message_count(const struct tk_message *m, enum tk_message_kind kind)
{
    static const enum tk_counter counters[2][2] = {
        {tk_counter_medium_requests, tk_counter_long_requests},
        {tk_counter_medium_replies, tk_counter_long_replies}};
    if (m->category == TK_SHORT)
        return; /* counted where it was sent */
    tk_count(counters[kind == TK_REPLY][m->category == TK_LONG]);
    tk_count_add(tk_message_bytes(m->peer), m->nbytes);
}

bool tk_long_direct(const struct tk_message *m, enum tk_message_kind kind)
{
    const struct tk_transport *transport = tk_peer_transport(m->peer);
    union tk_front front;
    struct tk_op op;
    if (!transport->am.send_long || tk_is_payload_striped(m) || !tk_source_lends())
        return false;
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, m, kind, false),
                              .payload = m->payload,
                              .nbytes = m->nbytes,
                              .source = &op};
    tk_op_init(&op);
    if (!transport->am.send_long(m->peer, &out, (uintptr_t)m->dest)) {
        if (tk_is_traced)
            tk_trace_unsent();
        return false;
    }
    tk_message_count(m, kind);
    tk_source_look(&op.pending);
    tk_wait_done(&op);
    return true;
}

enum tk_status tk_message_send_placed(const struct tk_message *m, enum tk_message_kind kind)
{
    union tk_front front;
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, m, kind, false)};
    enum tk_status status = tk_peer_transport(m->peer)->am.send(m->peer, &out);
    if (status == TK_OK)
        tk_message_count(m, kind);
    return status;
}

int tk_request(struct tk_message *m)
{
    if (send(m, TK_REQUEST) != TK_OK) {
        if (tk_is_traced)
            tk_trace_unsent();
        return 1;
    }
    tk_message_count(m, TK_REQUEST);
    return 0;
}

int tk_reply(gex_Token_t token, struct tk_message *m)
{
    m->peer = token->arrival.peer;
    if (send(m, TK_REPLY) != TK_OK) {
        if (tk_is_traced)
            tk_trace_unsent();
        return 1;
    }
    tk_message_count(m, TK_REPLY);
    token->arrival.replied = true;
    return 0;
}

enum tk_status tk_internal_send(struct tk_peer *peer, enum tk_message_kind kind,
                                enum tk_internal_handler handler, unsigned nargs,
                                const int32_t *args)
{
    union tk_front front;
    struct tk_message m = {
        .category = TK_SHORT, .handler = (uint8_t)handler, .nargs = nargs, .args = args};
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, &m, kind, false)};
    enum tk_status status = tk_peer_transport(peer)->am.send(peer, &out);
    if (status == TK_OK)
        tk_count(tk_counter_internal_sent);
    return status;
}

/* Both transports have copied the payload when they return. */
static enum tk_status send_medium(struct tk_peer *peer, enum tk_message_kind kind,
                                  const struct tk_internal_medium *medium, bool immediate)
{
    union tk_front front;
    struct tk_message m = {.category = TK_MEDIUM,
                           .handler = (uint8_t)medium->handler,
                           .nargs = medium->nargs,
                           .args = medium->args};
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_front_build(&front, &m, kind, false),
                              .payload = medium->payload,
                              .nbytes = medium->nbytes};
    enum tk_status status = tk_wait_send(peer, &out, immediate);
    if (status == TK_OK)
        tk_count(tk_counter_internal_sent);
    return status;
}

enum tk_status tk_internal_request(struct tk_peer *peer, const struct tk_internal_medium *medium)
{
    return send_medium(peer, TK_REQUEST, medium, true);
}

void tk_internal_reply(struct tk_arrival *to, const struct tk_internal_medium *medium)
{
    send_medium(to->peer, TK_REPLY, medium, false);
    to->replied = true;
}
