/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns: how threads that wait for room to send keep their order. One is made by who waits
 * (progress/wait.c) and used by the transport that has no room. Each belongs to its thread. */
#ifndef TK_WAIT_TICKET_H
#define TK_WAIT_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/mode.h"

/* A wait of a thread for room to send, and its place among those that wait for the same. The waiter
 * makes it, on its stack; the transport fills in the place. */
struct tk_wait_ticket {
    struct tk_wait_ticket *outer; /* the wait in which this one began: it goes on after it */
    const void *at;               /* used by the transport only: whose line it is */
    uint32_t number;              /* used by the transport only */
    uint16_t queue;               /* used by the transport only; 0: it stands in none */
    bool is_up; /* it tries again now; else what it serves meanwhile sends something */
};
extern TK_HIDDEN TK_PER_THREAD struct tk_wait_ticket
    *tk_wait_ticket; /* in PAR; the innermost, or NULL */

#endif
