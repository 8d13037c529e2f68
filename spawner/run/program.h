/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the program to run, as a shell would. */
#ifndef TRUNKLINE_SPAWNER_PROGRAM_H
#define TRUNKLINE_SPAWNER_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Looks for `name` (in PATH when it has no slash) and writes a path with a slash. On failure
 * returns false with one sentence in `why`. */
bool program_find(const char *name, char *path, size_t path_size, char *why, size_t why_size);

/* Where our own executable lies, without a slash at the end. */
bool program_own_directory(char *path, size_t size);

/* Finds another program of this package: beside our own executable, or in `build_folder` of the
 * build tree. */
bool program_beside(const char *name, const char *build_folder, char *path, size_t size);

#endif
