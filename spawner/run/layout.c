/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks per host; see layout.h. Pure, no lock. */
#include "config.h"

#include "layout.h"

#include <stdio.h>
#include <string.h>

/* In a list without numbers a host has one share, or one for each mention. */
static uint32_t shares_of(const struct host_list *list, uint32_t host)
{
    return list->keep_duplicates ? list->hosts[host].mentions : 1;
}

static uint32_t most_shares(const struct host_list *list, uint32_t hosts)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < hosts; i++)
        if (shares_of(list, i) > most)
            most = shares_of(list, i);
    return most;
}

static uint64_t total_slots(const struct host_list *list, uint32_t hosts)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < hosts; i++)
        total += host_list_slots(list, i);
    return total;
}

static void fill_in_order(const struct host_list *list, uint32_t ranks, uint32_t *counts)
{
    for (uint32_t i = 0, left = ranks; i < list->count; i++) {
        uint32_t slots = host_list_slots(list, i);
        counts[i] = left < slots ? left : slots;
        left -= counts[i];
    }
}

/* Assigns ranks in rounds of one rank per host, so that no host stays empty as long as there are
 * enough ranks. All hosts together have slots for all ranks. */
static void spread(const struct host_list *list, uint32_t ranks, uint32_t hosts, uint32_t *counts)
{
    uint32_t passes = most_shares(list, hosts);
    for (uint32_t left = ranks; left > 0;)
        for (uint32_t pass = 0; pass < passes; pass++)
            for (uint32_t i = 0; i < hosts && left > 0; i++)
                if (shares_of(list, i) > pass && counts[i] < host_list_slots(list, i)) {
                    counts[i]++;
                    left--;
                }
}

static bool fits(const struct host_list *list, uint32_t ranks, uint32_t hosts, char *why,
                 size_t size)
{
    uint64_t slots = total_slots(list, hosts);
    if (!list->has_slots || slots >= ranks)
        return true;
    snprintf(
        why, size,
        "-n %u: the %s%u host%s of %s %s slots for %llu process%s (host:slots); start fewer, or "
        "give more slots",
        ranks, hosts < list->count ? "first " : "", hosts, hosts == 1 ? "" : "s", list->origin,
        hosts == 1 ? "has" : "have", (unsigned long long)slots, slots == 1 ? "" : "es");
    return false;
}

bool layout_make(const struct host_list *list, uint32_t ranks, uint32_t wanted, uint32_t *counts,
                 char *why, size_t size)
{
    uint32_t hosts = wanted ? wanted : list->count;

    memset(counts, 0, list->count * sizeof(*counts));
    if (wanted > list->count) {
        snprintf(why, size, "-N %u: %s names %u host%s", wanted, list->origin, list->count,
                 list->count == 1 ? "" : "s");
        return false;
    }
    if (wanted > ranks) {
        snprintf(why, size, "-N %u: more hosts than processes (-n %u)", wanted, ranks);
        return false;
    }
    if (!fits(list, ranks, hosts, why, size))
        return false;
    if (list->has_slots && !wanted)
        fill_in_order(list, ranks, counts);
    else
        spread(list, ranks, hosts, counts);
    return true;
}
