/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers of memory that is not contiguous. Not there yet: this file has no names of its own, but
 * clients that include it and use none of them build. Owns nothing, locks nothing. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H

#include "gasnetex.h"

#endif
