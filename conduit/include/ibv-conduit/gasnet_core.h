/* SPDX-License-Identifier: BSD-3-Clause */
/* The conduit's part of the interface, all of which gasnetex.h brings. configure scripts of clients
 * look for this file to find out that a directory belongs to a conduit. Owns nothing, locks nothing. */
#ifndef GASNET_CORE_H
#define GASNET_CORE_H

#include "gasnetex.h"

#endif
