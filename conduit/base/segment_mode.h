/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which memory of other ranks can be accessed, by configure. The only header that looks at
 * GASNET_SEGMENT_*: a source that does not include it is the same for all of them, and tests of the
 * other two modes recompile only those that do. */
#ifndef TK_SEGMENT_MODE_H
#define TK_SEGMENT_MODE_H

#include "gasnet_config.h"

/* Segments registered as a whole (FAST), segments registered as far as they are in use (LARGE), any
 * address (EVERYTHING). */
#if defined(GASNET_SEGMENT_EVERYTHING)
enum { tk_is_everything = 1, tk_is_on_demand = 1 };
#elif defined(GASNET_SEGMENT_LARGE)
enum { tk_is_everything = 0, tk_is_on_demand = 1 };
#else
enum { tk_is_everything = 0, tk_is_on_demand = 0 };
#endif

#endif
