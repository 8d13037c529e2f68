/* SPDX-License-Identifier: BSD-3-Clause */
/* The session directory: where libpmix keeps its files for one job. Made before the guard starts,
 * removed by the guard, or by the head when the guard was killed. Holds nothing a job would miss.
 * No lock. */
#ifndef TRUNKLINE_SPAWNER_SESSION_H
#define TRUNKLINE_SPAWNER_SESSION_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a directory with mode 0700 and a unique name under `parent`; writes its path to `path`.
 * Prints why not and returns false. */
bool session_make(const char *parent, char *path, size_t size);

/* True when libpmix's shared-memory store fits; on a tiny file system clients of it fail or hang.
 */
bool session_has_room(const char *path, unsigned ranks);

/* Removes the directory and all that is in it, without following links. Silent: it may be gone
 * already. */
void session_remove(const char *path);

#endif
