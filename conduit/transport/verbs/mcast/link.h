/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The multicast link of the transport, for its table (struct tk_transport). */
#ifndef TK_VERBS_MCAST_LINK_H
#define TK_VERBS_MCAST_LINK_H

#include "base/bits.h"

struct tk_mcast_device;

extern TK_HIDDEN const struct tk_mcast_device tk_verbs_multicast;

#endif
