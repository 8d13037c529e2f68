/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Polls as functions of the table (struct tk_transport): open.c chooses among them by the number of
 * devices, shared queues and failover groups. */
#ifndef TK_VERBS_POLL_H
#define TK_VERBS_POLL_H

#include <stdbool.h>

/* data/poll.c */
bool tk_verbs_poll(void); /* of one device */
bool tk_verbs_reap(void);
bool tk_devices_poll(void); /* of all, if there are several */
bool tk_shared_poll(void);  /* data/poll_shared.c: of all, with shared receive queues */
bool tk_devices_reap(void);
bool tk_lanes_reap_others(void);  /* of lanes that are not this thread's */
void tk_lanes_reap(void);         /* of all lanes, busy or not */
bool tk_shared_logged_poll(void); /* shared queues in failover groups */
bool tk_shared_logged_reap(void);
bool tk_logged_poll(void); /* in failover groups */
bool tk_logged_reap(void);

#endif
