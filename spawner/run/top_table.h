/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of gasnetrun_ibv --top: a table for people, an object for programs. Pure except for
 * the stream. */
#ifndef TRUNKLINE_SPAWNER_TOP_TABLE_H
#define TRUNKLINE_SPAWNER_TOP_TABLE_H

#include "spawner/wire/counts.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A job at one time: ranks in order. */
struct top_sample {
    struct counts_job job;
    struct counts_rank *ranks;
};

/* Where the table goes. */
struct top_screen {
    FILE *out;
    bool is_terminal; /* each line erases the rest of its terminal line */
    unsigned rows;    /* maximum number of lines; 0: no limit */
    unsigned columns; /* longer lines are cut; 0: lines are not cut */
};

/* Rates between two samples; without an earlier sample, totals since the start. */
void top_table(const struct top_screen *screen, const struct top_sample *now,
               const struct top_sample *former);

/* One line: everything of each rank since its start. */
void top_json(FILE *out, const struct top_sample *now);

#endif
