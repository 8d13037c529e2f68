/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pieces of transfers in flight: through a firehose, which is in use until the piece is done, or in
 * a message, whose answer completes it. Owns a fixed number of records, the operations that count
 * pieces of the first kind, and a list of those, which is checked after polls. One lock. The
 * network may post a read behind a put under it, so its locks come after this one; no message is
 * sent and no handler runs under it. */
#include "config.h"

#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "op/op.h"
#include "progress/progress.h"
#include "remote_pin/hoses.h"
#include "remote_pin/remote_pin_private.h"

enum { flights = 1024 /* more than the queues of a few peers hold */ };

struct flight {
    struct tk_op op;           /* through a firehose: counts what the network still works on */
    struct tk_op *whole;       /* the transfer that this is a piece of */
    struct tk_hose *hose;      /* NULL: in a message */
    struct tk_rma part;        /* through a firehose: all of its bytes are posted, */
    struct tk_rma_state state; /* but the reads behind them only if is_posted */
    const struct tk_transport *network;
    struct flight *next;
    char *to; /* get in a message: destination of the data */
    size_t nbytes;
    uint32_t rank;
    bool is_out, is_posted;
};

static struct {
    tk_lock_t lock;
    struct flight all[flights];
    struct flight *free;
    struct flight *flying;
} table = {.lock = TK_LOCK_INIT};

static struct flight *flight_take(struct tk_peer *peer, struct tk_op *whole)
{
    tk_lock(&table.lock);
    struct flight *f = table.free;
    if (f)
        table.free = f->next;
    tk_unlock(&table.lock);
    if (!f)
        return NULL;
    tk_op_init(&f->op);
    f->whole = whole;
    f->hose = NULL;
    f->to = NULL;
    f->rank = peer->rank;
    f->is_out = true;
    return f;
}

static void flight_give(struct flight *f)
{
    f->is_out = false;
    tk_lock(&table.lock);
    f->next = table.free;
    table.free = f;
    tk_unlock(&table.lock);
}

/* Last: a thread that sees zero may free the operation. */
static void flight_complete(struct flight *f)
{
    struct tk_op *whole = f->whole;
    if (f->hose)
        tk_hose_leave(f->hose, true);
    flight_give(f);
    tk_counter_add(&whole->pending, -1);
}

/* ---- through a firehose ---- */

static void track(struct flight *f)
{
    tk_counter_add(&tk_deferred_work_wanted, 1);
    tk_lock(&table.lock);
    f->next = table.flying;
    table.flying = f;
    tk_unlock(&table.lock);
}

static bool is_through(struct flight *f)
{
    if (!f->is_posted)
        f->is_posted = f->network->rma.post(tk_peer(f->rank), &f->part, &f->state) == TK_OK;
    return f->is_posted && tk_op_done(&f->op);
}

static struct flight *landed(void)
{
    struct flight *list = NULL;
    tk_lock(&table.lock);
    for (struct flight **at = &table.flying; *at;) {
        struct flight *f = *at;
        if (!is_through(f)) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        f->next = list;
        list = f;
    }
    tk_unlock(&table.lock);
    return list;
}

static bool land_all(void)
{
    struct flight *list = landed();
    bool any = list != NULL;
    while (list) {
        struct flight *f = list;
        list = f->next;
        tk_counter_add(&tk_deferred_work_wanted, -1);
        flight_complete(f);
    }
    return any;
}

/* The part is between any memory and a region with keys, as for other endpoints. */
static struct tk_rma part_of(const struct tk_rma *rma, size_t done, struct flight *f, size_t nbytes)
{
    struct tk_rma part = *rma;
    part.remote = rma->remote + done;
    part.local = rma->local + done;
    part.nbytes = nbytes;
    part.whole = rma->nbytes;
    part.op = &f->op;
    part.is_pair = true;
    part.endpoint = 0;
    part.remote_keys = tk_hose_keys(f->hose);
    part.home = NULL;
    return part;
}

enum tk_status tk_post_rdma(const struct tk_transport *network, struct tk_peer *peer,
                            const struct tk_rma *rma, struct tk_rma_state *state,
                            struct tk_hose *hose, size_t nbytes)
{
    struct flight *f = flight_take(peer, rma->op);
    if (!f) {
        tk_hose_leave(hose, false);
        return TK_BUSY;
    }
    f->hose = hose;
    f->part = part_of(rma, state->done, f, nbytes);
    f->state = (struct tk_rma_state){.may_hold = state->may_hold};
    enum tk_status status = network->rma.post(peer, &f->part, &f->state);
    if (f->state.done == 0) {
        tk_hose_leave(hose, false);
        flight_give(f);
        return status;
    }
    state->done += f->state.done;
    state->may_hold = f->state.may_hold;
    f->part.nbytes = f->state.done;
    f->is_posted = status == TK_OK;
    f->network = network;
    tk_counter_add(&rma->op->pending, 1);
    track(f);
    return status;
}

/* ---- in a message ---- */

static enum tk_status flight_ask(struct tk_peer *peer, const struct tk_ask *what,
                                 const void *payload, size_t nbytes)
{
    int32_t args[tk_ask_args];
    memcpy(args, what, sizeof(args));
    struct tk_internal_medium medium = {.handler = TK_HANDLER_REMOTE_ASK,
                                        .nargs = tk_ask_args,
                                        .args = args,
                                        .payload = payload,
                                        .nbytes = nbytes};
    return tk_internal_request(peer, &medium);
}

static void want(struct tk_ask *what, const struct tk_hose *hose)
{
    what->what |= TK_ASK_REGION;
    what->from = hose->base;
    what->size = hose->size;
    what->give_up = hose->handle;
    what->hose = hose->number;
}

enum tk_status tk_transfer_by_am(struct tk_peer *peer, const struct tk_rma *rma,
                                 struct tk_rma_state *state, struct tk_hose *hose, size_t nbytes)
{
    struct flight *f = flight_take(peer, rma->op);
    char *local = rma->local + state->done;
    if (!f)
        return TK_BUSY;
    struct tk_ask what = {.at = rma->remote + state->done,
                          .what = rma->is_put ? TK_ASK_PUT : TK_ASK_GET,
                          .flight = (uint32_t)(f - table.all) + 1,
                          .nbytes = (uint32_t)nbytes};
    if (hose)
        want(&what, hose);
    f->to = rma->is_put ? NULL : local;
    f->nbytes = nbytes;
    /* before the answer can come */
    tk_counter_add(&rma->op->pending, 1);
    enum tk_status status =
        flight_ask(peer, &what, rma->is_put ? local : NULL, rma->is_put ? nbytes : 0);
    if (status == TK_OK) {
        state->done += nbytes;
        return TK_OK;
    }
    tk_counter_add(&rma->op->pending, -1);
    flight_give(f);
    return status;
}

enum tk_status tk_call(struct tk_peer *peer, struct tk_hose *hose)
{
    struct tk_ask what = {.what = 0};
    want(&what, hose);
    return flight_ask(peer, &what, NULL, 0);
}

/* ---- answers ---- */

static _Noreturn void flight_nonsense(const struct tk_peer *from)
{
    tk_panic("rank %u (%s, pid %d) answered what was not asked; the ranks of a job must be built "
             "against one version of this library",
             from->rank, from->host, from->pid);
}

static void end_flight(const struct tk_arrival *arrival, uint32_t number)
{
    struct flight *f = number <= flights ? &table.all[number - 1] : NULL;
    if (!f || !f->is_out || f->hose || f->rank != arrival->peer->rank ||
        (f->to && arrival->nbytes != f->nbytes))
        flight_nonsense(arrival->peer);
    if (f->to)
        memcpy(f->to, arrival->payload, f->nbytes);
    flight_complete(f);
}

static void flight_answered(struct tk_arrival *arrival)
{
    struct tk_answer answer;
    if (arrival->head->nargs != tk_answer_args)
        flight_nonsense(arrival->peer);
    memcpy(&answer, arrival->head + 1, sizeof(answer));
    if (answer.hose && answer.handle && arrival->nbytes != tk_peers.rails * sizeof(uint32_t))
        flight_nonsense(arrival->peer);
    if (answer.hose &&
        !tk_hose_arrive(arrival->peer->rank, answer.hose, (uintptr_t)answer.base,
                        (size_t)answer.size, answer.handle, arrival->payload, answer.lent))
        flight_nonsense(arrival->peer);
    if (answer.flight)
        end_flight(arrival, answer.flight);
}

void tk_flights_open(void)
{
    table.free = NULL;
    for (int i = flights; i-- > 0;) {
        table.all[i].next = table.free;
        table.free = &table.all[i];
    }
    tk_internal_register_whole(TK_HANDLER_REMOTE_ANSWER, flight_answered);
    tk_progress_add(land_all);
}
