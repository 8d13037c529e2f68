/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cache lines a thread reads and writes. While it watches, all writable memory of the process
 * except stacks is protected: each access faults, is recorded, and is executed as a single step. So
 * it sees every access of a lock or a counter, without help of the compiler. Only on x86-64, only
 * for one thread at a time; other threads should sleep meanwhile. */
#ifndef TESTS_TOUCHED_LINES_H
#define TESTS_TOUCHED_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct touched_line {
    uintptr_t line;    /* its address */
    uintptr_t read_by; /* first instructions that read and wrote it; 0: none */
    uintptr_t written_by;
    uintptr_t written_at; /* the first address */
    /* The number of runs that touched it, and the last of them, from 1. */
    unsigned runs, last, writing_runs, last_writing;
};

enum { touched_lines_max = 4096 };
struct touched_lines {
    size_t count;
    struct touched_line lines[touched_lines_max];
};

bool touched_lines_can_watch(void);

/* *lines, from touched_lines_new(), becomes what `times` runs of `run` touch. */
struct touched_lines *touched_lines_new(void);
void touched_lines_watch(struct touched_lines *lines, unsigned times, void (*run)(const void *),
                         const void *argument);

const struct touched_line *touched_lines_find(const struct touched_lines *lines, uintptr_t line);

#endif
