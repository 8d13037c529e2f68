/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of one thread on their way to the file: written by that thread, read by the holder of the
 * lock of the file (write.c). No lock; an event that finds no space is counted and dropped, so that
 * a slow disk never stops the job. */
#ifndef TK_TRACE_RING_H
#define TK_TRACE_RING_H

#include <stdatomic.h>
#include <string.h>

#include "trace/event.h"

/* 56 bytes each. */
enum { tk_trace_ring_slots = 16384 };

struct tk_trace_ring {
    _Atomic uint64_t written; /* slots since the start, by the thread */
    _Atomic uint64_t lost;    /* events, by the thread */
    _Atomic uint64_t read;    /* slots, by the reader */
    uint64_t lost_reported;   /* by the reader */
    uint32_t thread;
    struct tk_trace_ring *next; /* list of all */
    _Atomic(bool) is_idle;      /* its thread has ended: the next new thread may take it */
    struct tk_trace_event slots[tk_trace_ring_slots];
};

static inline struct tk_trace_event *tk_trace_ring_slot(struct tk_trace_ring *ring, uint64_t at)
{
    return &ring->slots[at % tk_trace_ring_slots];
}

/* `text` may be NULL; a list of rails includes its NUL. Returns the number of slots then in use. */
static inline uint64_t tk_trace_ring_add(struct tk_trace_ring *ring, struct tk_trace_event event,
                                         const char *text, size_t length)
{
    uint64_t at = atomic_load_explicit(&ring->written, memory_order_relaxed);
    uint64_t used = at - atomic_load_explicit(&ring->read, memory_order_acquire);
    size_t more = (length + sizeof(event) - 1) / sizeof(event);
    if (used + 1 + more > tk_trace_ring_slots) {
        atomic_store_explicit(&ring->lost,
                              atomic_load_explicit(&ring->lost, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        return used;
    }
    event.slots = (uint8_t)more;
    if (!text)
        more = 0;
    else if (!event.has_rails)
        event.nbytes = length;
    *tk_trace_ring_slot(ring, at) = event;
    for (size_t i = 0; i < more; i++) {
        size_t part = length - i * sizeof(event);
        memcpy(tk_trace_ring_slot(ring, at + 1 + i), text + i * sizeof(event),
               part < sizeof(event) ? part : sizeof(event));
    }
    atomic_store_explicit(&ring->written, at + 1 + more, memory_order_release);
    return used + 1 + more;
}

/* Takes the oldest event; of its text up to `size - 1` bytes and a NUL. False: there is none. */
static inline bool tk_trace_ring_take(struct tk_trace_ring *ring, struct tk_trace_event *event,
                                      char *text, size_t size)
{
    uint64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed);
    if (at == atomic_load_explicit(&ring->written, memory_order_acquire))
        return false;
    *event = *tk_trace_ring_slot(ring, at);
    size_t length = event->slots ? event->nbytes : 0, done = 0;
    if (event->has_rails)
        length = event->slots * sizeof(*event);
    if (length > size - 1)
        length = size - 1;
    for (unsigned i = 0; done < length; i++) {
        size_t part = length - done < sizeof(*event) ? length - done : sizeof(*event);
        memcpy(text + done, tk_trace_ring_slot(ring, at + 1 + i), part);
        done += part;
    }
    text[length] = '\0';
    atomic_store_explicit(&ring->read, at + 1 + event->slots, memory_order_release);
    return true;
}

#endif
