/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an operation is, for those who have one in a struct of theirs: op.h says what is done with
 * it. The same in all threading modes. */
#ifndef TK_OP_TYPE_H
#define TK_OP_TYPE_H

#include "base/counter.h"

struct tk_op {
    _Alignas(8) tk_counter_t
        pending; /* pieces not complete; the starter holds one more until all pieces are posted */
    tk_counter_t sources; /* pieces whose source is still being read, if a leaf was asked for */
};

/* What a thread has for them at first: eight cache lines, of one that never has many in flight. */
enum { tk_ops_first_bytes = 512 };

/* In place of `pending`: given back; of `sources`: its leaf was synced. */
enum { tk_op_free = -1 };

#endif
