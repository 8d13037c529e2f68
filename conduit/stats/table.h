/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counters: counters.def as types and tables, and masks of its classes. Pure; also in the
 * launcher, for its manual page. */
#ifndef TK_STATS_TABLE_H
#define TK_STATS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum tk_counter {
#define TK_COUNTER(id, letter, unit, name, sentence) tk_counter_##id,
#include "stats/counters.def"
    tk_counters
};

enum tk_path_counted {
#define TK_PATH(id, letter, name, sentence) tk_path_##id,
#include "stats/counters.def"
    tk_paths
};

enum { tk_size_classes = 48 /* 2^k to 2^(k+1) - 1 bytes; no address space has more */ };

enum { tk_small_put_max = 1023 /* bytes; no device takes more into a work request */ };

/* All counts, of a thread or summed. On the fast path an inline put is counted by its exact size,
 * which costs one addition; tk_stats_fold() adds these to the counts of their path, and their
 * bytes. A Short request is counted by the remaining budget of requests (tk_stats_take_turn()), so
 * that one subtraction does both; tk_stats_fold() adds these too. What every message counts comes
 * first: polls have touched that page before a first message. */
struct tk_stats {
    uint64_t requests_granted, requests_left; /* their difference: Short requests */
    uint64_t counts[tk_counters];
    uint64_t transfers[tk_paths][tk_size_classes];
    uint64_t small_puts[tk_small_put_max + 1];
};

enum { tk_stats_words = sizeof(struct tk_stats) / sizeof(uint64_t) };

/* What a launcher compares before it reads counters of a rank, which may have another build of the
 * library: changes with the number of words, and by hand (the 2) with their order. */
enum { tk_stats_layout = 2 << 24 | tk_stats_words };

/* Rows of the table, in the order of the output. `path`: rows of transfers, by path. */
struct tk_stats_class {
    char letter;
    const char *name, *sentence;
};
struct tk_stats_row {
    char letter;
    const char *id, *unit, *name, *sentence;
    bool is_path;
    unsigned index; /* tk_counter or tk_path_counted */
};
extern const struct tk_stats_class tk_stats_classes[];
extern const unsigned tk_stats_class_count;
extern const struct tk_stats_row tk_stats_rows[];
extern const unsigned tk_stats_row_count;

/* A count, or for a path the sum over all sizes. */
uint64_t tk_stats_value(const struct tk_stats *stats, const struct tk_stats_row *row);

/* sum += part, or with UINT64_MAX sum -= part. A thread may go on counting in `part`: each word is
 * one load. Async-signal-safe. */
void tk_stats_add(struct tk_stats *sum, const struct tk_stats *part, uint64_t sign);

/* Applied to a complete sum. Async-signal-safe. */
void tk_stats_fold(struct tk_stats *sum);

/* Classes as bits, by their index in the table. A mask is letters in upper or lower case; "^" in
 * front means all but these. Letters without a class (masks of other libraries have some) have no
 * effect; false: a character is not a letter. An empty mask means all. */
bool tk_stats_mask_parse(const char *text, uint32_t *mask);
void tk_stats_mask_format(uint32_t mask, char *text, size_t size);
uint32_t tk_stats_mask_of(char letter);

/* The rows of all ranks together, in the order of the table. */
enum { tk_stats_rows_max = tk_counters + tk_paths };
struct tk_stats_over_ranks {
    uint64_t sum, min, max;
    uint32_t min_rank, max_rank;
};
struct tk_stats_summary {
    uint32_t ranks; /* whose values are in it */
    struct tk_stats_over_ranks rows[tk_stats_rows_max];
};
void tk_stats_summary_add(struct tk_stats_summary *summary, uint32_t rank, const uint64_t *values);

/* print.c. The table for people, and as part of a manual page. */
void tk_stats_table_print(FILE *out);
void tk_stats_table_print_man(FILE *out);

#endif
