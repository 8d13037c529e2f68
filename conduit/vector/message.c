/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pieces packed in active messages: a request carries addresses and data of a put, or addresses of
 * a get, whose data the reply brings. A request takes a credit, so the number in flight never
 * exceeds the number of buffers, however many pieces there are; a later poll sends the pieces that
 * found no space. Owns the unanswered requests, under one lock, which handlers take too. */
#include "config.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/report.h"
#include "message/message.h"
#include "settings/settings.h"
#include "vector/copy.h"
#include "vector/vector_private.h"

enum {
    flights_max = 256, /* the default of GASNET_AM_CREDITS_TOTAL */
    chunk_least = 512  /* less would be all addresses */
};

struct flight {
    struct flight *next;    /* while free */
    struct tk_op *op;       /* what this is a piece of */
    struct tk_stream local; /* get: where its data belongs */
    size_t nbytes;
    uint32_t rank;
    bool is_get, is_out;
};

static struct {
    tk_lock_t lock;
    struct flight *free;
    unsigned used; /* number of entries that follow; entries behind these were never used */
    struct flight all[flights_max];
} flights = {.lock = TK_LOCK_INIT};

static struct flight *flight_take(const struct tk_vector *v)
{
    tk_lock(&flights.lock);
    struct flight *f = flights.free;
    if (f)
        flights.free = f->next;
    else if (flights.used < flights_max)
        f = &flights.all[flights.used++];
    tk_unlock(&flights.lock);
    if (!f)
        return NULL;
    f->op = v->pieces;
    f->rank = v->peer->rank;
    f->is_get = !v->is_put;
    f->is_out = true;
    return f;
}

static void flight_give(struct flight *f)
{
    f->is_out = false;
    tk_lock(&flights.lock);
    f->next = flights.free;
    flights.free = f;
    tk_unlock(&flights.lock);
}

/* ---- what goes into one request ---- */

/* A put's data shares the request with its addresses; a get's is in the reply. */
struct budget {
    size_t request, reply;
    bool is_put;
};

static inline size_t data_left(const struct budget *b, size_t entry)
{
    if (!b->is_put)
        return b->request < entry ? 0 : b->reply;
    return b->request < entry ? 0 : b->request - entry;
}

static inline void spend(struct budget *b, size_t entry, size_t data)
{
    b->request -= entry;
    *(b->is_put ? &b->request : &b->reply) -= data;
}

/* Whole entries of a list of addresses, as many as there is space for. */
static size_t pack_addresses(struct tk_stream *s, char *to, struct budget *b,
                             struct tk_vector_ask *ask)
{
    size_t request = sizeof(void *) + (b->is_put ? s->chunk : 0);
    size_t count = tk_min(s->chunks, b->request / request);
    if (!b->is_put)
        count = tk_min(count, b->reply / s->chunk);
    memcpy(to, s->list, count * sizeof(void *));
    spend(b, count * sizeof(void *), count * s->chunk);
    tk_stream_drop(s, count * s->chunk);
    ask->entries = (uint32_t)count;
    ask->nbytes += count * s->chunk;
    return count * sizeof(void *);
}

/* Ranges one by one; returns the bytes of their entries. */
static size_t pack_ranges(struct tk_stream *s, char *to, struct budget *b,
                          struct tk_vector_ask *ask)
{
    size_t entry = tk_vector_entry(ask->form);
    size_t used = ask->form == TK_STREAM_INDEXED ? pack_addresses(s, to, b, ask) : 0;
    size_t most;
    while ((most = data_left(b, entry)) > 0 && tk_stream_fill(s)) {
        if (ask->form == TK_STREAM_VECTOR)
            tk_stream_extend(s, most);
        gex_Memvec_t range = {.gex_addr = s->at, .gex_len = tk_min(s->left, most)};
        memcpy(to + used, &range, entry);
        used += entry;
        spend(b, entry, range.gex_len);
        tk_stream_skip(s, range.gex_len);
        ask->nbytes += range.gex_len;
        ask->entries++;
    }
    return used;
}

/* The rest of a box; the receiver uses nbytes of it. */
static size_t pack_box(struct tk_stream *s, char *to, struct budget *b, struct tk_vector_ask *ask)
{
    size_t levels = s->levels * sizeof(*s->level);
    size_t n = tk_min(data_left(b, levels), s->chunks * s->chunk);
    if (n == 0)
        return 0;
    memcpy(to, s->level, levels);
    ask->next = (uintptr_t)s->next;
    ask->chunks = s->chunks;
    ask->entries = s->levels;
    ask->nbytes += n;
    spend(b, levels, n);
    tk_stream_drop(s, n);
    return levels;
}

/* A box of very many dimensions would leave no space for data: then it is sent range by range. */
static enum tk_stream_form form_of(const struct tk_stream *s, const struct budget *b)
{
    bool is_large = s->form == TK_STREAM_STRIDED && s->levels * sizeof(*s->level) > b->request / 2;
    return is_large ? TK_STREAM_VECTOR : s->form;
}

/* Advances the stream; returns the bytes of metadata at `to`. */
static size_t pack_remote(struct tk_stream *s, char *to, struct budget *b,
                          struct tk_vector_ask *ask)
{
    ask->form = (uint8_t)form_of(s, b);
    ask->chunk = s->form == TK_STREAM_VECTOR ? 0 : s->chunk;
    size_t rest = tk_min(s->left, data_left(b, 0));
    ask->at = (uintptr_t)s->at;
    ask->left = ask->nbytes = rest;
    spend(b, 0, rest);
    tk_stream_skip(s, rest);
    if (s->left > 0)
        return 0;
    return ask->form == TK_STREAM_STRIDED ? pack_box(s, to, b, ask) : pack_ranges(s, to, b, ask);
}

static size_t chunk_max(bool is_put)
{
    uint64_t own = is_put ? tk_settings.vis_put_maxchunk : tk_settings.vis_get_maxchunk;
    uint64_t chunk = own > 0 ? own : tk_settings.vis_maxchunk;
    return chunk > 0 ? tk_max((size_t)chunk, chunk_least) : SIZE_MAX;
}

static struct budget budget_of(const struct tk_vector *v)
{
    size_t most = chunk_max(v->is_put);
    return (struct budget){.request = tk_min(most, tk_medium_max(tk_vector_ask_args)),
                           .reply = tk_min(most, tk_medium_max(tk_vector_answer_args)),
                           .is_put = v->is_put};
}

/* ---- requests ---- */

static bool request(struct tk_peer *peer, const struct tk_vector_ask *ask, const char *payload,
                    size_t nbytes)
{
    int32_t args[tk_vector_ask_args];
    memcpy(args, ask, sizeof(args));
    struct tk_internal_medium medium = {.handler = TK_HANDLER_VECTOR_ASK,
                                        .nargs = tk_vector_ask_args,
                                        .args = args,
                                        .payload = payload,
                                        .nbytes = nbytes};
    return tk_internal_request(peer, &medium) == TK_OK;
}

static void send_ask(struct tk_am_reservation *reservation, const struct tk_vector_ask *ask,
                     const char *payload, size_t nbytes)
{
    int32_t args[tk_vector_ask_args];
    memcpy(args, ask, sizeof(args));
    struct tk_internal_medium medium = {.handler = TK_HANDLER_VECTOR_ASK,
                                        .nargs = tk_vector_ask_args,
                                        .args = args,
                                        .payload = payload,
                                        .nbytes = nbytes};
    tk_internal_commit(reservation, &medium);
}

static bool post_one(struct tk_vector *v)
{
    struct tk_am_reservation reservation = {.peer = v->peer, .kind = TK_REQUEST};
    char *payload;
    struct flight *f = flight_take(v);
    if (!f)
        return false;
    if (tk_internal_prepare(&reservation, tk_vector_ask_args, &payload) != TK_OK) {
        flight_give(f);
        return false;
    }
    struct budget budget = budget_of(v);
    struct tk_vector_ask ask = {.flight = (uint32_t)(f - flights.all),
                                .what = v->is_put ? TK_VECTOR_PUT : TK_VECTOR_GET};
    size_t nbytes = pack_remote(&v->remote, payload, &budget, &ask);
    f->nbytes = ask.nbytes;
    if (v->is_put) {
        tk_copy_gather(payload + nbytes, &v->local, ask.nbytes);
        nbytes += ask.nbytes;
    } else {
        tk_stream_copy(&f->local, &v->local);
        tk_stream_drop(&v->local, ask.nbytes);
    }
    tk_counter_add(&v->pieces->pending, 1);
    send_ask(&reservation, &ask, payload, nbytes);
    return true;
}

bool tk_vector_by_messages(struct tk_vector *v)
{
    while (tk_stream_fill(&v->remote))
        if (!post_one(v))
            return false;
    return true;
}

/* Bytes of a fill in one message: the handler then takes some microseconds. */
enum { fill_max = 256 * 1024 };

bool tk_vector_by_fill(struct tk_vector *v)
{
    while (v->state.done < v->rma.nbytes) {
        struct flight *f = flight_take(v);
        if (!f)
            return false;
        struct tk_vector_ask ask = {.flight = (uint32_t)(f - flights.all),
                                    .what = TK_VECTOR_FILL,
                                    .value = v->value,
                                    .at = v->rma.remote + v->state.done,
                                    .nbytes = tk_min(v->rma.nbytes - v->state.done, fill_max)};
        tk_counter_add(&v->pieces->pending, 1);
        if (!request(v->peer, &ask, NULL, 0)) {
            tk_counter_add(&v->pieces->pending, -1);
            flight_give(f);
            return false;
        }
        v->state.done += ask.nbytes;
    }
    return true;
}

bool tk_vector_notify(struct tk_peer *peer, const struct tk_notice *notice)
{
    struct tk_vector_ask ask = {.what = TK_VECTOR_NOTICE, .value = notice->handler};
    return request(peer, &ask, notice->bytes, notice->nbytes);
}

/* ---- answers ---- */

static void answered(struct tk_arrival *arrival)
{
    uint32_t number = 0;
    if (arrival->head->nargs == tk_vector_answer_args)
        memcpy(&number, arrival->head + 1, sizeof(number));
    struct flight *f = number < flights_max ? &flights.all[number] : NULL;
    if (!f || !f->is_out || f->rank != arrival->peer->rank ||
        arrival->nbytes != (f->is_get ? f->nbytes : 0))
        tk_panic("rank %u (%s, pid %d) answered what was not asked; the ranks of a job must be "
                 "built against one version of this library",
                 arrival->peer->rank, arrival->peer->host, arrival->peer->pid);
    struct tk_op *op = f->op;
    if (f->is_get) {
        tk_copy_scatter(&f->local, arrival->payload, f->nbytes);
        tk_stream_close(&f->local);
    }
    flight_give(f);
    /* Last: a thread that sees zero may free the operation. */
    tk_counter_add(&op->pending, -1);
}

void tk_vector_messages_open(void)
{
    flights.free = NULL;
    flights.used = 0;
    tk_internal_register_whole(TK_HANDLER_VECTOR_ANSWER, answered);
}
