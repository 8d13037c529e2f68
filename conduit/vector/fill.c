/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fills remote memory. Memory that this process can address is filled in place. A short range is
 * put from a block of bytes that all hold the value, without work on the target; a longer range is
 * filled by the target's handler, which receives the value and the range.
 *
 * Owns one block for each value ever used. A block is written once, so any number of fills may read
 * it at the same time and no source has to be waited for. No lock: a thread that loses the race to
 * publish a block frees its own. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "event/event.h"
#include "event/nbi_now.h"
#include "progress/progress.h"
#include "vector/fill.h"
#include "vector/vector_private.h"

enum {
    /* Up to this size a put is faster than a message with its reply, on networks that move that
     * many bytes in a microsecond or two. */
    block_size = 16 * 1024,
    values = 256
};

static _Atomic(void *) blocks[values];

static void *block_of(unsigned char value)
{
    void *block = atomic_load_explicit(&blocks[value], memory_order_acquire);
    if (block)
        return block;
    void *mine = malloc(block_size);
    if (!mine)
        tk_panic("out of memory for %d bytes to fill remote memory with", block_size);
    memset(mine, value, block_size);
    if (atomic_compare_exchange_strong_explicit(&blocks[value], &block, mine, memory_order_acq_rel,
                                                memory_order_acquire))
        return mine;
    free(mine);
    return block;
}

static void post(const struct tk_fill *fill, struct tk_op *op)
{
    uintptr_t offset = tk_vector_offset(fill->peer, 0);
    if (offset != tk_unmapped) {
        memset((void *)(fill->remote + offset), fill->value, fill->nbytes);
        atomic_thread_fence(memory_order_release);
    } else if (fill->nbytes > block_size) {
        tk_vector_fill(fill->peer, fill->remote, fill->nbytes, fill->value, op);
    } else if (fill->nbytes > 0) {
        struct tk_rma rma = {.remote = fill->remote,
                             .local = block_of(fill->value),
                             .nbytes = fill->nbytes,
                             .op = op,
                             .is_put = true};
        tk_wait_rma(fill->peer, &rma);
    }
}

void tk_fill_blocking(const struct tk_fill *fill)
{
    struct tk_op op;
    tk_op_init(&op);
    post(fill, &op);
    tk_wait_done(&op);
}

gex_Event_t tk_fill_start(const struct tk_fill *fill)
{
    struct tk_op *op = tk_op_take();
    post(fill, op);
    return tk_event_of(op);
}

void tk_fill_implicit(const struct tk_fill *fill)
{
    post(fill, tk_nbi_op(TK_NBI_PUT));
}
