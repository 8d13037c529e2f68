/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous events of devices: what became of ports, and of queue pairs that receive through
 * shared queues. */
#ifndef TK_VERBS_ASYNC_EVENTS_H
#define TK_VERBS_ASYNC_EVENTS_H

#include <stdbool.h>

/* From now on none is waited for. */
void tk_events_open(void);

/* Notes what has come: in rails, and by tk_srq_last_wqe(). Not while another thread does. */
void tk_events_read(void);

/* The same, and nobody else does until tk_events_end(): what is noted in rails may be acted upon.
 * False: another thread is at it. */
bool tk_events_begin(void);
void tk_events_go_on(void); /* in between: notes what has come since */
void tk_events_end(void);

#endif
