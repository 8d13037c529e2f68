/* SPDX-License-Identifier: BSD-3-Clause */
/* See simulate.h. Lays out the job, and runs its phases one after another: each begins in each
 * process when that has ended the one before. */
#include "config.h"

#include "connections.h"
#include "messages.h"
#include "simulate.h"
#include "simulation.h"
#include "world.h"

#include "settings/settings.h"
#include "spawner/util/log.h"

#include <stdlib.h>
#include <unistd.h>

/* All connections of more would be too many. */
enum { PLANTED_MAX = 4096 };

uint64_t sim_random(struct simulation *s, uint64_t limit)
{
    s->random ^= s->random << 13; /* Marsaglia's xorshift */
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return limit ? s->random % limit : 0;
}

/* With fewer CPUs than leaders on a host these wait for each other. */
uint64_t sim_compute(struct simulation *s, uint32_t host, uint64_t now, uint64_t cost)
{
    struct sim_host *h = &s->hosts[host];
    uint64_t width = h->end - h->first;
    h->cpu += cost;
    s->cpu += cost;
    if (width <= s->in.cpus)
        return now + cost;
    uint64_t begin = h->clock > now ? h->clock : now;
    h->clock = begin + cost / s->in.cpus;
    return begin + cost;
}

/* Ranks in blocks, as many on each host as possible; neighbourhoods as tk_topology_map() makes
 * them. */
static void lay_out(struct simulation *s)
{
    uint32_t each = s->in.ranks / s->in.hosts, more = s->in.ranks % s->in.hosts, rank = 0;
    uint32_t most = (uint32_t)tk_settings.supernode_maxsize;
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        struct sim_host *host = &s->hosts[h];
        host->ranks = each + (h < more);
        host->first = s->nbrhds;
        for (uint32_t left = host->ranks; left > 0;) {
            uint32_t size = most && most < left ? most : left;
            s->first[s->nbrhds] = rank;
            s->host_of[s->nbrhds++] = h;
            rank += size;
            left -= size;
        }
        host->end = s->nbrhds;
    }
    s->first[s->nbrhds] = rank;
}

static bool allocate(struct simulation *s)
{
    size_t ranks = s->in.ranks;
    s->hosts = calloc(s->in.hosts, sizeof(*s->hosts));
    s->first = calloc(ranks + 1, sizeof(*s->first));
    s->host_of = calloc(ranks, sizeof(*s->host_of));
    if (!s->hosts || !s->first || !s->host_of)
        return false;
    lay_out(s);
    s->leaders = calloc(s->nbrhds, sizeof(*s->leaders));
    s->members = calloc(s->nbrhds, sizeof(*s->members));
    return s->leaders && s->members && sim_world_open(s->first, s->nbrhds);
}

static void make_calls(struct simulation *s)
{
    uint32_t barriers = 0;
    for (uint32_t i = 0; i < s->in.call_count && !s->has_failed; i++) {
        const struct sim_call *call = &s->in.calls[i];
        if (call->kind != SIM_BARRIER)
            sim_collective(s, call);
        for (uint32_t n = 0; call->kind == SIM_BARRIER && n < call->times; n++)
            sim_barrier(s, barriers++);
    }
    s->ends[SIM_CALLS] = s->ends[SIM_EXCHANGE];
    for (uint32_t n = 0; n < s->nbrhds; n++)
        if (s->leaders[n].clock > s->ends[SIM_CALLS])
            s->ends[SIM_CALLS] = s->leaders[n].clock;
}

/* A message that waits for ever would be a mistake of the library: a job that does not end. */
static uint32_t find_stuck(const struct simulation *s)
{
    uint32_t n = 0;
    while (n < s->nbrhds && !s->leaders[n].waiting)
        n++;
    return n;
}

static void take_stock(struct simulation *s)
{
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        const struct sim_leader *l = &s->leaders[n];
        s->stock.sent += l->sent;
        s->stock.acks += l->acks;
        s->stock.loans += l->loans;
        s->stock.waits += l->waits;
        s->stock.datagrams += l->datagrams;
        s->stock.connections += l->made;
        s->stock.closed += l->closed;
    }
}

static void run(struct simulation *s)
{
    sim_messages_open(s);
    sim_start(s);
    make_calls(s);
    take_stock(s);
    if (s->in.fails >= 0)
        sim_fail(s);
    else
        sim_end(s);
}

static void release(struct simulation *s)
{
    sim_events_free(&s->events);
    sim_connections_close(s);
    sim_messages_close(s);
    sim_fabric_close(&s->fabric);
    sim_world_close();
    free(s->leaders);
    free(s->members);
    free(s->hosts);
    free(s->first);
    free(s->host_of);
}

static void refuse(const char *line)
{
    log_error("%s", line);
}

static bool prepare(struct simulation *s, const struct options *o)
{
    char why[1024];
    if (tk_settings_parse(environ, &tk_settings, refuse) != TK_OK)
        return false;
    sim_costs_default(&s->costs);
    if (o->hosts > o->ranks) {
        log_error("-N %u: more hosts than processes (-n %u)", o->hosts, o->ranks);
        return false;
    }
    bool is_right =
        sim_input_parse(&s->in, o->ranks, o->hosts ? o->hosts : 1, o->simulate, why, sizeof(why)) &&
        (!s->in.costs[0] || sim_costs_read(&s->costs, s->in.costs, why, sizeof(why))) &&
        sim_fabric_open(&s->fabric, &s->in, why, sizeof(why));
    if (!is_right)
        log_error("%s", why);
    s->random = s->in.seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return is_right;
}

static int out_of_memory(const struct simulation *s)
{
    log_error("--simulate: out of memory for %u processes", s->in.ranks);
    return EXIT_RUNTIME;
}

static bool is_possible(const struct simulation *s)
{
    if (s->nbrhds > 1 && (tk_settings.connect_static || !tk_settings.connect_dynamic)) {
        log_error("--simulate: connections are made on demand: not with GASNET_CONNECT_%s",
                  tk_settings.connect_static ? "STATIC=1" : "DYNAMIC=0");
        return false;
    }
    if (s->in.plants_connect && tk_settings.connect_max) {
        log_error("--simulate: plant=connect: not with GASNET_CONNECT_MAX=%lld",
                  (long long)tk_settings.connect_max);
        return false;
    }
    if ((!s->in.plants_connect && !s->in.plants_notify) || s->nbrhds <= PLANTED_MAX)
        return true;
    log_error("--simulate: plant=: %u neighbourhoods would have too many connections, not "
              "more than %d",
              s->nbrhds, PLANTED_MAX);
    return false;
}

/* What the simulated job ends with, if not as it should. */
static int verdict(const struct simulation *s)
{
    if (s->hangs)
        log_error("--simulate: the job does not end: nobody notices that host %lld is silent, with "
                  "GASNET_SSH_HEARTBEAT=0",
                  (long long)s->in.fails);
    else if (s->is_late)
        log_error("--simulate: ranks have not agreed on the code by GASNET_EXITTIMEOUT");
    else if (s->status != s->wanted)
        log_error("--simulate: the job ends with status %d, not %d", s->status, s->wanted);
    return s->hangs || s->is_late || s->status != s->wanted ? EXIT_RUNTIME : 0;
}

static int print_run(struct simulation *s, bool as_json)
{
    if (!allocate(s))
        return out_of_memory(s);
    if (!is_possible(s))
        return EXIT_USAGE;
    run(s);
    if (s->has_failed || sim_captured.has_failed)
        return out_of_memory(s);
    if (as_json)
        sim_print_json(s);
    else
        sim_print(s);
    uint32_t stuck = find_stuck(s);
    if (stuck < s->nbrhds)
        log_error("--simulate: rank %u waits for a credit or a connection that does not come",
                  s->first[stuck]);
    int status = verdict(s);
    return stuck < s->nbrhds ? EXIT_RUNTIME : status;
}

int simulate_run(const struct options *o)
{
    static struct simulation s;
    int status = 0;
    if (!prepare(&s, o))
        status = EXIT_USAGE;
    else if (s.in.prints_costs)
        sim_costs_print(&s.costs);
    else
        status = print_run(&s, o->json);
    release(&s);
    return status;
}
