/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The target queue pairs that ranks of one neighbourhood share, in memory that all of them map.
 * Each rank of the job has a row: the targets by which it reaches the neighbourhood, one for each
 * connection of a pair. The first rank makes a target, the first one that knows the number of the
 * other end connects it, and the others open it by the number that is recorded here.
 *
 * A rank must take a row before it changes it, and never waits for a row: if it is taken, it tries
 * again later. So a rank that dies with a row taken blocks no other rank in a call; the job ends as
 * it does when any rank dies. All zero at first. */
#ifndef TK_VERBS_XRC_TABLE_H
#define TK_VERBS_XRC_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tk_xrc_table {
    uint32_t *words; /* shared */
    uint32_t conns;  /* of each pair of ranks, at most 32 */
};

enum { tk_xrc_row_front = 2 /* words of a row before the numbers of its targets */ };

static inline size_t tk_xrc_table_bytes(uint32_t ranks, uint32_t conns)
{
    return (size_t)ranks * (tk_xrc_row_front + conns) * sizeof(uint32_t);
}

/* Takes the row of a rank for our rank `me`; false: another rank has taken it. */
bool tk_xrc_table_take(const struct tk_xrc_table *table, uint32_t rank, uint32_t me);
void tk_xrc_table_give(const struct tk_xrc_table *table, uint32_t rank);

/* With the row taken: the number of the target for connection k, 0 if it is not made yet; whether
 * it is connected. */
uint32_t tk_xrc_table_target(const struct tk_xrc_table *table, uint32_t rank, uint32_t k);
void tk_xrc_table_made(const struct tk_xrc_table *table, uint32_t rank, uint32_t k, uint32_t qp);
bool tk_xrc_table_is_connected(const struct tk_xrc_table *table, uint32_t rank, uint32_t k);
void tk_xrc_table_connected(const struct tk_xrc_table *table, uint32_t rank, uint32_t k);

#endif
