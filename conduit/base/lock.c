/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See lock.h: waiting for a lock. No state. */
#include "config.h"

#include "base/lock.h"

#if TK_THREADED

enum { spins_max = 64 /* about the length of the longest critical section on a hot path */ };

void tk_lock_wait(tk_lock_t *lock)
{
    for (int spins = 0; !tk_trylock(lock); spins++)
        if (spins >= spins_max)
            sched_yield();
}

#endif
