/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See ring.h. Rare cases of sending: into a ring that looks full, and messages larger than a slot.
 * No lock. */
#include "config.h"

#include "base/check.h"
#include "transport/shm/ring.h"
#include "transport/shm/ring_queue.h"

/* Reads the true head, then tail again: a tail older than the head is meaningless. */
static bool look_again(struct tk_ring_out *out, uint64_t *tail, uint64_t lines)
{
    uint64_t head = tk_ring_learn_head(out);
    *tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    return tk_ring_fits(out, head, *tail, lines);
}

bool tk_ring_has_space(struct tk_ring_out *out, uint64_t lines)
{
    uint64_t tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&out->head, memory_order_acquire);
    return tk_ring_fits(out, head, tail, lines) || look_again(out, &tail, lines) ||
           tk_ring_queue_reserve(out, lines, NULL);
}

static inline bool __attribute__((always_inline))
ring_reserve(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    uint64_t tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    uint64_t head, next;
    for (;;) {
        head = atomic_load_explicit(&out->head, memory_order_acquire); /* as in ring.h */
        tk_if_unlikely(!tk_ring_fits(out, head, tail, lines) &&
                       !look_again(out, &tail, lines)) return tk_ring_queue_reserve(out, lines,
                                                                                    ticket);
        next = tk_ring_advance(tail, lines);
        *ticket = tail;
        if (atomic_compare_exchange_weak_explicit(&out->shared->tail, &tail, next,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
        if (TK_THREADED)
            tk_ring_stand_back();
        tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    }
}

bool tk_ring_reserve(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    return ring_reserve(out, lines, ticket);
}

/* A head that is too long for the slot goes in front of its payload. */
static inline void __attribute__((always_inline))
ring_fill(const struct tk_ring_out *out, uint64_t ticket, uint64_t lines, const void *head,
          size_t head_size, const void *payload, size_t nbytes)
{
    struct tk_ring_slot *slot = tk_ring_slot(out->shared, ticket, out->mask);
    char *to = tk_ring_lines_at(out, ticket);
    struct tk_ring_note note = {.nbytes = (uint32_t)nbytes, .head = (uint32_t)head_size};
    tk_ring_own(to, lines);
    if (head_size > tk_ring_head_max) {
        note = (struct tk_ring_note){.nbytes = (uint32_t)(head_size + nbytes)};
        tk_copy(to, head, head_size);
        to += head_size;
    }
    tk_copy(to, payload, nbytes);
    tk_copy_small(slot->blob, &note, sizeof(note));
    tk_copy_small(slot->blob + sizeof(note), head, note.head);
    tk_ring_store_word(out, slot, ticket, tk_ring_slot_max + lines);
}

void tk_ring_fill(const struct tk_ring_out *out, uint64_t ticket, uint64_t lines, const void *head,
                  size_t head_size, const void *payload, size_t nbytes)
{
    ring_fill(out, ticket, lines, head, head_size, payload, nbytes);
}

static enum tk_status __attribute__((noinline))
send_in_slot(struct tk_ring_out *out, const void *head, size_t head_size, const void *payload,
             size_t nbytes)
{
    uint64_t ticket;
    char *blob = tk_ring_claim(out, &ticket);
    if (!blob)
        return TK_BUSY;
    tk_copy_small(blob, head, head_size);
    tk_copy_small(blob + head_size, payload, nbytes);
    tk_ring_publish(out, ticket, head_size + nbytes);
    return TK_OK;
}

enum tk_status tk_ring_send_slowly(struct tk_ring_out *out, const void *head, size_t head_size,
                                   const void *payload, size_t nbytes)
{
    uint64_t ticket;
    tk_if_unlikely(head_size + nbytes <= tk_ring_slot_max) return send_in_slot(out, head, head_size,
                                                                               payload, nbytes);
    uint64_t lines = tk_ring_lines_for(head_size, nbytes);
    TK_CHECK(lines * tk_ring_line <=
                 tk_ring_message_max((uint32_t)tk_ring_out_slots(out), (uint32_t)out->lines),
             "a message of %zu bytes is larger than half of a ring of %u lines", head_size + nbytes,
             (unsigned)out->lines);
    tk_if_unlikely(!ring_reserve(out, lines, &ticket)) return TK_BUSY;
    ring_fill(out, ticket, lines, head, head_size, payload, nbytes);
    return TK_OK;
}
