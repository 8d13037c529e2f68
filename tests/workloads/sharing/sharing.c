/* SPDX-License-Identifier: BSD-3-Clause */
/* The workload sharing: the cost of sharing connections between the threads of a process: queue
 * pairs of their own over raw verbs, or those of the conduit. Over GASNet-EX every thread has
 * events of its own; to test that no thread's event is signaled by another's completion, each read
 * must hold the target's bytes when its own event is done. Owns floods and targets. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "passive.h"
#include "cpu_binding.h"
#include "sharing.h"

static struct rma_memory sharing_memory;
static struct sharing_outcome *outcomes; /* of all ranks */
static struct rma_flood *floods;
static struct rma_group group; /* of what runs now */
static uint32_t servers, threads, qps, each;

static void *make(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        wl_job_die("no memory for %zu connections", count);
    return memory;
}

static bool is_server(void)
{
    return wl_job.me < servers;
}

/* ---- Connections */

/* Rings at a client: for each thread of each server one for each connection that ends here. */
static size_t ring_of(uint32_t server, uint32_t thread, uint32_t i)
{
    return ((size_t)server * threads + thread) * each + i % each;
}

static uint64_t writer_of(uint32_t server, uint32_t thread, uint32_t i)
{
    return ((uint64_t)server * threads + thread) * qps + i;
}

static struct rma_target target_of(uint32_t thread, uint32_t i)
{
    uint32_t client = sharing_map(i, qps, sharing_clients, 1).client;
    return (struct rma_target){.rank = servers + client,
                               .source_id = servers + client,
                               .source = 0,
                               .ring = ring_of(wl_job.me, thread, i),
                               .writer = writer_of(wl_job.me, thread, i)};
}

static bool over_raw(int layer)
{
    return layer == wl_layer_raw;
}

static void add_target(struct rma_flood *flood, uint32_t i, int layer)
{
    struct rma_target *target = &flood->targets[flood->target_count++];
    *target = target_of(flood->thread, i);
    if (over_raw(layer))
        sharing_raw_target(target, i);
}

/* The connections of its group; with a fault one more, of another group. */
static void choose_targets(struct rma_flood *flood, int layer)
{
    uint32_t own = flood->thread / (uint32_t)sharing.degree;
    for (uint32_t i = 0; i < qps; i++) {
        bool is_ours = sharing_group(i, threads, (uint32_t)sharing.degree) == own;
        if (is_ours || wl_inject(&sharing.injection, sharing_intrude))
            add_target(flood, i, layer);
    }
}

static void set_flood(struct rma_flood *flood, uint32_t thread, int layer)
{
    struct rma_target *targets = flood->targets;
    *flood = (struct rma_flood){.memory = &sharing_memory,
                                .path = &rma_api,
                                .batch = (unsigned)sharing.postlist,
                                .targets = targets,
                                .thread = thread,
                                .write_percent = sharing.op ? 100 : 0,
                                .align = (size_t)sharing.align,
                                .verify = (int)sharing.common.verify,
                                .warmup_ns = (uint64_t)(sharing.common.warmup * 1e9),
                                .duration_ns = (uint64_t)(sharing.common.duration * 1e9),
                                .ops = (uint64_t)sharing.ops,
                                .timeout_ns = (uint64_t)sharing.common.timeout_ms * 1000000,
                                .lat_every = sharing.rma.lat_every,
                                .cycles_every = sharing.rma.cycles_every,
                                .is_bound = sharing.rma.bind,
                                .injection = sharing.injection};
    if (over_raw(layer))
        sharing_raw_bind(flood);
    choose_targets(flood, layer);
}

/* ---- H2: each end writes its name to the other */

static uint64_t name_hash(const char *side, uint32_t number, uint32_t i)
{
    char name[64];
    uint64_t hash = WL_GOLDEN;
    snprintf(name, sizeof(name), "%s-%u-%u", side, number, i);
    for (const char *c = name; *c; c++)
        hash = wl_mix(hash + (unsigned char)*c);
    return hash;
}

/* Where server and connection greet: at a client by server and place, at a server by connection. */
static size_t greeting(bool at_server, uint32_t server, uint32_t i)
{
    return rma_at_greeting(&sharing_memory, at_server ? i : (size_t)server * each + i % each);
}

static void greet_one(uint32_t server, uint32_t i, int layer)
{
    uint32_t client = sharing_map(i, qps, sharing_clients, 1).client;
    bool here = is_server() ? server == wl_job.me : client == wl_job.me - servers;
    gex_Rank_t to = is_server() ? servers + client : server;
    uint32_t fault = wl_inject(&sharing.injection, rma_misroute);
    if (!here)
        return;
    uint64_t hash = is_server() ? name_hash("server", server, i + fault)
                                : name_hash("client", client, i + fault);
    size_t at = greeting(!is_server(), server, i);
    if (over_raw(layer))
        sharing_raw_greet(is_server() ? i : server * each + i % each,
                          wl_job.segment + rma_at_local(&sharing_memory, 0, 0), hash, at);
    else
        gex_RMA_PutBlockingVal(wl_job.tm, to, (char *)wl_job.segments[to] + at, hash, sizeof(hash),
                               0);
}

static void check_one(uint32_t server, uint32_t i)
{
    uint32_t client = sharing_map(i, qps, sharing_clients, 1).client;
    uint64_t seen;
    if (is_server() ? server != wl_job.me : client != wl_job.me - servers)
        return;
    memcpy(&seen, wl_job.segment + greeting(is_server(), server, i), sizeof(seen));
    if (seen != (is_server() ? name_hash("client", client, i) : name_hash("server", server, i)))
        sharing_fail(sharing_h2, "rank %u: over connection %u of server %u another greeted",
                     (unsigned)wl_job.me, i, server);
}

static void greet(int layer)
{
    for (uint32_t server = 0; server < servers; server++)
        for (uint32_t i = 0; i < qps; i++)
            greet_one(server, i, layer);
    wl_job_barrier();
    for (uint32_t server = 0; server < servers; server++)
        for (uint32_t i = 0; i < qps; i++)
            check_one(server, i);
}

/* ---- The flood */

/* H8: a thread posts over connections of its group only. H6: alone on its connections it finds
 * only its own completions. */
static void check_group(const struct rma_flood *flood, const struct sharing_cost *cost)
{
    uint64_t posts = 0;
    for (size_t k = 0; k < flood->target_count; k++)
        posts += flood->targets[k].posts;
    if (posts != flood->posted || cost->strangers)
        sharing_fail(sharing_h8,
                     "rank %u thread %u: %llu posts, %llu over its connections, %llu over others",
                     (unsigned)wl_job.me, flood->thread, (unsigned long long)flood->posted,
                     (unsigned long long)posts, (unsigned long long)cost->strangers);
    if (sharing.degree == 1 && cost->foreign)
        sharing_fail(sharing_h6, "rank %u thread %u: %llu completions of other threads",
                     (unsigned)wl_job.me, flood->thread, (unsigned long long)cost->foreign);
}

static void serve(int layer)
{
    static const struct sharing_cost nothing;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    bool reseed = !over_raw(layer) && wl_inject(&sharing.injection, rma_reseed);
    rma_group_set(&group, &sharing.common, &sharing.rma, "sharing", layer, (size_t)sharing.size,
                  (uint64_t)sharing.ops);
    group.is_watched = wl_job.me == 0;
    rma_run_all(floods, threads, &group, (uint64_t)sharing.common.seed + reseed,
                (uint64_t)wl_job.me * threads);
    getrusage(RUSAGE_SELF, &after);
    wl_job_barrier();
    sharing_mine.switches = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
    sharing_mine.preemptions = (uint64_t)(after.ru_nivcsw - before.ru_nivcsw);
    for (uint32_t t = 0; t < threads; t++) {
        const struct sharing_cost *cost = over_raw(layer) ? sharing_raw_cost(t) : &nothing;
        struct rma_row *row = rma_sum_flood(&sharing_mine.sum, &floods[t]);
        if (row) {
            row->credit_waits = (double)cost->credit_waits;
            row->foreign_percent =
                floods[t].cqes ? 100 * (double)cost->foreign / (double)floods[t].cqes : 0;
        }
        sharing_cost_merge(&sharing_mine.cost, cost);
        check_group(&floods[t], cost);
    }
    rma_sum_group(&sharing_mine.sum, &group);
    if (over_raw(layer) && !wl_stopped())
        sharing_raw_check();
}

/* A client provides its memory and sleeps; its CPU time is checked and reported (H13). */
static void lend(void)
{
    sharing_mine.client_cpu_percent = rma_be_passive(wl_inject(&sharing.injection, sharing_awake));
    if (sharing_mine.client_cpu_percent >= rma_passive_max_percent)
        sharing_fail(sharing_h13, "client %u used %.1f %% of a CPU while it only lent memory",
                     (unsigned)(wl_job.me - servers), sharing_mine.client_cpu_percent);
}

/* H5 at the clients: every ring holds what was written last, and nothing else was touched. */
static void check_memory(void)
{
    size_t count = (size_t)threads * qps;
    uint64_t *mine = make(count, sizeof(*mine)), *all = make(count * wl_job.size, sizeof(*all));
    for (uint32_t t = 0; is_server() && t < threads; t++)
        for (size_t k = 0; k < floods[t].target_count; k++)
            mine[floods[t].targets[k].writer % count] = floods[t].targets[k].writes;
    wl_job_share(mine, all, count * sizeof(*mine));
    for (uint32_t server = 0; !is_server() && server < servers; server++)
        for (uint32_t t = 0; t < threads; t++)
            for (uint32_t i = (wl_job.me - servers) * each; i < (wl_job.me - servers + 1) * each;
                 i++) {
                uint64_t bad = 0, last = all[server * count + (size_t)t * qps + i];
                if (rma_ring_wrong(&sharing_memory, wl_job.segment, ring_of(server, t, i),
                                   writer_of(server, t, i), last, &bad))
                    sharing_fail(sharing_h5,
                                 "client %u: write %llu of %llu by server %u thread %u over "
                                 "connection %u is not there",
                                 (unsigned)(wl_job.me - servers), (unsigned long long)bad,
                                 (unsigned long long)last, server, t, i);
            }
    size_t hurt = rma_memory_changed_lines(&sharing_memory, wl_job.segment, wl_job.me);
    if (hurt)
        sharing_fail(sharing_h5, "rank %u: %zu lines that nobody may write have changed",
                     (unsigned)wl_job.me, hurt);
    free(mine);
    free(all);
}

static void prepare(void)
{
    servers = (uint32_t)sharing.servers;
    threads = (uint32_t)sharing.threads;
    qps = (uint32_t)sharing.qps;
    each = sharing_each(qps, sharing_clients);
    size_t rings = (size_t)servers * threads * each;
    sharing_memory = (struct rma_memory){.seed = (uint64_t)sharing.common.seed,
                                         .sources = 1,
                                         .source_size = (size_t)sharing.buf,
                                         .writers = rings > qps ? rings : qps,
                                         .threads = threads,
                                         .window = (size_t)sharing.window};
    rma_memory_set(&sharing_memory, (size_t)sharing.size);
    wl_job_segment(rma_memory_bytes(&sharing_memory));
    floods = make(threads, sizeof(*floods));
    for (uint32_t t = 0; is_server() && t < threads; t++)
        floods[t].targets = make(qps, sizeof(*floods[t].targets));
    if (sharing.common.layer != wl_layer_api)
        sharing_raw_open();
}

static void run(int layer, bool first)
{
    (void)first;
    memset(&sharing_mine, 0, sizeof(sharing_mine));
    rma_sum_clear(&sharing_mine.sum);
    rma_memory_fill(&sharing_memory, wl_job.segment, wl_job.me);
    for (uint32_t t = 0; is_server() && t < threads; t++)
        set_flood(&floods[t], t, layer);
    wl_job_barrier();
    greet(layer);
    wl_job_barrier();
    if (is_server())
        serve(layer);
    else
        lend();
    if (!wl_stopped())
        check_memory();
    wl_job_gather(0, &sharing_mine, outcomes, sizeof(sharing_mine));
    if (wl_job.me == 0)
        sharing_round(outcomes, layer);
}

int main(int argc, char **argv)
{
    struct wl_report *report = NULL;
    wl_job_start(&argc, &argv, &sharing_program, &sharing, NULL);
    outcomes = make(wl_job.size, sizeof(*outcomes));
    if (sharing.rma.bind)
        rma_bind_open(wl_job.me < (gex_Rank_t)sharing.servers ? (uint32_t)sharing.threads : 0);
    if (wl_job.me == 0 && sharing.threads > wl_job.cpus)
        wl_say("%lld threads on %d CPUs: the report says oversubscribed",
               (long long)sharing.threads, wl_job.cpus);
    prepare();
    rma_rounds_run(sharing.common.layer, sharing.rounds, run);
    if (sharing.common.layer != wl_layer_api)
        sharing_raw_close();
    if (wl_job.me == 0) {
        report = wl_report_open("sharing", "1");
        sharing_report(report);
    }
    wl_job_end(report, &sharing.common, rma_rounds_columns(sharing.common.layer));
}
