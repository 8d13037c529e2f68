/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of agents; see agent.h. Owns the table of agents; no lock. */
#include "config.h"

#include "agent_private.h"
#include "ssh.h"
#include "spawner/children/children.h"
#include "spawner/util/launcher_clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool agent_set_open(struct agent_set *s, const struct job *job, uint32_t count, agent_guard *guard)
{
    *s = (struct agent_set){.job = job, .guard = guard};
    s->agents = calloc(count ? count : 1, sizeof(*s->agents));
    return s->agents != NULL;
}

/* Whether a name means this process's host; its first part is enough, as in batch lists. */
static bool is_here(const char *name)
{
    char here[256] = "";
    size_t n = strlen(name);

    if (!strcmp(name, "localhost"))
        return true;
    if (gethostname(here, sizeof(here) - 1) != 0 || strncmp(here, name, n) != 0)
        return false;
    return n && (!here[n] || here[n] == '.') && !(strchr(name, '.') && here[n]);
}

static bool needs_ssh(const struct job *job, uint32_t host)
{
    const struct job_host *h = &job->hosts[host];
    return job->agent == JOB_AGENT_SSH && !h->is_virtual && !is_here(h->name);
}

void agent_set_start(struct agent_set *s, uint32_t host)
{
    struct agent *a = &s->agents[s->count++];

    *a = (struct agent){.host = host, .control = -1, .output = -1};
    if (needs_ssh(s->job, host))
        ssh_start(s, a);
    else
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

/* A fork is ready at once, so only guards of other hosts are waited for. */
size_t agent_set_poll_max(const struct agent_set *s)
{
    return ssh_poll_max(s);
}

size_t agent_set_poll(const struct agent_set *s, struct pollfd *p)
{
    return ssh_poll(s, p);
}

void agent_set_serve(struct agent_set *s, const struct pollfd *p, size_t count)
{
    (void)p, (void)count; /* all that is open is tried, without waiting */
    ssh_serve(s);
}

int64_t agent_set_deadline(const struct agent_set *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->agents[i].state != AGENT_STARTING && !s->agents[i].handed_out)
            return 0; /* given up by agent_set_cancel(): no event may follow */
    return ssh_deadline(s);
}

void agent_set_cancel(struct agent_set *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->agents[i].remote)
            ssh_cancel(&s->agents[i]);
}

bool agent_set_ended(struct agent_set *s, pid_t pid, int status)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct agent *a = &s->agents[i];
        if (a->pid != pid)
            continue;
        a->pid = 0;
        if (a->remote)
            ssh_ended(a, status);
        return true;
    }
    return false;
}

void agent_set_close(struct agent_set *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        child_signal(s->agents[i].pid, SIGKILL); /* children_sweep() may have reaped it */
        ssh_free(&s->agents[i]);
    }
    ssh_close(s);
    free(s->agents);
    *s = (struct agent_set){0};
}
