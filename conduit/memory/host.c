/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much memory the host and the cgroups of this process have, and what is left of it. Nothing is
 * probed by allocating: what the kernel tells is read. No state. */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/memory.h"

static uint64_t read_number(const char *path)
{
    unsigned long long value = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &value) != 1) /* "max" in cgroup v2: no limit */
        value = 0;
    fclose(file);
    return value;
}

/* The number in a line that begins with `name`; 0: there is none. */
static uint64_t named_number(const char *path, const char *name)
{
    char line[128];
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

/* In bytes; `name` with its colon. */
static uint64_t meminfo(const char *name)
{
    return named_number("/proc/meminfo", name) << 10;
}

size_t tk_huge_page_size(void)
{
    uint64_t bytes = meminfo("Hugepagesize:");
    return bytes ? (size_t)bytes : (size_t)2 << 20;
}

/* How the two versions of cgroups call the same things. */
struct controller {
    const char *line; /* of /proc/self/cgroup, behind its number */
    const char *mount, *limit, *used;
    const char *cache, *shared; /* in memory.stat */
};

static const struct controller controllers[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "file ", "shmem "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_cache ", "total_shmem "},
};

/* This process's group, e.g. "/user.slice/x"; empty for the root, or where there is none. */
static void my_group(const struct controller *c, char *path, size_t size)
{
    char line[1024];
    FILE *file = fopen("/proc/self/cgroup", "re");
    path[0] = 0;
    while (file && fgets(line, sizeof(line), file)) {
        const char *name = line + strcspn(line, ":");
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(name, c->line, strlen(c->line)))
            snprintf(path, size, "%s", name + strlen(c->line));
    }
    if (file)
        fclose(file);
    if (!strcmp(path, "/"))
        path[0] = 0;
}

/* What the kernel drops when memory is short: it counts as used, but not for long. Our own shared
 * memory counts as cache too, and does not go. */
static uint64_t droppable(const struct controller *c, const char *group)
{
    char path[1200];
    snprintf(path, sizeof(path), "%s%s/memory.stat", c->mount, group);
    uint64_t cache = named_number(path, c->cache), shared = named_number(path, c->shared);
    return cache > shared ? cache - shared : 0;
}

/* The least there is, and what makes it so. */
struct room {
    uint64_t limit, left;
    char what[1300];
};

static uint64_t group_number(const struct controller *c, const char *group, const char *name)
{
    char path[1200];
    snprintf(path, sizeof(path), "%s%s/%s", c->mount, group, name);
    return read_number(path);
}

static void look_at_group(const struct controller *c, const char *group, struct room *room)
{
    uint64_t limit = group_number(c, group, c->limit);
    uint64_t used = group_number(c, group, c->used), drop = droppable(c, group);
    if (limit == 0)
        return;
    used = used > drop ? used - drop : 0;
    room->limit = limit < room->limit ? limit : room->limit;
    if (used < limit && limit - used >= room->left)
        return;
    room->left = used < limit ? limit - used : 0;
    snprintf(room->what, sizeof(room->what), "the limit of its cgroup, %llu bytes in %s%s/%s,",
             (unsigned long long)limit, c->mount, group, c->limit);
}

/* A group is bound by those that it is in, too. Within a container the path that the kernel tells
 * of may not be there, and its last part, the root, is the container's group. */
static void look_at_groups(const struct controller *c, struct room *room)
{
    char group[1024];
    my_group(c, group, sizeof(group));
    for (;;) {
        look_at_group(c, group, room);
        char *last = strrchr(group, '/');
        if (!last)
            return;
        *last = 0;
    }
}

static void look(struct room *room)
{
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
        look_at_groups(&controllers[i], room);
}

uint64_t tk_memory_available(char *what, size_t size)
{
    uint64_t bytes = meminfo("MemAvailable:");
    struct room room = {.limit = UINT64_MAX, .left = bytes ? bytes : UINT64_MAX};
    snprintf(room.what, sizeof(room.what), "the host (MemAvailable in /proc/meminfo)");
    look(&room);
    snprintf(what, size, "%s", room.what);
    return room.left;
}

uint64_t tk_host_memory(void)
{
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * tk_page_size();
    struct room room = {.limit = ram};
    look(&room);
    return room.limit;
}
