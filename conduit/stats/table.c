/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters.def as tables, and masks of its classes. No state. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "base/bits.h"
#include "stats/table.h"

const struct tk_stats_class tk_stats_classes[] = {
#define TK_CLASS(letter, name, sentence) {letter, name, sentence},
#include "stats/counters.def"
};
const unsigned tk_stats_class_count = sizeof(tk_stats_classes) / sizeof(tk_stats_classes[0]);

const struct tk_stats_row tk_stats_rows[] = {
#define TK_COUNTER(id, letter, unit, name, sentence)                                               \
    {letter, #id, unit, name, sentence, false, tk_counter_##id},
#define TK_PATH(id, letter, name, sentence)                                                        \
    {letter, #id, "transfers", name, sentence, true, tk_path_##id},
#include "stats/counters.def"
};
const unsigned tk_stats_row_count = sizeof(tk_stats_rows) / sizeof(tk_stats_rows[0]);

uint64_t tk_stats_value(const struct tk_stats *stats, const struct tk_stats_row *row)
{
    uint64_t sum = 0;
    if (!row->is_path)
        return stats->counts[row->index];
    for (unsigned i = 0; i < tk_size_classes; i++)
        sum += stats->transfers[row->index][i];
    return sum;
}

__attribute__((no_sanitize("thread"))) void tk_stats_add(struct tk_stats *sum,
                                                         const struct tk_stats *part, uint64_t sign)
{
    uint64_t *to = (uint64_t *)(void *)sum;
    const volatile uint64_t *from = (const volatile uint64_t *)(const void *)part;
    for (unsigned i = 0; i < tk_stats_words; i++)
        to[i] += sign * from[i];
}

void tk_stats_fold(struct tk_stats *sum)
{
    for (unsigned nbytes = 1; nbytes <= tk_small_put_max; nbytes++) {
        uint64_t puts = sum->small_puts[nbytes];
        sum->transfers[tk_path_puts_inline][tk_log2(nbytes)] += puts;
        sum->counts[tk_counter_put_bytes_network] += puts * nbytes;
        sum->small_puts[nbytes] = 0;
    }
    sum->counts[tk_counter_short_requests] += sum->requests_granted - sum->requests_left;
    sum->requests_granted = sum->requests_left = 0;
}

_Static_assert(sizeof(tk_stats_rows) / sizeof(tk_stats_rows[0]) == tk_stats_rows_max,
               "a row for each counter and each path");

void tk_stats_summary_add(struct tk_stats_summary *summary, uint32_t rank, const uint64_t *values)
{
    for (unsigned i = 0; i < tk_stats_rows_max; i++) {
        struct tk_stats_over_ranks *row = &summary->rows[i];
        if (summary->ranks == 0 || values[i] < row->min) {
            row->min = values[i];
            row->min_rank = rank;
        }
        if (summary->ranks == 0 || values[i] > row->max) {
            row->max = values[i];
            row->max_rank = rank;
        }
        row->sum += values[i];
    }
    summary->ranks++;
}

uint32_t tk_stats_mask_of(char letter)
{
    for (unsigned i = 0; i < tk_stats_class_count; i++)
        if (tk_stats_classes[i].letter == letter)
            return UINT32_C(1) << i;
    return 0;
}

bool tk_stats_mask_parse(const char *text, uint32_t *mask)
{
    const uint32_t all = (UINT32_C(1) << tk_stats_class_count) - 1;
    bool is_inverse = *text == '^';
    uint32_t found = 0;
    *mask = all;
    for (const char *at = text + is_inverse; *at; at++) {
        if (!isalpha((unsigned char)*at))
            return false;
        found |= tk_stats_mask_of((char)toupper((unsigned char)*at));
    }
    if (*text)
        *mask = is_inverse ? all & ~found : found;
    return true;
}

void tk_stats_mask_format(uint32_t mask, char *text, size_t size)
{
    size_t length = 0;
    for (unsigned i = 0; i < tk_stats_class_count && length + 1 < size; i++)
        if (mask & UINT32_C(1) << i)
            text[length++] = tk_stats_classes[i].letter;
    text[length] = '\0';
}
