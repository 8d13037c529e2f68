/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The registers of the ingress: the lock, the set and the senders' sequence numbers of a group. */
#ifndef MCSW_INGRESS_H
#define MCSW_INGRESS_H

#include "core/register.h"

struct ingress {
    struct pair hold, topo, agg, rel, inside, dirty, cnp;
    struct ingress_sender {
        struct pair epsn, flag;
    } sender[];
};

#endif
