/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See format.h. No state. */
#include "config.h"

#include <string.h>

#include "stats/format.h"

enum { name_columns = 34, number_columns = 20, rank_columns = 8 };

enum { digits_max = 12 /* two more than a number of ranks has */ };

static bool is_time(const struct tk_stats_row *row)
{
    return strcmp(row->unit, "ns") == 0;
}

static void size_range(struct tk_text *text, unsigned class)
{
    uint64_t least = UINT64_C(1) << class;
    tk_text_number(text, least);
    if (class > 0) {
        tk_text_char(text, '-');
        tk_text_number(text, 2 * least - 1);
    }
}

static void sizes_for_people(struct tk_text *text, const uint64_t *transfers)
{
    const char *before = "   B: ";
    for (unsigned i = 0; i < tk_size_classes; i++) {
        if (transfers[i] == 0)
            continue;
        tk_text_add(text, before);
        size_range(text, i);
        tk_text_add(text, ": ");
        tk_text_number(text, transfers[i]);
        before = ", ";
    }
}

static void row_for_people(struct tk_text *text, const struct tk_stats_row *row,
                           const struct tk_stats *stats, uint64_t value)
{
    tk_text_char(text, row->letter);
    tk_text_char(text, ' ');
    tk_text_add_in(text, row->name, name_columns);
    if (is_time(row)) {
        tk_text_number_in(text, value / 1000, number_columns);
        tk_text_add(text, " us\n");
        return;
    }
    tk_text_number_in(text, value, number_columns);
    tk_text_char(text, ' ');
    tk_text_add(text, row->unit);
    if (row->is_path)
        sizes_for_people(text, stats->transfers[row->index]);
    tk_text_char(text, '\n');
}

void tk_stats_for_people(struct tk_text *text, const struct tk_stats_heading *heading,
                         const struct tk_stats *stats, uint32_t mask)
{
    tk_text_add(text, heading->label);
    tk_text_add(text, "statistics of rank ");
    tk_text_number(text, heading->rank);
    tk_text_add(text, " of ");
    tk_text_number(text, heading->size);
    tk_text_add(text, ", ");
    tk_text_add(text, heading->host);
    tk_text_add(text, ", pid ");
    tk_text_number(text, (uint64_t)heading->pid);
    tk_text_add(text, ", ");
    tk_text_fraction(text, heading->ns / 1000, 6);
    tk_text_add(text, " s: ");
    tk_text_add(text, heading->how);
    tk_text_char(text, '\n');
    for (unsigned i = 0; i < tk_stats_row_count; i++) {
        const struct tk_stats_row *row = &tk_stats_rows[i];
        uint64_t value = tk_stats_value(stats, row);
        if (value == 0 || !(mask & tk_stats_mask_of(row->letter)))
            continue;
        tk_text_add(text, heading->label);
        row_for_people(text, row, stats, value);
    }
}

static void key(struct tk_text *text, const char **before, const char *name)
{
    tk_text_add(text, *before);
    tk_text_quoted(text, name);
    tk_text_char(text, ':');
    *before = ",";
}

static void sizes_for_programs(struct tk_text *text, const uint64_t *transfers)
{
    const char *before = "";
    tk_text_char(text, '{');
    for (unsigned i = 0; i < tk_size_classes; i++) {
        if (transfers[i] == 0)
            continue;
        tk_text_add(text, before);
        tk_text_char(text, '"');
        tk_text_number(text, UINT64_C(1) << i);
        tk_text_add(text, "\":");
        tk_text_number(text, transfers[i]);
        before = ",";
    }
    tk_text_char(text, '}');
}

static void rows_for_programs(struct tk_text *text, const struct tk_stats *stats, uint32_t mask,
                              bool sizes)
{
    const char *before = "";
    for (unsigned i = 0; i < tk_stats_row_count; i++) {
        const struct tk_stats_row *row = &tk_stats_rows[i];
        if (!(mask & tk_stats_mask_of(row->letter)) || (sizes && !row->is_path))
            continue;
        uint64_t value = tk_stats_value(stats, row);
        if (sizes && value == 0)
            continue;
        key(text, &before, row->id);
        if (sizes)
            sizes_for_programs(text, stats->transfers[row->index]);
        else
            tk_text_number(text, value);
    }
}

void tk_stats_for_programs(struct tk_text *text, const struct tk_stats_heading *heading,
                           const struct tk_stats *stats, uint32_t mask)
{
    tk_text_add(text, "{\"rank\":");
    tk_text_number(text, heading->rank);
    tk_text_add(text, ",\"ranks\":");
    tk_text_number(text, heading->size);
    tk_text_add(text, ",\"host\":");
    tk_text_quoted(text, heading->host);
    tk_text_add(text, ",\"pid\":");
    tk_text_number(text, (uint64_t)heading->pid);
    tk_text_add(text, ",\"seconds\":");
    tk_text_fraction(text, heading->ns / 1000, 6);
    tk_text_add(text, ",\"end\":");
    tk_text_quoted(text, heading->how);
    tk_text_add(text, ",\"counters\":{");
    rows_for_programs(text, stats, mask, false);
    tk_text_add(text, "},\"sizes\":{");
    rows_for_programs(text, stats, mask, true);
    if (heading->settings) {
        tk_text_add(text, "},\"settings\":{");
        tk_text_add(text, heading->settings);
    }
    tk_text_add(text, "}}\n");
}

/* ---- of all ranks ---- */

/* As many digits as the number of ranks has, so that the sum can be computed from the average, and
 * two more. */
static unsigned average_digits(uint32_t ranks)
{
    unsigned digits = 2;
    for (; ranks > 0; ranks /= 10)
        digits++;
    return digits;
}

/* Digits behind the point, of which `remainder` ranks-ths are the value, without zeros at the end.
 * True: it was rounded up to 1. One at a time: the remainder times a power of ten may not fit. */
static bool part_of_average(uint64_t remainder, uint32_t ranks, char *digits)
{
    unsigned count = average_digits(ranks);
    for (unsigned i = 0; i < count; i++) {
        remainder *= 10;
        digits[i] = (char)('0' + remainder / ranks);
        remainder %= ranks;
    }
    bool carry = 2 * remainder >= ranks;
    for (unsigned i = count; i > 0 && carry; i--) {
        carry = digits[i - 1] == '9';
        digits[i - 1] = carry ? '0' : (char)(digits[i - 1] + 1);
    }
    while (count > 0 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    return carry;
}

/* With `columns`, the points of a table are below each other. */
static void average(struct tk_text *text, uint64_t sum, uint32_t ranks, unsigned columns)
{
    char digits[digits_max + 1];
    bool carry = part_of_average(sum % ranks, ranks, digits);
    tk_text_number_in(text, sum / ranks + carry, columns);
    tk_text_add(text, digits[0] ? "." : columns ? " " : "");
    tk_text_add_in(text, digits, columns ? average_digits(ranks) : 0);
}

static void row_of_all(struct tk_text *text, const struct tk_stats_row *row,
                       const struct tk_stats_over_ranks *all, uint32_t ranks)
{
    enum { columns = 16 };
    tk_text_char(text, row->letter);
    tk_text_char(text, ' ');
    tk_text_add_in(text, row->name, name_columns);
    tk_text_number_in(text, all->sum, columns);
    tk_text_number_in(text, all->min, columns);
    tk_text_number_in(text, all->min_rank, rank_columns);
    average(text, all->sum, ranks, columns);
    tk_text_number_in(text, all->max, columns);
    tk_text_number_in(text, all->max_rank, rank_columns);
    tk_text_char(text, ' ');
    tk_text_add(text, row->unit);
    tk_text_char(text, '\n');
}

void tk_stats_summary_for_people(struct tk_text *text, const struct tk_stats_summary *summary,
                                 const char *label, uint32_t size, uint32_t mask)
{
    tk_text_add(text, label);
    tk_text_add(text, "summary of ");
    tk_text_number(text, summary->ranks);
    tk_text_add(text, " of ");
    tk_text_number(text, size);
    tk_text_add(text, " ranks: sum, least and its rank, average, most and its rank\n");
    for (unsigned i = 0; i < tk_stats_row_count; i++) {
        if (summary->rows[i].max == 0 || !(mask & tk_stats_mask_of(tk_stats_rows[i].letter)))
            continue;
        tk_text_add(text, label);
        row_of_all(text, &tk_stats_rows[i], &summary->rows[i], summary->ranks);
    }
}

static void member(struct tk_text *text, const char *name, uint64_t value)
{
    tk_text_add(text, name);
    tk_text_number(text, value);
}

void tk_stats_summary_for_programs(struct tk_text *text, const struct tk_stats_summary *summary,
                                   uint32_t size, uint32_t mask)
{
    const char *before = "";
    member(text, "{\"summary\":", summary->ranks);
    member(text, ",\"ranks\":", size);
    tk_text_add(text, ",\"counters\":{");
    for (unsigned i = 0; i < tk_stats_row_count; i++) {
        const struct tk_stats_over_ranks *all = &summary->rows[i];
        if (!(mask & tk_stats_mask_of(tk_stats_rows[i].letter)))
            continue;
        key(text, &before, tk_stats_rows[i].id);
        member(text, "{\"sum\":", all->sum);
        member(text, ",\"min\":", all->min);
        member(text, ",\"min_rank\":", all->min_rank);
        tk_text_add(text, ",\"avg\":");
        average(text, all->sum, summary->ranks, 0);
        member(text, ",\"max\":", all->max);
        member(text, ",\"max_rank\":", all->max_rank);
        tk_text_char(text, '}');
    }
    tk_text_add(text, "}}\n");
}
