/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fills remote memory by puts of a block that holds nothing but the value. A message could carry
 * the value alone, but its handler would run only when the other process polls, would write at that
 * process's expense, and completion would need a reply.
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
#include "event/nbi.h"
#include "progress/progress.h"
#include "vector/fill.h"

enum {
    block_size = 64 * 1024, /* the size of a bounce buffer: the maximum of one write */
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
    void *block = block_of(fill->value);
    for (size_t done = 0; done < fill->nbytes;) {
        struct tk_rma rma = {.remote = fill->remote + done,
                             .local = block,
                             .nbytes = tk_min(fill->nbytes - done, (size_t)block_size),
                             .op = op,
                             .is_put = true};
        tk_wait_rma(fill->peer, &rma, false);
        done += rma.nbytes;
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
