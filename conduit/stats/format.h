/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics as text for people and as JSON. Owns nothing; async-signal-safe. */
#ifndef TK_STATS_FORMAT_H
#define TK_STATS_FORMAT_H

#include "stats/table.h"
#include "stats/text.h"

/* Statistics of a rank; `prefix` precedes each line of text, "" if a file is for one rank only. */
struct tk_stats_heading {
    uint32_t rank, size;
    const char *host, *how, *label;
    const char *settings; /* members of an object of JSON; NULL: none. Only for programs. */
    uint64_t ns;          /* since the start, or the last reset */
    int pid;
};

/* Prints lines for counters that are not zero. */
void tk_stats_for_people(struct tk_text *text, const struct tk_stats_heading *heading,
                         const struct tk_stats *stats, uint32_t mask);

/* Prints one object on one line, with all counters in the mask, and sizes that are not zero. */
void tk_stats_for_programs(struct tk_text *text, const struct tk_stats_heading *heading,
                           const struct tk_stats *stats, uint32_t mask);

/* A summary over all ranks of a job of `size`, in the same two forms. */
void tk_stats_summary_for_people(struct tk_text *text, const struct tk_stats_summary *summary,
                                 const char *label, uint32_t size, uint32_t mask);
void tk_stats_summary_for_programs(struct tk_text *text, const struct tk_stats_summary *summary,
                                   uint32_t size, uint32_t mask);

#endif
