/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queues of all devices in use: completion queues of each lane and of what is received, with
 * their protection domain. */
#ifndef TK_VERBS_QUEUES_H
#define TK_VERBS_QUEUES_H

#include "base/status.h"

/* Do the devices allow queues as deep as the settings ask for? Call before any is made. */
enum tk_status tk_queues_check(void);
enum tk_status tk_queues_open(void);
/* Makes space in the completion queues for one more peer's connections. */
enum tk_status tk_queues_fit(void);
/* Call before tk_devices_close(). */
void tk_queues_close(void);

#endif
