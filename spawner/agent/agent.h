/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts guards on hosts: by a fork on this host, by ssh on others. A set of agents belongs to the
 * process that starts guards (the head, or a guard with hosts below it) and is driven by its loop;
 * nothing here waits. An agent never reaps: the owner of the set does, for all its children, and
 * reports to agent_set_ended(). One thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_AGENT_H
#define TRUNKLINE_SPAWNER_AGENT_H

#include "spawner/util/job.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

enum agent_state {
    AGENT_STARTING,
    AGENT_READY, /* control and output are open, and the other end is proven to be our guard */
    AGENT_FAILED /* `why` has the reason, in a sentence that names the host */
};

struct agent {
    uint32_t host; /* index in job->hosts */
    enum agent_state state;
    bool handed_out; /* by agent_set_next() */
    pid_t pid;       /* the guard, or ssh on its behalf; 0 before and after its life */
    int control;     /* socket for orders and reports; the owner closes it */
    int output;      /* socket for the ranks' standard files; the owner closes it */
    char why[512];
    void *remote; /* of ssh.c */
};

/* The guard itself, as a function of a forked process. It must never return. */
typedef void agent_guard(int control, int output);

struct agent_set {
    const struct job *job;
    agent_guard *guard;
    struct agent *agents;
    uint32_t count;
    void *listener; /* of ssh.c */
};

/* Allocates space for `count` guards. `job` may be a copy of the head's, in a guard. False: out of
 * memory. */
bool agent_set_open(struct agent_set *s, const struct job *job, uint32_t count, agent_guard *guard);

/* Begins to start the guard of a host. A failure, at once or later, is reported in the agent's
 * state. */
void agent_set_start(struct agent_set *s, uint32_t host);

/* The next agent that became READY or FAILED and was not returned before; NULL for none now. */
struct agent *agent_set_next(struct agent_set *s);

/* The descriptors that the set waits for. agent_set_poll() fills at most agent_set_poll_max()
 * entries and returns how many; after poll(2), or at the deadline, agent_set_serve() gets the same
 * entries. */
size_t agent_set_poll_max(const struct agent_set *s);
size_t agent_set_poll(const struct agent_set *s, struct pollfd *p);
void agent_set_serve(struct agent_set *s, const struct pollfd *p, size_t count);
int64_t agent_set_deadline(const struct agent_set *s);

/* Gives up the agents that are still STARTING: they become FAILED. */
void agent_set_cancel(struct agent_set *s);

/* The owner has reaped a child; true when it was one of the agents. */
bool agent_set_ended(struct agent_set *s, pid_t pid, int status);

/* Kills the processes that represent the guards here and frees the set. Sockets of READY agents
 * stay open. */
void agent_set_close(struct agent_set *s);

#endif
