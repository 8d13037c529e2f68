/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The set that counts the implicit operations of the calling client thread; each of them looks it
 * up first. A header of its own because it depends on the client's mode, unlike nbi.h. */
#ifndef TK_NBI_NOW_H
#define TK_NBI_NOW_H

#include "base/bits.h"
#include "base/check.h"
#include "base/client_mode.h"
#include "event/nbi.h"

/* The set in which operations of the calling thread are counted now. NULL before its first. */
extern TK_HIDDEN TK_PER_CLIENT_THREAD struct tk_nbi_set *tk_nbi_now;

/* Makes the set of the calling thread. Out of memory is fatal, with a message. */
void tk_nbi_begin_thread(void);

/* The counters for the next implicit operation of this thread. Valid until the call returns. */
static inline struct tk_op *tk_nbi_op(enum tk_nbi_kind kind)
{
    if (!tk_nbi_now)
        tk_nbi_begin_thread();
    if (TK_IS_DEBUG)
        tk_unsynced_implicit(&tk_nbi_now->ops[kind]);
    return &tk_nbi_now->ops[kind];
}

#endif
