/* SPDX-License-Identifier: BSD-3-Clause */
/* See fabric.h. Links: host h sends on 2h and receives on 2h + 1; behind them those between
 * switches. */
#include "config.h"

#include "fabric.h"

#include <stdio.h>
#include <stdlib.h>

enum { path_max = 8 };

/* Bytes in front of a payload on a link: RoCE v2 over Ethernet. */
enum { wire_overhead = 78 };

static uint32_t groups_of(const struct sim_fabric *f)
{
    return (f->in->hosts - 1) / (f->below * f->across) + 1;
}

/* Dragonfly: the links of a router to the other groups are numbered over its whole group. */
static uint32_t global_links(const struct sim_fabric *f)
{
    return f->across * f->below;
}

static bool fits(const struct sim_fabric *f, char *why, size_t size)
{
    uint64_t most = f->in->ports;
    if (f->in->fabric == SIM_FAT_TREE)
        most = (uint64_t)f->in->ports * (f->in->ports / 2);
    else if (f->in->fabric == SIM_DRAGONFLY)
        most = ((uint64_t)global_links(f) + 1) * f->below * f->across;
    if (f->in->hosts <= most)
        return true;
    snprintf(why, size,
             "--simulate: fabric=%s with ports=%u has %llu hosts at most, not %u; ports= names "
             "larger switches",
             sim_fabric_name(f->in->fabric), f->in->ports, (unsigned long long)most, f->in->hosts);
    return false;
}

bool sim_fabric_open(struct sim_fabric *f, const struct sim_input *in, char *why, size_t size)
{
    uint64_t count = 2 * (uint64_t)in->hosts;
    *f = (struct sim_fabric){.in = in, .below = in->hosts, .across = 1};
    if (in->fabric == SIM_FAT_TREE) {
        f->below = f->across = in->ports / 2;
        count += 2 * ((uint64_t)(in->hosts - 1) / f->below + 1) * f->across;
    } else if (in->fabric == SIM_DRAGONFLY) {
        f->below = (in->ports + 1) / 4;
        f->across = 2 * f->below;
        count += (uint64_t)groups_of(f) * (f->across * f->across + global_links(f));
    }
    if (!fits(f, why, size))
        return false;
    f->count = (uint32_t)count;
    f->links = calloc(f->count, sizeof(*f->links));
    if (!f->links)
        snprintf(why, size, "--simulate: out of memory for %u links", f->count);
    return f->links != NULL;
}

static unsigned tree_path(const struct sim_fabric *f, uint32_t from, uint32_t to, uint32_t *path)
{
    uint32_t spine = to % f->across, first = 2 * f->in->hosts;
    path[0] = first + 2 * (from / f->below * f->across + spine);
    path[1] = first + 2 * (to / f->below * f->across + spine) + 1;
    return 2;
}

/* The link of a group to another one, of those of the group. */
static uint32_t global_link(const struct sim_fabric *f, uint32_t from, uint32_t to)
{
    return to > from ? to - from - 1 : to + global_links(f) - from;
}

/* Inside a group each router has a link to each other one. */
static uint32_t local_link(const struct sim_fabric *f, uint32_t group, uint32_t from, uint32_t to)
{
    uint32_t each = f->across * f->across + global_links(f);
    return 2 * f->in->hosts + group * each + from * f->across + to;
}

static unsigned dragonfly_path(const struct sim_fabric *f, uint32_t from, uint32_t to,
                               uint32_t *path)
{
    uint32_t a = from / f->below, b = to / f->below, count = 0;
    uint32_t group_a = a / f->across, group_b = b / f->across;
    uint32_t at = a % f->across, end = b % f->across;
    if (group_a != group_b) {
        uint32_t out = global_link(f, group_a, group_b), in = global_link(f, group_b, group_a);
        if (at != out / f->below)
            path[count++] = local_link(f, group_a, at, out / f->below);
        path[count++] = local_link(f, group_a, f->across, 0) + out;
        at = in / f->below;
    }
    if (at != end)
        path[count++] = local_link(f, group_b, at, end);
    return count;
}

static unsigned path_of(const struct sim_fabric *f, uint32_t from, uint32_t to, uint32_t *path)
{
    unsigned count = 1;
    path[0] = 2 * from;
    if (f->in->fabric == SIM_FAT_TREE && from / f->below != to / f->below)
        count += tree_path(f, from, to, path + 1);
    else if (f->in->fabric == SIM_DRAGONFLY && from / f->below != to / f->below)
        count += dragonfly_path(f, from, to, path + 1);
    path[count++] = 2 * to + 1;
    return count;
}

uint64_t sim_fabric_send(struct sim_fabric *f, uint32_t from, uint32_t to, uint64_t now,
                         uint64_t nbytes)
{
    uint32_t path[path_max];
    uint64_t bytes = nbytes + wire_overhead, lasts = bytes * 8 / f->in->gbits;
    unsigned count = path_of(f, from, to, path);
    for (unsigned i = 0; i < count; i++) {
        struct sim_link *link = &f->links[path[i]];
        if (link->free_at > now)
            now = link->free_at;
        link->free_at = now + lasts;
        link->bytes += bytes;
        link->messages++;
        now += f->in->latency;
    }
    return now + lasts;
}

const struct sim_link *sim_fabric_busiest(const struct sim_fabric *f, char *name, size_t size)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < f->count; i++)
        if (f->links[i].bytes > f->links[most].bytes)
            most = i;
    if (most < 2 * f->in->hosts)
        snprintf(name, size, "%s host %u", most % 2 ? "to" : "from", most / 2);
    else
        snprintf(name, size, "between switches (%u)", most - 2 * f->in->hosts);
    return &f->links[most];
}

void sim_fabric_close(struct sim_fabric *f)
{
    free(f->links);
    f->links = NULL;
}
