/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether the client has one thread only. Threads of the library, and of libraries that it starts,
 * do not count. Checked on hot paths: no system call, and the code that starts a thread need not
 * cooperate. */
#ifndef TK_ALONE_H
#define TK_ALONE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

/* State of alone.c. The kernel advances the head when the first thread starts another thread or a
 * process; if the kernel does not support that, head never equals `seen`. */
struct tk_alone {
    _Atomic uint64_t *_Atomic head;
    _Atomic uint64_t seen;
    _Atomic uint64_t *_Atomic inside; /* head, until a thread of the library enters transports */
    _Atomic uint64_t never;           /* in place of the kernel's head: no number is this one */
};
extern TK_HIDDEN struct tk_alone tk_alone;

/* Called by the client's thread that initialises the library, before any of the library's threads
 * exist. tk_is_alone() is false until tk_alone_accept(), when all of these have been started. */
void tk_alone_open(void);

/* Threads started since tk_alone_open() or the last check are not the client's. The first call
 * begins recording. Has no effect once tk_is_alone() has seen a second thread. */
void tk_alone_accept(void);

/* tk_is_alone() is not needed and is false from now on. */
void tk_alone_close(void);

/* Called by the client's thread before a thread of the library starts that takes locks of
 * transports. */
void tk_alone_share(void);

/* Slow path: examines the kernel's records since the last check. */
bool tk_alone_check(void);

/* True if nothing was recorded since the last check found one thread. False: check the records. */
static inline bool tk_was_alone(void)
{
    return atomic_load_explicit(tk_alone.head, memory_order_acquire) ==
           atomic_load_explicit(&tk_alone.seen, memory_order_relaxed);
}

/* Is the caller the only thread that takes locks of transports? If so it need take none itself
 * until it leaves the library: no other thread starts unless this one starts it, so the answer
 * stays true for as long as this thread does something else, preempted or not; a signal handler may
 * not call pthread_create(). Do not keep the answer over a poll, which runs handlers. Another
 * thread of the client reads false, because the kernel recorded its start before it ran. Threads of
 * the library that do not enter transports read true: the first of them that is to enter one needs
 * tk_alone_share(). */
static inline bool tk_is_only_inside(void)
{
    return atomic_load_explicit(atomic_load_explicit(&tk_alone.inside, memory_order_relaxed),
                                memory_order_relaxed) ==
           atomic_load_explicit(&tk_alone.seen, memory_order_relaxed);
}

/* Was the answer false only because records have to be examined? Then tk_is_alone() examines
 * them. */
static inline bool tk_may_be_only_inside(void)
{
    return atomic_load_explicit(&tk_alone.inside, memory_order_relaxed) != &tk_alone.never;
}

/* False for good from the moment a second thread starts; false if the kernel does not report. */
static inline bool tk_is_alone(void)
{
    tk_if_likely(tk_was_alone()) return true;
    return tk_alone_check();
}

#endif
