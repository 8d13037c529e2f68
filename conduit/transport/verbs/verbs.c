/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of transport/verbs that several files use. Separate from open.c, which calls them, so
 * that they need nothing above them. Its members say which lock protects them. */
#include "config.h"

#include "transport/verbs/conn/conns.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

struct tk_verbs tk_verbs;
struct tk_places tk_places;
struct tk_conns tk_conns;
TK_PER_THREAD_NEAR struct tk_lane_place tk_lane_mine = {.lane = tk_verbs.lanes,
                                                        .polls = tk_lanes_due_next};

bool tk_verbs_is_open(void)
{
    return tk_verbs.device.context != NULL;
}
