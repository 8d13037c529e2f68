/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See host_table.h. Owns nothing: callers own the tables. No lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bootstrap/board.h"
#include "bootstrap/host_table.h"

bool tk_host_table_find(struct tk_host_table *table, size_t least)
{
    *table = (struct tk_host_table){.is_mapped = true};
    table->at = tk_board_kept(&table->size, &table->where);
    if (table->at && table->size >= least)
        return true;
    tk_host_table_drop(table);
    return false;
}

void tk_host_table_show(struct tk_host_table *table, void *own, size_t size)
{
    uint64_t where = 0;
    const void *kept = tk_board_keep(own, size, &where);
    *table = (struct tk_host_table){
        .at = kept ? kept : own, .size = size, .where = where, .is_mapped = kept != NULL};
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

void *tk_host_table_copy(const struct tk_host_table *table, size_t size)
{
    void *copy = NULL;
    if (table->is_mapped && size > tk_page_size())
        copy = tk_board_copy(table->where, size);
    if (copy)
        return copy;
    copy = malloc(size);
    if (copy)
        memcpy(copy, table->at, size);
    return copy;
}
