/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv --explain: asks the launcher of a running job what its ranks wait for, and prints
 * the answer. */
#ifndef TRUNKLINE_SPAWNER_ASK_H
#define TRUNKLINE_SPAWNER_ASK_H

/* `job`: the pid of its launcher; NULL: this user's only job on this host. Returns the exit status.
 */
int ask_explain(const char *job);

#endif
