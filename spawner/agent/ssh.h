/* SPDX-License-Identifier: BSD-3-Clause */
/* Guards on other hosts: a command like ssh runs the launcher there, which reads the secret of the
 * job from its standard input and calls back twice, for control and for output. The command's
 * standard input stays open as long as the job lives: its end, too, tells the guard that the job is
 * over. For agent.c alone; owns the port that is called back and the pipes to the commands. One
 * thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_SSH_H
#define TRUNKLINE_SPAWNER_SSH_H

#include "agent.h"

/* Begins to start the guard of a->host. A failure, at once or later, is reported in the agent's
 * state. */
void ssh_start(struct agent_set *s, struct agent *a);

size_t ssh_poll_max(const struct agent_set *s);
size_t ssh_poll(const struct agent_set *s, struct pollfd *p);
void ssh_serve(struct agent_set *s);
int64_t ssh_deadline(const struct agent_set *s);

/* The command has ended. For a READY agent a->why becomes what it printed or how it ended. */
void ssh_ended(struct agent *a, int status);

/* Gives up the agent if it is STARTING. */
void ssh_cancel(struct agent *a);

/* Frees what belongs to the agent, and to the set. */
void ssh_free(struct agent *a);
void ssh_close(struct agent_set *s);

#endif
