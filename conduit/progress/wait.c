/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waiting: the only loops of the library that wait at run time. backoff.c decides what happens
 * between two checks. No bell rings when space in a queue becomes free. No lock. */
#include "config.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "common/clock.h"
#include "op/op.h"
#include "peer/peer.h"
#include "progress/lend.h"
#include "progress/progress.h"
#include "progress/progress_private.h"
#include "stats/stats.h"
#include "trace/trace.h"
#include "transport/wait_ticket.h"

static inline __attribute__((always_inline)) void
wait_step(unsigned *empty, enum tk_wake_source wake, const struct tk_wait_why *why)
{
    bool any = tk_in_handler ? tk_reap_in_handler() : tk_poll();
    if (any)
        *empty = 0;
    else
        tk_back_off(++*empty, tk_in_handler ? TK_WAKE_REPLY : wake, why);
}

static const struct tk_wait_why an_event = {.kind = TK_WAITS_EVENT, .peer = tk_wait_nobody};
static const struct tk_wait_why a_source = {.kind = TK_WAITS_SOURCE, .peer = tk_wait_nobody};
static const struct tk_wait_why a_condition = {.kind = TK_WAITS_CONDITION, .peer = tk_wait_nobody};

/* Constant except for the peer, and built only after an empty poll. */
#define SEND_TO(peer) (&(struct tk_wait_why){.kind = TK_WAITS_SEND, .peer = (peer)->rank})
#define RMA_TO(peer)  (&(struct tk_wait_why){.kind = TK_WAITS_RMA, .peer = (peer)->rank})

void tk_wait_step(unsigned *empty)
{
    wait_step(empty, TK_WAKE_BELL, &an_event);
}

void tk_wait_step_silent(unsigned *empty)
{
    wait_step(empty, TK_WAKE_SILENT, &a_condition);
}

void tk_wait_step_for(unsigned *empty, const struct tk_wait_why *why)
{
    wait_step(empty, TK_WAKE_BELL, why);
}

/* Counts a wait for space under the resource that was missing when it began. Its time counts only
 * after some polls: a client that sends as fast as credits return waits at almost every message,
 * mostly for one poll, and reading the clock takes as long as two polls. */
enum { turns_untimed = 8 };
struct stall {
    uint64_t since; /* 0: its time is not counted so far */
    uint64_t turns; /* 0: it has not begun */
    bool is_for_credit;
    bool is_for_connection; /* only for traces; statistics count it as a wait for space */
    struct tk_wait_ticket ticket;
};

static bool is_unconnected(const struct tk_peer *peer)
{
    const struct tk_transport *transport = tk_peer_transport(peer);
    return transport->demand && !transport->demand->is_connected(peer->rank);
}

/* For traces: before the first turn. */
static inline void stall_is_for(struct stall *stall, const struct tk_peer *peer)
{
    if (tk_is_traced && !stall->turns)
        stall->is_for_connection = is_unconnected(peer);
}

static enum tk_trace_op traced_as(const struct stall *stall)
{
    if (stall->is_for_credit)
        return tk_trace_credit_wait;
    return stall->is_for_connection ? tk_trace_connect_wait : tk_trace_room_wait;
}

static void stall_go_on(struct stall *stall)
{
    if (stall->turns++ == (tk_is_traced ? 0 : turns_untimed))
        stall->since = tk_now();
    if (stall->turns > 1)
        return;
    stall->is_for_credit = tk_lacks_credit;
    tk_lacks_credit = false;
    if (TK_THREADED) {
        stall->ticket = (struct tk_wait_ticket){.outer = tk_wait_ticket};
        tk_wait_ticket = &stall->ticket;
    }
}

static void stall_end(struct stall *stall, const struct tk_peer *peer)
{
    if (!stall->turns)
        return;
    if (TK_THREADED)
        tk_wait_ticket = stall->ticket.outer;
    if (TK_THREADED && stall->ticket.queue)
        tk_peer_transport(peer)->am.leave_queue(peer, &stall->ticket);
    tk_wait_over();
    if (tk_trace_has(tk_trace_bit_credit_wait))
        tk_trace_waited(traced_as(stall), peer->rank, stall->since);
    tk_count(stall->is_for_credit ? tk_counter_credit_waits : tk_counter_room_waits);
    if (stall->since)
        tk_count_add(stall->is_for_credit ? tk_counter_credit_wait_ns : tk_counter_room_wait_ns,
                     tk_now() - stall->since);
}

static enum tk_wake_source space_of(const struct tk_transport *transport)
{
    return transport->reach == TK_REACH_NEIGHBOUR ? TK_WAKE_SPACE : TK_WAKE_SILENT;
}

static inline void stall_step(struct stall *stall, unsigned *empty, const struct tk_peer *peer,
                              const struct tk_wait_why *why)
{
    stall_is_for(stall, peer);
    stall_go_on(stall);
    stall->ticket.is_up = false;
    wait_step(empty, space_of(tk_peer_transport(peer)), why);
    stall->ticket.is_up = true;
}

/* While holding a reservation of `transport`. */
static void step_with_space(const struct tk_transport *transport, unsigned *empty,
                            const struct tk_wait_why *why)
{
    if (transport->am.reservation_is_no_hold)
        wait_step(empty, space_of(transport), why);
    else if (tk_reap())
        *empty = 0;
    else
        tk_back_off(++*empty, TK_WAKE_DEVICE, why);
}

static void stall_step_with_space(struct stall *stall, unsigned *empty, const struct tk_peer *peer,
                                  const struct tk_wait_why *why)
{
    stall_is_for(stall, peer);
    stall_go_on(stall);
    stall->ticket.is_up = false;
    step_with_space(tk_peer_transport(peer), empty, why);
    stall->ticket.is_up = true;
}

/* ---- for events: a wait whose polls all find something pays nothing for the record of waits ----
 */

static inline bool turn(void)
{
    return tk_in_handler ? tk_reap_in_handler() : tk_poll();
}

static bool op_is_done(const void *op)
{
    return tk_op_done(op);
}

static bool count_is_done(const void *left)
{
    return tk_counter_read(left) <= 0;
}

/* After the first poll that found nothing. */
static __attribute__((noinline)) void idle_until(bool (*ready)(const void *what), const void *what)
{
    unsigned empty = 1;
    tk_back_off(empty, tk_in_handler ? TK_WAKE_REPLY : TK_WAKE_BELL, &an_event);
    while (!ready(what))
        wait_step(&empty, TK_WAKE_BELL, &an_event);
    tk_wait_over();
}

TK_PER_THREAD_NEAR unsigned tk_wait_turn;

/* A request in a handler is an error, which only debug builds report. */
void tk_request_poll(bool immediate)
{
    tk_stats_grant(immediate ? 1 : tk_request_turn);
    if (!immediate && !tk_in_handler)
        tk_poll();
}

TK_PER_THREAD_NEAR int32_t trunkline_turn;

void trunkline_copy_poll(void)
{
    trunkline_turn = tk_request_turn - 1;
    if (!tk_in_handler)
        tk_poll();
}

void tk_wait_done(const struct tk_op *op)
{
    if (tk_op_done(op))
        return;
    if (!tk_turn_to_serve())
        tk_reap();
    while (!tk_op_done(op))
        tk_if_unlikely(!turn())
        {
            idle_until(op_is_done, op);
            return;
        }
}

void tk_wait_long(const tk_counter_t *left)
{
    do
        tk_if_unlikely(!turn())
        {
            idle_until(count_is_done, left);
            return;
        }
    while (tk_counter_read(left) > 0);
}

void tk_wait_until(bool (*ready)(const void *what), const void *what)
{
    if (tk_turn_to_serve())
        tk_poll();
    else if (!ready(what))
        tk_reap();
    while (!ready(what))
        tk_if_unlikely(!turn())
        {
            idle_until(ready, what);
            return;
        }
}

static TK_PER_THREAD struct tk_lend lend;

bool tk_source_lend(void)
{
    return tk_lend_next(&lend);
}

bool tk_source_lends(void)
{
    return lend.lends;
}

/* A source that was copied or sent inline says nothing about the device. */
void tk_source_look(const tk_counter_t *left)
{
    if (tk_counter_read(left) <= 0)
        return;
    for (int i = 0; i < tk_lend_looks && tk_counter_read(left) > 0; i++)
        if (tk_reap() && TK_THREADED)
            tk_wake_own_threads();
    tk_lend_learn(&lend, tk_counter_read(left) <= 0);
}

void tk_wait_source_free(const struct tk_op *op)
{
    unsigned empty = 0;
    while (!tk_op_source_free(op))
        wait_step(&empty, TK_WAKE_BELL, &a_source);
    tk_wait_over();
}

enum tk_status tk_wait_send_again(struct tk_peer *peer, struct tk_outgoing *message)
{
    unsigned empty = 0;
    struct stall stall = {.turns = 0};
    enum tk_status status;
    do
        stall_step(&stall, &empty, peer, SEND_TO(peer));
    while ((status = tk_peer_transport(peer)->am.send(peer, message)) == TK_BUSY);
    stall_end(&stall, peer);
    return status;
}

enum tk_status tk_wait_send_short(struct tk_peer *peer, struct tk_message_head head,
                                  const int32_t *args)
{
    unsigned empty = 0;
    struct stall stall = {.turns = 0};
    enum tk_status status;
    do
        stall_step(&stall, &empty, peer, SEND_TO(peer));
    while ((status = tk_peer_transport(peer)->am.send_short(peer, head, args, NULL)) == TK_BUSY);
    stall_end(&stall, peer);
    return status;
}

enum tk_status tk_wait_send_small(struct tk_peer *peer, unsigned tag, uint64_t args)
{
    const int32_t both[] = {(int32_t)args, (int32_t)(args >> 32)};
    return tk_wait_send_short(peer, tk_tag_head(tag), both);
}

enum tk_status tk_wait_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                   const void *payload, size_t nbytes)
{
    unsigned empty = 0;
    struct stall stall = {.turns = 0};
    enum tk_status status;
    do
        stall_step(&stall, &empty, peer, SEND_TO(peer));
    while ((status = tk_peer_transport(peer)->am.send_medium(peer, head, args, payload, nbytes,
                                                             NULL)) == TK_BUSY);
    stall_end(&stall, peer);
    return status;
}

enum tk_status tk_wait_rma(struct tk_peer *peer, const struct tk_rma *rma)
{
    struct tk_rma_state state = {.done = 0};
    struct stall stall = {.turns = 0};
    unsigned empty = 0;
    enum tk_status status;
    while ((status = tk_peer_transport(peer)->rma.post(peer, rma, &state)) == TK_BUSY &&
           !(rma->immediate && state.done == 0))
        stall_step(&stall, &empty, peer, RMA_TO(peer));
    stall_end(&stall, peer);
    return status;
}

enum tk_status tk_wait_reserve(struct tk_am_reservation *reservation, bool place, bool buffer,
                               bool immediate)
{
    struct tk_peer *peer = reservation->peer;
    unsigned empty = 0;
    struct stall stall = {.turns = 0};
    enum tk_status status;
    while ((status = tk_peer_transport(peer)->am.reserve(reservation, place, buffer)) == TK_BUSY &&
           !immediate)
        stall_step(&stall, &empty, peer, SEND_TO(peer));
    stall_end(&stall, peer);
    return status;
}

void tk_wait_send_reserved(struct tk_am_reservation *reservation, struct tk_outgoing *message)
{
    unsigned empty = 0;
    struct stall stall = {.turns = 0};
    struct tk_peer *peer = reservation->peer;
    while (tk_peer_transport(peer)->am.send_reserved(reservation, message) == TK_BUSY)
        stall_step_with_space(&stall, &empty, peer, SEND_TO(peer));
    stall_end(&stall, peer);
}

void tk_wait_done_reserved(struct tk_peer *peer, const struct tk_op *op)
{
    unsigned empty = 0;
    while (!tk_op_done(op))
        step_with_space(tk_peer_transport(peer), &empty, RMA_TO(peer));
    tk_wait_over();
}

void tk_wait_rma_reserved(struct tk_peer *peer, const struct tk_rma *rma,
                          struct tk_rma_state *state)
{
    unsigned empty = 0;
    struct stall stall = {.turns = 0};
    while (tk_peer_transport(peer)->rma.post(peer, rma, state) == TK_BUSY)
        stall_step_with_space(&stall, &empty, peer, RMA_TO(peer));
    stall_end(&stall, peer);
}
