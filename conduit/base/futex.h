/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sleeping on a word until another thread or process has changed it. No state. */
#ifndef TK_FUTEX_H
#define TK_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

/* Returns at once if the word has changed; otherwise on a wake-up, after `nsec`, on a signal, or
 * spuriously: check the word again. */
static inline void tk_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t nsec)
{
    const struct timespec patience = {.tv_sec = (time_t)(nsec / TK_SECOND),
                                      .tv_nsec = (long)(nsec % TK_SECOND)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &patience, NULL, 0);
}

/* Wakes waiters of this process and of others that share the page. */
static inline void tk_futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
