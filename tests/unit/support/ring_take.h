/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Taking any message from a ring as one step, of those that polls (transport/shm/shm_poll.c) take
 * one by one. */
#ifndef RING_TAKE_H
#define RING_TAKE_H

#include "transport/shm/ring.h"

/* Is tk_ring_take() worth calling? In PAR also if there is space to return that the last thread may
 * not have returned. Thread-safe; a guess, as above. */
static inline bool tk_ring_ready(const struct tk_ring_in *in)
{
    struct tk_ring_look at;
    return tk_ring_look(in, &at) || tk_ring_is_behind(in);
}

/* The next message, where it lies; false: there is none, or another thread is about to take it.
 * Thread-safe. */
static inline bool tk_ring_take(struct tk_ring_in *in, struct tk_ring_item *item)
{
    struct tk_ring_look at;
    if (!tk_ring_begin_next(in, &at)) {
        tk_ring_retire_left(in);
        return false;
    }
    tk_ring_pass_any(in, &at, item);
    return true;
}

#endif
