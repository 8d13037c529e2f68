/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous events of devices: about ports, and about queue pairs that receive through shared
 * queues. */
#ifndef TK_VERBS_ASYNC_EVENTS_H
#define TK_VERBS_ASYNC_EVENTS_H

#include <stdbool.h>

/* From now on reading events does not block. */
void tk_events_open(void);

/* Records pending events: in rails, and by tk_srq_last_wqe(). Does nothing while another thread
 * reads them. */
void tk_events_read(void);

/* The same, and prevents other threads from reading until tk_events_end(), so that the caller may
 * act on what rails record. False: another thread is reading. */
bool tk_events_begin(void);
void tk_events_go_on(void); /* between the two: records events that came since */
void tk_events_end(void);

#endif
