/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that swarm and sharing read from and write to: sources in which each byte follows from
 * its place, and for each writer a ring of cells whose contents name their writer and sequence
 * number. The gaps between cells must never be written. Knows addresses only, not the transport.
 */
#ifndef RMA_TARGET_MEMORY_H
#define RMA_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "random.h"

enum { rma_line = 64 };

/* In each rank's segment: greetings (8 bytes for each writer), sources, cells, and areas of the
 * rank's own threads, one for each operation in flight. */
struct rma_memory {
    uint64_t seed;
    size_t sources, source_size; /* sources in each rank; source_size: a multiple of 64 */
    size_t writers, ring;        /* rings in each rank; cells in each */
    size_t size, stride;         /* of an operation; from cell to cell: with a gap behind each */
    size_t threads, window;
};

void rma_memory_set(struct rma_memory *g, size_t size);

size_t rma_memory_bytes(const struct rma_memory *g);
size_t rma_at_greeting(const struct rma_memory *g, size_t writer);
size_t rma_at_source(const struct rma_memory *g, size_t source);
size_t rma_at_cell(const struct rma_memory *g, size_t writer, uint64_t seq);
size_t rma_at_local(const struct rma_memory *g, size_t thread, size_t slot);

/* Fills sources, cells and gaps with their initial contents; `id` is that of the first source. */
void rma_memory_fill(const struct rma_memory *g, char *segment, uint64_t id);

/* Bytes offset.. of a source; none is 0, so that the arrival of each can be seen. */
void rma_pattern(const struct rma_memory *g, uint64_t id, size_t offset, void *out, size_t size);
bool rma_pattern_holds(const struct rma_memory *g, uint64_t id, size_t offset, const void *data,
                       size_t size);

/* Whether all of a read has arrived in memory that was zeroed before and begins on a cache line.
 * Order is promised only within a line, whose last byte arrives last. */
bool rma_has_arrived(const char *local, size_t size);

/* The seq-th write, from 1 on, of a writer with a number that is unique in the job. */
void rma_cell_fill(const struct rma_memory *g, uint64_t writer, uint64_t seq, void *out);

/* How many of a ring's cells are not what they must be after `last` writes (0: none) of this
 * writer; *bad (may be NULL) is the seq of one of them. */
size_t rma_ring_wrong(const struct rma_memory *g, const char *segment, size_t ring, uint64_t writer,
                      uint64_t last, uint64_t *bad);

/* Lines of sources, gaps and greetings excepted, that are not as they were filled. */
size_t rma_memory_changed_lines(const struct rma_memory *g, const char *segment, uint64_t id);

#endif
