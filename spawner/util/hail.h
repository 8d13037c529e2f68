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

/* The next caller of our user; -1: there is none. */
int hail_accept(int listener);

/* To the launcher `pid`; -1 with errno: ECONNREFUSED, there is none; EPERM, it is another user's.
 */
int hail_connect(const char *question, pid_t pid);

/* Our user's launchers on this host; returns how many there are, of which at most `most` are
 * written. */
size_t hail_find(const char *question, pid_t *pids, size_t most);

#endif
