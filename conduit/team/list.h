/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of numbers (ranks, endpoint indices) that takes constant memory if it is an arithmetic
 * sequence: a first number and a step, which may be 0 or negative. Otherwise it owns a table, and
 * an index of it for finding. Read-only once made, so no lock. */
#ifndef TK_LIST_H
#define TK_LIST_H

#include <stdbool.h>
#include <stdint.h>

struct tk_list {
    uint32_t count;
    uint32_t first, step; /* in arithmetic modulo 2^32; used if there is no table */
    uint32_t *values;     /* NULL: an arithmetic sequence */
    uint32_t *order;      /* places in the table, by value and then by place */
};

static const uint32_t tk_list_none = UINT32_MAX;

static inline uint32_t tk_list_at(const struct tk_list *list, uint32_t place)
{
    return list->values ? list->values[place] : list->first + place * list->step;
}

/* Copies the values, unless they are an arithmetic sequence. */
void tk_list_make(struct tk_list *list, const uint32_t *values, uint32_t count);
void tk_list_make_rule(struct tk_list *list, uint32_t first, uint32_t step, uint32_t count);
void tk_list_drop(struct tk_list *list);

/* The first place of the value; tk_list_none if it is missing. Constant time for arithmetic
 * sequences, otherwise logarithmic. */
uint32_t tk_list_find(const struct tk_list *list, uint32_t value);

/* Whether a value occurs more than once. */
bool tk_list_has_repeats(const struct tk_list *list);

/* Whether the values are first, first + 1, ... */
static inline bool tk_list_is_range(const struct tk_list *list)
{
    return !list->values && (list->step == 1 || list->count <= 1);
}

#endif
