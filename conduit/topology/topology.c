/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The host map. Hosts are told apart by text: boot id and host name by default, because cloned
 * machines share a host id and containers of one machine may share a name (GASNET_HOST_DETECT
 * changes it). No lock: written at start-up only. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

enum tk_status tk_topology_describe(struct tk_host_card *card)
{
    char boot_id[48];
    memset(card, 0, sizeof(*card));
    if (gethostname(card->name, sizeof(card->name) - 1) != 0)
        snprintf(card->name, sizeof(card->name), "unknown");
    if (!strcmp(tk_settings.host_detect, "gethostid"))
        snprintf(card->id, sizeof(card->id), "%lx", (unsigned long)gethostid());
    else if (!strcmp(tk_settings.host_detect, "hostname"))
        snprintf(card->id, sizeof(card->id), "%s", card->name);
    else {
        read_boot_id(boot_id, sizeof(boot_id));
        snprintf(card->id, sizeof(card->id), "%s %s", boot_id, card->name);
    }
    return TK_OK;
}

/* Linear in hosts, not in ranks: a job has few hosts compared to ranks, and neighbours in rank
 * mostly share one. */
static uint32_t find_host(const struct tk_host_card *card, const struct tk_host_card **first,
                          uint32_t hosts)
{
    for (uint32_t h = hosts; h-- > 0;)
        if (!strcmp(first[h]->id, card->id))
            return h;
    return hosts;
}

enum tk_status tk_topology_build(uint32_t rank, uint32_t size,
                                 const struct tk_host_card *(*card_of)(uint32_t))
{
    struct tk_topology *t = &tk_topology;
    const struct tk_host_card **first = calloc(size, sizeof(*first));
    t->host_of = calloc(size, sizeof(*t->host_of));
    t->local_ranks = calloc(size, sizeof(*t->local_ranks));
    if (!first || !t->host_of || !t->local_ranks) {
        tk_complain("out of memory for the map of %u ranks", size);
        free(first);
        return TK_FAIL;
    }
    t->hosts = 0;
    for (uint32_t r = 0; r < size; r++) {
        uint32_t host = find_host(card_of(r), first, t->hosts);
        if (host == t->hosts)
            first[t->hosts++] = card_of(r);
        t->host_of[r] = host;
    }
    free(first);
    t->my_host = t->host_of[rank];
    t->local_size = 0;
    for (uint32_t r = 0; r < size; r++)
        if (t->host_of[r] == t->my_host) {
            if (r == rank)
                t->local_rank = t->local_size;
            t->local_ranks[t->local_size++] = r;
        }
    t->cpus = count_cpus();
    t->oversubscribed = t->local_size > t->cpus;
    return TK_OK;
}
