/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The target's side of packed transfers: handlers that unpack a put's data, pack a get's into the
 * reply, fill memory, or notify the client that a put is complete. They send replies only. No
 * state, no lock. */
#include "config.h"

#include <string.h>

#include "base/report.h"
#include "base/segment_mode.h"
#include "memory/memory.h"
#include "message/message.h"
#include "vector/copy.h"
#include "vector/vector_private.h"

static _Noreturn void nonsense(const struct tk_peer *from)
{
    tk_panic(
        "rank %u (%s, pid %d) sent a non-contiguous transfer that makes no sense; the ranks of "
        "a job must be built against one version of this library",
        from->rank, from->host, from->pid);
}

/* Addresses come over the wire: a wrong address must not make this process access its memory
 * outside of its segment. */
static bool is_ours(void *context, const char *at, size_t nbytes)
{
    const struct tk_peer *from = context;
    if (nbytes == 0 || tk_is_everything || tk_area_holds(&tk_segment_area, at, nbytes))
        return true;
    tk_panic("rank %u (%s, pid %d) transfers %zu bytes at %p, which are not inside this rank's "
             "segment [%p, +%zu)",
             from->rank, from->host, from->pid, nbytes, (const void *)at, tk_segment_area.base,
             tk_segment_area.size);
}

/* The remote stream of the initiator; returns the bytes of its metadata. */
static size_t read_stream(const struct tk_arrival *arrival, const struct tk_vector_ask *ask,
                          struct tk_stream *s)
{
    size_t nbytes = ask->entries * tk_vector_entry(ask->form);
    if (nbytes > arrival->nbytes)
        nonsense(arrival->peer);
    if (ask->form == TK_STREAM_STRIDED)
        tk_stream_restore(s, (char *)(uintptr_t)ask->next, ask->chunk, ask->chunks, ask->entries,
                          arrival->payload);
    else if (ask->form == TK_STREAM_INDEXED)
        tk_stream_indexed(s, ask->entries, arrival->payload, ask->chunk);
    else
        tk_stream_vector(s, ask->entries, arrival->payload);
    s->at = (char *)(uintptr_t)ask->at;
    s->left = ask->left;
    tk_stream_ranges(s, is_ours, arrival->peer);
    if (tk_stream_bytes(s) < ask->nbytes)
        nonsense(arrival->peer);
    return nbytes;
}

static void acknowledge(struct tk_arrival *arrival, const struct tk_vector_ask *ask)
{
    int32_t arg = (int32_t)ask->flight;
    struct tk_internal_medium reply = {
        .handler = TK_HANDLER_VECTOR_ANSWER, .nargs = tk_vector_answer_args, .args = &arg};
    tk_internal_reply(arrival, &reply);
}

static void serve_put(struct tk_arrival *arrival, const struct tk_vector_ask *ask)
{
    struct tk_stream s;
    size_t meta = read_stream(arrival, ask, &s);
    if (ask->nbytes != arrival->nbytes - meta)
        nonsense(arrival->peer);
    tk_copy_scatter(&s, (char *)arrival->payload + meta, ask->nbytes);
    tk_stream_close(&s);
    acknowledge(arrival, ask);
}

static void serve_get(struct tk_arrival *arrival, const struct tk_vector_ask *ask)
{
    struct tk_stream s;
    char *payload;
    int32_t arg = (int32_t)ask->flight;
    struct tk_am_reservation reservation = {.peer = arrival->peer, .kind = TK_REPLY};
    read_stream(arrival, ask, &s);
    if (ask->nbytes > tk_medium_max(tk_vector_answer_args))
        nonsense(arrival->peer);
    tk_internal_prepare(&reservation, tk_vector_answer_args, &payload);
    tk_copy_gather(payload, &s, ask->nbytes);
    tk_stream_close(&s);
    struct tk_internal_medium reply = {.handler = TK_HANDLER_VECTOR_ANSWER,
                                       .nargs = tk_vector_answer_args,
                                       .args = &arg,
                                       .payload = payload,
                                       .nbytes = ask->nbytes};
    arrival->replied = true;
    tk_internal_commit(&reservation, &reply);
}

static void serve_fill(struct tk_arrival *arrival, const struct tk_vector_ask *ask)
{
    char *at = (char *)(uintptr_t)ask->at;
    is_ours(arrival->peer, at, ask->nbytes);
    memset(at, ask->value, ask->nbytes);
    acknowledge(arrival, ask);
}

/* Runs the client's handler as for a reply; the request itself is acknowledged without a reply. */
static void serve_notice(const struct tk_arrival *arrival, const struct tk_vector_ask *ask)
{
    struct tk_message_head head = {.kind = TK_REPLY, .category = TK_MEDIUM, .handler = ask->value};
    struct trunkline_token token = {.arrival = {.peer = arrival->peer,
                                                .head = &head,
                                                .payload = arrival->payload,
                                                .nbytes = arrival->nbytes}};
    tk_deliver(&token.arrival);
}

static void asked(struct tk_arrival *arrival)
{
    struct tk_vector_ask ask;
    if (arrival->head->nargs != tk_vector_ask_args)
        nonsense(arrival->peer);
    memcpy(&ask, arrival->head + 1, sizeof(ask));
    switch (ask.what) {
    case TK_VECTOR_PUT:
        serve_put(arrival, &ask);
        break;
    case TK_VECTOR_GET:
        serve_get(arrival, &ask);
        break;
    case TK_VECTOR_FILL:
        serve_fill(arrival, &ask);
        break;
    case TK_VECTOR_NOTICE:
        serve_notice(arrival, &ask);
        break;
    default:
        nonsense(arrival->peer);
    }
}

void tk_vector_serve_open(void)
{
    tk_internal_register_whole(TK_HANDLER_VECTOR_ASK, asked);
}
