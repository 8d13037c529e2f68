/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starts non-contiguous transfers. Memory that this process can address, a neighbour's or its own,
 * is copied in place; all else is posted by one of several paths (choose.h) as far as there is
 * space, and what is left is posted by polls. Owns the list of transfers that are not posted, under
 * a lock that is held while some of them are advanced and that no handler takes; and each thread's
 * notice of completion. Memory for transfers is kept, for as many transfers as were active at the
 * same time. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/client_mode.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "base/thread_own.h"
#include "event/event.h"
#include "event/nbi_now.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "topology/topology.h"
#include "transport/neighbour.h"
#include "vector/copy.h"
#include "vector/vector_private.h"

enum { tries_in_a_poll = 8 /* of transfers that have no space: a poll stays short */ };

static struct tk_pool free_vectors = {.lock = TK_LOCK_INIT};

static struct {
    tk_lock_t lock;
    struct tk_vector *first, **end;
} waiting = {.lock = TK_LOCK_INIT, .end = &waiting.first};

/* The rest of what is armed is read by one put in a while. */
static TK_PER_CLIENT_THREAD uint8_t armed_handler; /* 0: nothing */

static struct tk_notice *armed(void)
{
    return tk_thread_own(TK_OWN_NOTICE, sizeof(struct tk_notice));
}

/* ---- advancing ---- */

static bool post(struct tk_vector *v)
{
    switch (v->path) {
    case TK_VECTOR_BY_MESSAGES:
        return tk_vector_by_messages(v);
    case TK_VECTOR_BY_STAGES:
        return tk_vector_by_stages(v);
    case TK_VECTOR_BY_LISTS:
        return tk_vector_by_lists(v);
    case TK_VECTOR_BY_FILL:
        return tk_vector_by_fill(v);
    case TK_VECTOR_BY_DEVICES:
        return tk_vector_by_devices(v);
    default:
        return tk_vector_by_pieces(v);
    }
}

/* Frees the transfer if this side has nothing left to do for it; returns true then. */
static bool advance(struct tk_vector *v)
{
    struct tk_op *op = v->op;
    if (!v->is_posted) {
        if (!post(v))
            return false;
        v->is_posted = true;
        if (v->sources)
            tk_counter_add(v->sources, -1);
    }
    if (v->notice.handler && (!tk_op_done(&v->own) || !tk_vector_notify(v->peer, &v->notice)))
        return false;
    tk_stream_close(&v->remote);
    tk_stream_close(&v->local);
    tk_pool_give(&free_vectors, v);
    /* Do this last: after that the operation may be reused. */
    tk_counter_add(&op->pending, -1);
    return true;
}

static void enqueue(struct tk_vector *v)
{
    v->next = NULL;
    *waiting.end = v;
    waiting.end = &v->next;
}

/* In turn, so that a target without space does not delay the others. */
static bool advance_some(void)
{
    bool any = false;
    struct tk_vector *last = TK_CONTAINER_OF(waiting.end, struct tk_vector, next), *v;
    for (int tries = 0; tries < tries_in_a_poll && (v = waiting.first) != NULL;) {
        bool is_last = v == last;
        waiting.first = v->next;
        if (!waiting.first)
            waiting.end = &waiting.first;
        if (advance(v)) {
            tk_counter_add(&tk_deferred_work_wanted, -1);
            any = true;
        } else {
            enqueue(v);
            tries++;
        }
        if (is_last)
            break;
    }
    return any;
}

static bool vectors_progress(void)
{
    if (!tk_trylock(&waiting.lock))
        return false;
    bool any = waiting.first && advance_some();
    tk_unlock(&waiting.lock);
    return any;
}

static void advance_or_wait(struct tk_vector *v)
{
    if (advance(v))
        return;
    tk_counter_add(&tk_deferred_work_wanted, 1);
    tk_lock(&waiting.lock);
    enqueue(v);
    tk_unlock(&waiting.lock);
}

/* ---- memory that this process can address ---- */

uintptr_t tk_vector_offset(struct tk_peer *peer, uint32_t endpoint)
{
    if (peer->rank == tk_peers.me)
        return 0;
    uintptr_t offset = tk_bound_addr_offset(peer->rank, endpoint);
    if (offset == tk_unmapped && tk_transports.node_local &&
        tk_peer_transport(peer) == tk_transports.node_local &&
        tk_bound_of(peer->rank, endpoint).fd >= 0)
        offset = tk_neighbour_addr_offset(peer, endpoint);
    return offset;
}

static uintptr_t offset_of(const struct tk_vector_call *call)
{
    if (call->has_device)
        return tk_unmapped;
    return tk_vector_offset(call->peer, call->is_pair ? call->endpoint : 0);
}

/* A completed put becomes visible before our later writes, and reads after a get do not return data
 * older than the get's. */
static void copy_in_place(struct tk_vector_call *call, uintptr_t offset)
{
    if (call->is_box) {
        *(call->is_put ? &call->box.to : &call->box.from) += offset;
        tk_copy_box(&call->box);
        tk_box_close(&call->box);
    } else {
        tk_copy_streams(call->is_put ? &call->remote : &call->local, call->is_put ? offset : 0,
                        call->is_put ? &call->local : &call->remote, call->is_put ? 0 : offset);
    }
    atomic_thread_fence(call->is_put ? memory_order_release : memory_order_acquire);
}

/* ---- starting ---- */

static struct tk_vector *take(void)
{
    struct tk_vector *v = tk_pool_take(&free_vectors);
    if (!v && !(v = malloc(sizeof(*v))))
        tk_panic("out of memory for a non-contiguous transfer");
    return v;
}

static void open_streams(struct tk_vector *v, struct tk_vector_call *call)
{
    if (call->is_box) {
        tk_stream_box(&v->remote, &call->box, call->is_put);
        tk_stream_box(&v->local, &call->box, !call->is_put);
        tk_box_close(&call->box);
    } else {
        tk_stream_copy(&v->remote, &call->remote);
        tk_stream_copy(&v->local, &call->local);
    }
}

static bool is_whole(struct tk_stream *s, size_t nbytes)
{
    if (!tk_stream_fill(s))
        return false;
    tk_stream_extend(s, nbytes);
    return s->left >= nbytes;
}

static enum tk_vector_path choose(struct tk_vector *v)
{
    struct tk_vector_facts facts = {.nbytes = tk_stream_bytes(&v->remote),
                                    .pieces = tk_max(v->remote.chunks, v->local.chunks)};
    uint32_t endpoint = v->rma.is_pair ? v->rma.endpoint : 0;
    facts.is_remote_whole = is_whole(&v->remote, facts.nbytes);
    facts.may_pack = endpoint == 0;
    bool is_candidate = tk_peer_transport(v->peer) != tk_transports.node_local &&
                        !tk_is_on_demand && facts.is_remote_whole && facts.pieces > 1;
    v->listed.count = 0;
    v->list_max = is_candidate ? tk_vector_list_max(v) : 0;
    facts.may_list = v->list_max > 1;
    facts.may_stage = is_candidate && tk_vector_can_stage();
    facts.is_slow = tk_peer_transport(v->peer) == tk_transports.node_local || tk_is_on_demand;
    return tk_vector_choose(&facts);
}

static enum tk_vector_path __attribute__((noinline))
by_devices(struct tk_vector *v, const struct tk_vector_call *call)
{
    v->kinds = call->kinds;
    return TK_VECTOR_BY_DEVICES;
}

static struct tk_vector *take_for(struct tk_peer *peer, struct tk_op *op, bool is_put)
{
    struct tk_vector *v = take();
    v->peer = peer;
    v->op = v->pieces = op;
    v->sources = NULL;
    v->is_put = is_put;
    v->is_posted = false;
    v->notice.handler = 0;
    tk_stream_vector(&v->remote, 0, NULL);
    tk_stream_vector(&v->local, 0, NULL);
    return v;
}

void tk_vector_fill(struct tk_peer *peer, uintptr_t remote, size_t nbytes, uint8_t value,
                    struct tk_op *op)
{
    struct tk_vector *v = take_for(peer, op, true);
    v->path = TK_VECTOR_BY_FILL;
    v->rma = (struct tk_rma){.remote = remote, .nbytes = nbytes};
    v->state = (struct tk_rma_state){.done = 0};
    v->value = value;
    tk_counter_add(&op->pending, 1);
    advance_or_wait(v);
}

/* `op` is counted until the transfer is over. */
static void begin(struct tk_vector_call *call, struct tk_op *op)
{
    struct tk_vector *v = take_for(call->peer, op, call->is_put);
    v->sources = call->wants_leaf ? &op->sources : NULL;
    v->rma = (struct tk_rma){.is_pair = call->is_pair,
                             .endpoint = call->endpoint,
                             .remote_keys = call->remote_keys,
                             .home = call->home};
    if (call->is_put && armed_handler) {
        v->notice = *armed();
        armed_handler = 0;
        tk_op_init(&v->own);
        v->pieces = &v->own;
    }
    uintptr_t offset = offset_of(call);
    tk_counter_add(&op->pending, 1);
    if (v->sources)
        tk_counter_add(v->sources, 1);
    if (call->is_empty) {
        v->path = TK_VECTOR_BY_PIECES;
    } else if (offset != tk_unmapped) {
        copy_in_place(call, offset);
        v->path = TK_VECTOR_BY_PIECES;
    } else {
        open_streams(v, call);
        v->path = call->has_device ? by_devices(v, call) : choose(v);
    }
    advance_or_wait(v);
}

/* Fast path of transfers that are complete on return and notify nobody. */
static bool at_once(struct tk_vector_call *call)
{
    uintptr_t offset = offset_of(call);
    tk_count(call->is_put ? tk_counter_vector_puts : tk_counter_vector_gets);
    if (offset == tk_unmapped || (call->is_put && armed_handler))
        return false;
    copy_in_place(call, offset);
    return true;
}

void tk_vector_blocking(struct tk_vector_call *call)
{
    struct tk_op op;
    if (at_once(call)) {
        tk_copy_take_turn();
        return;
    }
    tk_op_init(&op);
    begin(call, &op);
    tk_wait_done(&op);
}

gex_Event_t tk_vector_start(struct tk_vector_call *call)
{
    if (at_once(call))
        return GEX_EVENT_INVALID;
    struct tk_op *op = tk_op_take();
    begin(call, op);
    return tk_event_of(op);
}

void tk_vector_implicit(struct tk_vector_call *call)
{
    if (!at_once(call))
        begin(call, tk_nbi_op(call->is_put ? TK_NBI_PUT : TK_NBI_GET));
}

void tk_vector_arm(uint8_t handler, const void *payload, size_t nbytes)
{
    armed_handler = handler;
    if (!handler)
        return;
    struct tk_notice *notice = armed();
    notice->handler = handler;
    notice->nbytes = (uint8_t)nbytes;
    if (nbytes)
        memcpy(notice->bytes, payload, nbytes);
}

bool tk_vector_is_armed(void)
{
    return armed_handler != 0;
}

void tk_vector_open(void)
{
    tk_progress_add(vectors_progress);
    tk_vector_messages_open();
    tk_vector_serve_open();
    tk_vector_stages_open();
}
