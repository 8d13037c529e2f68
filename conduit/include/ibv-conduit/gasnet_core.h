/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The conduit's part of the interface, all of which gasnetex.h includes. Configure scripts of
 * clients recognise a conduit's directory by this file. Owns nothing, locks nothing. */
#ifndef GASNET_CORE_H
#define GASNET_CORE_H

#include "gasnetex.h"

#endif
