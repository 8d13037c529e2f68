/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tickets keep the order of threads that wait for space to send. A waiting thread makes one
 * (progress/wait.c), and the transport that lacks the space uses it. Each belongs to its thread. */
#ifndef TK_WAIT_TICKET_H
#define TK_WAIT_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/mode.h"

/* A thread's wait for space to send, and its position among the waits for the same space. The
 * waiter makes it on its stack; the transport fills in the position. */
struct tk_wait_ticket {
    struct tk_wait_ticket *outer; /* the wait that this one interrupted */
    const void *at;               /* used by the transport only: the owner of the queue */
    uint32_t number;              /* used by the transport only */
    uint16_t queue;               /* used by the transport only; 0: in no queue */
    bool is_up; /* it tries again now; false while it serves messages, which may send */
};
extern TK_HIDDEN TK_PER_THREAD struct tk_wait_ticket
    *tk_wait_ticket; /* in PAR; the innermost, or NULL */

#endif
