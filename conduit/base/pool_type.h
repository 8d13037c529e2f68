/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types of a pool and its items, for structs that contain them; pool.h has the operations. The
 * same in all threading modes. */
#ifndef TK_POOL_TYPE_H
#define TK_POOL_TYPE_H

#include "base/counter.h"
#include "base/platform.h"

struct tk_pool_item {
    struct tk_pool_item *next;
};

struct tk_pool {
    _Alignas(TK_CACHE_LINE) tk_lock_t lock;
    struct tk_pool_item *free;
};

#endif
