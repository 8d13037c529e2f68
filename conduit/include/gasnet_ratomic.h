/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote atomics. Not there yet: this file has no names of its own, but clients that include it and
 * use none of them build. Owns nothing, locks nothing. */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

#include "gasnetex.h"

#endif
