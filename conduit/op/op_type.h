/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The type of an operation, for structs that contain one; op.h has its functions. The same in all
 * threading modes. */
#ifndef TK_OP_TYPE_H
#define TK_OP_TYPE_H

#include "base/counter.h"

struct tk_op {
    _Alignas(8) tk_counter_t
        pending; /* pieces not complete; the starter holds one more until all pieces are posted */
    tk_counter_t sources; /* pieces whose source is still being read, if a leaf was requested */
};

/* The first slab of a thread: eight cache lines, for a thread that never has many in flight. */
enum { tk_ops_first_bytes = 512 };

/* In place of `pending`: free; of `sources`: the leaf was synced. */
enum { tk_op_free = -1 };

#endif
