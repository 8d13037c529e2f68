/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See xrc_table.h. A row is a word that names the rank which has taken it, a word with a bit for
 * each connected target, and the numbers of the targets. Must not touch a device. */
#include "config.h"

#include "transport/verbs/conn/xrc_table.h"

enum { TAKEN_BY, CONNECTED, first_target = tk_xrc_row_front };

static uint32_t *row_of(const struct tk_xrc_table *table, uint32_t rank)
{
    return table->words + (size_t)rank * (first_target + table->conns);
}

bool tk_xrc_table_take(const struct tk_xrc_table *table, uint32_t rank, uint32_t me)
{
    uint32_t nobody = 0;
    return __atomic_compare_exchange_n(&row_of(table, rank)[TAKEN_BY], &nobody, me + 1, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void tk_xrc_table_give(const struct tk_xrc_table *table, uint32_t rank)
{
    __atomic_store_n(&row_of(table, rank)[TAKEN_BY], 0, __ATOMIC_RELEASE);
}

uint32_t tk_xrc_table_target(const struct tk_xrc_table *table, uint32_t rank, uint32_t k)
{
    return row_of(table, rank)[first_target + k];
}

void tk_xrc_table_made(const struct tk_xrc_table *table, uint32_t rank, uint32_t k, uint32_t qp)
{
    row_of(table, rank)[first_target + k] = qp;
}

bool tk_xrc_table_is_connected(const struct tk_xrc_table *table, uint32_t rank, uint32_t k)
{
    return row_of(table, rank)[CONNECTED] >> k & 1;
}

void tk_xrc_table_connected(const struct tk_xrc_table *table, uint32_t rank, uint32_t k)
{
    row_of(table, rank)[CONNECTED] |= UINT32_C(1) << k;
}
