/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the launcher of a running job. For gasnetrun_ibv --explain it asks for the waits of the
 * job's ranks and prints the answer; for other questions it connects to the launcher. No state. */
#ifndef TRUNKLINE_SPAWNER_ASK_H
#define TRUNKLINE_SPAWNER_ASK_H

#include <sys/types.h>

/* `job`: the pid of its launcher or, if another launcher started it, also of a rank; NULL: this
 * user's only job on this host. Returns the exit status. */
int ask_explain(const char *job);

/* The launcher that `job` names, as above, for an option --QUESTION; else one line and the exit
 * status. */
int ask_find(const char *question, const char *job, pid_t *pid);

/* Connects to that launcher; on failure prints one line and returns -1. */
int ask_open(const char *question, pid_t pid);

#endif
