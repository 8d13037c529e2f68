/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives. Barriers, which some clients include this header for, are in gasnetex.h; the others
 * are not there yet, and this file has no names of its own until they are. Owns nothing, locks
 * nothing. */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H

#include "gasnetex.h"

#endif
