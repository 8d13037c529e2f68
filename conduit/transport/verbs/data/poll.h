/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Polls as functions of the table (struct tk_transport): variants.c chooses among them by the
 * number of devices, shared queues and failover groups. */
#ifndef TK_VERBS_POLL_H
#define TK_VERBS_POLL_H

#include <stdbool.h>

/* data/reap.c */
bool tk_verbs_reap(void);        /* of one device */
bool tk_devices_reap(void);      /* of all */
bool tk_lanes_reap_others(void); /* of all lanes but this thread's */
void tk_lanes_reap(void);        /* of all lanes, busy or not */

/* data/poll.c: by variant; see variants.c */
bool tk_verbs_poll(void);
bool tk_devices_poll(void);
bool tk_shared_poll(void);
bool tk_shared_devices_poll(void);
bool tk_logged_poll(void);
bool tk_logged_reap(void);
bool tk_logged_devices_poll(void);
bool tk_logged_devices_reap(void);
bool tk_shared_logged_poll(void);
bool tk_shared_logged_reap(void);
bool tk_shared_logged_devices_poll(void);
bool tk_shared_logged_devices_reap(void);

#endif
