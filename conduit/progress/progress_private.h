/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of progress share: how one who waits backs off (backoff.c), and what it has to
 * know of what is polled (poll.c). */
#ifndef TK_PROGRESS_PRIVATE_H
#define TK_PROGRESS_PRIVATE_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/mode.h"

/* What may end a wait, for who is about to sleep. */
enum tk_wake_source {
    TK_WAKE_BELL,   /* nothing but what rings our bell */
    TK_WAKE_SILENT, /* also what nobody rings for: memory that others write, room in a ring */
    TK_WAKE_REPLY,  /* in a handler: silent too, and requests that came are not served now */
    TK_WAKE_DEVICE  /* with room in hand: silent too, and no message is served now */
};

/* After a turn in which nothing happened, the *empty-th in a row. */
void tk_back_off(unsigned empty, enum tk_wake_source wake);

/* Of this thread in a row, where ranks outnumber CPUs: after some of them polling gives the CPU
 * away. Who waits sets it back, and does that itself. */
extern TK_HIDDEN TK_PER_THREAD unsigned tk_empty_polls;

/* Has anything come that serving would find? */
bool tk_has_come(enum tk_wake_source wake);

/* Does all that may come ring? Over a network nothing does. */
bool tk_all_rings(void);

#endif
