/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building and sending of messages. Requests wait by polling; replies wait for our own earlier
 * sends only, which the device completes without anybody's help, so they always get out. No lock of
 * its own. */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "event/event.h"
#include "message/message.h"
#include "progress/progress.h"
#include "settings/settings.h"

/* A head with everything that may follow it before the payload. */
union front {
    struct tk_message_head head;
    char bytes[tk_message_head_max];
    uint64_t alignment;
};

static size_t front_size(unsigned nargs, bool is_long)
{
    return tk_align_up(sizeof(struct tk_message_head) +
                           (is_long ? sizeof(struct tk_long_head) : 0) + 4u * nargs,
                       8);
}

size_t tk_medium_max(unsigned nargs)
{
    return tk_message_max - front_size(nargs, false);
}

size_t tk_long_max(void)
{
    return INT32_MAX; /* the manual's; its length travels in 32 bits */
}

static size_t build(union front *front, const struct tk_message *m, enum tk_message_kind kind,
                    bool packed)
{
    char *at = front->bytes + sizeof(front->head);
    front->head = (struct tk_message_head){.kind = (uint8_t)kind,
                                           .category = m->category,
                                           .nargs = (uint8_t)m->nargs,
                                           .handler = m->handler,
                                           .packed = packed};
    if (m->category == TK_LONG) {
        struct tk_long_head place = {.dest = (uintptr_t)m->dest, .nbytes = (uint32_t)m->nbytes};
        memcpy(at, &place, sizeof(place));
        at += sizeof(place);
    }
    int32_t *args = (int32_t *)at;
    for (unsigned i = 0; i < m->nargs; i++)
        args[i] = m->args[i];
    if (m->nargs & 1)
        args[m->nargs] = 0; /* padding must not carry stack contents to others */
    return front_size(m->nargs, m->category == TK_LONG);
}

static bool is_packed(const struct tk_message *m)
{
    size_t most = tk_min(tk_settings.packedlong_limit, m->peer->transport->packed_max);
    return m->category == TK_LONG && m->nbytes > 0 && m->nbytes <= most;
}

/* The payload of a Long that does not fit beside its head goes first, over the same queue pair: the
 * head can't overtake it. `op` counts the pieces that still read the source. */
static enum tk_status put_payload(const struct tk_message *m, struct tk_op *op, bool copy)
{
    struct tk_rma rma = {.remote = (uintptr_t)m->dest,
                         .local = (char *)m->payload,
                         .nbytes = m->nbytes,
                         .op = op,
                         .is_put = true,
                         .copy_source = copy,
                         .sources_only = true};
    return tk_wait_rma(m->peer, &rma, m->immediate);
}

static enum tk_status inject(struct tk_message *m, enum tk_message_kind kind, struct tk_op *op,
                             bool copy)
{
    union front front;
    bool packed = is_packed(m);
    bool separate = m->category == TK_LONG && m->nbytes > 0 && !packed;
    if (separate && put_payload(m, op, copy) != TK_OK)
        return TK_BUSY;
    struct tk_outgoing out = {.head = &front.head, .head_size = build(&front, m, kind, packed)};
    if (!separate) {
        out.payload = m->payload;
        out.nbytes = m->nbytes;
        out.source = copy ? NULL : op;
    }
    /* Once the payload is under way there is no "not sent" any more. */
    return tk_wait_send(m->peer, &out, m->immediate && !separate);
}

static enum tk_status send_short(const struct tk_message *m, enum tk_message_kind kind)
{
    union front front;
    struct tk_outgoing out = {.head = &front.head, .head_size = build(&front, m, kind, false)};
    return tk_wait_send(m->peer, &out, m->immediate);
}

static enum tk_status send_now(struct tk_message *m, enum tk_message_kind kind)
{
    struct tk_op op;
    tk_op_init(&op);
    enum tk_status status = inject(m, kind, &op, true);
    tk_wait_done(&op);
    return status;
}

static enum tk_status send_with_event(struct tk_message *m, enum tk_message_kind kind)
{
    struct tk_op *op = tk_op_take();
    tk_counter_set(&op->pending, 1);
    enum tk_status status = inject(m, kind, op, false);
    tk_counter_add(&op->pending, -1);
    *m->lc_opt = tk_event_of(op);
    return status;
}

static enum tk_status send(struct tk_message *m, enum tk_message_kind kind)
{
    if (m->category == TK_SHORT)
        return send_short(m, kind);
    if (m->lc_opt == GEX_EVENT_NOW)
        return send_now(m, kind);
    return send_with_event(m, kind);
}

int tk_request(struct tk_message *m)
{
    return send(m, TK_REQUEST) == TK_OK ? 0 : 1;
}

int tk_reply(gex_Token_t token, struct tk_message *m)
{
    m->peer = token->arrival->peer;
    if (send(m, TK_REPLY) != TK_OK)
        return 1;
    token->arrival->replied = true;
    return 0;
}

enum tk_status tk_internal_send(struct tk_peer *peer, enum tk_message_kind kind,
                                enum tk_internal_handler handler, unsigned nargs,
                                const int32_t *args)
{
    union front front;
    struct tk_message m = {
        .category = TK_SHORT, .handler = (uint8_t)handler, .nargs = nargs, .args = args};
    struct tk_outgoing out = {.head = &front.head, .head_size = build(&front, &m, kind, false)};
    return peer->transport->send(peer, &out);
}
