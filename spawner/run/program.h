/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the program to run, as a shell would. */
#ifndef TRUNKLINE_SPAWNER_PROGRAM_H
#define TRUNKLINE_SPAWNER_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Looks for `name` (in PATH when it has no slash) and writes a path with a slash. On failure
 * returns false with one sentence in `why`. */
bool program_find(const char *name, char *path, size_t path_size, char *why, size_t why_size);

#endif
