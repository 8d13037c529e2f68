/* SPDX-License-Identifier: BSD-3-Clause */
/* See launcher.h. The shape of the tree and the description of the job are those of spawner/tree
 * and spawner/wire. */
#include "config.h"

#include "launcher.h"

#include "settings/settings.h"
#include "spawner/tree/shape.h"
#include "spawner/wire/hello.h"
#include "spawner/wire/job_frame.h"
#include "spawner/wire/wire.h"

#include <stdio.h>
#include <stdlib.h>

enum { fence_head = 12 /* status, number and count of exchange.h */ };

static uint32_t degree(void)
{
    return (uint32_t)tk_settings.ssh_out_degree;
}

uint32_t sim_branches(const struct simulation *s)
{
    return shape_blocks(0, s->in.hosts, degree());
}

static uint64_t frame_cost(const struct simulation *s, uint64_t bytes)
{
    return s->costs.frame + bytes * s->costs.frame_kib / 1024;
}

/* Links are as of the network, if slower ones are not known. */
uint64_t sim_frame_time(const struct simulation *s, uint64_t bytes)
{
    return frame_cost(s, bytes) + 4 * s->in.latency + bytes * 8 / s->in.gbits;
}

void sim_head_works(struct simulation *s, uint64_t frames, uint64_t bytes)
{
    uint64_t cost = frames * s->costs.frame + bytes * s->costs.frame_kib / 1024;
    s->head_frames += frames;
    s->head_bytes += bytes + frames * WIRE_HEADER;
    s->head_cpu += cost;
    s->cpu += cost;
}

/* ---- the tree of guards */

struct block {
    uint32_t first, end;
    uint64_t time;
};

static uint64_t job_bytes(const struct simulation *s)
{
    static char *none[] = {NULL}, *program[] = {(char *)"program", NULL};
    struct bytes packed = {0};
    char *names = calloc(s->in.hosts, 12);
    struct job job = {.ranks = s->in.ranks,
                      .host_count = s->in.hosts,
                      .hosts = calloc(s->in.hosts, sizeof(*job.hosts)),
                      .program = "program",
                      .argv = program,
                      .env = none};
    for (uint32_t h = 0; names && job.hosts && h < s->in.hosts; h++) {
        snprintf(names + 12 * (size_t)h, 12, "n%07u", h);
        job.hosts[h] = (struct job_host){names + 12 * (size_t)h, s->first[s->hosts[h].first],
                                         s->hosts[h].ranks, false};
    }
    if (names && job.hosts)
        job_frame_pack(&job, 0, &packed);
    uint64_t bytes = packed.length;
    bytes_free(&packed);
    free(job.hosts);
    free(names);
    return bytes;
}

static uint64_t hello_bytes(void)
{
    struct bytes packed = {0};
    struct hello hello;
    hello_here(&hello, HELLO_PORTS_UNKNOWN);
    hello_pack(&hello, &packed);
    uint64_t bytes = packed.length;
    bytes_free(&packed);
    return bytes;
}

/* One process starts the guards below it, one after another. Returns how many. */
static uint32_t start_blocks(struct simulation *s, const struct block *of, struct block *blocks)
{
    uint32_t count = of->first < of->end ? shape_blocks(of->first, of->end, degree()) : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t host = shape_begin(of->first, of->end, degree(), i);
        uint64_t dial = s->in.forks ? 0 : s->costs.host_dial;
        dial += dial * sim_random(s, s->in.jitter + 1) / 100;
        s->cpu += s->costs.host_guard;
        blocks[i] = (struct block){host, shape_begin(of->first, of->end, degree(), i + 1),
                                   of->time + (i + 1) * s->costs.host_guard + dial};
    }
    return count;
}

static uint64_t grow_tree(struct simulation *s, uint64_t bytes)
{
    const uint64_t hello = hello_bytes();
    struct block *stack = calloc((size_t)s->in.hosts + 1, sizeof(*stack));
    uint64_t last = 0;
    uint32_t used = 1;
    if (!stack) {
        s->has_failed = true;
        return 0;
    }
    stack[0] = (struct block){0, s->in.hosts, 0};
    for (bool is_head = true; used > 0; is_head = false) {
        struct block block = stack[--used];
        if (!is_head) { /* the guard of the first host has come up */
            block.time += sim_frame_time(s, hello) + sim_frame_time(s, bytes);
            s->hosts[block.first++].clock = block.time;
            last = block.time > last ? block.time : last;
        }
        used += start_blocks(s, &block, stack + used);
    }
    free(stack);
    return last;
}

/* The farthest host: how many processes pass a frame on to it, and how many frames these send
 * before that one. Each process starts with its first block, which is the largest. */
struct way {
    uint32_t levels;
    uint64_t sent;
};

static struct way longest_way(const struct simulation *s)
{
    struct way way = {0};
    uint32_t first = 0, end = s->in.hosts;
    while (first < end) {
        way.levels++;
        way.sent += shape_blocks(first, end, degree());
        end = shape_begin(first, end, degree(), 1);
        first++;
    }
    return way;
}

uint32_t sim_levels(const struct simulation *s)
{
    return longest_way(s).levels;
}

/* What a process takes to send one frame more: its own time, or that of its link. */
static uint64_t sending(const struct simulation *s, uint64_t bytes)
{
    uint64_t link = bytes * 8 / s->in.gbits, own = frame_cost(s, bytes);
    return link > own ? link : own;
}

/* Each process on its way sends it to those below, one after another. */
uint64_t sim_to_all(struct simulation *s, uint64_t bytes)
{
    const struct way way = longest_way(s);
    uint64_t most = sim_branches(s);
    sim_head_works(s, most, most * bytes);
    s->cpu += (2 * (uint64_t)s->in.hosts - most) * frame_cost(s, bytes);
    s->guard_bytes += (most + 1) * bytes;
    return way.sent * sending(s, bytes) + way.levels * sim_frame_time(s, bytes);
}

/* Guards pass on those of the hosts below them. */
uint64_t sim_from_all(struct simulation *s, uint64_t bytes, uint64_t first, uint64_t last)
{
    const struct way way = longest_way(s);
    uint64_t hosts = s->in.hosts, each = bytes / hosts, before = s->head_cpu;
    sim_head_works(s, hosts, bytes);
    s->cpu += (hosts + 2 * (way.levels - 1) * (hosts - sim_branches(s))) * frame_cost(s, each);
    s->guard_bytes += 2 * bytes / sim_branches(s);
    uint64_t busy = first + (s->head_cpu - before);
    uint64_t path = last + way.levels * sim_frame_time(s, each);
    return busy > path ? busy : path;
}

/* ---- the hosts together */

void sim_spread_hosts(const struct simulation *s, uint64_t *first, uint64_t *last)
{
    *first = UINT64_MAX;
    *last = 0;
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        uint64_t clock = s->hosts[h].clock;
        *first = clock < *first ? clock : *first;
        *last = clock > *last ? clock : *last;
    }
}

static void set_hosts(struct simulation *s, uint64_t clock)
{
    for (uint32_t h = 0; h < s->in.hosts; h++)
        s->hosts[h].clock = clock;
}

void sim_each_rank(struct simulation *s, uint64_t cost, uint64_t of_host)
{
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        struct sim_host *host = &s->hosts[h];
        uint64_t one = cost + of_host * host->ranks, all = one * host->ranks;
        host->clock += host->ranks > s->in.cpus ? all / s->in.cpus : one;
        host->cpu += all;
        s->cpu += all;
    }
}

/* The parts go to the head, and all of them to each host. On one host libpmix's server ends it
 * alone. */
void sim_fence(struct simulation *s, uint64_t bytes)
{
    uint64_t first, last;
    uint64_t parts = bytes + (uint64_t)s->in.hosts * fence_head;
    sim_each_rank(s, s->costs.fence, 0);
    s->pmix_fences += s->in.ranks;
    if (s->in.hosts == 1)
        return;
    sim_spread_hosts(s, &first, &last);
    uint64_t there = sim_from_all(s, parts, first, last);
    s->frames.fence += s->in.hosts;
    s->frames.fence_done += sim_branches(s);
    s->fence_bytes.up += parts;
    s->fence_bytes.down += sim_branches(s) * (bytes + fence_head);
    set_hosts(s, there + sim_to_all(s, bytes + fence_head));
}

static void ask(struct simulation *s, struct sim_host *host, uint64_t gets, uint64_t unpacked)
{
    uint64_t cost = gets * s->costs.pmix_get + unpacked * s->costs.info_unpack;
    host->clock += cost;
    host->cpu += cost;
    s->cpu += cost;
    s->pmix_gets += gets;
}

/* The first rank of a host asks its server for the infos of its host, packs them, and after the
 * fence asks for those of each host; each other rank asks for the board. On one host the first
 * rank asks for the info of each rank. Then what was put is withdrawn. */
static void gather(struct simulation *s)
{
    bool is_packed = s->in.hosts > 1;
    for (uint32_t h = 0; is_packed && h < s->in.hosts; h++)
        ask(s, &s->hosts[h], s->hosts[h].ranks - 1, 0);
    sim_fence(s, sim_data_of_hosts(s).first);
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        struct sim_host *host = &s->hosts[h];
        uint64_t others = host->ranks - 1, cost = others * s->costs.pmix_get;
        ask(s, host, is_packed ? s->in.hosts : s->in.ranks, s->in.ranks);
        host->clock += cost / s->in.cpus;
        host->cpu += cost;
        s->cpu += cost;
        s->pmix_gets += others;
        s->pmix_puts += host->ranks + (others > 0) + is_packed;
    }
    s->pmix_puts += 1 + is_packed; /* the settings of rank 0 */
}

void sim_start(struct simulation *s)
{
    uint64_t bytes = job_bytes(s), first, last;
    bool has_others = s->nbrhds > 1;
    uint64_t last_guard = grow_tree(s, bytes);
    s->frames.job = sim_branches(s);
    s->frames.hello = s->frames.server = s->in.hosts;
    s->frames.go = sim_branches(s);
    s->frames.report_least = 2 * (uint64_t)s->in.hosts;
    sim_head_works(s, sim_branches(s), sim_branches(s) * bytes);
    const uint64_t server = s->costs.host_server + s->in.ranks * s->costs.server_peer;
    s->cpu += s->in.hosts * (server + frame_cost(s, bytes));
    uint64_t all = sim_from_all(s, (uint64_t)s->in.hosts * hello_bytes(), 0, last_guard);
    uint64_t go = all + sim_to_all(s, 0);
    sim_head_works(s, s->in.hosts, 4 * (uint64_t)s->in.hosts);
    s->ends[SIM_GUARDS] = go;
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        uint64_t ready = s->hosts[h].clock + server;
        s->hosts[h].clock = ready > go ? ready : go;
    }
    sim_each_rank(s,
                  s->costs.rank_pmix + s->costs.rank_library + s->costs.rank_server +
                      s->costs.rank_guard + (has_others ? s->costs.rank_device : 0) +
                      s->costs.peer * s->in.ranks,
                  s->costs.rank_local);
    sim_spread_hosts(s, &first, &last);
    s->ends[SIM_RANKS] = last;
    gather(s);
    if (has_others && s->in.hosts > 1) /* ranks of one host meet in shared memory */
        sim_fence(s, 0);
    sim_spread_hosts(s, &first, &last);
    s->ends[SIM_EXCHANGE] = last;
    for (uint32_t n = 0; n < s->nbrhds; n++)
        s->leaders[n].clock = s->hosts[s->host_of[n]].clock;
}
