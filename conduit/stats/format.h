/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics as text for people and as JSON. Owns nothing; async-signal-safe. */
#ifndef TK_STATS_FORMAT_H
#define TK_STATS_FORMAT_H

#include "stats/table.h"
#include "stats/text.h"

/* Of a rank; what precedes each line for people, "" where a file is of one rank only. */
struct tk_stats_heading {
    uint32_t rank, size;
    const char *host, *how, *label;
    uint64_t ns; /* since the start, or the last reset */
    int pid;
};

/* Lines for what is not zero. */
void tk_stats_for_people(struct tk_text *text, const struct tk_stats_heading *heading,
                         const struct tk_stats *stats, uint32_t mask);

/* One object on one line, with all that the mask has; sizes where they are not zero. */
void tk_stats_for_programs(struct tk_text *text, const struct tk_stats_heading *heading,
                           const struct tk_stats *stats, uint32_t mask);

/* Of all ranks of a job of `size`, in the same two ways. */
void tk_stats_summary_for_people(struct tk_text *text, const struct tk_stats_summary *summary,
                                 const char *label, uint32_t size, uint32_t mask);
void tk_stats_summary_for_programs(struct tk_text *text, const struct tk_stats_summary *summary,
                                   uint32_t size, uint32_t mask);

#endif
