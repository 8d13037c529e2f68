/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See host_table.h. Owns nothing: callers own the tables. No lock. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "bootstrap/board.h"
#include "bootstrap/host_table.h"

bool tk_host_table_find(struct tk_host_table *table, size_t least)
{
    *table = (struct tk_host_table){.is_mapped = true};
    table->at = tk_board_kept(&table->size);
    if (table->at && table->size >= least)
        return true;
    tk_host_table_drop(table);
    return false;
}

void tk_host_table_show(struct tk_host_table *table, void *own, size_t size)
{
    const void *kept = tk_board_keep(own, size);
    *table =
        (struct tk_host_table){.at = kept ? kept : own, .size = size, .is_mapped = kept != NULL};
    if (kept)
        free(own);
}

void tk_host_table_drop(struct tk_host_table *table)
{
    if (table->at && table->is_mapped)
        munmap((void *)table->at, table->size);
    else
        free((void *)table->at);
    *table = (struct tk_host_table){.at = NULL};
}
