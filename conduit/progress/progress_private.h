/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of progress: back-off of waiting threads (backoff.c), and the state of the
 * polled transports that it needs (poll.c). */
#ifndef TK_PROGRESS_PRIVATE_H
#define TK_PROGRESS_PRIVATE_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/mode.h"

/* What may end a wait, for a thread about to sleep. */
enum tk_wake_source {
    TK_WAKE_BELL,   /* only events that ring our bell */
    TK_WAKE_SILENT, /* also events without a ring: memory that others write, room in a ring */
    TK_WAKE_REPLY,  /* in a handler: silent too, and requests that came are not served now */
    TK_WAKE_DEVICE  /* with room in hand: silent too, and no message is served now */
};

/* After a turn in which nothing happened, the *empty-th in a row. */
void tk_back_off(unsigned empty, enum tk_wake_source wake);

/* Empty polls of this thread in a row, where ranks outnumber CPUs: after some of them polling
 * yields the CPU. The wait loops reset it and yield themselves. */
extern TK_HIDDEN TK_PER_THREAD unsigned tk_empty_polls;

/* Whether anything has arrived that serving would find. */
bool tk_has_come(enum tk_wake_source wake);

/* Whether every event rings the bell. Those of a network do not. */
bool tk_all_rings(void);

#endif
