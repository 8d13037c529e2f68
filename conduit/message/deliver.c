/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delivers an arrived message to its handler. Owns the tables of the library's own handlers,
 * written at start-up. No lock is held while a handler runs: the handler may take the client's
 * locks and may reply. */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "base/check.h"
#include "common/clock.h"
#include "base/copy.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "memory/memory.h"
#include "message/endpoint.h"
#include "message/message.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "trace/trace.h"

static const char *const category_names[] = {"Short", "Medium", "Long"};
static tk_internal_fn internal_handlers[tk_internal_handlers];
static tk_internal_whole_fn internal_medium_handlers[tk_internal_handlers];

void tk_internal_register(enum tk_internal_handler index, tk_internal_fn fn)
{
    internal_handlers[index] = fn;
}

void tk_internal_register_whole(enum tk_internal_handler index, tk_internal_whole_fn fn)
{
    internal_medium_handlers[index] = fn;
}

/* For each count M: M parameters as in a function type, and M values as in a call. */
#define T1  gex_AM_Arg_t
#define T2  T1, gex_AM_Arg_t
#define T3  T2, gex_AM_Arg_t
#define T4  T3, gex_AM_Arg_t
#define T5  T4, gex_AM_Arg_t
#define T6  T5, gex_AM_Arg_t
#define T7  T6, gex_AM_Arg_t
#define T8  T7, gex_AM_Arg_t
#define T9  T8, gex_AM_Arg_t
#define T10 T9, gex_AM_Arg_t
#define T11 T10, gex_AM_Arg_t
#define T12 T11, gex_AM_Arg_t
#define T13 T12, gex_AM_Arg_t
#define T14 T13, gex_AM_Arg_t
#define T15 T14, gex_AM_Arg_t
#define T16 T15, gex_AM_Arg_t
#define V1  a[0]
#define V2  V1, a[1]
#define V3  V2, a[2]
#define V4  V3, a[3]
#define V5  V4, a[4]
#define V6  V5, a[5]
#define V7  V6, a[6]
#define V8  V7, a[7]
#define V9  V8, a[8]
#define V10 V9, a[9]
#define V11 V10, a[10]
#define V12 V11, a[11]
#define V13 V12, a[12]
#define V14 V13, a[13]
#define V15 V14, a[14]
#define V16 V15, a[15]

#define CASES(CASE)                                                                                \
    CASE(1)                                                                                        \
    CASE(2)                                                                                        \
    CASE(3)                                                                                        \
    CASE(4)                                                                                        \
    CASE(5)                                                                                        \
    CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15) CASE(16)

typedef void (*generic_fn)(void);

static inline __attribute__((always_inline)) void call_short(generic_fn fn, gex_Token_t token,
                                                             unsigned nargs, const gex_AM_Arg_t *a)
{
    switch (nargs) {
    case 0:
        ((void (*)(gex_Token_t))fn)(token);
        return;
#define CASE(M)                                                                                    \
    case M:                                                                                        \
        ((void (*)(gex_Token_t, T##M))fn)(token, V##M);                                            \
        return;
        CASES(CASE)
#undef CASE
    }
}

static inline __attribute__((always_inline)) void
call_with_payload_inline(generic_fn fn, gex_Token_t token, void *buf, size_t n, unsigned nargs,
                         const gex_AM_Arg_t *a)
{
    switch (nargs) {
    case 0:
        ((void (*)(gex_Token_t, void *, size_t))fn)(token, buf, n);
        return;
#define CASE(M)                                                                                    \
    case M:                                                                                        \
        ((void (*)(gex_Token_t, void *, size_t, T##M))fn)(token, buf, n, V##M);                    \
        return;
        CASES(CASE)
#undef CASE
    }
}

static void call_with_payload(generic_fn fn, gex_Token_t token, void *buf, size_t n, unsigned nargs,
                              const gex_AM_Arg_t *a)
{
    call_with_payload_inline(fn, token, buf, n, nargs, a);
}

/* Copies the payload of a packed Long to its destination. The address came over the wire: a wrong
 * one must not overwrite memory of this process outside its segment. */
static void *place_long(const struct tk_arrival *arrival, const struct tk_long_head *front,
                        const struct tk_area *segment)
{
    void *dest = (void *)(uintptr_t)front->dest;
    if (!arrival->head->packed || front->nbytes == 0)
        return dest;
    bool is_ours = tk_is_everything || tk_area_holds(segment, dest, front->nbytes);
    tk_if_unlikely(front->nbytes > arrival->nbytes || !is_ours)
        tk_panic("rank %u (%s) sent a Long of %u bytes to %p, which is not inside this rank's "
                 "segment [%p, +%zu)",
                 arrival->peer->rank, arrival->peer->host, front->nbytes, dest, segment->base,
                 segment->size);
    tk_copy_large(dest, arrival->payload, front->nbytes);
    return dest;
}

/* An entry of the GASNet-1 interface states neither: all categories, tk_nargs_any. */
static bool allows(const gex_AM_Entry_t *entry, struct tk_message_head head)
{
    gex_Flags_t wanted = (GEX_FLAG_AM_SHORT << head.category) |
                         (head.kind == TK_REQUEST ? GEX_FLAG_AM_REQUEST : GEX_FLAG_AM_REPLY);
    return (entry->gex_flags & wanted) == wanted &&
           (entry->gex_nargs == head.nargs || entry->gex_nargs == tk_nargs_any);
}

/* Panics with the reason; returns if the entry does allow such a message. */
static void __attribute__((noinline))
refuse(const struct tk_peer *from, const gex_AM_Entry_t *entry, struct tk_message_head head)
{
    const char *name = tk_entry_name(entry);
    if (!(entry->gex_flags & (GEX_FLAG_AM_SHORT << head.category)))
        tk_panic("a %s came from rank %u for handler %u '%s', which gex_flags 0x%x does not allow",
                 category_names[head.category], from->rank, head.handler, name,
                 (unsigned)entry->gex_flags);
    if (!(entry->gex_flags & (head.kind == TK_REQUEST ? GEX_FLAG_AM_REQUEST : GEX_FLAG_AM_REPLY)))
        tk_panic("a %s came from rank %u for handler %u '%s', which gex_flags 0x%x does not allow",
                 head.kind == TK_REQUEST ? "request" : "reply", from->rank, head.handler, name,
                 (unsigned)entry->gex_flags);
    if (!allows(entry, head))
        tk_panic("a message with %u arguments came from rank %u for handler %u '%s', which has %u",
                 head.nargs, from->rank, head.handler, name, entry->gex_nargs);
}

/* Panics; returns only if the client's handlers have been shut down, so that messages for them are
 * dropped. */
static void no_handler(const struct tk_peer *from, struct tk_message_head head)
{
    if (head.handler < GEX_AM_INDEX_BASE)
        tk_panic("a message for library handler %u came from rank %u, and there is no such handler",
                 head.handler, from->rank);
    if (tk_handlers_are_shut())
        return;
    if (tk_handler_entry(0, head.handler))
        refuse(from, tk_handler_entry(0, head.handler), head);
    tk_panic("a message for handler %u came from rank %u (%s), but none is registered here",
             head.handler, from->rank, from->host);
}

/* A client's handler that runs, in debug builds: the call that it interrupts, and since when. */
struct running {
    struct tk_call outer;
    uint64_t begin;
};

static inline struct running __attribute__((unused)) run_begin(void)
{
    return (struct running){.outer = tk_call_last(),
                            .begin = tk_settings.handler_seconds ? tk_now() : 0};
}

/* Reports a handler again once it takes twice as long as in its last report. */
static void __attribute__((unused)) check_duration(const gex_AM_Entry_t *entry, uint64_t begin)
{
    static _Atomic uint64_t reported[tk_handler_count];
    if (!begin)
        return;
    uint64_t took = tk_now() - begin, before = reported[entry->gex_index];
    if ((double)took < tk_settings.handler_seconds * (double)TK_SECOND || took < 2 * before)
        return;
    reported[entry->gex_index] = took;
    tk_log_warn("handler %u '%s' ran for %.3f s; nothing else is handled by its thread meanwhile "
                "(GASNET_HANDLER_SECONDS)",
                entry->gex_index, tk_entry_name(entry), (double)took / (double)TK_SECOND);
}

/* State that a handler must have restored when it returns. */
static void check_return(const gex_AM_Entry_t *entry)
{
    (void)entry;
    TK_CHECK(tk_hsls_held() == 0, "handler %u '%s' returned with a gex_HSL_t held",
             entry->gex_index, tk_entry_name(entry));
    TK_CHECK(!tk_is_preparing(TK_REPLY),
             "handler %u '%s' returned between gex_AM_PrepareReply and its Commit or Cancel",
             entry->gex_index, tk_entry_name(entry));
}

static inline void __attribute__((unused))
run_end(const struct running *running, const gex_AM_Entry_t *entry)
{
    check_duration(entry, running->begin);
    tk_call_resume(&running->outer);
}

static void run_short(struct tk_arrival *arrival, gex_Token_t token)
{
    const struct tk_message_head *head = arrival->head;
    generic_fn fn = (generic_fn)tk_short_function(head->handler);
    tk_if_unlikely(!fn)
    {
        no_handler(arrival->peer, *head);
        return;
    }
    if (TK_IS_DEBUG)
        refuse(arrival->peer, &tk_handler_entries[head->handler], *head);
    tk_count(tk_counter_shorts_received);
    call_short(fn, token, head->nargs, (const gex_AM_Arg_t *)(head + 1));
}

/* Checking the entry is cheap compared to a payload, so release builds do it too. The function, or
 * NULL: the message is dropped. */
static inline generic_fn payload_function(struct tk_arrival *arrival, uint8_t category)
{
    struct tk_message_head head = *arrival->head;
    const gex_AM_Entry_t *entry = &tk_handler_entries[head.handler];
    generic_fn fn = (generic_fn)tk_payload_function(head.handler);
    head.category = category;
    tk_if_unlikely(!fn)
    {
        no_handler(arrival->peer, head);
        return NULL;
    }
    tk_if_unlikely(!allows(entry, head)) refuse(arrival->peer, entry, head);
    return fn;
}

static void run_with_payload(struct tk_arrival *arrival, gex_Token_t token)
{
    const struct tk_message_head *head = arrival->head;
    generic_fn fn = payload_function(arrival, head->category);
    tk_if_unlikely(!fn) return;
    tk_count(head->category == TK_MEDIUM ? tk_counter_mediums_received : tk_counter_longs_received);
    if (head->category == TK_MEDIUM) {
        call_with_payload(fn, token, arrival->payload, arrival->nbytes, head->nargs,
                          (const gex_AM_Arg_t *)(head + 1));
    } else {
        const struct tk_long_head *front = (const struct tk_long_head *)(head + 1);
        void *dest = place_long(arrival, front, &tk_segment_area);
        call_with_payload(fn, token, dest, front->nbytes, head->nargs,
                          (const gex_AM_Arg_t *)(front + 1));
    }
}

/* For a Long, includes the payload that was put before it. Only traces use it. */
static inline size_t __attribute__((unused)) payload_of(const struct tk_arrival *arrival)
{
    if (arrival->head->category != TK_LONG)
        return arrival->head->category == TK_SHORT ? 0 : arrival->nbytes;
    return ((const struct tk_long_head *)(arrival->head + 1))->nbytes;
}

static void run_client(struct tk_arrival *arrival)
{
    uint8_t index = arrival->head->handler;
    gex_Token_t token = TK_CONTAINER_OF(arrival, struct trunkline_token, arrival);
    TK_TRACE_HANDLER(arrival->head->kind == TK_REPLY, arrival->peer->rank, index,
                     payload_of(arrival), arrival->head->reserved);
    TK_IF_DEBUG(struct running running = run_begin();)
    if (arrival->head->category == TK_SHORT)
        run_short(arrival, token);
    else
        run_with_payload(arrival, token);
    check_return(&tk_handler_entries[index]);
    TK_IF_DEBUG(run_end(&running, &tk_handler_entries[index]);)
}

/* ---- messages between endpoints that are not both endpoint 0 (endpoint.h) */

static _Noreturn void no_handler_on(const struct tk_peer *from, struct tk_message_head head,
                                    unsigned endpoint)
{
    const gex_AM_Entry_t *entry =
        endpoint < tk_endpoints_max ? tk_handler_entry(endpoint, head.handler) : NULL;
    if (entry)
        refuse(from, entry, head);
    tk_panic("a message for handler %u of endpoint %u came from rank %u (%s), but none is "
             "registered here",
             head.handler, endpoint, from->rank, from->host);
}

static void call_on_endpoint(struct tk_arrival *arrival, gex_Token_t token, generic_fn fn,
                             unsigned endpoint)
{
    const struct tk_message_head *head = arrival->head;
    const gex_AM_Arg_t *args = (const gex_AM_Arg_t *)(head + 1);
    tk_count(head->category == TK_SHORT    ? tk_counter_shorts_received
             : head->category == TK_MEDIUM ? tk_counter_mediums_received
                                           : tk_counter_longs_received);
    if (head->category == TK_SHORT) {
        call_short(fn, token, head->nargs, args);
    } else if (head->category == TK_MEDIUM) {
        call_with_payload(fn, token, arrival->payload, arrival->nbytes, head->nargs, args);
    } else {
        const struct tk_long_head *front = (const struct tk_long_head *)(head + 1);
        const struct tk_bound bound = tk_bound_of(tk_peers.me, endpoint);
        const struct tk_area segment = {.base = (void *)bound.base, .size = bound.size, .fd = -1};
        void *dest = place_long(arrival, front, &segment);
        call_with_payload(fn, token, dest, front->nbytes, head->nargs,
                          (const gex_AM_Arg_t *)(front + 1));
    }
}

/* Restores the head of the client's message; replies use a copy of the peer. / */
static void run_on_endpoint(struct tk_arrival *arrival)
{
    struct tk_message_head *head = arrival->head;
    struct tk_ep_peer copy;
    struct trunkline_token token = {.arrival = *arrival};
    unsigned ours = head->handler - (unsigned)tk_handler_endpoint, theirs = head->reserved >> 8;
    head->handler = (uint8_t)head->reserved;
    if (tk_handlers_are_shut())
        return;
    const struct tk_handler_table *table =
        ours < tk_endpoints_max && theirs < tk_endpoints_max ? tk_handler_table(ours) : NULL;
    generic_fn fn =
        table ? (generic_fn)tk_table_function(table, head->category == TK_SHORT, head->handler)
              : NULL;
    if (!fn)
        no_handler_on(arrival->peer, *head, ours);
    refuse(arrival->peer, &table->entries[head->handler], *head);
    token.arrival.peer = tk_ep_peer_open(&copy, arrival->peer, ours, theirs);
    TK_TRACE_HANDLER(head->kind == TK_REPLY, arrival->peer->rank, head->handler,
                     payload_of(arrival), 0);
    TK_IF_DEBUG(struct running running = run_begin();)
    call_on_endpoint(arrival, &token, fn, ours);
    arrival->replied = token.arrival.replied;
    check_return(&table->entries[head->handler]);
    TK_IF_DEBUG(run_end(&running, &table->entries[head->handler]);)
}

/* ---- */

static void run_internal(struct tk_arrival *arrival)
{
    uint8_t index = arrival->head->handler;
    if (index >= tk_handler_endpoint) {
        run_on_endpoint(arrival);
        return;
    }
    bool is_known = index < tk_internal_handlers;
    tk_count(tk_counter_internal_received);
    if (is_known && internal_medium_handlers[index] && arrival->head->category == TK_MEDIUM) {
        internal_medium_handlers[index](arrival);
        return;
    }
    if (!is_known || !internal_handlers[index])
        no_handler(arrival->peer, *arrival->head);
    internal_handlers[index](arrival->peer, (const int32_t *)(arrival->head + 1));
}

static bool deliver_short_first(struct tk_peer *from, unsigned tag, const int32_t *args);

/* Like deliver(), for Shorts with few arguments, which are most messages. The token holds only what
 * a Short's handler may query. */
static bool deliver_short(struct tk_peer *from, unsigned tag, const int32_t *args)
{
    struct trunkline_token token;
    uint8_t index = (uint8_t)tag;
    gex_AM_Fn_t fn = tk_short_function(index);
    tk_if_unlikely(!fn)
    {
        no_handler(from, tk_tag_head(tag));
        return false;
    }
    tk_if_unlikely(!tk_count_mine(tk_counter_shorts_received)) return deliver_short_first(from, tag,
                                                                                          args);
    token.arrival.peer = from;
    token.arrival.tag = tag;
    token.arrival.replied = false;
    TK_TRACE_HANDLER(tag & tk_tag_reply, from->rank, index, 0, 0);
    tk_in_handler++;
    if (TK_IS_DEBUG)
        refuse(from, &tk_handler_entries[index], tk_tag_head(tag));
    TK_IF_DEBUG(struct running running = run_begin();)
    call_short((generic_fn)fn, &token, tk_tag_nargs(tag), args);
    check_return(&tk_handler_entries[index]);
    TK_IF_DEBUG(run_end(&running, &tk_handler_entries[index]);)
    tk_in_handler--;
    return token.arrival.replied;
}

/* For a thread that has not counted the message. */
static bool __attribute__((noinline))
deliver_short_first(struct tk_peer *from, unsigned tag, const int32_t *args)
{
    tk_stats_begin_thread();
    return deliver_short(from, tag, args);
}

static void deliver(struct tk_arrival *arrival)
{
    tk_in_handler++;
    if (arrival->head->handler < GEX_AM_INDEX_BASE)
        run_internal(arrival);
    else
        run_client(arrival);
    tk_in_handler--;
}

/* Like deliver(), for Mediums of the client. */
static void deliver_medium(struct tk_arrival *arrival)
{
    const struct tk_message_head *head = arrival->head;
    gex_Token_t token = TK_CONTAINER_OF(arrival, struct trunkline_token, arrival);
    TK_TRACE_HANDLER(head->kind == TK_REPLY, arrival->peer->rank, head->handler, arrival->nbytes,
                     head->reserved);
    tk_in_handler++;
    TK_IF_DEBUG(struct running running = run_begin();)
    generic_fn fn = payload_function(arrival, TK_MEDIUM);
    tk_if_likely(fn != NULL)
    {
        tk_count(tk_counter_mediums_received);
        call_with_payload_inline(fn, token, arrival->payload, arrival->nbytes, head->nargs,
                                 (const gex_AM_Arg_t *)(head + 1));
    }
    check_return(&tk_handler_entries[arrival->head->handler]);
    TK_IF_DEBUG(run_end(&running, &tk_handler_entries[arrival->head->handler]);)
    tk_in_handler--;
}

void tk_message_open(void)
{
    tk_deliver = deliver;
    tk_deliver_medium = deliver_medium;
    tk_deliver_short = deliver_short;
}
