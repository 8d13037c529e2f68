/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The output file of a rank, for statistics or a trace: its name, and the message for when it can't
 * be written. The writer owns the file itself. */
#ifndef TK_STATS_FILE_H
#define TK_STATS_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct tk_stats_file {
    const char *before, *after; /* of that message, around what failed, the name and the reason */
    const char *name;           /* as the user gave it */
    char path[PATH_MAX];        /* "": standard output or error */
    int stream;                 /* then: which of the two */
    bool is_json;
};

/* The name with the rank in place of each `%`, from the root, since programs change directories;
 * "-", "stderr" and "stdout" are streams. 0, or errno. */
int tk_stats_file_name(struct tk_stats_file *file, const char *name, uint32_t rank);

/* Prints the line, and the process will not end with 0. Async-signal-safe. */
void tk_stats_file_failed(const struct tk_stats_file *file, const char *what, int error);

#endif
