/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See ring.h. What is rare: opening, a ring that looks full, sending what is larger than a slot,
 * and space given back in PAR. Owns the array of what is done. */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/report.h"
#include "transport/shm/ring.h"

static bool power_of_two(uint64_t value)
{
    return value && !(value & (value - 1));
}

bool tk_ring_legal(uint64_t slots, uint64_t lines)
{
    return power_of_two(slots) && slots >= 2 && slots <= tk_ring_slots_max && power_of_two(lines) &&
           lines >= 8 && lines <= tk_ring_lines_max;
}

size_t tk_ring_bytes(uint32_t slots)
{
    return sizeof(struct tk_ring_shared) + slots * sizeof(struct tk_ring_slot);
}

/* Half of the lines: seven eighths are free at rest, and one sender of large messages among others
 * of small ones shall find room before long. */
static uint64_t lines_most(uint64_t slots, uint64_t lines)
{
    return tk_min(lines / 2, TK_RING_SLOT / slots - 1);
}

size_t tk_ring_message_max(uint32_t slots, uint32_t lines)
{
    return lines_most(slots, lines) * tk_ring_line;
}

void tk_ring_format(struct tk_ring_shared *shared, uint32_t slots, uint64_t start)
{
    uint64_t lap = start & ~TK_RING_LINES;
    atomic_store_explicit(&shared->tail, start, memory_order_relaxed);
    atomic_store_explicit(&shared->head, start, memory_order_relaxed);
    for (uint32_t i = 0; i < slots; i++, lap += TK_RING_SLOT) {
        struct tk_ring_slot *slot = tk_ring_slot(shared, lap, (slots - 1) * tk_ring_line);
        atomic_store_explicit(&slot->word, tk_ring_seq(lap) - slots, memory_order_relaxed);
    }
}

void tk_ring_out_open(struct tk_ring_out *out, struct tk_ring_shared *shared, char *payload,
                      uint32_t slots, uint32_t lines, uint16_t from)
{
    *out = (struct tk_ring_out){.shared = shared,
                                .payload = payload,
                                .mask = (uint64_t)(slots - 1) * tk_ring_line,
                                .limit = slots * TK_RING_SLOT,
                                .from = (uint64_t)from << 32,
                                .lines = lines};
    uint64_t head = atomic_load_explicit(&shared->head, memory_order_acquire);
    atomic_store_explicit(&out->head, head, memory_order_release);
}

/* The bit that counts eighths of the slots, and all that count eighths of the lines. */
static uint64_t eighths(uint64_t slots, uint64_t lines)
{
    return tk_max(slots / 8, 1) * TK_RING_SLOT | (TK_RING_LINES & ~(lines / 8 - 1));
}

enum tk_status tk_ring_in_open(struct tk_ring_in *in, struct tk_ring_shared *shared, char *payload,
                               uint32_t slots, uint32_t lines)
{
    uint64_t start = atomic_load_explicit(&shared->head, memory_order_relaxed);
    *in = (struct tk_ring_in){.shared = shared,
                              .payload = payload,
                              .mask = (uint64_t)(slots - 1) * tk_ring_line,
                              .lines = lines,
                              .places = slots - 1,
                              .within = tk_max(slots / 8, 1) * TK_RING_SLOT - TK_RING_SLOT,
                              .due = eighths(slots, lines),
                              .lines_most = lines_most(slots, lines)};
    tk_poke(&in->seq, tk_ring_seq(start));
    tk_poke(&in->next, (uintptr_t)tk_ring_slot(shared, start, in->mask));
    tk_lock_init(&in->taking);
    tk_lock_init(&in->lock);
    atomic_store_explicit(&in->taken, start, memory_order_relaxed);
    atomic_store_explicit(&in->finished, start, memory_order_relaxed);
    atomic_store_explicit(&in->retired, start, memory_order_relaxed);
    if (!TK_THREADED)
        return TK_OK;
    size_t bytes = tk_ring_done_bytes(slots, true);
    in->done = (_Atomic uint64_t *)malloc(bytes);
    if (!in->done) {
        tk_log_error("no memory for %zu bytes beside a ring of messages", bytes);
        return TK_FAIL;
    }
    for (uint64_t i = 0; i < slots; i++) /* never the position behind a slot of the first lap */
        atomic_store_explicit(tk_ring_done_word(in, start + i * TK_RING_SLOT),
                              start + i * TK_RING_SLOT, memory_order_relaxed);
    return TK_OK;
}

void tk_ring_in_close(struct tk_ring_in *in)
{
    free((void *)in->done);
    in->done = NULL;
}

/* The true head, and once more tail: one from before that head says nothing. */
static bool look_again(struct tk_ring_out *out, uint64_t *tail, uint64_t lines)
{
    uint64_t head = atomic_load_explicit(&out->shared->head, memory_order_acquire);
    if (head != atomic_load_explicit(&out->head, memory_order_relaxed))
        atomic_store_explicit(&out->head, head, memory_order_release);
    *tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    return tk_ring_fits(out, head, *tail, lines);
}

bool tk_ring_has_room(struct tk_ring_out *out, uint64_t lines)
{
    uint64_t tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&out->head, memory_order_acquire);
    return tk_ring_fits(out, head, tail, lines) || look_again(out, &tail, lines);
}

static inline bool __attribute__((always_inline))
ring_reserve(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    uint64_t tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    uint64_t head, next;
    do {
        head = atomic_load_explicit(&out->head, memory_order_acquire); /* as in ring.h */
        tk_if_unlikely(!tk_ring_fits(out, head, tail, lines) &&
                       !look_again(out, &tail, lines)) return false;
        next = tk_ring_advance(tail, lines);
    } while (!atomic_compare_exchange_weak_explicit(&out->shared->tail, &tail, next,
                                                    memory_order_relaxed, memory_order_relaxed));
    *ticket = tail;
    return true;
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
    TK_CHECK(lines <= lines_most(out->limit / TK_RING_SLOT, out->lines),
             "a message of %zu bytes is larger than half of a ring of %u lines", head_size + nbytes,
             (unsigned)out->lines);
    tk_if_unlikely(!ring_reserve(out, lines, &ticket)) return TK_BUSY;
    ring_fill(out, ticket, lines, head, head_size, payload, nbytes);
    return TK_OK;
}

/* The position behind the message at `position`, or that of another lap while it is in use. */
static uint64_t done_behind(const struct tk_ring_in *in, uint64_t position, memory_order order)
{
    return atomic_load_explicit(tk_ring_done_word(in, position), order);
}

static bool is_behind(uint64_t position, uint64_t behind)
{
    return ((position + TK_RING_SLOT) ^ behind) <= TK_RING_LINES;
}

/* As far as messages are done with, with the lock. Acquire: senders write over what the threads
 * that say "done" have read. */
static uint64_t follow(struct tk_ring_in *in)
{
    uint64_t old = atomic_load_explicit(&in->finished, memory_order_acquire);
    uint64_t finished = old, behind;
    while (behind = done_behind(in, finished, memory_order_acquire), is_behind(finished, behind))
        finished = behind;
    if (finished != old) /* else it is another thread's to move */
        atomic_store_explicit(&in->finished, finished, memory_order_release);
    return finished;
}

static uint64_t retire_locked(struct tk_ring_in *in)
{
    uint64_t finished = follow(in);
    if (finished != atomic_load_explicit(&in->retired, memory_order_relaxed)) {
        atomic_store_explicit(&in->retired, finished, memory_order_relaxed);
        atomic_store_explicit(&in->shared->head, finished, memory_order_release);
    }
    return finished;
}

/* Trylock: otherwise the holder of the lock, or the next poll that finds the ring empty, does it.
 * The flag that there is something to be given back is cleared first, and what the threads that
 * raised it had taken and done is seen with it (acquire); it stays where messages in between are
 * not done with.
 */
void tk_ring_retire_rest(struct tk_ring_in *in)
{
    uint64_t retired = atomic_load_explicit(&in->retired, memory_order_relaxed);
    uint64_t finished = atomic_load_explicit(&in->finished, memory_order_relaxed);
    if ((finished == retired &&
         !is_behind(retired, done_behind(in, retired, memory_order_relaxed))) ||
        !tk_trylock(&in->lock))
        return;
    atomic_exchange_explicit(&in->behind, false, memory_order_acquire);
    retired = retire_locked(in);
    if (tk_ring_ends_eighth(in, retired, atomic_load_explicit(&in->taken, memory_order_relaxed)))
        atomic_store_explicit(&in->behind, true, memory_order_relaxed);
    tk_unlock(&in->lock);
}

/* Says so before it tries: others may be at work and past what we have done. */
void tk_ring_retire(struct tk_ring_in *in)
{
    atomic_store_explicit(&in->behind, true, memory_order_release);
    tk_ring_retire_rest(in);
}
