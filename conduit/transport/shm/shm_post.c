/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending to neighbours, into the receiver's ring for requests or for replies. A message
 * prepared ahead is built in a buffer of our own and copied at its Commit: a claimed but empty
 * slot of the ring would block all messages behind it. Owns those buffers, as many as threads
 * prepare at once. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/report.h"
#include "transport/shm/shm_private.h"

struct lent {
    struct tk_pool_item item;
    _Alignas(tk_am_buffer_alignment) char data[tk_am_buffer_size];
};

static struct tk_pool buffers = {.lock = TK_LOCK_INIT};

/* NULL: the neighbour can't be reached; the job ends. */
static inline struct tk_shm_conn *link_to(struct tk_peer *peer)
{
    struct tk_shm_conn *link = __atomic_load_n(&peer->connection, __ATOMIC_ACQUIRE);
    tk_if_unlikely(!link)
    {
        link = tk_shm_conn_make(peer);
        if (!link)
            tk_shm_lose(peer);
    }
    return link;
}

static inline struct tk_ring_out *ring_of(struct tk_shm_conn *link, uint8_t kind)
{
    return kind == TK_REPLY ? &link->replies : &link->requests;
}

enum tk_status tk_shm_send(struct tk_peer *peer, struct tk_outgoing *m)
{
    struct tk_shm_conn *link = link_to(peer);
    tk_if_unlikely(!link) return TK_OK;
    struct tk_ring_out *ring = ring_of(link, m->head->kind);
    enum tk_status status = tk_ring_send(ring, m->head, m->head_size, m->payload, m->nbytes);
    tk_doorbell_ring(link->bell);
    return status;
}

/* Another sender took the slot, or it must be waited for. */
static enum tk_status __attribute__((noinline))
send_short_slowly(struct tk_peer *peer, struct tk_message_head head, const int32_t *args,
                  tk_short_busy *busy)
{
    uint64_t ticket;
    struct tk_shm_conn *link = link_to(peer);
    tk_if_unlikely(!link) return TK_OK;
    struct tk_ring_out *ring = ring_of(link, head.kind);
    if (head.nargs > tk_shm_slot_args)
        return tk_send_short_whole(peer, head, args, busy);
    if (!tk_ring_reserve(ring, 0, &ticket))
        return busy ? busy(peer, head, args) : TK_BUSY;
    struct tk_ring_slot *slot = tk_ring_slot(ring->shared, ticket, ring->mask);
    memcpy(slot->blob, args, head.nargs * sizeof(*args));
    tk_ring_store_word(ring, slot, ticket, tk_tag(head.kind == TK_REPLY, head.nargs, head.handler));
    tk_doorbell_ring(link->bell);
    return TK_OK;
}

static enum tk_status __attribute__((noinline))
send_small_slowly(struct tk_peer *peer, unsigned tag, uint64_t args, tk_small_busy *busy)
{
    const int32_t both[] = {(int32_t)args, (int32_t)(args >> 32)};
    enum tk_status status = send_short_slowly(peer, tk_tag_head(tag), both, NULL);
    return status == TK_BUSY && busy ? busy(peer, tag, args) : status;
}

/* Rare cases leave by tail jumps, so that the common path saves no registers for them. */
enum tk_status tk_shm_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                 tk_small_busy *busy)
{
    uint64_t ticket;
    struct tk_shm_conn *link = __atomic_load_n(&peer->connection, __ATOMIC_ACQUIRE);
    tk_if_unlikely(!link) return send_small_slowly(peer, tag, args, busy);
    struct tk_ring_out *ring = tag & tk_tag_reply ? &link->replies : &link->requests;
    struct tk_ring_shared *shared = ring->shared;
    tk_if_unlikely(!tk_ring_try_slot(ring, &ticket)) return send_small_slowly(link->peer, tag, args,
                                                                              busy);
    struct tk_ring_slot *slot = tk_ring_slot(shared, ticket, ring->mask);
    int32_t *to = (int32_t *)(void *)slot->blob;
    to[0] = (int32_t)args;
    to[1] = (int32_t)(args >> 32);
    tk_ring_store_word(ring, slot, ticket, tag);
    tk_doorbell_ring(link->bell);
    return TK_OK;
}

enum tk_status tk_shm_send_short(struct tk_peer *peer, struct tk_message_head head,
                                 const int32_t *args, tk_short_busy *busy)
{
    uint64_t ticket;
    struct tk_shm_conn *link = link_to(peer);
    tk_if_unlikely(!link) return TK_OK;
    struct tk_ring_out *ring = ring_of(link, head.kind);
    tk_if_unlikely(head.nargs > tk_shm_slot_args ||
                   !tk_ring_try_slot(ring, &ticket)) return send_short_slowly(peer, head, args,
                                                                              busy);
    struct tk_ring_slot *slot = tk_ring_slot(ring->shared, ticket, ring->mask);
    int32_t *to = (int32_t *)(void *)slot->blob;
    for (unsigned i = 0; i < head.nargs; i++)
        to[i] = args[i];
    tk_ring_store_word(ring, slot, ticket, tk_tag(head.kind == TK_REPLY, head.nargs, head.handler));
    tk_doorbell_ring(link->bell);
    return TK_OK;
}

/* Arguments of a Medium whose head stays in its slot. */
enum { medium_args = (tk_ring_head_max - sizeof(struct tk_message_head)) / sizeof(int32_t) };

static inline char *build_head(char *at, uint64_t head, const int32_t *args)
{
    const struct tk_message_head whole = tk_head_of_number(head);
    const unsigned nargs = tk_head_nargs(head);
    int32_t *to = (int32_t *)(void *)(at + sizeof(whole));
    memcpy(at, &whole, sizeof(whole));
    for (unsigned i = 0; i < nargs; i++) {
        to[i] = args[i];
        tk_compute_again(i); /* otherwise compilers turn the loop into a string instruction */
    }
    if (nargs & 1) /* padding must not carry an older message to the receiver */
        to[nargs] = 0;
    return at + tk_short_size(nargs);
}

static enum tk_status __attribute__((noinline))
send_medium_in_slot(struct tk_peer *peer, uint64_t head, const int32_t *args, const void *payload,
                    size_t nbytes, tk_medium_busy *busy)
{
    uint64_t ticket;
    struct tk_shm_conn *link = __atomic_load_n(&peer->connection, __ATOMIC_RELAXED);
    struct tk_ring_out *ring = tk_head_is_reply(head) ? &link->replies : &link->requests;
    tk_if_unlikely(!tk_ring_try_slot(ring, &ticket)) return tk_send_medium_whole(
        peer, head, args, payload, nbytes, busy);
    struct tk_ring_slot *slot = tk_ring_slot(ring->shared, ticket, ring->mask);
    tk_copy_small(build_head(slot->blob, head, args), payload, nbytes);
    tk_ring_store_word(ring, slot, ticket, tk_short_size(tk_head_nargs(head)) + nbytes);
    tk_doorbell_ring(link->bell);
    return TK_OK;
}

/* Kept short: for a payload of 1 KiB the code before the copy costs as much as the copy. The head
 * is built in the slot, and rare cases leave by tail jumps. */
enum tk_status tk_shm_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                  const void *payload, size_t nbytes, tk_medium_busy *busy)
{
    uint64_t ticket;
    struct tk_shm_conn *link = __atomic_load_n(&peer->connection, __ATOMIC_ACQUIRE);
    const unsigned nargs = tk_head_nargs(head);
    const size_t head_size = tk_short_size(nargs);
    const uint64_t lines = (nbytes + tk_ring_line - 1) / tk_ring_line;
    tk_if_unlikely(!link || nargs > medium_args) return tk_send_medium_whole(peer, head, args,
                                                                             payload, nbytes, busy);
    if (head_size + nbytes <= tk_ring_slot_max)
        return send_medium_in_slot(peer, head, args, payload, nbytes, busy);
    struct tk_ring_out *ring = tk_head_is_reply(head) ? &link->replies : &link->requests;
    tk_if_unlikely(!tk_ring_try_lines(ring, lines, &ticket)) return tk_send_medium_whole(
        link->peer, head, args, payload, nbytes, busy);
    struct tk_ring_slot *slot = tk_ring_slot(ring->shared, ticket, ring->mask);
    const uint64_t word = tk_ring_word(ring, ticket, tk_ring_slot_max + lines);
    struct tk_doorbell *bell = link->bell;
    char *to = tk_ring_lines_at(ring, ticket);
    tk_ring_own(to, lines);
    build_head(tk_ring_note_at(slot, head_size, nbytes), head, args);
    memcpy(to, payload, nbytes);
    atomic_store_explicit(&slot->word, word, memory_order_release);
    tk_doorbell_ring(bell);
    return TK_OK;
}

void tk_shm_wake(uint32_t rank)
{
    struct tk_doorbell *bell = NULL;
    tk_if_unlikely(rank == tk_peers.me)
    {
        bell = tk_shm_bell();
    }
    else
    {
        const struct tk_shm_conn *link = link_to(tk_peer(rank));
        bell = link ? link->bell : NULL;
    }
    if (bell)
        tk_doorbell_ring(bell);
}

/* ---- messages in two steps */

static struct lent *borrow_buffer(void)
{
    struct lent *buffer = tk_pool_take(&buffers);
    if (!buffer && !(buffer = aligned_alloc(tk_am_buffer_alignment, sizeof(*buffer))))
        tk_panic("out of memory for a message of %d bytes", tk_message_max);
    return buffer;
}

enum { head_lines = 2, message_lines = tk_message_max / tk_ring_line };

_Static_assert(tk_message_head_max <= head_lines * tk_ring_line, "any head fits its lines");

/* For a Long that must be immediate: claims the slot of its head before its payload is put.
 * Everything that may take long is done before the claim, because messages of other senders wait
 * behind that slot. */
static enum tk_status claim_head(struct tk_am_reservation *reservation, struct tk_ring_out *ring)
{
    tk_shm_addr_offset(reservation->peer, 0);
    if (!tk_ring_reserve(ring, head_lines, &reservation->ticket))
        return TK_BUSY;
    reservation->tx = ring;
    return TK_OK;
}

/* A caller that may not wait must learn here that a ring is full: at the Commit it is too late. */
enum tk_status tk_shm_reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    struct tk_shm_conn *link = link_to(reservation->peer);
    struct tk_ring_out *ring = link ? ring_of(link, reservation->kind) : NULL;
    reservation->tx = reservation->buffer = NULL;
    if (ring && place && !buffer)
        return claim_head(reservation, ring);
    if (ring && !tk_ring_has_space(ring, buffer ? message_lines : head_lines))
        return TK_BUSY;
    if (!buffer)
        return TK_OK;
    struct lent *lent = borrow_buffer();
    reservation->tx = lent;
    reservation->buffer = lent->data;
    return TK_OK;
}

/* No link: the job ends, and the message is dropped. */
enum tk_status tk_shm_reserve_place(struct tk_am_reservation *reservation)
{
    struct tk_shm_conn *link = link_to(reservation->peer);
    return link ? claim_head(reservation, ring_of(link, reservation->kind)) : TK_OK;
}

void tk_shm_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *ticket)
{
    (void)peer;
    tk_ring_queue_leave(ticket);
}

void tk_shm_release(struct tk_am_reservation *reservation, bool keep_credit)
{
    (void)keep_credit;
    if (reservation->buffer)
        tk_pool_give(&buffers, reservation->tx);
    reservation->tx = NULL;
}

enum tk_status tk_shm_send_reserved(struct tk_am_reservation *reservation, struct tk_outgoing *m)
{
    if (reservation->tx && !reservation->buffer) {
        tk_ring_fill(reservation->tx, reservation->ticket, head_lines, m->head, m->head_size, NULL,
                     0);
        tk_doorbell_ring(link_to(reservation->peer)->bell);
    } else if (tk_shm_send(reservation->peer, m) == TK_BUSY) {
        return TK_BUSY;
    }
    tk_shm_release(reservation, false);
    return TK_OK;
}
