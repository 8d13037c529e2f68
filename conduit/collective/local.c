/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See local.h: the operations. Owns nothing; the caller's lock guards a team's part and the
 * operations on it. Must not wait, and calls nothing that polls.
 *
 * Each function of a state returns false after it has set what the operation waits for, and is
 * called again when the wait is over. */
#include "config.h"

#include "base/copy.h"
#include "collective/local_private.h"

enum {
    retire_step = 4,       /* other members look at our retired tickets once in so many */
    areas_max = 4,         /* pieces that a buffer is divided into */
    step_pieces = 64,      /* bytes copied in one step, before other operations are stepped */
    direct_piece = 1 << 18 /* likewise, straight from memory of another member */
};

_Static_assert(tk_local_slots % retire_step == 0 && tk_local_slots <= 64 &&
                   tk_local_slots >= 2 * retire_step,
               "a slot is free before all tickets are used up");

/* ---- words */

static bool reached(struct tk_local_op *op, const _Atomic uint64_t *word, uint64_t target)
{
    uint64_t seen = atomic_load_explicit((_Atomic uint64_t *)word, memory_order_acquire);
    tk_if_likely((int64_t)(seen - target) >= 0) return true;
    op->awaited = word;
    op->target = target;
    return false;
}

/* Asks for another step, without a condition. */
static bool again(struct tk_local_op *op)
{
    op->awaited = NULL;
    return false;
}

static inline struct tk_local_slot *slot_of(const struct tk_local_op *op, uint32_t i)
{
    struct tk_local_channel *channel = tk_local_channel_of(op->local, i);
    tk_if_unlikely(!channel) return NULL;
    return tk_local_slot_at(channel, op->ticket);
}

static inline struct tk_local_slot *own_slot(const struct tk_local_op *op)
{
    return tk_local_slot_at(op->local->members[op->local->me].at, op->ticket);
}

static inline uint64_t stamp_of(const struct tk_local_op *op, uint32_t i, uint32_t pieces)
{
    return tk_local_stamp(&op->local->members[i], op->ticket) + pieces;
}

static bool has_published(struct tk_local_op *op, uint32_t i, uint32_t pieces)
{
    const struct tk_local_slot *slot = slot_of(op, i);
    tk_if_unlikely(!slot) return again(op);
    return reached(op, &slot->word, stamp_of(op, i, pieces));
}

static bool has_consumed(struct tk_local_op *op, uint32_t i, uint32_t pieces)
{
    const struct tk_local_slot *slot = slot_of(op, i);
    tk_if_unlikely(!slot) return again(op);
    return reached(op, &slot->ack, stamp_of(op, i, pieces));
}

/* Release: what we wrote for others to read, and in a barrier all that we did before it. */
static void publish(const struct tk_local_op *op, uint32_t pieces)
{
    atomic_store_explicit(&own_slot(op)->word, stamp_of(op, op->local->me, pieces),
                          memory_order_release);
}

/* Release: our reads come before later writes of other members. */
static void consume(const struct tk_local_op *op, uint32_t pieces)
{
    atomic_store_explicit(&own_slot(op)->ack, stamp_of(op, op->local->me, pieces),
                          memory_order_release);
}

static inline void wake(const struct tk_local *local, uint32_t i)
{
    tk_neighbour_wake(local->members[i].rank);
}

static void wake_others(const struct tk_local *local)
{
    for (uint32_t i = 0; i < local->count; i++)
        if (i != local->me)
            wake(local, i);
}

/* ---- slots */

/* Other members no longer read what they have retired, so our slot of that ticket may be written
 * again. */
static bool find_free(struct tk_local_op *op)
{
    struct tk_local *local = op->local;
    uint32_t least = op->ticket + 1;
    for (uint32_t i = 0; i < local->count; i++) {
        const struct tk_local_member *member = &local->members[i];
        const struct tk_local_channel *channel = tk_local_channel_of(local, i);
        uint32_t wanted = op->ticket + 1 - tk_local_slots;
        if (!channel)
            return again(op);
        if (!reached(op, &channel->retired, tk_local_retired_stamp(member, wanted)))
            return false;
        uint64_t seen =
            atomic_load_explicit((_Atomic uint64_t *)&channel->retired, memory_order_acquire);
        uint32_t retired = (uint32_t)((seen >> 32) - member->base);
        if ((int32_t)(retired - least) < 0)
            least = retired;
    }
    local->safe = least + tk_local_slots;
    return true;
}

static inline bool is_free(struct tk_local_op *op)
{
    tk_if_likely((int32_t)(op->ticket - op->local->safe) < 0) return true;
    return find_free(op);
}

static void publish_retired(const struct tk_local *local)
{
    const struct tk_local_member *own = &local->members[local->me];
    atomic_store_explicit(&own->at->retired, tk_local_retired_stamp(own, local->retired),
                          memory_order_release);
    wake_others(local);
}

/* Members wait for a multiple of retire_step at the latest: if only one ticket can't begin, all
 * tickets before it have been retired, so publishing at multiples is enough. */
static void retire(struct tk_local *local, uint32_t ticket)
{
    uint32_t before = local->retired;
    local->finished |= UINT64_C(1) << (ticket - local->retired);
    for (; local->finished & 1; local->finished >>= 1)
        local->retired++;
    if ((before ^ local->retired) & ~(uint32_t)(retire_step - 1))
        publish_retired(local);
}

static bool finish(struct tk_local_op *op)
{
    retire(op->local, op->ticket);
    if (!op->then)
        return true;
    op->ticket++;
    op->then(op);
    return op->advance(op);
}

/* ---- the tree of gathers and reductions */

static inline uint32_t member_at(const struct tk_local_op *op, uint32_t place)
{
    uint32_t i = place + op->root, count = op->local->count;
    return i < count ? i : i - count;
}

/* If members are few, all are children of the root. The fan-out is the one of nbrhd.h. */
static void take_place(struct tk_local_op *op)
{
    uint32_t count = op->local->count, me = op->local->me;
    uint32_t fan = count <= tk_local_flat ? count : tk_local_flat;
    op->place = me >= op->root ? me - op->root : me + count - op->root;
    op->first = fan * op->place + 1;
    op->end = (uint32_t)tk_min(op->first + fan, count);
    op->first = (uint32_t)tk_min(op->first, count);
}

static inline uint32_t parent_of(const struct tk_local_op *op)
{
    uint32_t fan = op->local->count <= tk_local_flat ? op->local->count : tk_local_flat;
    return member_at(op, (op->place - 1) / fan);
}

static void wake_below(const struct tk_local_op *op)
{
    for (uint32_t place = op->first; place < op->end; place++)
        wake(op->local, member_at(op, place));
}

/* ---- set-up */

static bool nothing_to_do(struct tk_local_op *op)
{
    (void)op;
    return true;
}

/* A single member has no channel. */
static void set_up(struct tk_local_op *op, struct tk_local *local, uint32_t ticket, uint32_t root,
                   bool (*advance)(struct tk_local_op *op))
{
    op->awaited = NULL;
    op->then = NULL;
    op->local = local;
    op->ticket = ticket;
    op->root = root;
    op->advance = local->count == 1 ? nothing_to_do : advance;
}

/* Cuts `nbytes` into pieces of whole elements that fit an area of a slot's buffer. */
static void cut(struct tk_local_op *op, size_t element)
{
    op->piece = 0;
    op->pieces = 1;
    op->areas = areas_max;
    op->piece_size = op->nbytes;
    tk_if_likely(op->nbytes <= tk_local_inline) return; /* divisions take longer than the rest */
    while (op->areas > 1 && tk_local_buffer / op->areas < element)
        op->areas /= 2;
    op->piece_size = tk_local_buffer / op->areas / element * element;
    op->pieces = (uint32_t)tk_max((op->nbytes + op->piece_size - 1) / op->piece_size, 1);
}

static inline size_t bytes_of(const struct tk_local_op *op, uint32_t piece)
{
    return tk_min(op->piece_size, op->nbytes - piece * op->piece_size);
}

/* Where a member's piece lies in its channel. */
static char *area_of(const struct tk_local_op *op, uint32_t i, uint32_t piece)
{
    struct tk_local_channel *channel = op->local->members[i].at;
    if (op->nbytes <= tk_local_inline)
        return tk_local_slot_at(channel, op->ticket)->data;
    size_t area = tk_local_buffer / op->areas;
    return tk_local_buffer_at(channel, op->ticket) + piece % op->areas * area;
}

/* Large: not all pieces fit the buffer. Publishes where the bytes are; returns whether others map
 * that memory. */
static bool offer_place(const struct tk_local_op *op)
{
    struct tk_local_place place = {0};
    bool is_direct = tk_local_place_of(op->source, op->nbytes, &place);
    tk_copy_small(own_slot(op)->data, &place, sizeof(place));
    return is_direct;
}

/* Not all pieces fit the buffer: areas are used again, so readers report what they have consumed.
 * Pieces are whole elements, so this happens with fewer bytes than the buffer has. */
static inline bool is_large(const struct tk_local_op *op)
{
    return op->pieces > op->areas;
}

static struct tk_local_place place_of(const struct tk_local_op *op, uint32_t i)
{
    struct tk_local_place place = {0};
    if (is_large(op))
        tk_copy_small(&place, slot_of(op, i)->data, sizeof(place));
    return place;
}

/* ---- barrier */

/* Each member begins with the next one, so that not all read one line at once. */
static bool meet_wait(struct tk_local_op *op)
{
    uint32_t count = op->local->count;
    for (; op->at < count; op->at++) {
        uint32_t i = op->local->me + op->at;
        if (!has_published(op, i < count ? i : i - count, 1))
            return false;
    }
    return finish(op);
}

static bool meet_begin(struct tk_local_op *op)
{
    if (!is_free(op))
        return false;
    publish(op, 1);
    wake_others(op->local);
    op->at = 1;
    op->advance = meet_wait;
    return meet_wait(op);
}

static bool gather_wait(struct tk_local_op *op)
{
    for (; op->at < op->end; op->at++)
        if (!has_published(op, member_at(op, op->at), 1))
            return false;
    if (op->place != 0) {
        publish(op, 1);
        wake(op->local, parent_of(op));
    }
    return finish(op);
}

static bool gather_begin(struct tk_local_op *op)
{
    if (!is_free(op))
        return false;
    take_place(op);
    op->at = op->first;
    op->advance = gather_wait;
    return gather_wait(op);
}

static bool release_begin(struct tk_local_op *op)
{
    if (!is_free(op))
        return false;
    if (op->local->me != op->root) {
        if (!has_published(op, op->root, 1))
            return false;
        return finish(op);
    }
    publish(op, 1);
    wake_others(op->local);
    return finish(op);
}

static void then_release(struct tk_local_op *op)
{
    set_up(op, op->local, op->ticket, 0, release_begin);
}

void tk_local_meet(struct tk_local_op *op, struct tk_local *local, uint32_t ticket)
{
    bool is_flat = local->count <= tk_local_flat;
    set_up(op, local, ticket, 0, is_flat ? meet_begin : gather_begin);
    if (!is_flat)
        op->then = then_release;
}

void tk_local_gather(struct tk_local_op *op, struct tk_local *local, uint32_t ticket, uint32_t to)
{
    set_up(op, local, ticket, to, gather_begin);
}

void tk_local_release(struct tk_local_op *op, struct tk_local *local, uint32_t ticket,
                      uint32_t from)
{
    set_up(op, local, ticket, from, release_begin);
}

/* ---- broadcast */

static bool all_have_consumed(struct tk_local_op *op, uint32_t pieces)
{
    for (; op->at < op->local->count; op->at++)
        if (op->at != op->local->me && !has_consumed(op, op->at, pieces))
            return false;
    op->at = 0;
    return true;
}

static bool lend_wait(struct tk_local_op *op)
{
    return all_have_consumed(op, 1) && finish(op);
}

static void send_piece(struct tk_local_op *op)
{
    tk_copy(area_of(op, op->local->me, op->piece), op->source + op->piece * op->piece_size,
            bytes_of(op, op->piece));
    publish(op, ++op->piece);
    wake_others(op->local);
}

static bool send_pieces(struct tk_local_op *op)
{
    for (uint32_t n = 0; op->piece < op->pieces; n++) {
        if (n == step_pieces)
            return again(op);
        if (op->piece >= op->areas && !all_have_consumed(op, op->piece + 1 - op->areas))
            return false;
        send_piece(op);
    }
    return finish(op);
}

static bool send_begin(struct tk_local_op *op)
{
    if (!is_free(op))
        return false;
    op->at = 0;
    if (is_large(op) && offer_place(op)) {
        publish(op, 1);
        wake_others(op->local);
        op->advance = lend_wait;
    } else {
        op->advance = send_pieces;
    }
    return op->advance(op);
}

/* From memory of the root. */
static bool copy_directly(struct tk_local_op *op)
{
    const struct tk_local_place place = place_of(op, op->root);
    const char *from = tk_local_place_map(&op->local->members[op->root], &place);
    if (!from)
        return again(op);
    size_t begin = (size_t)op->piece * direct_piece;
    size_t n = tk_min(op->nbytes - begin, direct_piece);
    tk_copy_large(op->destination + begin, from + begin, n);
    op->piece++;
    if (begin + n < op->nbytes)
        return again(op);
    consume(op, 1);
    wake(op->local, op->root);
    return finish(op);
}

static void receive_piece(struct tk_local_op *op)
{
    tk_copy(op->destination + op->piece * op->piece_size, area_of(op, op->root, op->piece),
            bytes_of(op, op->piece));
    op->piece++;
    if (!is_large(op))
        return;
    consume(op, op->piece);
    wake(op->local, op->root);
}

static bool receive_pieces(struct tk_local_op *op)
{
    for (uint32_t n = 0; op->piece < op->pieces; n++) {
        if (n == step_pieces)
            return again(op);
        if (!has_published(op, op->root, op->piece + 1))
            return false;
        receive_piece(op);
    }
    return finish(op);
}

static bool receive_begin(struct tk_local_op *op)
{
    if (!is_free(op) || !has_published(op, op->root, 1))
        return false;
    op->advance = place_of(op, op->root).address ? copy_directly : receive_pieces;
    return op->advance(op);
}

static void broadcast(struct tk_local_op *op)
{
    bool is_root = op->local->me == op->root;
    set_up(op, op->local, op->ticket, op->root, is_root ? send_begin : receive_begin);
    cut(op, 1);
}

void tk_local_broadcast(struct tk_local_op *op, struct tk_local *local, uint32_t ticket,
                        uint32_t from, void *destination, const void *source, size_t nbytes)
{
    *op = (struct tk_local_op){.local = local,
                               .ticket = ticket,
                               .root = from,
                               .nbytes = nbytes,
                               .destination = destination,
                               .source = source};
    broadcast(op);
}

/* ---- reduction */

static char *reduce_target(const struct tk_local_op *op)
{
    if (op->place == 0)
        return op->destination + op->piece * op->piece_size;
    return area_of(op, op->local->me, op->piece);
}

/* Our own part. */
static bool reduce_begin_piece(struct tk_local_op *op)
{
    if (op->place != 0 && op->piece >= op->areas &&
        !has_consumed(op, parent_of(op), op->piece + 1 - op->areas))
        return false;
    char *to = reduce_target(op);
    const char *from = op->source + op->piece * op->piece_size;
    if (to != from)
        tk_copy(to, from, bytes_of(op, op->piece));
    op->at = op->first;
    return true;
}

/* Where the current piece of a child lies; NULL: not known yet. */
static const char *piece_below(const struct tk_local_op *op, uint32_t i)
{
    const struct tk_local_place place = place_of(op, i);
    if (!place.address)
        return area_of(op, i, op->piece);
    const char *from = tk_local_place_map(&op->local->members[i], &place);
    return from ? from + op->piece * op->piece_size : NULL;
}

static bool reduce_member(struct tk_local_op *op, uint32_t i)
{
    if (!has_published(op, i, op->piece + 1))
        return false;
    const char *from = piece_below(op, i);
    if (!from)
        return again(op);
    size_t count = op->pieces == 1 ? op->count : bytes_of(op, op->piece) / op->element;
    op->fn(from, reduce_target(op), count, op->cdata);
    return true;
}

static void reduce_end_piece(struct tk_local_op *op)
{
    op->piece++;
    op->at = 0;
    if (op->place != 0) {
        publish(op, op->piece);
        wake(op->local, parent_of(op));
    }
    if (is_large(op) && op->first < op->end) {
        consume(op, op->piece);
        wake_below(op);
    }
}

/* Children's places are above 0, so 0 means that the piece has not begun. */
static bool reduce_piece(struct tk_local_op *op)
{
    if (op->at == 0 && !reduce_begin_piece(op))
        return false;
    for (; op->at < op->end; op->at++)
        if (!reduce_member(op, member_at(op, op->at)))
            return false;
    reduce_end_piece(op);
    return true;
}

static bool reduce_pieces(struct tk_local_op *op)
{
    for (uint32_t n = 0; op->piece < op->pieces; n++) {
        if (n == step_pieces)
            return again(op);
        if (!reduce_piece(op))
            return false;
    }
    return finish(op);
}

static bool reduce_lend_wait(struct tk_local_op *op)
{
    return has_consumed(op, parent_of(op), op->pieces) && finish(op);
}

/* Only a leaf of the tree contributes its source unchanged. */
static bool reduce_lend(struct tk_local_op *op)
{
    if (op->place == 0 || !is_large(op))
        return false;
    if (op->first < op->end) {
        static const struct tk_local_place nowhere;
        tk_copy_small(own_slot(op)->data, &nowhere, sizeof(nowhere));
        return false;
    }
    return offer_place(op);
}

static bool reduce_begin(struct tk_local_op *op)
{
    if (!is_free(op))
        return false;
    take_place(op);
    op->at = 0;
    op->advance = reduce_pieces;
    if (reduce_lend(op)) {
        publish(op, op->pieces);
        wake(op->local, parent_of(op));
        op->advance = reduce_lend_wait;
    }
    return op->advance(op);
}

static bool reduce_alone(struct tk_local_op *op)
{
    if (op->destination != op->source)
        tk_copy(op->destination, op->source, op->nbytes);
    return true;
}

static void reduce_set_up(struct tk_local_op *op, struct tk_local *local, uint32_t ticket,
                          uint32_t root, const struct tk_local_reduction *how)
{
    *op = (struct tk_local_op){.nbytes = how->element * how->count,
                               .element = how->element,
                               .count = how->count,
                               .destination = how->destination,
                               .source = how->source,
                               .fn = how->fn,
                               .cdata = how->cdata};
    set_up(op, local, ticket, root, reduce_begin);
    if (local->count == 1)
        op->advance = reduce_alone;
    cut(op, how->element);
}

void tk_local_reduce(struct tk_local_op *op, struct tk_local *local, uint32_t ticket, uint32_t to,
                     const struct tk_local_reduction *how)
{
    reduce_set_up(op, local, ticket, to, how);
}

/* ---- reduction to all */

/* All combine the same values in the order of members. */
static void combine_all(const struct tk_local_op *op)
{
    tk_copy(op->destination, area_of(op, 0, 0), op->nbytes);
    for (uint32_t i = 1; i < op->local->count; i++)
        op->fn(area_of(op, i, 0), op->destination, op->count, op->cdata);
}

static bool to_all_wait(struct tk_local_op *op)
{
    uint32_t count = op->local->count;
    for (; op->at < count; op->at++) {
        uint32_t i = op->local->me + op->at;
        if (!has_published(op, i < count ? i : i - count, 1))
            return false;
    }
    combine_all(op);
    return finish(op);
}

static bool to_all_begin(struct tk_local_op *op)
{
    if (!is_free(op))
        return false;
    tk_copy(area_of(op, op->local->me, 0), op->source, op->nbytes);
    publish(op, 1);
    wake_others(op->local);
    op->at = 1;
    op->advance = to_all_wait;
    return to_all_wait(op);
}

static void then_broadcast(struct tk_local_op *op)
{
    op->source = op->destination;
    broadcast(op);
}

void tk_local_reduce_to_all(struct tk_local_op *op, struct tk_local *local, uint32_t ticket,
                            const struct tk_local_reduction *how)
{
    reduce_set_up(op, local, ticket, 0, how);
    if (local->count == 1)
        return;
    if (tk_local_to_all_tickets(local, op->nbytes) == 1)
        op->advance = to_all_begin;
    else
        op->then = then_broadcast;
}
