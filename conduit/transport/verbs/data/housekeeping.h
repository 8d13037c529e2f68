/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work that polls do besides completions. */
#ifndef TK_VERBS_HOUSEKEEPING_H
#define TK_VERBS_HOUSEKEEPING_H

#include <stdbool.h>

#include "base/atomic.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/verbs_state.h"

/* Moves connections and sends ACKs that found no space in the send queue; call while
 * tk_verbs.pending_work is not 0. Takes the locks itself. */
void tk_acks_send(void);

/* Pending work without rendezvous messages, which polls of shared queues handle. A rendezvous
 * message increments pending_work first and decrements it last. */
static inline int tk_work_besides_rndv(void)
{
    int rndv_count = tk_counter_read(&tk_verbs.rndv_count);
    return tk_counter_read(&tk_verbs.pending_work) - rndv_count;
}

/* Is there pending work? Connections that wait for an answer do not prevent sleep. */
static inline bool tk_work_is_pending(void)
{
    int pending = tk_work_besides_rndv();
    if (pending > 0)
        tk_acks_send();
    return pending > tk_demand_pending();
}

/* Is there pending work that wakes no sleeping thread? Connects and reads do: their events make
 * files readable. */
static inline bool tk_work_is_open(void)
{
    return tk_work_besides_rndv() > (tk_cm_file() != -1) ||
           tk_counter_read(&tk_verbs.rndv_stuck) > 0;
}

#endif
