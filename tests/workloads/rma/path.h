/* SPDX-License-Identifier: BSD-3-Clause */
/* How a flood's operations are executed: GASNet-EX, or verbs in one way or another. A path's
 * functions are called by the thread that the flood belongs to. */
#ifndef RMA_PATH_H
#define RMA_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct rma_flood;
struct rma_slot;

struct rma_path {
    /* Begin an operation of memory->size bytes between slot->local and place `at` in the segment of
     * slot->target. */
    void (*read)(struct rma_flood *flood, struct rma_slot *slot, size_t at);
    void (*write)(struct rma_flood *flood, struct rma_slot *slot, size_t at);

    /* Posts what was begun; NULL: it is posted already. */
    void (*flush)(struct rma_flood *flood);

    /* Whether it is complete, so that the slot and the data read may be used. Polls once. */
    bool (*done)(struct rma_flood *flood, struct rma_slot *slot);

    /* After the last slot: waits until nothing is in flight; NULL: nothing is. */
    void (*drain)(struct rma_flood *flood);
};

extern const struct rma_path rma_api;

#endif
