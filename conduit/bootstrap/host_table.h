/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tables that are equal in all ranks of a host, mostly indexed by rank of the job: the leader of
 * the board (board.h) creates each, and all map it read-only. Without a board each rank has its
 * own. All ranks of a host ask for the same tables in the same order, after the first tk_gather().
 * One thread at a time. */
#ifndef TK_HOST_TABLE_H
#define TK_HOST_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct tk_host_table {
    const void *at;
    size_t size;
    bool is_mapped; /* else it was allocated */
};

/* Waits until the leader has published it. False: it published no table of at least that many
 * bytes; the caller creates one and calls tk_host_table_show() with it. */
bool tk_host_table_find(struct tk_host_table *table, size_t least);

/* `own` was malloc'ed and now belongs to the table, which may free it at once. */
void tk_host_table_show(struct tk_host_table *table, void *own, size_t size);

void tk_host_table_drop(struct tk_host_table *table);

#endif
