/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that start a guard, for agent.c only. */
#ifndef TRUNKLINE_SPAWNER_AGENT_PRIVATE_H
#define TRUNKLINE_SPAWNER_AGENT_PRIVATE_H

#include "agent.h"

/* Forks the guard of a->host, which runs s->guard; READY or FAILED when it returns. */
void agent_fork(struct agent_set *s, struct agent *a);

#endif
