/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfers of non-contiguous memory. Not implemented yet: this file defines no names, but clients
 * that include it and use none of them build. Owns nothing, locks nothing. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H

#include "gasnetex.h"

#endif
