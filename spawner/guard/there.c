/* SPDX-License-Identifier: BSD-3-Clause */
/* A job on another host; see there.h. */
#include "config.h"

#include "there.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files of the guard and the server: those of the ranks, and the pipes, sockets and guards below.
 */
enum { FILES_HERE = 65536 };

static bool has_name_in(const char *entry, char *const *list, size_t count)
{
    size_t n = strcspn(entry, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (!strncmp(entry, list[i], n))
            return true;
    return false;
}

static bool merge_environment(struct job *job)
{
    size_t given = 0, own = 0;
    while (job->env[given])
        given++;
    while (environ[own])
        own++;
    char **list = calloc(given + own + 1, sizeof(*list));
    if (!list)
        return false;
    memcpy(list, job->env, given * sizeof(*list));
    for (size_t i = 0, used = given; i < own; i++)
        if (!has_name_in(environ[i], list, given))
            list[used++] = environ[i];
    free(job->env);
    job->env = list;
    return true;
}

/* Like any number, RLIM_INFINITY is cut to the hard limit here. */
static rlim_t at_most(uint64_t wanted, rlim_t hard)
{
    return wanted < hard ? (rlim_t)wanted : hard;
}

static void take_limits(struct job *job)
{
    struct rlimit limit;

    for (int i = 0; i < JOB_LIMITS; i++) {
        if (i == RLIMIT_NOFILE || getrlimit(i, &limit) != 0)
            continue;
        limit.rlim_cur = at_most(job->soft_limits[i], limit.rlim_max);
        setrlimit(i, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    job->files.rlim_max = limit.rlim_max;
    job->files.rlim_cur = at_most(job->files.rlim_cur, limit.rlim_max);
    limit.rlim_cur = at_most(FILES_HERE, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
}

bool there_adapt(struct job *job, bool is_far)
{
    if (is_far)
        take_limits(job);
    return merge_environment(job);
}
