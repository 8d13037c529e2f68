/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An operation under way: counts of the pieces that transports still work on. Operations that
 * outlive the call that started them come from a per-thread free list and are handed to clients as
 * events; blocking ones live on the caller's stack. */
#ifndef TK_OP_H
#define TK_OP_H

#include "base/atomic.h"
#include "base/bits.h"

struct tk_op {
    tk_counter_t
        pending; /* pieces not complete; the starter holds one more until all pieces are posted */
    tk_counter_t sources; /* pieces whose source is still being read, where somebody asks */
    struct tk_op *next;   /* while free */
};

static inline void tk_op_init(struct tk_op *op)
{
    tk_counter_set(&op->pending, 0);
    tk_counter_set(&op->sources, 0);
}

static inline bool tk_op_done(const struct tk_op *op)
{
    return tk_counter_read(&op->pending) == 0;
}

static inline bool tk_op_source_free(const struct tk_op *op)
{
    return tk_counter_read(&op->sources) == 0;
}

/* Free operations of this thread; NULL: make some. */
extern TK_HIDDEN TK_PER_THREAD struct tk_op *tk_ops_free;
void tk_ops_refill(void);

/* Thread-safe. Never NULL: lack of memory ends the program with a message. */
static inline struct tk_op *tk_op_take(void)
{
    tk_if_unlikely(!tk_ops_free) tk_ops_refill();
    struct tk_op *op = tk_ops_free;
    tk_ops_free = op->next;
    tk_op_init(op);
    return op;
}

static inline void tk_op_give(struct tk_op *op)
{
    op->next = tk_ops_free;
    tk_ops_free = op;
}

#endif
