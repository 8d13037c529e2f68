/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A job without a multicast switch, for tests of rooms above the collectives: the code that looks
 * for one needs the launcher and the end of a job, which these tests do not have. */
#include "config.h"

#include "collective/coll_private.h"
#include "collective/mcast.h"

bool tk_mcast_on;

void tk_mcast_open(void)
{
}

void tk_mcast_begin(void)
{
}

bool tk_mcast_fits(const struct trunkline_tm *tm)
{
    (void)tm;
    return false;
}

enum tk_coll_turn tk_coll_broadcast_switch(struct tk_coll *coll)
{
    (void)coll;
    return TK_COLL_OVER;
}
