/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a pool and its items are, for structs that hold them; pool.h says what is done with them.
 * The same in all threading modes. */
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
