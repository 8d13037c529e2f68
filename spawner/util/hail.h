/* SPDX-License-Identifier: BSD-3-Clause */
/* How gasnetrun_ibv --explain and --top find the launcher of a job: a socket in Linux's abstract
 * name space, named by the question ("explain", "top"), user and pid, which leaves nothing behind.
 * Each side checks that the other is of the same user. No state. */
#ifndef TRUNKLINE_SPAWNER_HAIL_H
#define TRUNKLINE_SPAWNER_HAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The launcher's: listens, without waiting; -1: it can't. */
int hail_listen(const char *question);

/* Accepts the next caller of the same user; -1 if no caller waits. */
int hail_accept(int listener);

/* Connects to the launcher `pid`; -1 with errno: ECONNREFUSED, no such launcher; EPERM, it belongs
 * to another user. */
int hail_connect(const char *question, pid_t pid);

/* Writes the pids of this user's launchers on this host, at most `most`, and returns how many
 * launchers there are. */
size_t hail_find(const char *question, pid_t *pids, size_t most);

#endif
