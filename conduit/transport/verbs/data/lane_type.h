/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The struct of a lane, for the state that has them (verbs_state.h); lane.h has the functions. */
#ifndef TK_VERBS_LANE_TYPE_H
#define TK_VERBS_LANE_TYPE_H

#include "base/counter.h"
#include "base/mode.h"
#include "base/platform.h"

struct ibv_cq;

enum {
    tk_poll_batch = 16, /* completions taken at a time: one cache line each on most devices */
    tk_lanes_max = TK_THREADED ? 8 : 1
};

/* A completion queue, and its lock in a cache line of its own. */
struct tk_sends {
    _Alignas(TK_CACHE_LINE) tk_lock_t lock;
    struct ibv_cq *cq;
};

/* Work requests for some of the peers, and the queue in which they complete. PAR has as many lanes
 * as CPUs, so that threads with different peers mostly use different lanes and do not write the
 * same words with each put. Aligned to two cache lines because some processors fetch lines in
 * pairs. */
struct tk_lane {
    _Alignas(TK_THREADED ? 2 * TK_CACHE_LINE : TK_CACHE_LINE)
        tk_lock_t lock; /* guards the next two, and `returned` of connections */
    tk_counter_t out;   /* its work requests in use; 0: nothing to reap */
    struct tk_pool_item *free;
    struct tk_sends sends; /* of the first device */
};

#endif
