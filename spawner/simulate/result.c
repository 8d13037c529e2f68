/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a simulation, as text and as one JSON object. */
#include "config.h"

#include "simulation.h"

#include "base/footprint.h"
#include "base/report.h"
#include "spawner/wire/wire.h"
#include "start/plan.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const phase_names[] = {"guards", "ranks",   "exchange",
                                          "calls",  "failure", "exit"};

struct busiest {
    uint64_t messages, bytes, connections, datagrams; /* of one rank */
    uint64_t cpu;                                     /* of one host, ns */
    const struct sim_link *link;
    char link_name[48];
    uint64_t memory;      /* of a host, by the library and the launcher */
    uint64_t fence;       /* bytes of the largest one */
    uint64_t queue_pairs; /* of a host */
};

static uint64_t most_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct tk_footprint footprint(const struct simulation *s, uint64_t connections)
{
    struct tk_job_shape shape;
    struct tk_footprint one = {0};
    char why[200];
    tk_plan_shape(&shape, s->in.ranks, s->in.hosts);
    shape.connected = (uint32_t)connections;
    tk_report_into(why, sizeof(why));
    tk_plan(&one, &shape);
    tk_report_into(NULL, 0);
    return one;
}

/* Leaders alone have connections; each rank has queue pairs for datagrams. */
static uint64_t queue_pairs(const struct simulation *s)
{
    uint64_t most = 0, each = s->nbrhds > 1 ? footprint(s, 0).queue_pairs : 0;
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        uint64_t sum = each * s->hosts[h].ranks;
        for (uint32_t n = s->hosts[h].first; n < s->hosts[h].end; n++)
            sum += (uint64_t)s->leaders[n].connections_most * s->conns;
        most = most_of(most, sum);
    }
    return most;
}

static uint64_t host_memory(const struct simulation *s, uint64_t connections)
{
    uint64_t local = (s->in.ranks - 1) / s->in.hosts + 1;
    const struct tk_footprint one = footprint(s, connections);
    return (one.private_bytes + one.shared + one.registered) * local +
           local * s->costs.launcher_rank + s->in.ranks * s->costs.launcher_peer +
           s->costs.launcher_host;
}

static struct busiest find_busiest(const struct simulation *s)
{
    struct busiest b = {0};
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        const struct sim_leader *l = &s->leaders[n];
        b.messages = most_of(b.messages, (uint64_t)l->sent + l->came);
        b.bytes = most_of(b.bytes, l->bytes);
        b.connections = most_of(b.connections, l->connections_most);
        b.datagrams = most_of(b.datagrams, l->datagrams);
    }
    for (uint32_t h = 0; h < s->in.hosts; h++)
        b.cpu = most_of(b.cpu, s->hosts[h].cpu);
    b.link = sim_fabric_busiest(&s->fabric, b.link_name, sizeof(b.link_name));
    b.memory = host_memory(s, b.connections);
    b.queue_pairs = queue_pairs(s);
    b.fence = sim_data_of_hosts(s).first;
    return b;
}

/* Phases that did not take place end when the one before does. */
static uint64_t end_of(const struct simulation *s, int phase)
{
    uint64_t end = 0;
    for (int i = 0; i <= phase; i++)
        end = most_of(end, s->ends[i]);
    return end;
}

/* Limits of devices and hosts, if they are known. The first rank that opens too many queue pairs,
 * or has no memory for buffers, ends the job. */
static bool device_limit(const struct simulation *s, const struct busiest *b, char *text,
                         size_t size)
{
    if (s->in.qps && b->queue_pairs > s->in.qps)
        snprintf(text, size,
                 "the ranks of a host need %" PRIu64 " queue pairs, and its device has %u: "
                 "GASNET_CONNECT_MAX bounds those of a rank",
                 b->queue_pairs, s->in.qps);
    else if (s->in.memory && b->memory > s->in.memory)
        snprintf(text, size,
                 "the library and the launcher need %" PRIu64 " bytes of a host that has %" PRIu64,
                 b->memory, s->in.memory);
    else
        return false;
    return true;
}

/* What takes most of the time, or stops the job. */
static void limit_of(const struct simulation *s, const struct busiest *b, char *text, size_t size)
{
    uint64_t total = end_of(s, SIM_EXIT), spent = 0;
    int longest = 0;
    if (b->fence > WIRE_MAX_BULK) {
        snprintf(text, size,
                 "the fence with the peer infos has %" PRIu64
                 " bytes, and a frame of the launcher %d at most: the job can't start",
                 b->fence, WIRE_MAX_BULK);
        return;
    }
    if (device_limit(s, b, text, size))
        return;
    if (s->hangs) {
        snprintf(text, size, "nobody notices that a host is silent: the job does not end");
        return;
    }
    for (int i = 0; i < sim_phases; i++) {
        uint64_t took = end_of(s, i) - (i ? end_of(s, i - 1) : 0);
        if (took > spent) {
            spent = took;
            longest = i;
        }
    }
    if (s->head_cpu > spent / 2)
        snprintf(text, size, "the head of the launcher: it computes for %.3f of %.3f s",
                 (double)s->head_cpu / 1e9, (double)total / 1e9);
    else
        snprintf(text, size, "the phase %s: %.3f of %.3f s", phase_names[longest],
                 (double)spent / 1e9, (double)total / 1e9);
}

struct row {
    const char *name;
    uint64_t value;
};

enum { rows_max = 32 };

static unsigned rows_of(const struct simulation *s, struct row rows[rows_max])
{
    const struct sim_frames *f = &s->frames;
    const struct row all[] = {{"hello", f->hello},
                              {"job", f->job},
                              {"go", f->go},
                              {"server", f->server},
                              {"fence", f->fence},
                              {"fence_done", f->fence_done},
                              {"fence_bytes", s->fence_bytes.up},
                              {"done_bytes", s->fence_bytes.down},
                              {"lost", f->lost},
                              {"kill", f->kill},
                              {"ending", f->ending},
                              {"done", f->done},
                              {"left", f->left},
                              {"abort", f->abort},
                              {"exit_agree", s->end.agree},
                              {"exit_elect", s->end.elect},
                              {"exit_notices", s->end.notices},
                              {"exit_local", s->end.local},
                              {"exit_puts", s->end.puts},
                              {"pmix_puts", s->pmix_puts},
                              {"pmix_gets", s->pmix_gets},
                              {"pmix_fences", s->pmix_fences},
                              {"datagrams", s->stock.datagrams},
                              {"connections", s->stock.connections * s->conns},
                              {"connections_closed", s->stock.closed},
                              {"messages", s->stock.sent},
                              {"acks", s->stock.acks},
                              {"loan_messages", s->stock.loans},
                              {"credit_waits", s->stock.waits}};
    enum { count = sizeof(all) / sizeof(all[0]) };
    for (unsigned i = 0; i < count; i++)
        rows[i] = all[i];
    return count;
}

void sim_print(const struct simulation *s)
{
    const struct busiest b = find_busiest(s);
    struct row rows[rows_max];
    char limit[200];
    unsigned count = rows_of(s, rows);
    limit_of(s, &b, limit, sizeof(limit));
    printf("%u process%s on %u host%s, %u neighbourhood%s; %s of %" PRIu64 " Gbit/s, %" PRIu64
           " ns a link; seed %" PRIu64 "\n\n",
           s->in.ranks, s->in.ranks > 1 ? "es" : "", s->in.hosts, s->in.hosts > 1 ? "s" : "",
           s->nbrhds, s->nbrhds > 1 ? "s" : "", sim_fabric_name(s->in.fabric), s->in.gbits,
           s->in.latency, s->in.seed);
    printf("%-12s %12s %12s\n", "phase", "seconds", "until");
    for (int i = 0; i < sim_phases; i++) {
        uint64_t before = i ? end_of(s, i - 1) : 0, end = end_of(s, i);
        if (end > before)
            printf("%-12s %12.6f %12.6f\n", phase_names[i], (double)(end - before) / 1e9,
                   (double)end / 1e9);
    }
    printf("\nCPU time of all: %.3f s, of the head %.3f s, of the busiest host %.3f s\n",
           (double)s->cpu / 1e9, (double)s->head_cpu / 1e9, (double)b.cpu / 1e9);
    printf("Busiest rank: %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64
           " connections, %" PRIu64 " datagrams\n",
           b.messages, b.bytes, b.connections * s->conns, b.datagrams);
    printf("At the end: busiest rank %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64
           " connections; host %" PRIu64 " messages, %" PRIu64 " connections; head %" PRIu64
           " frames, %" PRIu64 " bytes\n",
           s->end.rank.messages, s->end.rank.bytes, s->end.rank.connections * s->conns,
           s->end.host.messages, s->end.host.connections * s->conns,
           s->head_frames - s->end.head_frames, s->head_bytes - s->end.head_bytes);
    printf("Busiest link: %s, %u messages, %" PRIu64 " bytes\n", b.link_name, b.link->messages,
           b.link->bytes);
    printf("Head: %" PRIu64 " frames, %" PRIu64 " bytes; a guard of its own: %" PRIu64 " bytes\n",
           s->head_frames, s->head_bytes, s->guard_bytes);
    printf("Memory of a host: %.1f MiB; queue pairs: %" PRIu64 "\n", (double)b.memory / 1048576,
           b.queue_pairs);
    printf("Credits: %d of a connection, %d of a rank, slack %d; %s receive queues\n\n",
           s->credits.base, s->credits.total, s->credits.slack, s->is_shared ? "shared" : "own");
    for (unsigned i = 0; i < count; i++)
        printf("%-18s %12" PRIu64 "\n", rows[i].name, rows[i].value);
    printf("\nLimit: %s\n", limit);
}

void sim_print_json(const struct simulation *s)
{
    const struct busiest b = find_busiest(s);
    struct row rows[rows_max];
    char limit[200];
    unsigned count = rows_of(s, rows);
    limit_of(s, &b, limit, sizeof(limit));
    printf("{\"ranks\":%u,\"hosts\":%u,\"neighbourhoods\":%u,\"fabric\":\"%s\",\"seed\":%" PRIu64,
           s->in.ranks, s->in.hosts, s->nbrhds, sim_fabric_name(s->in.fabric), s->in.seed);
    printf(",\"seconds\":{");
    for (int i = 0; i < sim_phases; i++)
        printf("%s\"%s\":%.6f", i ? "," : "", phase_names[i], (double)end_of(s, i) / 1e9);
    printf("},\"cpu\":{\"all\":%.6f,\"head\":%.6f,\"host\":%.6f}", (double)s->cpu / 1e9,
           (double)s->head_cpu / 1e9, (double)b.cpu / 1e9);
    printf(",\"rank\":{\"messages\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"connections\":%" PRIu64
           ",\"datagrams\":%" PRIu64 "}",
           b.messages, b.bytes, b.connections * s->conns, b.datagrams);
    printf(",\"end\":{\"messages\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"connections\":%" PRIu64
           ",\"host_messages\":%" PRIu64 ",\"host_bytes\":%" PRIu64 ",\"host_connections\":%" PRIu64
           ",\"head_frames\":%" PRIu64 ",\"head_bytes\":%" PRIu64 "}",
           s->end.rank.messages, s->end.rank.bytes, s->end.rank.connections * s->conns,
           s->end.host.messages, s->end.host.bytes, s->end.host.connections * s->conns,
           s->head_frames - s->end.head_frames, s->head_bytes - s->end.head_bytes);
    printf(",\"link\":{\"name\":\"%s\",\"messages\":%u,\"bytes\":%" PRIu64 "}", b.link_name,
           b.link->messages, b.link->bytes);
    printf(",\"head\":{\"frames\":%" PRIu64 ",\"bytes\":%" PRIu64 "},\"guard\":{\"bytes\":%" PRIu64
           "},\"memory\":%" PRIu64 ",\"queue_pairs\":%" PRIu64,
           s->head_frames, s->head_bytes, s->guard_bytes, b.memory, b.queue_pairs);
    printf(",\"credits\":{\"connection\":%d,\"rank\":%d,\"slack\":%d,\"shared\":%s},\"counts\":{",
           s->credits.base, s->credits.total, s->credits.slack, s->is_shared ? "true" : "false");
    for (unsigned i = 0; i < count; i++)
        printf("%s\"%s\":%" PRIu64, i ? "," : "", rows[i].name, rows[i].value);
    printf("},\"limit\":\"%s\"}\n", limit);
}
