/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state that all files of transport/verbs use. Separate from open.c, which calls them, so that
 * they need nothing above them. open.c fills it in; its members say which lock protects them. */
#include "config.h"

#include "transport/verbs/data/lane.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

struct tk_verbs tk_verbs;
TK_PER_THREAD_NEAR struct tk_lane_place tk_lane_mine = {.lane = tk_verbs.lanes,
                                                        .polls = tk_lanes_due_next};

bool tk_verbs_is_open(void)
{
    return tk_verbs.device.context != NULL;
}
