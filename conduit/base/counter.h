/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types of counters and locks, which are the same in all threading modes, so that structs with
 * them are too. Their operations depend on the mode: base/atomic.h, base/lock.h. */
#ifndef TK_COUNTER_H
#define TK_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic int32_t tk_counter_t;

typedef struct {
    _Atomic bool held;
} tk_lock_t;

#define TK_LOCK_INIT                                                                               \
    {                                                                                              \
        false                                                                                      \
    }

#endif
