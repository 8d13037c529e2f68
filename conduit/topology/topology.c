/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The host map. Hosts are distinguished by a text: boot id and host name by default, because cloned
 * machines share a host id and containers of one machine may share a name (GASNET_HOST_DETECT
 * changes it). Ranks of a host share memory, all together or in groups (GASNET_SUPERNODE_MAXSIZE).
 * No lock: written at start-up only. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/report.h"
#include "settings/settings.h"
#include "topology/topology.h"

struct tk_topology tk_topology = {.hosts = 1, .local_size = 1, .cpus = 1};

static void read_boot_id(char *text, size_t size)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    text[0] = 0;
    if (!file)
        return;
    if (fgets(text, (int)size, file))
        text[strcspn(text, "\n")] = 0;
    fclose(file);
}

static unsigned count_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

/* Virtual hosts: Trunkline's launcher can run several on one machine. The machine's memory and CPUs
 * are divided among all ranks, but each virtual host is a neighbourhood of its own. */
static const char *virtual_host(void)
{
    const char *name = tk_getenv("TRUNKLINE_HOST");
    return name && *name ? name : NULL;
}

void tk_topology_expect(uint32_t local, uint32_t size)
{
    tk_topology.cpus = count_cpus();
    tk_topology.oversubscribed = (virtual_host() ? size : local) > tk_topology.cpus;
}

void tk_topology_host_name(char name[tk_host_name_max])
{
    const char *given = virtual_host();
    memset(name, 0, tk_host_name_max);
    if (given)
        snprintf(name, tk_host_name_max, "%s", given);
    else if (gethostname(name, tk_host_name_max - 1) != 0)
        snprintf(name, tk_host_name_max, "unknown");
}

enum tk_status tk_topology_describe(struct tk_host_info *info)
{
    char boot_id[48];
    memset(info, 0, sizeof(*info));
    tk_topology_host_name(info->name);
    if (!strcmp(tk_settings.host_detect, "gethostid"))
        snprintf(info->id, sizeof(info->id), "%lx%s%s", (unsigned long)gethostid(),
                 virtual_host() ? " " : "", virtual_host() ? info->name : "");
    else if (!strcmp(tk_settings.host_detect, "hostname"))
        snprintf(info->id, sizeof(info->id), "%s", info->name);
    else {
        read_boot_id(boot_id, sizeof(boot_id));
        snprintf(info->id, sizeof(info->id), "%s %s", boot_id, info->name);
    }
    return TK_OK;
}

/* State of a host while the map is built. */
struct host {
    const struct tk_host_info *info; /* of its first rank */
    uint32_t ranks;                  /* seen so far */
    uint32_t nbrhd;                  /* of the last rank seen */
};

struct hosts {
    struct host *all;
    uint32_t *slots; /* by hash: a host's number + 1, or 0 */
    uint32_t mask;
    uint32_t count, nbrhds, last; /* so far; the host of the last rank */
};

/* FNV-1a, 64 bits */
static uint32_t hash_of(const char *id)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

/* The number of the host, which is new if it equals `count`. Consecutive ranks mostly share one. */
static uint32_t find_host(struct hosts *hosts, const struct tk_host_info *info)
{
    if (hosts->count > 0 && !strcmp(hosts->all[hosts->last].info->id, info->id))
        return hosts->last;
    uint32_t at = hash_of(info->id) & hosts->mask;
    for (; hosts->slots[at]; at = (at + 1) & hosts->mask)
        if (!strcmp(hosts->all[hosts->slots[at] - 1].info->id, info->id))
            return hosts->last = hosts->slots[at] - 1;
    hosts->slots[at] = hosts->count + 1;
    return hosts->last = hosts->count;
}

/* Returns its neighbourhood. */
static uint32_t place(struct hosts *hosts, const struct tk_host_info *info, uint32_t *host_of)
{
    uint32_t most = (uint32_t)tk_settings.supernode_maxsize;
    uint32_t h = find_host(hosts, info);
    struct host *host = &hosts->all[h];
    if (h == hosts->count) {
        hosts->count++;
        *host = (struct host){.info = info};
    }
    if (host->ranks == 0 || (most && host->ranks % most == 0))
        host->nbrhd = hosts->nbrhds++;
    host->ranks++;
    *host_of = h;
    return host->nbrhd;
}

/* At most half of the table of slots is in use, so that searches are short. */
enum tk_status tk_topology_map(uint32_t *map, uint32_t size,
                               const struct tk_host_info *(*info_of)(uint32_t))
{
    struct hosts hosts = {.mask = 1};
    while (hosts.mask / 2 < size)
        hosts.mask = 2 * hosts.mask + 1;
    hosts.all = calloc(size, sizeof(*hosts.all));
    hosts.slots = calloc((size_t)hosts.mask + 1, sizeof(*hosts.slots));
    bool has_memory = hosts.all && hosts.slots;
    if (!has_memory)
        tk_log_error("out of memory for the hosts of %u ranks", size);
    for (uint32_t r = 0; has_memory && r < size; r++)
        map[size + r] = place(&hosts, info_of(r), &map[r]);
    free(hosts.all);
    free(hosts.slots);
    return has_memory ? TK_OK : TK_FAIL;
}

/* Both are numbered from 0 on. */
static void topology_count(uint32_t size)
{
    struct tk_topology *t = &tk_topology;
    t->hosts = t->nbrhds = t->local_size = 0;
    for (uint32_t r = 0; r < size; r++) {
        t->hosts = (uint32_t)tk_max(t->hosts, t->host_of[r] + 1);
        t->nbrhds = (uint32_t)tk_max(t->nbrhds, t->nbrhd_of[r] + 1);
        t->local_size += t->host_of[r] == t->my_host;
    }
}

/* The ranks of a neighbourhood are contiguous among the ranks of its host. */
static void topology_find_local(uint32_t rank, uint32_t size)
{
    struct tk_topology *t = &tk_topology;
    t->local_size = t->nbrhd_size = 0;
    for (uint32_t r = 0; r < size; r++) {
        if (t->host_of[r] != t->my_host)
            continue;
        if (r == rank) {
            t->local_rank = t->local_size;
            t->nbrhd_rank = t->nbrhd_size;
        }
        if (t->nbrhd_of[r] == t->my_nbrhd && t->nbrhd_size++ == 0)
            t->nbrhd_ranks = &t->local_ranks[t->local_size];
        t->local_ranks[t->local_size++] = r;
    }
}

enum tk_status tk_topology_build(uint32_t rank, uint32_t size, const uint32_t *map)
{
    struct tk_topology *t = &tk_topology;
    t->host_of = map;
    t->nbrhd_of = map + size;
    t->my_host = t->host_of[rank];
    t->my_nbrhd = t->nbrhd_of[rank];
    topology_count(size);
    t->local_ranks = malloc(tk_topology_local_bytes(t->local_size));
    if (!t->local_ranks) {
        tk_log_error("out of memory for a list of %u ranks", t->local_size);
        return TK_FAIL;
    }
    topology_find_local(rank, size);
    t->cpus = count_cpus();
    t->on_machine = virtual_host() ? size : 0;
    t->oversubscribed = tk_machine_ranks() > t->cpus;
    return TK_OK;
}
