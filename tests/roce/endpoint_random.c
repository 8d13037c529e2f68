/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random requests between two end points over a network that misbehaves, many seeds: all data, all
 * completions in order, atomics exactly once, and an end; then one end point and a model of the
 * kernel's rxe, either way round. usage: endpoint_random [SEEDS [FIRST]]
 * A failure names its seed; endpoint_random 1 SEED runs that one again. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

enum {
    default_seeds = 8,
    sanitized_seeds = 2, /* which are ten times as slow */
    minutes = 10,        /* many seeds under a sanitizer */
};

struct weather {
    const char *name;
    struct trouble trouble;
    uint32_t late;         /* receives, of 1000 */
    uint64_t repeated_max; /* packets of 1000 */
};

static const struct weather weathers[] = {
    {"no loss", {.delay_ns = 20000}, 0, 0},
    {"receivers not ready", {.delay_ns = 20000}, 300, 1000},
    {"congestion marks", {.delay_ns = 20000, .mark = 50}, 0, 0},
    {"1 % loss", {.loss = 10, .delay_ns = 20000}, 100, 1000},
    {"loss, doubles, damage", {50, 50, 0, 20, 20000, 0, 0}, 100, 1000},
    {"reordering", {0, 0, 200, 0, 20000, 200000, 0}, 0, 1000},
    {"everything", {50, 50, 100, 20, 20000, 300000, 20}, 100, 1000},
    {"a fifth is lost", {200, 50, 100, 50, 20000, 200000, 0}, 100, 1000},
};

static const uint8_t transports[] = {ROCE_RC, ROCE_RC, ROCE_XRC, ROCE_UC, ROCE_UD};

/* The machines at the two ends of each run. */
static const struct machine *const pairs[][2] = {{&machine_endpoint, &machine_endpoint},
                                                 {&machine_endpoint, &machine_kernel},
                                                 {&machine_kernel, &machine_endpoint}};

static struct plan plan_of(uint64_t seed, const struct weather *w, unsigned pair)
{
    struct plan p = {.seed = seed * 977 + (uint64_t)(w - weathers),
                     .machine = {pairs[pair][0], pairs[pair][1]},
                     .trouble = w->trouble,
                     .receives_late = w->late,
                     .transport = transports[seed % sizeof transports],
                     .mtu = seed % 7 == 0 ? 4096 : 256u << seed % 3,
                     .requests = 100,
                     .start_psn = (uint32_t)(seed % 2 ? 0xffffe0 : seed * 7919) & 0xffffff,
                     .reads = 1 + (uint32_t)(seed % 4),
                     .one_way = seed % 4 == 3};

    if (pair != 0)
        p.transport = ROCE_RC;
    p.longest = p.transport == ROCE_UD ? p.mtu : seed % 3 ? 40 * p.mtu : 2 * p.mtu;
    return p;
}

static bool run(uint64_t seed, const struct weather *w, unsigned pair)
{
    struct plan p = plan_of(seed, w, pair);
    bool reliable = p.transport == ROCE_RC || p.transport == ROCE_XRC;
    struct outcome o;
    uint64_t repeated;

    world_run(&p, &o);
    repeated = o.counters[0].repeated + o.counters[1].repeated;
    if (o.counters[0].rnr + o.counters[1].rnr > 0)
        repeated = 0; /* packets that a receiver missed because it was not ready */
    if (!o.wrong[0] && repeated * 1000 > w->repeated_max * o.packets)
        snprintf(o.wrong, sizeof o.wrong, "%llu of %llu packets were sent again",
                 (unsigned long long)repeated, (unsigned long long)o.packets);
    if (!o.wrong[0] && w->trouble.mark && reliable && pair == 0 && o.counters[0].halvings == 0)
        snprintf(o.wrong, sizeof o.wrong, "congestion did not make the window smaller");
    if (o.wrong[0])
        printf("%s, seed %llu, transport %u, %s to %s: %s\n", w->name, (unsigned long long)seed,
               p.transport, p.machine[0]->name, p.machine[1]->name, o.wrong);
    return !o.wrong[0];
}

static uint64_t seeds_of_a_check(void)
{
    const char *sanitizer = getenv("TRUNKLINE_TEST_SANITIZER");

    return sanitizer && strcmp(sanitizer, "no") != 0 && *sanitizer ? sanitized_seeds
                                                                   : default_seeds;
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : seeds_of_a_check();
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    unsigned failed = 0, runs = 0;

    alarm(minutes * 60);
    for (uint64_t seed = first; seed < first + seeds; seed++)
        for (size_t i = 0; i < sizeof weathers / sizeof weathers[0]; i++)
            for (unsigned pair = 0; pair < sizeof pairs / sizeof pairs[0]; pair++, runs++)
                failed += !run(seed, &weathers[i], pair);
    printf("%u runs, %u failed\n", runs, failed);
    return failed || runs == 0;
}
