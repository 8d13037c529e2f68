/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Has the client one thread only? Threads of the library's own, and those of libraries that it
 * starts, do not count. Looked up on hot paths: no system call, and no word from whoever starts a
 * thread. */
#ifndef TK_ALONE_H
#define TK_ALONE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

/* alone.c's own. The kernel moves the head on when the first thread starts another thread or
 * process; where it can't be asked to, the two never meet. */
struct tk_alone {
    _Atomic uint64_t *_Atomic head;
    uint64_t seen;
};
extern TK_HIDDEN struct tk_alone tk_alone;

/* By the client's thread that starts the library, before that starts any. Nobody is alone until
 * tk_alone_accept(), when all of these have been started. */
void tk_alone_open(void);

/* Whatever was started since is none of the client's; too late for what tk_is_alone() has seen. */
void tk_alone_accept(void);

/* What the kernel has said since the last look. */
bool tk_alone_check(void);

/* False from the moment on in which a second one starts, for good; false where nobody knows. */
static inline bool tk_is_alone(void)
{
    tk_if_likely(atomic_load_explicit(tk_alone.head, memory_order_acquire) ==
                 tk_alone.seen) return true;
    return tk_alone_check();
}

#endif
