/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of one process that wait for room in a neighbour's ring, in PAR; the rules are in
 * ring_queue.c. The turns of a process are its own: the ring is shared with others, which know
 * nothing of them. */
#ifndef TK_RING_QUEUE_H
#define TK_RING_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "transport/wait_ticket.h"

struct tk_ring_out;
struct tk_wait_ticket;

struct tk_ring_queue {
    TK_UNLOCKED uint64_t spared;  /* from this position on one message may go without a turn */
    TK_UNLOCKED uint64_t kept;    /* slots and lines, a position */
    tk_lock_t lock;               /* guards the words below, and the one above */
    TK_UNLOCKED uint32_t waiting; /* threads in line */
    TK_UNLOCKED uint32_t served;  /* threads that left the line */
    TK_UNLOCKED uint32_t largest_lines; /* that one in line asked for since it was last empty */
};

/* When no room was found beside those that wait: this thread's turn, if its wait is up again and
 * there is room for it; else it stands in line from now on. Also what is beyond the room that is
 * kept, for threads that do not wait. ticket: NULL: only looks. Thread-safe. */
bool tk_ring_queue_reserve(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket);

/* The wait is over, with room or without. Thread-safe. */
void tk_ring_queue_leave(struct tk_wait_ticket *ticket);

#endif
