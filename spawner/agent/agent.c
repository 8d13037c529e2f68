/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of agents; see agent.h. Owns the table of agents; no lock. */
#include "config.h"

#include "agent_private.h"
#include "spawner/base/clock.h"

#include <signal.h>
#include <stdlib.h>

bool agent_set_open(struct agent_set *s, const struct job *job, uint32_t count, agent_guard *guard)
{
    *s = (struct agent_set){.job = job, .guard = guard};
    s->agents = calloc(count ? count : 1, sizeof(*s->agents));
    return s->agents != NULL;
}

void agent_set_start(struct agent_set *s, uint32_t host)
{
    struct agent *a = &s->agents[s->count++];

    *a = (struct agent){.host = host, .control = -1, .output = -1};
    agent_fork(s, a);
}

struct agent *agent_set_next(struct agent_set *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct agent *a = &s->agents[i];
        if (a->state == AGENT_STARTING || a->handed_out)
            continue;
        a->handed_out = true;
        return a;
    }
    return NULL;
}

/* A fork is ready at once, so there is nothing to wait for. */
size_t agent_set_poll_max(const struct agent_set *s)
{
    (void)s;
    return 0;
}

size_t agent_set_poll(const struct agent_set *s, struct pollfd *p)
{
    (void)s, (void)p;
    return 0;
}

void agent_set_serve(struct agent_set *s, const struct pollfd *p, size_t count)
{
    (void)s, (void)p, (void)count;
}

int64_t agent_set_deadline(const struct agent_set *s)
{
    (void)s;
    return CLOCK_NEVER;
}

bool agent_set_ended(struct agent_set *s, pid_t pid, int status)
{
    (void)status;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->agents[i].pid == pid) {
            s->agents[i].pid = 0;
            return true;
        }
    return false;
}

void agent_set_close(struct agent_set *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->agents[i].pid)
            kill(s->agents[i].pid, SIGKILL);
    free(s->agents);
    *s = (struct agent_set){0};
}
