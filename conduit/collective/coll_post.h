/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests whether a receive of the collectives' engine is done. A header of its own because it
 * depends on the threading mode, which the algorithms do not. */
#ifndef TK_COLL_POST_H
#define TK_COLL_POST_H

#include "base/atomic.h"
#include "collective/coll_private.h"

static inline bool tk_coll_post_done(const struct tk_coll_post *post)
{
    return tk_counter_read(&post->done) != 0;
}

#endif
