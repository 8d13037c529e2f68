/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A look at a receive of the collectives' engine: in a header of its own because it depends on the
 * threading mode, which the algorithms do not. */
#ifndef TK_COLL_POST_H
#define TK_COLL_POST_H

#include "base/atomic.h"
#include "collective/coll_private.h"

static inline bool tk_coll_post_done(const struct tk_coll_post *post)
{
    return tk_counter_read(&post->done) != 0;
}

#endif
