/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the waits of a job's ranks into sentences: which rank waits for which, since when, and
 * where the chain ends: at a rank that is stopped, gone, in a handler, or not in the library, or in
 * a cycle. Pure. */
#ifndef TRUNKLINE_SPAWNER_EXPLAIN_H
#define TRUNKLINE_SPAWNER_EXPLAIN_H

#include "spawner/util/byte_queue.h"
#include "spawner/wire/waits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct explain {
    uint32_t ranks;
    struct waits_rank **rank; /* NULL: its host has not answered */
    struct bytes text;
    uint32_t *state; /* of each rank; explain.c's */
    struct explain_edge *edges;
    size_t edge_count, edge_capacity;
    uint32_t suspects[4]; /* ranks whose stacks would help */
    uint32_t suspect_count;
    uint64_t longest;       /* longest time, in ns, that a rank has been in one wait, */
    uint64_t longest_since; /* and when that wait began, by its host's clock */
    uint64_t waiting;       /* ranks that wait */
};

bool explain_init(struct explain *e, uint32_t ranks);
void explain_free(struct explain *e);

/* Takes the record that a guard has read. False: the payload is not such a record. */
bool explain_take(struct explain *e, uint32_t rank, const void *payload, size_t length);

/* Writes lines to e->text and fills in the rest. */
void explain_join(struct explain *e);

/* Adds the stacks of a rank, as gdb printed them. */
void explain_add_stack(struct explain *e, uint32_t rank, const char *text, size_t length);

#endif
