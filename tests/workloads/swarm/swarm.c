/* SPDX-License-Identifier: BSD-3-Clause */
/* The workload swarm: connections by name, greetings over each, then a flood from all threads, then
 * a look at all memory; over raw verbs, over GASNet-EX, or in turn. Over the interface a connection
 * is a name and an order of choices; the conduit uses its own connections to each peer. Owns floods
 * and targets. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passive.h"
#include "cpu_binding.h"
#include "swarm.h"

struct swarm_size swarm_size;
struct rma_memory swarm_memory;

static struct swarm_outcome *outcomes; /* of all ranks */
static struct rma_flood *floods;
static struct rma_group group;     /* of what runs now */
static struct rma_target *targets; /* of all threads, in order of thread and k */

static void *make(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        wl_job_die("no memory for %zu connections", count);
    return memory;
}

/* ---- Connections */

static bool active(uint32_t process)
{
    return swarm.mode == swarm_all || (process == 0) == (swarm.mode == swarm_outbound);
}

/* Whether the mode lets this process choose that one. */
static bool chosen(uint32_t process, uint32_t peer)
{
    return active(process) && (swarm.mode != swarm_inbound || peer == 0);
}

static struct rma_target target_of(struct swarm_end end)
{
    uint32_t peer = swarm_peer(swarm_size, end), machine = swarm_machine(swarm_size, end);
    return (struct rma_target){.rank = peer,
                               .source_id = (uint64_t)peer * swarm_size.w + end.thread,
                               .source = end.thread,
                               .ring = swarm_writer(swarm_size, end.process, end.thread, machine),
                               .writer = (uint64_t)end.process * swarm_named(swarm_size) +
                                         (uint64_t)end.thread * swarm_size.n * swarm_size.m +
                                         end.k};
}

static bool over_raw(int layer)
{
    return layer == wl_layer_raw;
}

static void add_target(struct rma_flood *flood, struct swarm_end end, int layer)
{
    struct rma_target *target = &flood->targets[flood->target_count];
    if (!swarm_connected(swarm_size, end))
        return;
    swarm_mine.connected += 1 + wl_inject(&swarm.injection, rma_own_faults);
    if (!chosen(wl_job.me, swarm_peer(swarm_size, end)))
        return;
    *target = target_of(end);
    if (over_raw(layer))
        swarm_raw_target(target, end);
    flood->target_count++;
}

/* State of one round, reset for each. */
static void name_all(int layer, bool dump)
{
    uint32_t per_thread = swarm_size.n * swarm_size.m;
    uint64_t named = 0;
    memset(floods, 0, swarm_size.w * sizeof(*floods));
    for (uint32_t t = 0; t < swarm_size.w; t++) {
        floods[t].targets = &targets[(size_t)t * per_thread];
        for (uint32_t k = 0; k < per_thread; k++) {
            struct swarm_end end = {wl_job.me, t, k};
            char name[swarm_name_max];
            named++;
            swarm_name(swarm_size, end, name);
            if (dump)
                printf("%s%s\n", name, swarm_connected(swarm_size, end) ? "" : " (itself)");
            add_target(&floods[t], end, layer);
        }
    }
    if (named != swarm_named(swarm_size) ||
        swarm_mine.connected != swarm_connected_ends(swarm_size))
        swarm_fail(swarm_s2, "rank %u: %llu named, %llu connected", (unsigned)wl_job.me,
                   (unsigned long long)named, (unsigned long long)swarm_mine.connected);
}

/* S3: every connection writes the hash of its own name into the place that its partner keeps for
 * it, which knows the name that it expects there. */
static void greet_one(struct swarm_end end, int layer)
{
    struct swarm_end other = end;
    char name[swarm_name_max];
    gex_Rank_t peer = swarm_peer(swarm_size, end);
    if (wl_inject(&swarm.injection, rma_misroute))
        other.thread++;
    swarm_name(swarm_size, other, name);
    size_t at = rma_at_greeting(&swarm_memory, swarm_writer(swarm_size, wl_job.me, end.thread,
                                                            swarm_machine(swarm_size, end)));
    if (over_raw(layer))
        swarm_raw_greet(end, swarm_name_hash(name), at);
    else
        gex_RMA_PutBlockingVal(wl_job.tm, peer, (char *)wl_job.segments[peer] + at,
                               swarm_name_hash(name), sizeof(uint64_t), 0);
}

static void greet(int layer)
{
    for (uint32_t t = 0; t < swarm_size.w; t++)
        for (uint32_t k = 0; k < swarm_size.n * swarm_size.m; k++) {
            struct swarm_end end = {wl_job.me, t, k};
            if (swarm_connected(swarm_size, end))
                greet_one(end, layer);
        }
    wl_job_barrier();
}

static void check_greetings(void)
{
    for (uint32_t t = 0; t < swarm_size.w; t++)
        for (uint32_t k = 0; k < swarm_size.n * swarm_size.m; k++) {
            struct swarm_end end = {wl_job.me, t, k};
            char name[swarm_name_max];
            uint64_t seen;
            if (!swarm_connected(swarm_size, end))
                continue;
            swarm_name(swarm_size, swarm_partner(swarm_size, end), name);
            size_t writer = swarm_writer(swarm_size, swarm_peer(swarm_size, end), t,
                                         swarm_machine(swarm_size, end));
            memcpy(&seen, wl_job.segment + rma_at_greeting(&swarm_memory, writer), sizeof(seen));
            if (seen != swarm_name_hash(name))
                swarm_fail(swarm_s3, "rank %u thread %u: where %s was expected another greeted",
                           (unsigned)wl_job.me, t, name);
        }
}

/* ---- The flood */

static void set_flood(struct rma_flood *flood, uint32_t thread, int layer)
{
    flood->path = &rma_api;
    flood->batch = (unsigned)swarm.postlist;
    flood->memory = &swarm_memory;
    flood->thread = thread;
    flood->write_percent = swarm.write_percent;
    flood->align = (size_t)swarm.align;
    flood->verify = (int)swarm.common.verify;
    flood->warmup_ns = (uint64_t)(swarm.common.warmup * 1e9);
    flood->duration_ns = (uint64_t)(swarm.common.duration * 1e9);
    flood->ops = (uint64_t)swarm.ops;
    flood->timeout_ns = (uint64_t)swarm.common.timeout_ms * 1000000;
    flood->lat_every = swarm.rma.lat_every;
    flood->cycles_every = swarm.rma.cycles_every;
    flood->is_bound = swarm.rma.bind;
    flood->injection = swarm.injection;
    if (over_raw(layer))
        swarm_raw_bind(flood);
}

static void lend(void)
{
    swarm_mine.passive_cpu_percent = rma_be_passive(wl_inject(&swarm.injection, swarm_awake));
    if (swarm_mine.passive_cpu_percent >= rma_passive_max_percent)
        swarm_fail(swarm_passive, "rank %u used %.1f %% of a CPU while it only lent memory",
                   (unsigned)wl_job.me, swarm_mine.passive_cpu_percent);
}

/* Ranks that do not post sleep in the barrier after this. */
static void flood_all(int layer)
{
    bool reseed = !over_raw(layer) && wl_inject(&swarm.injection, rma_reseed);
    for (uint32_t t = 0; t < swarm_size.w; t++)
        set_flood(&floods[t], t, layer);
    rma_group_set(&group, &swarm.common, &swarm.rma, "swarm", layer, (size_t)swarm.size,
                  (uint64_t)swarm.ops);
    group.is_watched = wl_job.me == (swarm.mode == swarm_inbound);
    rma_run_all(floods, swarm_size.w, &group, (uint64_t)swarm.common.seed + reseed,
                (uint64_t)wl_job.me * swarm_size.w);
    if (active(wl_job.me))
        wl_job_barrier();
    else
        lend();
}

/* ---- Afterwards */

/* S6 and S7: every ring holds what its writer sent last; nothing else was touched. */
static void check_memory(void)
{
    size_t rings = (size_t)swarm_named(swarm_size);
    uint64_t *mine = make(wl_job.size * rings, sizeof(*mine));
    uint64_t *all = make((size_t)wl_job.size * wl_job.size * rings, sizeof(*all));
    for (uint32_t t = 0; t < swarm_size.w; t++)
        for (size_t i = 0; i < floods[t].target_count; i++) {
            const struct rma_target *target = &floods[t].targets[i];
            mine[target->rank * rings + target->ring] = target->writes;
        }
    wl_job_share(mine, all, wl_job.size * rings * sizeof(*mine));
    for (uint32_t t = 0; t < swarm_size.w; t++)
        for (uint32_t k = 0; k < swarm_size.n * swarm_size.m; k++) {
            struct swarm_end end = {wl_job.me, t, k};
            struct swarm_end partner = swarm_partner(swarm_size, end);
            struct rma_target to_us = target_of(partner);
            uint64_t bad = 0,
                     last = all[(partner.process * wl_job.size + wl_job.me) * rings + to_us.ring];
            if (swarm_connected(swarm_size, end) &&
                rma_ring_wrong(&swarm_memory, wl_job.segment, to_us.ring, to_us.writer, last, &bad))
                swarm_fail(swarm_s6,
                           "rank %u thread %u: write %llu of %llu by rank %u is not there",
                           (unsigned)wl_job.me, t, (unsigned long long)bad,
                           (unsigned long long)last, partner.process);
        }
    size_t hurt =
        rma_memory_changed_lines(&swarm_memory, wl_job.segment, (uint64_t)wl_job.me * swarm_size.w);
    if (hurt)
        swarm_fail(swarm_s7, "rank %u: %zu lines that nobody may write have changed",
                   (unsigned)wl_job.me, hurt);
    free(mine);
    free(all);
}

static void prepare(void)
{
    swarm_size = (struct swarm_size){wl_job.size, (uint32_t)swarm.vms, (uint32_t)swarm.threads};
    swarm_memory = (struct rma_memory){.seed = (uint64_t)swarm.common.seed,
                                       .sources = swarm_size.w,
                                       .source_size = (size_t)swarm.buf,
                                       .writers = (size_t)swarm_named(swarm_size),
                                       .threads = swarm_size.w,
                                       .window = (size_t)swarm.window};
    rma_memory_set(&swarm_memory, (size_t)swarm.size);
    targets = make((size_t)swarm_named(swarm_size), sizeof(*targets));
    floods = make(swarm_size.w, sizeof(*floods));
    wl_job_segment(rma_memory_bytes(&swarm_memory));
    if (swarm.common.layer != wl_layer_api)
        swarm_raw_open();
}

static void run(int layer, bool first)
{
    memset(&swarm_mine, 0, sizeof(swarm_mine));
    rma_sum_clear(&swarm_mine.sum);
    rma_memory_fill(&swarm_memory, wl_job.segment, (uint64_t)wl_job.me * swarm_size.w);
    wl_job_barrier();
    name_all(layer, first && swarm.dump_names);
    greet(layer);
    check_greetings();
    flood_all(layer);
    for (uint32_t t = 0; t < swarm_size.w && floods[t].target_count; t++)
        rma_sum_flood(&swarm_mine.sum, &floods[t]);
    if (active(wl_job.me))
        rma_sum_group(&swarm_mine.sum, &group);
    if (!wl_stopped())
        check_memory();
    wl_job_gather(0, &swarm_mine, outcomes, sizeof(swarm_mine));
    if (wl_job.me == 0)
        swarm_round(outcomes, layer);
}

int main(int argc, char **argv)
{
    struct wl_report *report = NULL;
    wl_job_start(&argc, &argv, &swarm_program, &swarm, NULL);
    outcomes = make(wl_job.size, sizeof(*outcomes));
    if (swarm.rma.bind)
        rma_bind_open(active(wl_job.me) ? (uint32_t)swarm.threads : 0);
    prepare();
    rma_rounds_run(swarm.common.layer, swarm.rounds, run);
    if (swarm.common.layer != wl_layer_api)
        swarm_raw_close();
    if (wl_job.me == 0) {
        report = wl_report_open("swarm", "1");
        swarm_report(report);
    }
    wl_job_end(report, &swarm.common, rma_rounds_columns(swarm.common.layer));
}
