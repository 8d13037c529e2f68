/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's part: the tree of guards, the fences of the PMIx servers through the head, the end
 * of a job, and of one whose host fails. The shape of the tree, the description of the job and the
 * verdict on a failure are those of spawner/tree, spawner/wire and spawner/head. */
#include "config.h"

#include "simulation.h"

#include "settings/settings.h"
#include "spawner/head/policy.h"
#include "spawner/tree/shape.h"
#include "spawner/tree/tree.h"
#include "spawner/util/log.h"
#include "spawner/wire/hello.h"
#include "spawner/wire/job_frame.h"
#include "spawner/wire/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { fence_head = 12 /* status, number and count of exchange.h */ };

static uint32_t degree(void)
{
    return (uint32_t)tk_settings.ssh_out_degree;
}

static uint32_t branches(const struct simulation *s)
{
    return shape_blocks(0, s->in.hosts, degree());
}

static uint64_t frame_cost(const struct simulation *s, uint64_t bytes)
{
    return s->costs.frame + bytes * s->costs.frame_kib / 1024;
}

/* A frame between the launcher's processes of two hosts: links as of the network, if slower ones
 * are not known. */
static uint64_t frame_time(const struct simulation *s, uint64_t bytes)
{
    return frame_cost(s, bytes) + 4 * s->in.latency + bytes * 8 / s->in.gbits;
}

static void head_works(struct simulation *s, uint64_t frames, uint64_t bytes)
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
            block.time += frame_time(s, hello) + frame_time(s, bytes);
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

/* What a process takes to send one frame more: its own time, or that of its link. */
static uint64_t sending(const struct simulation *s, uint64_t bytes)
{
    uint64_t link = bytes * 8 / s->in.gbits, own = frame_cost(s, bytes);
    return link > own ? link : own;
}

/* A frame to all hosts: each process on its way sends it to those below, one after another. */
static uint64_t to_all(struct simulation *s, uint64_t bytes)
{
    const struct way way = longest_way(s);
    uint64_t most = branches(s);
    head_works(s, most, most * bytes);
    s->cpu += (2 * (uint64_t)s->in.hosts - most) * frame_cost(s, bytes);
    s->guard_bytes += (most + 1) * bytes;
    return way.sent * sending(s, bytes) + way.levels * frame_time(s, bytes);
}

/* A frame from each host, with `bytes` in all; the last host is ready at `last`, the first at
 * `first`. Returns when the head has all. Guards pass on those of the hosts below them. */
static uint64_t from_all(struct simulation *s, uint64_t bytes, uint64_t first, uint64_t last)
{
    const struct way way = longest_way(s);
    uint64_t hosts = s->in.hosts, each = bytes / hosts, before = s->head_cpu;
    head_works(s, hosts, bytes);
    s->cpu += (hosts + 2 * (way.levels - 1) * (hosts - branches(s))) * frame_cost(s, each);
    s->guard_bytes += 2 * bytes / branches(s);
    uint64_t busy = first + (s->head_cpu - before);
    uint64_t path = last + way.levels * frame_time(s, each);
    return busy > path ? busy : path;
}

/* ---- the hosts together */

static void spread_hosts(const struct simulation *s, uint64_t *first, uint64_t *last)
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

/* CPU time for each rank of each host, and of each rank for each rank of its host. */
static void each_rank(struct simulation *s, uint64_t cost, uint64_t of_host)
{
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        struct sim_host *host = &s->hosts[h];
        uint64_t one = cost + of_host * host->ranks, all = one * host->ranks;
        host->clock += host->ranks > s->in.cpus ? all / s->in.cpus : one;
        host->cpu += all;
        s->cpu += all;
    }
}

/* A fence of all ranks with so many bytes in all: the parts go to the head, and all of them to each
 * host. On one host libpmix's server ends it alone. */
static void fence(struct simulation *s, uint64_t bytes)
{
    uint64_t first, last;
    uint64_t parts = bytes + (uint64_t)s->in.hosts * fence_head;
    each_rank(s, s->costs.fence, 0);
    s->pmix_fences += s->in.ranks;
    if (s->in.hosts == 1)
        return;
    spread_hosts(s, &first, &last);
    uint64_t there = from_all(s, parts, first, last);
    s->frames.fence += s->in.hosts;
    s->frames.fence_done += branches(s);
    s->fence_bytes.up += parts;
    s->fence_bytes.down += branches(s) * (bytes + fence_head);
    set_hosts(s, there + to_all(s, bytes + fence_head));
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
    fence(s, sim_data_of_hosts(s).first);
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
    s->frames.job = branches(s);
    s->frames.hello = s->frames.server = s->in.hosts;
    s->frames.go = branches(s);
    s->frames.report_least = 2 * (uint64_t)s->in.hosts;
    head_works(s, branches(s), branches(s) * bytes);
    const uint64_t server = s->costs.host_server + s->in.ranks * s->costs.server_peer;
    s->cpu += s->in.hosts * (server + frame_cost(s, bytes));
    uint64_t all = from_all(s, (uint64_t)s->in.hosts * hello_bytes(), 0, last_guard);
    uint64_t go = all + to_all(s, 0);
    head_works(s, s->in.hosts, 4 * (uint64_t)s->in.hosts);
    s->ends[SIM_GUARDS] = go;
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        uint64_t ready = s->hosts[h].clock + server;
        s->hosts[h].clock = ready > go ? ready : go;
    }
    each_rank(s,
              s->costs.rank_pmix + s->costs.rank_library + s->costs.rank_server +
                  s->costs.rank_guard + (has_others ? s->costs.rank_device : 0) +
                  s->costs.peer * s->in.ranks,
              s->costs.rank_local);
    spread_hosts(s, &first, &last);
    s->ends[SIM_RANKS] = last;
    gather(s);
    if (has_others && s->in.hosts > 1) /* ranks of one host meet in shared memory */
        fence(s, 0);
    spread_hosts(s, &first, &last);
    s->ends[SIM_EXCHANGE] = last;
    for (uint32_t n = 0; n < s->nbrhds; n++)
        s->leaders[n].clock = s->hosts[s->host_of[n]].clock;
}

void sim_end(struct simulation *s)
{
    uint64_t first, last;
    sim_agree(s);
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        struct sim_host *host = &s->hosts[s->host_of[n]];
        host->clock = s->leaders[n].clock > host->clock ? s->leaders[n].clock : host->clock;
    }
    fence(s, sim_data_of_hosts(s).left);
    spread_hosts(s, &first, &last);
    s->frames.done = s->in.hosts;
    s->frames.left = branches(s);
    head_works(s, branches(s), 0);
    s->frames.report_least += 2 * (uint64_t)s->in.hosts;
    uint64_t end = from_all(s, 0, first, last);
    head_works(s, 4 * (uint64_t)s->in.hosts, 4 * 12 * (uint64_t)s->in.ranks); /* reports */
    s->ends[SIM_EXIT] = end;
}

/* ---- a host fails: the guard above it finds that, the head ends the job */

static void lose(struct simulation *s, struct policy *policy, uint32_t host, int64_t ms)
{
    uint32_t end = shape_end(s->in.hosts, degree(), host);
    static const char why[] = "its guard does not answer";
    for (uint32_t h = host; h < end; h++)
        policy_lost(policy, s->first[s->hosts[h].first], s->hosts[h].ranks);
    policy_launcher_failed(policy, why, sizeof(why) - 1, ms);
}

static void launch(struct simulation *s, struct policy *policy)
{
    for (uint32_t r = 0; r < s->in.ranks; r++) {
        policy_launched(policy, r, 1);
        policy_connected(policy, r, (int64_t)(s->ends[SIM_RANKS] / 1000000));
    }
}

/* The head itself has started the guard of that host. */
static bool is_below_head(const struct simulation *s, uint32_t host)
{
    for (uint32_t i = 0; i < branches(s); i++)
        if (shape_begin(0, s->in.hosts, degree(), i) == host)
            return true;
    return false;
}

/* Frames of the end: guards of the hosts lost, and those below them, take no part. Another guard
 * reports the loss; the head sees that of its own branches. */
static void count_end(struct simulation *s, uint32_t lost, bool is_head_branch)
{
    uint64_t reached = branches(s) - is_head_branch;
    s->frames.lost = !is_head_branch;
    s->frames.kill = s->frames.ending = s->frames.left = reached;
    s->frames.done = s->in.hosts - lost;
    head_works(s, s->frames.done + 3 * reached, 12 * (uint64_t)s->in.ranks);
}

/* The verdict, when the head may reach it; and its end, by the exits of all others. */
static int64_t judge(struct simulation *s, struct policy *policy, uint32_t host, int64_t ms)
{
    uint32_t end = shape_end(s->in.hosts, degree(), host);
    lose(s, policy, host, ms);
    while (!policy_must_end(policy, ms))
        ms = policy_deadline(policy);
    for (uint32_t h = 0; h < s->in.hosts; h++)
        for (uint32_t i = 0; (h < host || h >= end) && i < s->hosts[h].ranks; i++)
            policy_exited(policy, s->first[s->hosts[h].first] + i, SIGTERM, ms);
    s->is_verdict_wrong = !policy_all_gone(policy) || policy_status(policy) != EXIT_RUNTIME;
    return ms;
}

void sim_fail(struct simulation *s)
{
    struct policy policy;
    uint64_t heartbeat = (uint64_t)(tk_settings.ssh_heartbeat * 1e9);
    uint64_t now = s->ends[SIM_CALLS] + (s->in.forks ? 0 : (TREE_SILENT_MAX + 1) * heartbeat);
    uint32_t host = (uint32_t)s->in.fails, end = shape_end(s->in.hosts, degree(), host);
    if (!policy_init(&policy, s->in.ranks, 0, 0)) {
        s->has_failed = true;
        return;
    }
    launch(s, &policy);
    now += longest_way(s).levels * frame_time(s, 100);
    now = (uint64_t)judge(s, &policy, host, (int64_t)(now / 1000000)) * 1000000;
    policy_free(&policy);
    now += to_all(s, 4);
    count_end(s, end - host, is_below_head(s, host));
    each_rank(s, s->costs.rank_guard, 0);
    s->ends[SIM_FAILURE] = s->ends[SIM_EXIT] = now + longest_way(s).levels * frame_time(s, 12) +
                                               s->in.ranks / s->in.hosts * s->costs.rank_guard;
}
