/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Remote atomics. Not implemented yet: this file defines no names, but clients that include it and
 * use none of them build. Owns nothing, locks nothing. */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

#include "gasnetex.h"

#endif
