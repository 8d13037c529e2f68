/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How large a segment may be. Nothing is probed by allocating: installed memory and the cgroup's
 * limit are read. No state. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/report.h"
#include "memory/memory.h"
#include "settings/settings.h"

/* Message buffers and libraries of a process; only subtracted from a limit that says "including
 * internals" (/H). */
static const uint64_t internal_bytes = 64u << 20;

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

/* A number of /proc/meminfo, in bytes; `name` with its colon. 0: it is not there. */
static uint64_t meminfo(const char *name)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, name, strlen(name))) {
            kib = strtoull(line + strlen(name), NULL, 10);
            break;
        }
    if (file)
        fclose(file);
    return (uint64_t)kib << 10;
}

uint64_t tk_memory_available(void)
{
    uint64_t bytes = meminfo("MemAvailable:");
    return bytes ? bytes : UINT64_MAX;
}

size_t tk_huge_page_size(void)
{
    uint64_t bytes = meminfo("Hugepagesize:");
    return bytes ? (size_t)bytes : (size_t)2 << 20;
}

/* cgroup v2 path of this process, e.g. "/user.slice/x"; empty for the root or under v1. */
static void my_cgroup(char *path, size_t size)
{
    char line[1024];
    FILE *file = fopen("/proc/self/cgroup", "re");
    path[0] = 0;
    if (!file)
        return;
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, "0::", 3)) {
            line[strcspn(line, "\n")] = 0;
            snprintf(path, size, "%s", line + 3);
        }
    fclose(file);
}

static uint64_t cgroup_limit(void)
{
    char group[1024], path[1100];
    my_cgroup(group, sizeof(group));
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
    uint64_t limit = read_number(path);
    uint64_t v1 = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    return limit ? limit : v1;
}

uint64_t tk_host_memory(void)
{
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * tk_page_size();
    uint64_t limit = cgroup_limit();
    return limit && limit < ram ? limit : ram;
}

static enum tk_status refuse(const char *text)
{
    tk_complain("GASNET_MAX_SEGSIZE='%s' is not a size (as 512M, 2GB) or a fraction (as 0.85), "
                "followed by nothing, /P or /H",
                text);
    return TK_FAIL;
}

/* Where many ranks share little, the library's own need is small too: it goes by what is used. */
static double without_internals(double bytes)
{
    double internals = (double)internal_bytes;
    return bytes - (internals < bytes / 4 ? internals : bytes / 4);
}

enum tk_status tk_segment_limit(const char *text, uint64_t host_memory, unsigned ranks_on_host,
                                uint64_t *limit)
{
    char number[64];
    double bytes;
    size_t length = strcspn(text, "/");
    const char *share = text + length;
    bool per_host = !strcasecmp(share, "/H");
    if ((*share && !per_host && strcasecmp(share, "/P")) || length == 0 || length >= sizeof(number))
        return refuse(text);
    memcpy(number, text, length);
    number[length] = 0;
    bool has_unit = isalpha((unsigned char)number[length - 1]);
    if (tk_parse_size(number, "B", &bytes) != TK_OK || !(bytes > 0) || bytes >= 0x1p62)
        return refuse(text);
    if (!has_unit && bytes <= 1)
        bytes *= (double)host_memory;
    if (per_host)
        bytes = without_internals(bytes / ranks_on_host);
    if (bytes > (double)host_memory)
        bytes = (double)host_memory;
    if (bytes < (double)tk_page_size())
        bytes = (double)tk_page_size();
    *limit = (uint64_t)bytes & ~(uint64_t)(tk_page_size() - 1);
    return TK_OK;
}
