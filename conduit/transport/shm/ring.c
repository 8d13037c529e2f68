/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See ring.h. Sizes, opening, and giving space back in PAR. Owns the array `done`. */
#include "config.h"

#include <stdlib.h>

#include "base/report.h"
#include "common/clock.h"
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

/* Half of the lines: seven eighths are free at rest, and a sender of large messages must find space
 * soon among senders of small ones. */
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

/* The bit that counts eighths of the slots, and all bits that count eighths of the lines. */
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
    for (uint64_t i = 0; i < slots; i++) /* the message of this slot never ends at this position */
        atomic_store_explicit(tk_ring_done_word(in, start + i * TK_RING_SLOT),
                              start + i * TK_RING_SLOT, memory_order_relaxed);
    return TK_OK;
}

void tk_ring_in_close(struct tk_ring_in *in)
{
    free((void *)in->done);
    in->done = NULL;
}

/* A line that two CPUs write moves between them for every message, which takes several times as
 * long as the message. While one thread stands back, the other moves some dozens of messages with
 * the line at hand. Longer pays in floods, but not where threads send a few messages at a time. */
static const uint64_t stand_back = TK_SECOND / 5000000;

void tk_ring_stand_back(void)
{
    const uint64_t begin = tk_now();
    while (tk_now() - begin < stand_back)
        continue;
}

/* The position behind the message at `position`. While the message is in use, this is a position of
 * another lap. */
static uint64_t done_behind(const struct tk_ring_in *in, uint64_t position, memory_order order)
{
    return atomic_load_explicit(tk_ring_done_word(in, position), order);
}

static bool is_behind(uint64_t position, uint64_t behind)
{
    return ((position + TK_RING_SLOT) ^ behind) <= TK_RING_LINES;
}

/* Moves `finished` up to the first message that is still in use; with the lock. Acquire: senders
 * overwrite what the threads that stored "done" have read. */
static uint64_t follow(struct tk_ring_in *in)
{
    uint64_t old = atomic_load_explicit(&in->finished, memory_order_acquire);
    uint64_t finished = old, behind;
    while (behind = done_behind(in, finished, memory_order_acquire), is_behind(finished, behind))
        finished = behind;
    if (finished != old) /* otherwise another thread moves it */
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

/* Trylock: if another thread holds the lock, that thread gives the space back, or the next poll
 * that finds the ring empty does. Clears the flag `behind` first: acquire then shows what the
 * threads that raised it had taken and finished. The flag stays raised while messages in between
 * are in use. */
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

/* Raises the flag before it tries the lock: another thread may be giving back, and have passed the
 * messages that we finished. */
void tk_ring_retire(struct tk_ring_in *in)
{
    atomic_store_explicit(&in->behind, true, memory_order_release);
    tk_ring_retire_rest(in);
}
