/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counts (stats.h), as a sum over all threads, and where they are written. */
#ifndef TK_STATS_WRITE_H
#define TK_STATS_WRITE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "stats/table.h"

/* ---- What was counted ---- */

/* The sum over all threads since the start or the last reset. Async-signal-safe. Not exact while
 * other threads count, but each word is as of some moment during the call. */
void tk_stats_sum(struct tk_stats *sum);

/* The addresses of all this, for a reader outside of the process. */
struct tk_wait_counters;
void tk_stats_show(struct tk_wait_counters *places);

/* Resets all counts to 0. */
void tk_stats_reset(void);

/* ---- What is written, and where ---- */

/* How a rank writes; the caller owns the texts and keeps them. */
struct tk_stats_plan {
    const char *file; /* with `%` for the rank; "-", "stderr", "stdout" */
    uint32_t mask;
    uint32_t rank, size;
    const char *host;
    const char *settings; /* that differ from their defaults, as members of an object of JSON */
    bool writes; /* this rank writes; otherwise it may still have to truncate a file that others
                  * write to */
};

/* At start-up, by all ranks: creates the file or, where ranks share it, lets rank 0 truncate it. If
 * it can't be written, one line reports that, and nothing is written. */
void tk_stats_open(const struct tk_stats_plan *plan);
bool tk_stats_is_open(void);

/* The statistics of this rank: once for each process, by the first call. `how`: how the job ended,
 * in a word or two. Async-signal-safe except for the program's function, which runs if
 * `by_exit`. */
void tk_stats_write(const char *how, bool by_exit);

/* The values of this rank for a summary, by rows of the table: at tk_stats_write(), or now. */
void tk_stats_values(uint64_t *values);

/* Written after the statistics of this rank. `size`: of the job. */
void tk_stats_write_summary(const struct tk_stats_summary *summary);

/* The same at any time, any number of times. */
void tk_stats_dump(bool reset);

/* Implements GASNETT_STATS_...: a line; the mask; a function that is called at the end with a
 * function that prints a line. */
typedef void tk_stats_print(const char *format, ...);
void tk_stats_print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tk_stats_vprint_line(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
bool tk_stats_prints(void);
const char *tk_stats_mask_text(void);
void tk_stats_mask_set(const char *text);
void tk_stats_at_end(void (*function)(tk_stats_print *print));

#endif
