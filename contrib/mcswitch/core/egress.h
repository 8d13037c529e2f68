/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The registers of the egress: the list and the receivers of a group. */
#ifndef MCSW_EGRESS_H
#define MCSW_EGRESS_H

#include "core/register.h"

struct egress {
    struct pair list[MCSW_RECEIVERS], minh, round;
    struct egress_receiver {
        struct pair version, off, msn, acked;
        struct pair va[WINDOWS], rkey[WINDOWS]; /* a register with the window in its index */
    } receiver[MCSW_RECEIVERS];
};

#endif
