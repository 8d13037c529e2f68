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
#include <stdint.h>

#include "base/bits.h"
#include "base/page.h"

struct tk_host_table {
    const void *at;
    size_t size;
    uint64_t where; /* on the board, if */
    bool is_mapped; /* else it was allocated */
};

/* Waits until the leader has published it. False: it published no table of at least that many
 * bytes; the caller creates one and calls tk_host_table_show() with it. */
bool tk_host_table_find(struct tk_host_table *table, size_t least);

/* `own` was malloc'ed and now belongs to the table, which may free it at once. */
void tk_host_table_show(struct tk_host_table *table, void *own, size_t size);

void tk_host_table_drop(struct tk_host_table *table);

/* A copy of the first `size` bytes, to which this process may write until it ends. More than a page
 * is not copied but mapped, and takes memory only for the pages that are written. NULL: out of
 * memory. */
void *tk_host_table_copy(const struct tk_host_table *table, size_t size);

/* The bytes of it that are the process's own, if it writes to `written` bytes in a row; is_shared:
 * there are other ranks on its host. */
static inline size_t tk_host_table_copy_bytes(size_t size, size_t written, bool is_shared)
{
    if (!is_shared || size <= tk_page_size())
        return size;
    return tk_min(size, tk_align_up(written, tk_page_size()) + tk_page_size());
}

#endif
