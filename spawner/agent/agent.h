/* SPDX-License-Identifier: BSD-3-Clause */
/* How a guard comes to be on a host. Today there is one way: a fork, on this host. */
#ifndef TRUNKLINE_SPAWNER_AGENT_H
#define TRUNKLINE_SPAWNER_AGENT_H

#include "spawner/base/job.h"

#include <stdbool.h>
#include <sys/types.h>

struct agent {
    pid_t pid;   /* the guard, or what stands for it here */
    int control; /* socket for orders and reports */
    int output;  /* socket for the ranks' standard files */
};

/* Starts the guard on this host. Prints why not and returns false. */
bool agent_start_local(const struct job *job, struct agent *agent);

#endif
