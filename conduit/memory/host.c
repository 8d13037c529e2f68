/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much memory the host and the cgroups of this process have, and how much of it is free.
 * Nothing is probed by allocating: only the kernel's figures are read. No state. */
#include "config.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory/memory.h"

enum { file_max = 8192 /* more bytes than the longest file read here */ };

/* Async-signal-safe, because a SIGBUS handler queries free memory. Empty if the file can't be
 * read. */
static void read_file(const char *path, char text[file_max])
{
    size_t length = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0 && length < file_max - 1; length += (size_t)got)
        if ((got = read(fd, text + length, file_max - 1 - length)) < 0)
            break;
    if (fd >= 0)
        close(fd);
    text[length] = 0;
}

/* 0 if it is not a number, such as "max" in cgroup v2, which means unlimited. */
static uint64_t number_in(const char *text)
{
    uint64_t value = 0;
    while (*text == ' ' || *text == '\t')
        text++;
    for (; *text >= '0' && *text <= '9'; text++)
        value = 10 * value + (uint64_t)(*text - '0');
    return value;
}

/* The file contains only that number, so one read suffices. */
static uint64_t read_number(const char *path)
{
    char text[32];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return number_in(text);
}

/* The next line; NULL at the end. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

/* The number in the line that begins with `name`; 0 if there is none. */
static uint64_t number_of_line(const char *text, const char *name)
{
    for (const char *line = text; line; line = next_line(line))
        if (!strncmp(line, name, strlen(name)))
            return number_in(line + strlen(name));
    return 0;
}

/* In bytes; `name` includes the colon. */
static uint64_t meminfo(const char *name)
{
    char text[file_max];
    read_file("/proc/meminfo", text);
    return number_of_line(text, name) << 10;
}

static uint64_t host_ram(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * tk_page_size();
}

size_t tk_huge_page_size(void)
{
    uint64_t bytes = meminfo("Hugepagesize:");
    return bytes ? (size_t)bytes : (size_t)2 << 20;
}

/* The names that the two versions of cgroups use for the same things. */
struct controller {
    const char *line; /* in /proc/self/cgroup, behind the number */
    const char *mount, *limit, *used;
    const char *cache, *shared; /* in memory.stat */
};

static const struct controller controllers[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "file ", "shmem "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_cache ", "total_shmem "},
};

/* This process's group by its /proc/self/cgroup, e.g. "/user.slice/x"; empty for the root, or if it
 * has no group. */
static void my_group(const struct controller *c, const char *text, char *path, size_t size)
{
    path[0] = 0;
    for (const char *line = text; line; line = next_line(line)) {
        const char *name = line + strcspn(line, ":");
        size_t prefix = strlen(c->line);
        if (!strncmp(name, c->line, prefix))
            snprintf(path, size, "%.*s", (int)strcspn(name + prefix, "\n"), name + prefix);
    }
    if (!strcmp(path, "/"))
        path[0] = 0;
}

/* Memory that counts as used but that the kernel drops when memory is short. Our own shared memory
 * counts as cache too, but can't be dropped. */
static uint64_t droppable(const struct controller *c, const char *group)
{
    char path[1200], text[file_max];
    snprintf(path, sizeof(path), "%s%s/memory.stat", c->mount, group);
    read_file(path, text);
    uint64_t cache = number_of_line(text, c->cache), shared = number_of_line(text, c->shared);
    return cache > shared ? cache - shared : 0;
}

/* The tightest limit found, and its name. */
struct headroom {
    uint64_t limit, left;
    char what[1300];
    uint64_t ram; /* of the host */
};

static uint64_t group_number(const struct controller *c, const char *group, const char *name)
{
    char path[1200];
    snprintf(path, sizeof(path), "%s%s/%s", c->mount, group, name);
    return read_number(path);
}

/* A limit above the host's memory limits nothing; version 1 expresses "unlimited" like that. Then
 * the usage is not read: the kernel adds up the counters of all CPUs and groups below for it, and
 * hundreds of ranks that start at once would each ask several times. */
static void host_check_group(const struct controller *c, const char *group,
                             struct headroom *headroom)
{
    uint64_t limit = group_number(c, group, c->limit);
    if (limit == 0 || limit >= headroom->ram)
        return;
    uint64_t used = group_number(c, group, c->used), drop = droppable(c, group);
    used = used > drop ? used - drop : 0;
    headroom->limit = limit < headroom->limit ? limit : headroom->limit;
    if (used < limit && limit - used >= headroom->left)
        return;
    headroom->left = used < limit ? limit - used : 0;
    snprintf(headroom->what, sizeof(headroom->what),
             "the limit of its cgroup, %llu bytes in %s%s/%s,", (unsigned long long)limit, c->mount,
             group, c->limit);
}

/* A group is limited by its ancestors too. Within a container the path that the kernel reports may
 * not exist, and its last ancestor, the root, is the container's group. */
static void host_check_groups(const struct controller *c, const char *groups,
                              struct headroom *headroom)
{
    char group[1024];
    my_group(c, groups, group, sizeof(group));
    for (;;) {
        host_check_group(c, group, headroom);
        char *last = strrchr(group, '/');
        if (!last)
            return;
        *last = 0;
    }
}

static void host_check(struct headroom *headroom)
{
    char groups[file_max];
    read_file("/proc/self/cgroup", groups);
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
        host_check_groups(&controllers[i], groups, headroom);
}

/* Only relevant with strict overcommit accounting; by default the kernel promises more than it has.
 */
static void host_check_commit_limit(struct headroom *headroom)
{
    if (read_number("/proc/sys/vm/overcommit_memory") != 2)
        return;
    uint64_t limit = meminfo("CommitLimit:"), used = meminfo("Committed_AS:");
    uint64_t left = used < limit ? limit - used : 0;
    if (left >= headroom->left)
        return;
    headroom->left = left;
    snprintf(headroom->what, sizeof(headroom->what),
             "CommitLimit in /proc/meminfo, %llu bytes (vm.overcommit_memory=2),",
             (unsigned long long)limit);
}

static struct headroom host_measure(void)
{
    uint64_t bytes = meminfo("MemAvailable:"), ram = host_ram();
    struct headroom headroom = {.limit = ram, .left = bytes ? bytes : UINT64_MAX, .ram = ram};
    snprintf(headroom.what, sizeof(headroom.what), "the host (MemAvailable in /proc/meminfo)");
    host_check(&headroom);
    host_check_commit_limit(&headroom);
    return headroom;
}

uint64_t tk_memory_available(char *what, size_t size)
{
    const struct headroom headroom = host_measure();
    snprintf(what, size, "%s", headroom.what);
    return headroom.left;
}

uint64_t tk_host_memory(void)
{
    uint64_t ram = host_ram();
    struct headroom headroom = {.limit = ram, .ram = ram};
    host_check(&headroom);
    return headroom.limit;
}

void tk_memory_measure(uint64_t *limit, uint64_t *left)
{
    const struct headroom headroom = host_measure();
    *limit = headroom.limit;
    *left = headroom.left;
}
