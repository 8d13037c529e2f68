/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What polls go on with besides completions. */
#ifndef TK_VERBS_HOUSEKEEPING_H
#define TK_VERBS_HOUSEKEEPING_H

#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/verbs_private.h"

/* Connections that are to be moved, and ACKs that found no room in the send queue; while
 * tk_verbs.pending_work is not 0. Takes the locks itself. */
void tk_acks_send(void);

/* The same without messages that are pulled, with which polls of shared queues go on. Those count
 * themselves last and leave first. */
static inline int tk_work_besides_rndv(void)
{
    int rndv_count = tk_counter_read(&tk_verbs.rndv_count);
    return tk_counter_read(&tk_verbs.pending_work) - rndv_count;
}

/* Goes on with it. Connections that wait for an answer are no reason not to sleep. */
static inline bool tk_work_is_pending(void)
{
    int pending = tk_work_besides_rndv();
    if (pending > 0)
        tk_acks_send();
    return pending > tk_demand_pending();
}

/* Is there more than connects that may come, and than reads that complete? Those wake who sleeps on
 * their file, and on the device's. */
static inline bool tk_work_is_open(void)
{
    return tk_work_besides_rndv() > (tk_cm_file() != -1) ||
           tk_counter_read(&tk_verbs.rndv_stuck) > 0;
}

#endif
