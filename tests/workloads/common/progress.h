/* SPDX-License-Identifier: BSD-3-Clause */
/* One line on a terminal, written over and over: how far a run is and how fast so far. Silent if
 * standard error, or that of the launcher which passes it on, is not a terminal.
 */
#ifndef WL_PROGRESS_H
#define WL_PROGRESS_H

#include <stdint.h>

/* `total_ns` 0: the duration is unknown. */
void wl_progress_start(const char *what, uint64_t now, uint64_t total_ns);

/* Writes at most four times a second; `done` counts operations. */
void wl_progress(uint64_t now, uint64_t done);

/* For runs without a time limit: the completed part, 0 to 1. */
void wl_progress_expect(uint64_t now, double part);

/* Leaves the line empty. */
void wl_progress_end(void);

/* The line itself, for tests. */
int wl_progress_line(char *text, int size, const char *what, uint64_t taken_ns, uint64_t total_ns,
                     uint64_t done);

#endif
