/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives. Barriers, which some clients include this header for, are in gasnetex.h; the others
 * are not implemented yet, and until then this file defines no names. Owns nothing, locks
 * nothing. */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H

#include "gasnetex.h"

#endif
