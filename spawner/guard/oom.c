/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the out-of-memory killer; see oom.h. */
#include "config.h"

#include "oom.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct version {
    const char *line, *mount, *counter, *limit;
};

static const struct version versions[] = {
    {":memory:", "/sys/fs/cgroup/memory", "memory.oom_control", "memory.limit_in_bytes"},
    {"::", "/sys/fs/cgroup", "memory.events", "memory.max"},
};

/* The number behind "NAME " at the begin of a line; without a name the first number of the file. 0:
 * no number, or "max", which means no limit. */
static uint64_t oom_read_number(const char *path, const char *name)
{
    char line[256];
    uint64_t value = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, name, strlen(name))) {
            value = strtoull(line + strlen(name), NULL, 10);
            break;
        }
    if (file)
        fclose(file);
    return value;
}

static uint64_t oom_group_number(const char *group, const char *file, const char *name)
{
    char path[1200];
    snprintf(path, sizeof(path), "%s/%s", group, file);
    return oom_read_number(path, name);
}

/* Inside a container the path given by the kernel may not exist; the root is the container's group
 * then. */
static bool find_group(struct oom_watch *s, const struct version *v, const char *name)
{
    char path[1200];
    int n = snprintf(s->group, sizeof(s->group), "%s%s%s", s->root, v->mount, name);
    size_t top = strlen(s->root) + strlen(v->mount);
    if (n < 0 || (size_t)n >= sizeof(s->group))
        s->group[top] = 0;
    for (;;) {
        snprintf(path, sizeof(path), "%s/%s", s->group, v->counter);
        if (access(path, R_OK) == 0)
            return true;
        char *last = strrchr(s->group + top, '/');
        if (!last)
            return false;
        *last = 0;
    }
}

/* Lines are NUMBER:CONTROLLERS:PATH. */
static bool find_version(struct oom_watch *s, const struct version *v)
{
    char path[1200], line[1024];
    bool found = false;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", s->root);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        const char *name = line + strcspn(line, ":");
        line[strcspn(line, "\n")] = 0;
        found =
            !strncmp(name, v->line, strlen(v->line)) && find_group(s, v, name + strlen(v->line));
    }
    if (file)
        fclose(file);
    return found;
}

static uint64_t host_killed(const struct oom_watch *s)
{
    char path[1200];
    snprintf(path, sizeof(path), "%s/proc/vmstat", s->root);
    return oom_read_number(path, "oom_kill ");
}

void oom_open(struct oom_watch *s, const char *root)
{
    *s = (struct oom_watch){.root = root};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]) && !s->counter; i++)
        if (find_version(s, &versions[i])) {
            s->counter = versions[i].counter;
            s->limit = versions[i].limit;
        }
    if (s->counter)
        s->killed = oom_group_number(s->group, s->counter, "oom_kill ");
    s->host_killed = host_killed(s);
}

/* The lowest limit of the group and its parents; 0: no limit. Version 1 has a huge number for "no
 * limit". */
static uint64_t find_limit(const struct oom_watch *s, char *where, size_t size)
{
    char group[sizeof(s->group)];
    uint64_t lowest = 0;
    memcpy(group, s->group, sizeof(group));
    while (group[0]) {
        uint64_t limit = oom_group_number(group, s->limit, "");
        if (limit > 0 && limit < UINT64_C(1) << 60 && (!lowest || limit < lowest)) {
            lowest = limit;
            snprintf(where, size, "%s/%s", group, s->limit);
        }
        *strrchr(group, '/') = 0; /* it is an absolute path */
    }
    return lowest;
}

static void explain_group(const struct oom_watch *s, uint64_t count, char *text, size_t size)
{
    char where[1200];
    uint64_t limit = find_limit(s, where, sizeof(where));
    int n = snprintf(text, size,
                     "out of memory: the kernel killed %" PRIu64 " process(es) of the job's cgroup",
                     count);
    if (limit && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", which may use %" PRIu64 " bytes (%s)", limit,
                 where);
}

bool oom_explain(const struct oom_watch *s, char *text, size_t size)
{
    uint64_t now = s->counter ? oom_group_number(s->group, s->counter, "oom_kill ") : 0;
    if (now > s->killed) {
        explain_group(s, now - s->killed, text, size);
        return true;
    }
    now = host_killed(s);
    if (now <= s->host_killed)
        return false;
    snprintf(text, size,
             "the host may be out of memory: the kernel killed %" PRIu64
             " process(es) for that since the job began (oom_kill in /proc/vmstat, see dmesg)",
             now - s->host_killed);
    return true;
}
