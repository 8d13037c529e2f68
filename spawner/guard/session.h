/* SPDX-License-Identifier: BSD-3-Clause */
/* The session directory: where libpmix keeps its files for one job. The head names it, so that the
 * head can remove it if the guard was killed; the guard makes and removes it, so that it goes away
 * when the head is killed. The job does not depend on it. No lock. */
#ifndef TRUNKLINE_SPAWNER_SESSION_H
#define TRUNKLINE_SPAWNER_SESSION_H

#include "base/rank_slot.h"
#include "spawner/util/job.h"

#include <stdbool.h>
#include <stddef.h>

/* Space for the name of a directory of one host. */
enum { SESSION_PATH_MAX = 4200 };

/* Writes a new, unguessable name of a directory in `parent` to `path`; false when it does not fit.
 */
bool session_name(const char *parent, char *path, size_t size);

/* The directory of host `host` of the job: hosts may share a file system. False when it does not
 * fit.
 */
bool session_of_host(const struct job *job, uint32_t host, char *path, size_t size);

/* Makes the directory, for this user alone, and the file in which ranks have a slot each; it must
 * not exist. False with errno. */
bool session_make(const char *path);

/* Reads the slot of a rank; all zeros if the rank has written nothing yet. The rank records a
 * regular exit in its slot because its PMIx server may be stuck (conduit/bootstrap). */
struct tk_rank_slot session_slot(const char *path, unsigned rank);

/* True when libpmix's shared-memory store fits; on a tiny file system clients of it fail or hang.
 */
bool session_has_space(const char *path, unsigned ranks);

/* Removes the directories of the hosts first .. end - 1 that are on this host, whose guards were
 * started by a fork and are gone. The caller need not know which these are: no other directory has
 * such a name. */
void session_remove_hosts(const struct job *job, uint32_t first, uint32_t end);

/* Removes the directory with its contents, without following links. Silent: it may be gone
 * already. */
void session_remove(const char *path);

#endif
