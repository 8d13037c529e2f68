/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An operation in flight: counts of the pieces that transports still work on. Operations that
 * outlive the call that started them come from slabs of the thread that takes them and are handed
 * to clients as events; blocking ones live on the caller's stack.
 *
 * An event's test is inlined into clients (gasnetex.h): a count that is not above zero means done,
 * and consuming the event overwrites it with tk_op_free. So any thread frees an operation by one
 * store, and its owner finds it when it walks its slabs. */
#ifndef TK_OP_H
#define TK_OP_H

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/mode.h"
#include "op/op_type.h"
#include "op/unsynced.h"
#include "process/alone.h"

static inline void tk_op_init(struct tk_op *op)
{
    tk_counter_set(&op->pending, 0);
    tk_counter_set(&op->sources, 0);
}

static inline bool tk_op_done(const struct tk_op *op)
{
    return tk_counter_read(&op->pending) <= 0;
}

static inline bool tk_op_source_free(const struct tk_op *op)
{
    return tk_counter_read(&op->sources) <= 0;
}

/* Of this thread: where the search for a free operation begins. */
extern TK_HIDDEN TK_PER_THREAD_NEAR struct tk_op *tk_ops_next;

/* Searches a free operation and returns it; the next search begins after it. It updates the word
 * above itself, so that callers need not keep its address in a register. */
struct tk_op *tk_ops_find(void);

/* Sets both counts by one store, which need not be atomic: no other thread reads a free
 * operation. */
static inline void tk_op_set(struct tk_op *op, int32_t pending)
{
    const struct {
        int32_t pending, sources;
    } counts = {pending, 0};
    _Static_assert(sizeof(counts) == sizeof(*op), "an operation is two counts");
    memcpy(op, &counts, sizeof(counts));
}

/* With the first piece, or the starting thread, counted already. Thread-safe. Never NULL: lack of
 * memory ends the program with a message. */
static inline struct tk_op *tk_op_take_with(int32_t pending)
{
    struct tk_op *op = tk_ops_next;
    tk_if_unlikely(tk_counter_read(&op->pending) != tk_op_free) op = tk_ops_find();
    else tk_ops_next = op + 1;
    tk_op_set(op, pending);
    if (TK_IS_DEBUG)
        tk_unsynced_taken(op);
    return op;
}

static inline struct tk_op *tk_op_take(void)
{
    return tk_op_take_with(0);
}

/* Counts one more piece of an operation that counts others of this thread. */
static inline void tk_op_add_piece(struct tk_op *op)
{
    if (TK_THREADED && tk_is_only_inside())
        tk_counter_add_locked(&op->pending, 1);
    else
        tk_counter_add(&op->pending, 1);
}

/* Of an operation whose pieces any thread may complete, unless `is_only` (process/alone.h). */
static inline void tk_op_complete_piece(struct tk_op *op, bool is_only)
{
    if (is_only)
        tk_counter_add_locked(&op->pending, -1);
    else
        tk_counter_add(&op->pending, -1);
}

/* By any thread. */
static inline void tk_op_give(struct tk_op *op)
{
    tk_counter_leave(&op->pending, tk_op_free);
}

#endif
