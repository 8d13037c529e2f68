/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The target's side: other ranks' pieces that pass through slots of this process, because nobody
 * else reaches its device memory. Handlers record what is asked; the work after polls copies and
 * answers. Owns the slots for others and the queue of those who wait for one, in order of arrival;
 * guarded by the lock of the room. Addresses and numbers come over the wire and are checked. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "kind_rma/kind_rma_private.h"
#include "progress/progress.h"
#include "stats/stats.h"

enum serving {
    FREE,
    GRANT,    /* tell the initiator of a put that it has the slot */
    LENT,     /* it fills or reads the slot */
    COPY_IN,  /* our device copies from the slot */
    DONE,     /* report completion */
    COPY_OUT, /* our device copies to the slot */
    READY     /* send the data, or report that it is there */
};

/* Who asked for what. */
struct wanted {
    struct wanted *next;
    struct tk_kind_device *device;
    uintptr_t at;
    size_t nbytes;
    size_t row, pitch; /* row 0: one range */
    uint32_t rank, piece;
    bool is_put;
};

struct granted {
    enum serving stage;
    bool is_begun; /* the copy */
    struct wanted for_whom;
    struct tk_kind_copy copy;
};

static struct {
    struct granted *slots;
    uint32_t busy;
    struct wanted *queue, **queue_end, *free;
} serve;

enum tk_status tk_kind_serve_open(void)
{
    if (serve.slots)
        return TK_OK;
    serve.queue_end = &serve.queue;
    serve.slots = calloc(tk_kind_staging.granted_count, sizeof(*serve.slots));
    if (!serve.slots)
        tk_log_error("out of memory for %u staging buffers; lower GASNET_MK_STAGING",
                     tk_kind_staging.granted_count);
    return serve.slots ? TK_OK : TK_FAIL;
}

static uint32_t number_of(const struct granted *g)
{
    return (uint32_t)(g - serve.slots);
}

/* ---- the order in which slots are granted ---- */

static struct granted *free_slot(void)
{
    if (serve.busy == tk_kind_staging.granted_count)
        return NULL;
    struct granted *g = serve.slots;
    while (g->stage != FREE)
        g++;
    return g;
}

static void slot_begin(struct granted *g, const struct wanted *w, enum serving stage)
{
    *g = (struct granted){.stage = stage, .for_whom = *w};
    serve.busy++;
    tk_count(tk_counter_kind_served);
}

static void slot_end(struct granted *g)
{
    g->stage = FREE;
    serve.busy--;
    tk_counter_add(&tk_deferred_work_wanted, -1);
}

static void enqueue(const struct wanted *w)
{
    struct wanted *copy = serve.free;
    if (copy)
        serve.free = copy->next;
    else if (!(copy = malloc(sizeof(*copy))))
        tk_panic("out of memory for a transfer of another rank");
    *copy = *w;
    copy->next = NULL;
    *serve.queue_end = copy;
    serve.queue_end = &copy->next;
}

static bool grant_waiting(void)
{
    struct granted *g;
    bool any = false;
    while (serve.queue && (g = free_slot())) {
        struct wanted *w = serve.queue;
        serve.queue = w->next;
        if (!w->next)
            serve.queue_end = &serve.queue;
        slot_begin(g, w, w->is_put ? GRANT : COPY_OUT);
        w->next = serve.free;
        serve.free = w;
        any = true;
    }
    return any;
}

/* ---- stages ---- */

static bool answer(const struct granted *g, enum tk_kind_answer_what what, const void *payload,
                   bool *lacks)
{
    const struct tk_kind_answer a = {
        .what = what, .piece = g->for_whom.piece, .slot = number_of(g)};
    int32_t args[tk_kind_answer_args];
    memcpy(args, &a, sizeof(args));
    const struct tk_internal_medium medium = {.handler = TK_HANDLER_KIND_ANSWER,
                                              .nargs = tk_kind_answer_args,
                                              .args = args,
                                              .payload = payload,
                                              .nbytes = payload ? g->for_whom.nbytes : 0};
    bool is_sent = tk_internal_request(tk_peer(g->for_whom.rank), &medium) == TK_OK;
    *lacks |= !is_sent;
    return is_sent;
}

/* Rows lie one after the other in the slot. */
static void set_rows(struct tk_kind_copy *copy, const struct wanted *w)
{
    if (w->row == 0)
        return;
    copy->nbytes = w->row;
    copy->rows = w->nbytes / w->row;
    copy->to_pitch = w->is_put ? w->pitch : w->row;
    copy->from_pitch = w->is_put ? w->row : w->pitch;
}

static bool serve_copied(struct granted *g, bool *lacks)
{
    uintptr_t slot = (uintptr_t)tk_kind_granted_data(number_of(g));
    bool is_in = g->stage == COPY_IN;
    if (!g->is_begun) {
        g->copy = (struct tk_kind_copy){.to = is_in ? g->for_whom.at : slot,
                                        .from = is_in ? slot : g->for_whom.at,
                                        .nbytes = g->for_whom.nbytes,
                                        .to_device = is_in ? g->for_whom.device : NULL,
                                        .from_device = is_in ? NULL : g->for_whom.device};
        set_rows(&g->copy, &g->for_whom);
        g->is_begun = tk_kind_copy_start(&g->copy);
    }
    *lacks |= !g->is_begun;
    return g->is_begun && tk_kind_copy_done(&g->copy);
}

/* Small data travels in the message, after which the slot is free. */
static bool ready(struct granted *g, bool *lacks)
{
    bool is_small = g->for_whom.nbytes <= tk_kind_eager();
    if (!answer(g, is_small ? TK_KIND_DATA : TK_KIND_READY,
                is_small ? tk_kind_granted_data(number_of(g)) : NULL, lacks))
        return false;
    if (is_small)
        slot_end(g);
    else
        g->stage = LENT;
    return true;
}

static bool serve_step(struct granted *g, bool *lacks)
{
    switch (g->stage) {
    case GRANT:
        if (!answer(g, TK_KIND_GRANT, NULL, lacks))
            return false;
        g->stage = LENT;
        return true;
    case COPY_IN:
    case COPY_OUT:
        if (!serve_copied(g, lacks))
            return false;
        g->stage = g->stage == COPY_IN ? DONE : READY;
        return true;
    case DONE:
        if (!answer(g, TK_KIND_DONE, NULL, lacks))
            return false;
        slot_end(g);
        return true;
    case READY:
        return ready(g, lacks);
    case FREE:
    case LENT:
        break;
    }
    return false;
}

bool tk_kind_serve_progress(bool *lacks)
{
    bool any = grant_waiting();
    uint32_t busy = serve.busy;
    for (struct granted *g = serve.slots; busy > 0; g++) {
        busy -= g->stage != FREE;
        while (serve_step(g, lacks))
            any = true;
    }
    return any;
}

/* ---- asks; the handler records them ---- */

/* The length from the first byte of device memory to the last. The product of two 32-bit numbers
 * does not overflow. */
static uint64_t extent(const struct tk_kind_ask *ask)
{
    return ask->row == 0 ? ask->nbytes
                         : (ask->nbytes / ask->row - 1) * (uint64_t)ask->pitch + ask->row;
}

static struct tk_kind_device *check_place(const struct tk_peer *from, const struct tk_kind_ask *ask)
{
    const struct tk_kind_memory *memory = tk_kind_memory_of(ask->endpoint);
    uintptr_t base = memory ? memory->base : 0;
    size_t size = memory ? memory->size : 0;
    if (ask->at >= base && ask->at - base < size && extent(ask) <= size - (ask->at - base))
        return memory->device;
    tk_panic("rank %u (%s, pid %d) transfers %llu bytes at %p of endpoint %u, whose device memory "
             "is [%p, +%zu)",
             from->rank, from->host, from->pid, (unsigned long long)extent(ask),
             (void *)(uintptr_t)ask->at, ask->endpoint, (void *)base, size);
}

static bool has_sound_size(const struct tk_kind_ask *ask)
{
    if (ask->nbytes == 0 || ask->nbytes > tk_kind_staging.slot_size)
        return false;
    return ask->row == 0 || (ask->nbytes % ask->row == 0 && ask->pitch >= ask->row &&
                             ask->pitch <= tk_kind_pitch_max);
}

static void begin(const struct tk_arrival *arrival, const struct tk_kind_ask *ask)
{
    const struct tk_peer *from = arrival->peer;
    bool is_put = ask->what == TK_KIND_ASK_PUT;
    if (!has_sound_size(ask) ||
        (arrival->nbytes > 0 && (!is_put || arrival->nbytes != ask->nbytes)))
        tk_kind_nonsense(from, "asked for a piece of device memory of a wrong size");
    const struct wanted w = {.device = check_place(from, ask),
                             .at = (uintptr_t)ask->at,
                             .nbytes = (size_t)ask->nbytes,
                             .row = ask->row,
                             .pitch = ask->pitch,
                             .rank = from->rank,
                             .piece = ask->piece,
                             .is_put = is_put};
    struct granted *g = serve.queue ? NULL : free_slot();
    tk_counter_add(&tk_deferred_work_wanted, 1);
    if (!g) {
        enqueue(&w); /* data in the message is copied into the slot once that is granted */
        return;
    }
    if (arrival->nbytes > 0)
        memcpy(tk_kind_granted_data(number_of(g)), arrival->payload, arrival->nbytes);
    slot_begin(g, &w, !is_put ? COPY_OUT : arrival->nbytes > 0 ? COPY_IN : GRANT);
}

static void continue_slot(const struct tk_arrival *arrival, const struct tk_kind_ask *ask)
{
    bool is_put = ask->what == TK_KIND_COPY_IN;
    struct granted *g = ask->slot < tk_kind_staging.granted_count ? &serve.slots[ask->slot] : NULL;
    if (!g || g->stage != LENT || g->for_whom.rank != arrival->peer->rank ||
        g->for_whom.piece != ask->piece || g->for_whom.is_put != is_put)
        tk_kind_nonsense(arrival->peer, "used a staging buffer that it does not have");
    if (is_put)
        g->stage = COPY_IN;
    else
        slot_end(g);
}

void tk_kind_asked(struct tk_arrival *arrival)
{
    struct tk_kind_ask ask;
    if (arrival->head->nargs != tk_kind_ask_args || !serve.slots)
        tk_kind_nonsense(arrival->peer, "asked for a transfer of device memory by another message");
    memcpy(&ask, arrival->head + 1, sizeof(ask));
    if (ask.what == TK_KIND_ASK_PUT || ask.what == TK_KIND_ASK_GET)
        begin(arrival, &ask);
    else if (ask.what == TK_KIND_COPY_IN || ask.what == TK_KIND_RELEASE)
        continue_slot(arrival, &ask);
    else
        tk_kind_nonsense(arrival->peer, "asked for a transfer of device memory of no known sort");
}
