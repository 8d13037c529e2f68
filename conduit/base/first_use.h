/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For code that runs rarely but on a latency-critical path: functions for the first message to a
 * peer. Their code is some 250 cache lines, mostly uncached; fetched one miss after another that
 * takes 7 us at each end. They are placed in one section, which is prefetched as a whole at the
 * beginning, in 1 us. A prefetch has no side effects and never faults. */
#ifndef TK_BASE_FIRST_USE_H
#define TK_BASE_FIRST_USE_H

#include <stdint.h>

#include "base/platform.h"

#define TK_FIRST_USE __attribute__((section("trunkline_first_use")))

/* The linker defines these two for a section whose name is an identifier. */
extern const char __start_trunkline_first_use[] __attribute__((weak, visibility("hidden")));
extern const char __stop_trunkline_first_use[] __attribute__((weak, visibility("hidden")));

/* Reads all of it before the first prefetch, which does nothing for unmapped pages: otherwise the
 * kernel would map them in the middle of a first message. And if little else runs until then, the
 * prefetch finds the lines in a cache of this processor. */
static inline void tk_first_use_load(void)
{
    uintptr_t stop = (uintptr_t)__stop_trunkline_first_use;
    for (uintptr_t at = (uintptr_t)__start_trunkline_first_use; at < stop; at += TK_CACHE_LINE)
        (void)*(const volatile char *)at;
    if (stop)
        (void)*(const volatile char *)(stop - 1);
}

static inline void tk_first_use_prefetch(void)
{
    uintptr_t stop = (uintptr_t)__stop_trunkline_first_use;
    for (uintptr_t line = (uintptr_t)__start_trunkline_first_use; line < stop;
         line += TK_CACHE_LINE)
        __builtin_prefetch((const void *)line);
}

#endif
