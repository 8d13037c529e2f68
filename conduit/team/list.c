/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See list.h. Owns nothing but the tables of lists. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "team/list.h"

static void *list_table(uint32_t count)
{
    void *table = malloc(count * sizeof(uint32_t));
    if (!table)
        tk_panic("out of memory for a team of %u members", count);
    return table;
}

/* Sorted in one go as 64-bit numbers, value above place: qsort() has no argument for the table. */
static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void list_sort(struct tk_list *list)
{
    uint64_t *keys = malloc(list->count * sizeof(*keys));
    if (!keys)
        tk_panic("out of memory for a team of %u members", list->count);
    for (uint32_t i = 0; i < list->count; i++)
        keys[i] = (uint64_t)list->values[i] << 32 | i;
    qsort(keys, list->count, sizeof(*keys), compare_keys);
    for (uint32_t i = 0; i < list->count; i++)
        list->order[i] = (uint32_t)keys[i];
    free(keys);
}

static bool follows_rule(const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 2; i < count; i++)
        if (values[i] - values[i - 1] != values[1] - values[0])
            return false;
    return true;
}

void tk_list_make_rule(struct tk_list *list, uint32_t first, uint32_t step, uint32_t count)
{
    *list = (struct tk_list){.count = count, .first = first, .step = step};
}

void tk_list_make(struct tk_list *list, const uint32_t *values, uint32_t count)
{
    uint32_t first = count > 0 ? values[0] : 0;
    tk_list_make_rule(list, first, count > 1 ? values[1] - first : 0, count);
    if (follows_rule(values, count))
        return;
    list->values = list_table(count);
    list->order = list_table(count);
    memcpy(list->values, values, count * sizeof(*values));
    list_sort(list);
}

void tk_list_drop(struct tk_list *list)
{
    free(list->values);
    free(list->order);
    *list = (struct tk_list){0};
}

static uint32_t find_by_rule(const struct tk_list *list, uint32_t value)
{
    int64_t step = (int32_t)list->step, distance = (int64_t)value - list->first;
    if (list->count == 0 || (step == 0 && distance != 0))
        return tk_list_none;
    if (distance == 0)
        return 0;
    int64_t place = distance / step;
    bool is_there = distance % step == 0 && place > 0 && place < (int64_t)list->count;
    return is_there ? (uint32_t)place : tk_list_none;
}

uint32_t tk_list_find(const struct tk_list *list, uint32_t value)
{
    if (!list->values)
        return find_by_rule(list, value);
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->values[list->order[middle]] < value)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < list->count && list->values[list->order[low]] == value;
    return is_there ? list->order[low] : tk_list_none;
}

bool tk_list_has_repeats(const struct tk_list *list)
{
    if (!list->values)
        return list->step == 0 && list->count > 1;
    for (uint32_t i = 1; i < list->count; i++)
        if (list->values[list->order[i]] == list->values[list->order[i - 1]])
            return true;
    return false;
}
