/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of one process that wait for space in a neighbour's ring, in PAR; the rules are in
 * ring_queue.c. Each process has its own queue: other processes that use the ring do not see it. */
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
    TK_UNLOCKED uint64_t spared;  /* from this position on one message may go without a ticket */
    TK_UNLOCKED uint64_t kept;    /* slots and lines, a position */
    tk_lock_t lock;               /* guards the words below, and the one above */
    TK_UNLOCKED uint32_t waiting; /* threads in the queue */
    TK_UNLOCKED uint32_t served;  /* threads that left the queue */
    TK_UNLOCKED uint32_t largest_lines; /* largest request since the queue was empty */
};

/* Call when there is no space besides what is kept. Reserves if this thread is in the queue, tries
 * again and its message fits; a thread that is not in the queue joins it. Threads that do not wait
 * may take what exceeds the kept space. ticket NULL: only looks. Thread-safe. */
bool tk_ring_queue_reserve(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket);

/* The thread stops waiting, whether it found space or not. Thread-safe. */
void tk_ring_queue_leave(struct tk_wait_ticket *ticket);

#endif
