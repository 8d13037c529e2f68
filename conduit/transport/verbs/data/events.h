/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion events: what threads sleep on, and which queues a thread polls by itself. */
#ifndef TK_VERBS_EVENTS_H
#define TK_VERBS_EVENTS_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/mode.h"
#include "transport/verbs/library.h"

struct tk_device;
struct tk_device_events;
struct tk_transport;

/* Bits of enum tk_device_role: queues that this thread polls even while another thread polls
 * them. */
extern TK_HIDDEN TK_PER_THREAD unsigned tk_queues_insisted;
int tk_cq_take_insisting(struct ibv_cq *cq, unsigned role, struct ibv_wc *wc, int max);

extern TK_HIDDEN const struct tk_device_events tk_verbs_events;
void tk_channels_open(struct tk_device *device); /* if a thread will sleep; before the queues */
void tk_channels_close(struct tk_device *device);
void tk_channels_serve(const struct tk_transport *transport); /* before a thread sleeps on them */

#endif
