/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfers with device memory that this rank started, cut into pieces that pass through stages:
 *
 *     put  LOAD   to a local slot                         if the piece has one
 *          ASK    for a slot of the target; small data    if the target takes part
 *                 travels with it, and then this is all
 *          MOVE   to the target's slot, or to its place
 *          TELL   the target that its slot is filled      if it takes part, and wait
 *     get  ASK    for the data in a slot of the target;   if it takes part
 *                 small data comes with the answer
 *          MOVE   from there, or from its place
 *          TELL   the target that its slot was read       if it takes part
 *          STORE  from the local slot                     if the piece has one
 *
 * A device copies to and from local slots; rows of host memory are packed there by the CPU.
 *
 * Owns transfers and pieces; guarded by the lock of the room. Numbers of pieces come back over the
 * wire and are checked. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "kind_rma/kind_rma_private.h"
#include "op/op.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "transport/neighbour.h"
#include "transport/transport.h"

enum {
    pieces_max = 256,
    window = 8,               /* pieces of a transfer in flight: more than can overlap */
    small_max = 64,           /* sources up to this size are copied if they must be free at once */
    host_copy_max = 512 << 10 /* takes 0.1 ms */
};

enum stage { LOAD, ASK, ASKED, MOVE, TELL, TOLD, STORE, OVER };

struct transfer {
    struct transfer *next; /* in the queue, or free */
    struct tk_kind_transfer k;
    struct tk_kind_plan plan;
    struct tk_op *op;
    tk_counter_t *sources; /* counted until `unread` is 0; may be NULL */
    struct tk_bound staging;
    uintptr_t staging_shift; /* of a neighbour's slots, if they are mapped here */
    size_t piece_size;
    size_t cut;    /* bytes that pieces have */
    size_t unread; /* bytes of a put whose source is in use */
    unsigned live; /* pieces */
    bool has_waited;
    char small[small_max];
};

struct piece {
    struct piece *next; /* live or free */
    struct transfer *of;
    size_t at, nbytes;
    struct tk_kind_slot *slot;
    enum stage stage;
    bool is_begun;   /* the stage */
    size_t to_post;  /* MOVE by the transport: rows that are left */
    bool is_read;    /* put: the source is free */
    uint32_t theirs; /* number of the target's slot */
    struct tk_op op;
    struct tk_rma rma;
    struct tk_rma_state state;
    struct tk_kind_copy copy;
};

static struct {
    struct transfer *queue, **queue_end; /* some bytes are in no piece */
    struct transfer *free;
    struct piece all[pieces_max];
    struct piece *free_pieces, *live;
    bool is_open;
} table;

static void open_table(void)
{
    table.queue_end = &table.queue;
    for (int i = pieces_max; i-- > 0;) {
        table.all[i].next = table.free_pieces;
        table.free_pieces = &table.all[i];
    }
    table.is_open = true;
}

/* ---- resources of a piece ---- */

static struct tk_kind_device *local_device(const struct transfer *t)
{
    return t->k.local ? t->k.local->device : NULL;
}

static bool by_target(const struct transfer *t)
{
    return t->plan.path == TK_KIND_BY_TARGET;
}

/* A piece holds some of the rows; they are packed in slots and messages. */
static bool has_rows(const struct transfer *t)
{
    return t->k.rows.count > 1;
}

static size_t bytes_of(const struct transfer *t)
{
    return has_rows(t) ? t->k.t.rma.nbytes * t->k.rows.count : t->k.t.rma.nbytes;
}

/* The offset of byte `at` of the data on a side with this pitch. */
static size_t offset_of(const struct transfer *t, size_t at, size_t pitch)
{
    return has_rows(t) ? at / t->k.t.rma.nbytes * pitch : at;
}

/* Between local device memory and a slot of the target, without a local slot. */
static bool reaches_slots(const struct transfer *t, size_t nbytes)
{
    if (has_rows(t))
        nbytes = t->k.t.rma.nbytes; /* the transport moves them one by one */
    if (t->staging_shift != tk_unmapped)
        return true;
    return tk_kind_hca_moves(&t->k) && tk_peer_transport(t->k.t.peer)->reach == TK_REACH_NETWORK &&
           (t->k.t.rma.is_put || nbytes > tk_rma_scattered_max);
}

static bool needs_slot(const struct transfer *t, size_t nbytes)
{
    if (by_target(t) && !t->k.local)
        return has_rows(t);
    if (by_target(t))
        return nbytes <= tk_kind_eager() || !reaches_slots(t, nbytes);
    return t->plan.path == TK_KIND_BY_SLOT;
}

static char *local_at(const struct piece *p)
{
    const struct transfer *t = p->of;
    return t->k.t.rma.local + offset_of(t, p->at, t->k.rows.local_pitch);
}

static uintptr_t remote_at(const struct piece *p)
{
    const struct transfer *t = p->of;
    return t->k.t.rma.remote + offset_of(t, p->at, t->k.rows.remote_pitch);
}

static size_t rows_of(const struct piece *p)
{
    return has_rows(p->of) ? p->nbytes / p->of->k.t.rma.nbytes : 1;
}

/* The local pitch: of the client's memory, or of our slot. */
static size_t pitch_here(const struct piece *p)
{
    return p->slot ? p->of->k.t.rma.nbytes : p->of->k.rows.local_pitch;
}

/* At the other end of MOVE. */
static size_t pitch_there(const struct piece *p)
{
    return by_target(p->of) ? p->of->k.t.rma.nbytes : p->of->k.rows.remote_pitch;
}

static void *host_at(const struct piece *p)
{
    return p->slot ? p->slot->data : local_at(p);
}

/* ---- stages; each returns whether the piece has left it ---- */

static bool enter(struct piece *p, enum stage stage)
{
    p->stage = stage;
    p->is_begun = false;
    return true;
}

static void source_read(struct piece *p)
{
    struct transfer *t = p->of;
    if (p->is_read || !t->k.t.rma.is_put)
        return;
    p->is_read = true;
    t->unread -= p->nbytes;
    if (t->unread == 0 && t->sources)
        tk_counter_add(t->sources, -1);
}

static void copy_rows(struct piece *p, size_t to_pitch, size_t from_pitch)
{
    if (!has_rows(p->of))
        return;
    p->copy.nbytes = p->of->k.t.rma.nbytes;
    p->copy.rows = rows_of(p);
    p->copy.to_pitch = to_pitch;
    p->copy.from_pitch = from_pitch;
}

/* The CPU copies rows of host memory into or out of a slot. */
static void pack(struct piece *p)
{
    const struct transfer *t = p->of;
    const size_t row = t->k.t.rma.nbytes;
    char *host = local_at(p), *packed = p->slot->data;
    for (size_t i = rows_of(p); i > 0; i--, host += t->k.rows.local_pitch, packed += row)
        memcpy(t->k.t.rma.is_put ? packed : host, t->k.t.rma.is_put ? host : packed, row);
}

/* p->copy is filled in. */
static bool copied(struct piece *p, bool *lacks)
{
    if (!p->is_begun)
        p->is_begun = tk_kind_copy_start(&p->copy);
    if (!p->is_begun)
        *lacks = true;
    return p->is_begun && tk_kind_copy_done(&p->copy);
}

static bool load(struct piece *p, bool *lacks)
{
    if (!p->is_begun)
        p->copy = (struct tk_kind_copy){.to = (uintptr_t)p->slot->data,
                                        .from = (uintptr_t)local_at(p),
                                        .nbytes = p->nbytes,
                                        .from_device = local_device(p->of)};
    copy_rows(p, p->of->k.t.rma.nbytes, p->of->k.rows.local_pitch);
    if (!p->of->k.local)
        pack(p);
    else if (!copied(p, lacks))
        return false;
    source_read(p);
    return enter(p, by_target(p->of) ? ASK : MOVE);
}

static bool store(struct piece *p, bool *lacks)
{
    if (!p->is_begun)
        p->copy = (struct tk_kind_copy){.to = (uintptr_t)local_at(p),
                                        .from = (uintptr_t)p->slot->data,
                                        .nbytes = p->nbytes,
                                        .to_device = local_device(p->of)};
    copy_rows(p, p->of->k.rows.local_pitch, p->of->k.t.rma.nbytes);
    if (!p->of->k.local)
        pack(p);
    else if (!copied(p, lacks))
        return false;
    return enter(p, OVER);
}

static bool send_ask(struct piece *p, enum tk_kind_ask_what what, const void *payload,
                     size_t nbytes, bool *lacks)
{
    const struct tk_rma *rma = &p->of->k.t.rma;
    bool is_rows = has_rows(p->of);
    const struct tk_kind_ask ask = {.what = what,
                                    .piece = (uint32_t)(p - table.all),
                                    .slot = p->theirs,
                                    .endpoint = rma->endpoint,
                                    .at = remote_at(p),
                                    .nbytes = p->nbytes,
                                    .row = is_rows ? (uint32_t)rma->nbytes : 0,
                                    .pitch = is_rows ? (uint32_t)p->of->k.rows.remote_pitch : 0};
    int32_t args[tk_kind_ask_args];
    memcpy(args, &ask, sizeof(args));
    const struct tk_internal_medium medium = {.handler = TK_HANDLER_KIND_ASK,
                                              .nargs = tk_kind_ask_args,
                                              .args = args,
                                              .payload = payload,
                                              .nbytes = nbytes};
    bool is_sent = tk_internal_request(p->of->k.t.peer, &medium) == TK_OK;
    *lacks |= !is_sent;
    return is_sent;
}

static bool ask(struct piece *p, bool *lacks)
{
    bool is_put = p->of->k.t.rma.is_put;
    bool is_eager = is_put && p->nbytes <= tk_kind_eager();
    return send_ask(p, is_put ? TK_KIND_ASK_PUT : TK_KIND_ASK_GET, is_eager ? host_at(p) : NULL,
                    is_eager ? p->nbytes : 0, lacks) &&
           enter(p, ASKED);
}

/* Where the other end of MOVE lies. */
static uintptr_t other_end(const struct piece *p)
{
    const struct transfer *t = p->of;
    return by_target(t) ? tk_kind_granted_address(&t->staging, p->theirs) : remote_at(p);
}

/* A device copies if both ends are addresses here and one of them is device memory. */
static bool moves_by_copy(const struct piece *p, uintptr_t *shift, struct tk_kind_device **other)
{
    const struct transfer *t = p->of;
    *shift = by_target(t) ? t->staging_shift : t->plan.shift;
    *other = by_target(t) ? NULL : t->plan.remote_device;
    return *shift != tk_unmapped && (*other || (t->k.local && !p->slot));
}

static void fill_copy(struct piece *p, uintptr_t shift, struct tk_kind_device *other)
{
    uintptr_t there = other_end(p) + shift, here = (uintptr_t)host_at(p);
    struct tk_kind_device *ours = p->slot ? NULL : local_device(p->of);
    bool is_put = p->of->k.t.rma.is_put;
    p->copy = (struct tk_kind_copy){.to = is_put ? there : here,
                                    .from = is_put ? here : there,
                                    .nbytes = p->nbytes,
                                    .to_device = is_put ? other : ours,
                                    .from_device = is_put ? ours : other};
    copy_rows(p, is_put ? pitch_there(p) : pitch_here(p), is_put ? pitch_here(p) : pitch_there(p));
}

/* The transport moves rows one by one, unless both sides of MOVE have them packed. */
static bool has_rma_rows(const struct piece *p)
{
    return has_rows(p->of) && !(p->slot && by_target(p->of));
}

static void fill_rma(struct piece *p)
{
    const struct transfer *t = p->of;
    bool has_slot = p->slot != NULL;
    p->rma = t->k.t.rma;
    p->rma.remote = other_end(p);
    p->rma.local = host_at(p);
    p->rma.nbytes = has_rma_rows(p) ? t->k.t.rma.nbytes : p->nbytes;
    p->rma.op = &p->op;
    p->rma.sources = NULL;
    p->rma.immediate = p->rma.copy_source = p->rma.is_lent = false;
    p->rma.is_on_device = t->k.local && !has_slot;
    if (has_slot)
        p->rma.home = &tk_kind_staging.region;
    if (by_target(t)) {
        p->rma.endpoint = tk_endpoint_staging;
        p->rma.remote_keys = t->staging.keys;
        p->rma.wants_flush = false;
    }
    tk_op_init(&p->op);
    p->state = (struct tk_rma_state){.done = 0};
    p->to_post = has_rma_rows(p) ? rows_of(p) : 1;
}

static bool posted(struct piece *p)
{
    struct tk_peer *peer = p->of->k.t.peer;
    while (p->to_post > 0) {
        if (tk_peer_transport(peer)->rma.post(peer, &p->rma, &p->state) != TK_OK)
            return false;
        p->to_post--;
        p->state = (struct tk_rma_state){.done = 0};
        p->rma.local += pitch_here(p);
        p->rma.remote += pitch_there(p);
    }
    return true;
}

static bool moved_by_rma(struct piece *p, bool *lacks)
{
    if (!p->is_begun)
        fill_rma(p);
    p->is_begun = true;
    if (!posted(p)) {
        *lacks = true;
        return false;
    }
    return tk_op_done(&p->op);
}

/* A slot is host memory. */
static bool flushed(const struct piece *p)
{
    const struct tk_kind_transfer *k = &p->of->k;
    return p->slot || !tk_kind_wants_flush_here(k) || tk_kind_copy_flush(k->local->device);
}

static bool move(struct piece *p, bool *lacks)
{
    uintptr_t shift;
    struct tk_kind_device *other;
    bool by_copy = moves_by_copy(p, &shift, &other);
    if (by_copy && !p->is_begun)
        fill_copy(p, shift, other);
    if (by_copy ? !copied(p, lacks) : !(moved_by_rma(p, lacks) && flushed(p)))
        return false;
    source_read(p);
    if (by_target(p->of))
        return enter(p, TELL);
    return enter(p, p->slot && !p->of->k.t.rma.is_put ? STORE : OVER);
}

static bool tell(struct piece *p, bool *lacks)
{
    bool is_put = p->of->k.t.rma.is_put;
    if (!send_ask(p, is_put ? TK_KIND_COPY_IN : TK_KIND_RELEASE, NULL, 0, lacks))
        return false;
    return enter(p, is_put ? TOLD : p->slot ? STORE : OVER);
}

static bool step(struct piece *p, bool *lacks)
{
    switch (p->stage) {
    case LOAD:
        return load(p, lacks);
    case ASK:
        return ask(p, lacks);
    case MOVE:
        return move(p, lacks);
    case TELL:
        return tell(p, lacks);
    case STORE:
        return store(p, lacks);
    case ASKED:
    case TOLD:
    case OVER:
        break;
    }
    return false;
}

/* ---- cutting ---- */

/* NULL: a piece or its slot is lacking. */
static struct piece *piece_take(struct transfer *t)
{
    struct piece *p = table.free_pieces;
    size_t nbytes = tk_min(bytes_of(t) - t->cut, t->piece_size);
    struct tk_kind_slot *slot = NULL;
    if (!p)
        return NULL;
    if (needs_slot(t, nbytes) && !(slot = tk_kind_slot_take())) {
        if (!t->has_waited)
            tk_count(tk_counter_kind_slot_waits);
        t->has_waited = true;
        return NULL;
    }
    table.free_pieces = p->next;
    *p = (struct piece){.of = t, .at = t->cut, .nbytes = nbytes, .slot = slot};
    if (slot && t->k.t.rma.is_put)
        enter(p, LOAD);
    else
        enter(p, by_target(t) ? ASK : MOVE);
    t->cut += nbytes;
    t->live++;
    p->next = table.live;
    table.live = p;
    return p;
}

static bool is_cut(const struct transfer *t)
{
    return t->cut == bytes_of(t);
}

static bool advance(struct piece *p, bool *lacks)
{
    bool any = false;
    while (step(p, lacks))
        any = true;
    return any;
}

/* False: no more pieces can be cut now, not even from later transfers. */
static bool transfer_cut(struct transfer *t, bool *lacks, bool *any)
{
    while (!is_cut(t) && t->live < window) {
        struct piece *p = piece_take(t);
        if (!p)
            return false;
        *any = true;
        advance(p, lacks);
    }
    return true;
}

static void queue_remove(struct transfer **at)
{
    struct transfer *t = *at;
    *at = t->next;
    if (!t->next)
        table.queue_end = at;
}

/* In order: a transfer that lacks a slot stops those behind it, so that none starves. */
static bool cut_queue(bool *lacks)
{
    bool any = false;
    for (struct transfer **at = &table.queue; *at;) {
        if (!transfer_cut(*at, lacks, &any))
            break;
        if (is_cut(*at))
            queue_remove(at);
        else
            at = &(*at)->next;
    }
    return any;
}

/* ---- the end of pieces and transfers ---- */

/* Last: a thread that sees zero may free the operation. */
static void transfer_complete(struct transfer *t)
{
    struct tk_op *op = t->op;
    tk_kind_plan_end(&t->plan);
    t->next = table.free;
    table.free = t;
    tk_counter_add(&tk_deferred_work_wanted, -1);
    tk_counter_add(&op->pending, -1);
}

static void piece_complete(struct piece *p)
{
    struct transfer *t = p->of;
    source_read(p);
    if (p->slot)
        tk_kind_slot_give(p->slot);
    p->of = NULL;
    p->next = table.free_pieces;
    table.free_pieces = p;
    t->live--;
    if (t->live == 0 && is_cut(t))
        transfer_complete(t);
}

/* A transfer that is still being cut may have finished pieces, too. */
static bool sweep(bool *lacks)
{
    bool any = false;
    for (struct piece **at = &table.live; *at;) {
        struct piece *p = *at;
        any |= advance(p, lacks);
        if (p->stage != OVER) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        piece_complete(p);
        any = true;
    }
    return any;
}

bool tk_kind_pieces_progress(bool *lacks)
{
    bool any = table.queue && cut_queue(lacks);
    return (table.live && sweep(lacks)) || any;
}

/* ---- start ---- */

static struct transfer *transfer_take(void)
{
    struct transfer *t = table.free;
    if (t)
        table.free = t->next;
    else if (!(t = malloc(sizeof(*t))))
        tk_panic("out of memory for a transfer of device memory");
    return t;
}

static void find_staging(struct transfer *t)
{
    struct tk_peer *peer = t->k.t.peer;
    t->staging_shift = tk_unmapped;
    if (!by_target(t))
        return;
    t->staging = tk_bound_of(peer->rank, tk_endpoint_staging);
    if (t->staging.size == 0)
        tk_panic("rank %u (%s, pid %d) has device memory at endpoint %u, but its staging buffers "
                 "are not known here",
                 peer->rank, peer->host, peer->pid, t->k.t.rma.endpoint);
    if (tk_peer_transport(peer)->reach == TK_REACH_NEIGHBOUR)
        t->staging_shift = tk_neighbour_addr_offset(peer, tk_endpoint_staging);
}

/* A driver copies from and to host memory of the client, which is not pinned, before its call
 * returns. Such copies are cut, so that other threads and ranks wait for a few pieces at most. */
static bool is_with_host(const struct transfer *t)
{
    return t->plan.path != TK_KIND_BY_HCA && (!t->k.local || !t->plan.remote_device);
}

static size_t piece_size_of(const struct transfer *t)
{
    size_t nbytes = bytes_of(t), row = has_rows(t) ? t->k.t.rma.nbytes : 1;
    bool is_staged = by_target(t) || t->plan.path == TK_KIND_BY_SLOT;
    size_t piece = is_staged         ? tk_kind_piece_size(nbytes, tk_kind_slot_size())
                   : is_with_host(t) ? tk_min(nbytes, host_copy_max)
                                     : nbytes;
    return piece - piece % row;
}

/* For example, a value lies on the caller's stack. */
static void copy_small(struct transfer *t)
{
    struct tk_rma *rma = &t->k.t.rma;
    if (!rma->is_put || t->k.local || !rma->copy_source || rma->nbytes > sizeof(t->small))
        return;
    memcpy(t->small, rma->local, rma->nbytes);
    rma->local = t->small;
    t->sources = NULL;
}

static void transfer_fill(struct transfer *t, const struct tk_kind_transfer *k,
                          const struct tk_kind_plan *plan, struct tk_op *op, tk_counter_t *sources)
{
    const struct tk_rma *rma = &k->t.rma;
    t->next = NULL;
    t->k = *k;
    t->plan = *plan;
    t->op = op;
    t->sources = sources;
    t->cut = 0;
    t->unread = rma->is_put ? bytes_of(t) : 0;
    t->live = 0;
    t->has_waited = false;
    find_staging(t);
    t->piece_size = piece_size_of(t);
    copy_small(t);
}

static void transfer_enqueue(struct transfer *t)
{
    *table.queue_end = t;
    table.queue_end = &t->next;
    tk_counter_add(&tk_deferred_work_wanted, 1);
    tk_counter_add(&t->op->pending, 1);
    if (t->sources)
        tk_counter_add(t->sources, 1);
}

/* Another transfer already waits, or the first piece lacks a resource. */
static bool must_wait(const struct transfer *t)
{
    return table.queue || !table.free_pieces ||
           (needs_slot(t, tk_min(bytes_of(t), t->piece_size)) && !tk_kind_staging.own);
}

enum tk_status tk_kind_transfer_begin(const struct tk_kind_transfer *k,
                                      const struct tk_kind_plan *plan, struct tk_op *op,
                                      tk_counter_t *sources)
{
    bool lacks = false;
    if (!table.is_open)
        open_table();
    struct transfer *t = transfer_take();
    transfer_fill(t, k, plan, op, sources);
    if (k->t.rma.immediate && must_wait(t)) {
        tk_kind_plan_end(plan);
        t->next = table.free;
        table.free = t;
        return TK_BUSY;
    }
    transfer_enqueue(t);
    tk_kind_pieces_progress(&lacks);
    return TK_OK;
}

bool tk_kind_pieces_has_space(void)
{
    return !table.queue && (!table.is_open || table.free_pieces);
}

/* ---- answers; the handler records them ---- */

static struct piece *piece_of(const struct tk_kind_answer *answer, const struct tk_peer *from)
{
    struct piece *p = answer->piece < pieces_max ? &table.all[answer->piece] : NULL;
    if (!p || !p->of || p->of->k.t.peer->rank != from->rank ||
        (p->stage != ASKED && p->stage != TOLD))
        tk_kind_nonsense(from, "answered a piece of device memory that it was not asked for");
    return p;
}

static bool is_expected(const struct piece *p, const struct tk_kind_answer *answer, size_t nbytes)
{
    bool is_put = p->of->k.t.rma.is_put;
    if (p->stage == TOLD || answer->what == TK_KIND_DONE)
        return is_put && answer->what == TK_KIND_DONE &&
               (p->stage == TOLD || p->nbytes <= tk_kind_eager());
    if (answer->what == TK_KIND_DATA)
        return !is_put && nbytes == p->nbytes;
    return answer->what == (is_put ? TK_KIND_GRANT : TK_KIND_READY) &&
           tk_kind_granted_address(&p->of->staging, answer->slot) != 0;
}

void tk_kind_answered(struct tk_arrival *arrival)
{
    struct tk_kind_answer answer;
    if (arrival->head->nargs != tk_kind_answer_args)
        tk_kind_nonsense(arrival->peer, "answered a transfer of device memory by another message");
    memcpy(&answer, arrival->head + 1, sizeof(answer));
    struct piece *p = piece_of(&answer, arrival->peer);
    if (!is_expected(p, &answer, arrival->nbytes))
        tk_kind_nonsense(arrival->peer, "answered a piece of device memory out of order");
    p->theirs = answer.slot;
    if (answer.what == TK_KIND_DONE)
        enter(p, OVER);
    else if (answer.what != TK_KIND_DATA)
        enter(p, MOVE);
    else {
        memcpy(host_at(p), arrival->payload, p->nbytes);
        enter(p, p->slot ? STORE : OVER);
    }
}
