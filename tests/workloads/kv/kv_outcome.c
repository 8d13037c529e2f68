/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a run of kv: the outcomes of all ranks added up, the checks that need all of them
 * (K8, K17 and the sums of K5), and the report. Rank 0 only, but for kv_fail(). Owns kv_mine and
 * the result of the first transport in a series of runs. */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kv.h"

struct kv_outcome kv_mine;

const char *const kv_check_names[kv_checks] = {"K1", "K3",  "K4",  "K5",  "K6",  "K7",  "K8",
                                               "K9", "K10", "K15", "K16", "K17", "K18", "K19"};

static void fail_in(struct kv_verdict *verdict, const char *format, va_list args)
{
    if (verdict->failures++ == 0)
        vsnprintf(verdict->first, sizeof(verdict->first), format, args);
}

void kv_fail(enum kv_check check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_in(&kv_mine.verdicts[check], format, args);
    va_end(args);
}

static void fail(struct kv_outcome *total, enum kv_check check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_in(&total->verdicts[check], format, args);
    va_end(args);
}

/* ---- Intervals */

static struct {
    uint64_t next, total;
    int count;
} ticks;

void kv_ticks_start(uint64_t now, uint64_t total)
{
    ticks.next = now + kv_interval();
    ticks.total = total;
    ticks.count = 0;
}

bool kv_tick_due(uint64_t now)
{
    return now >= ticks.next;
}

/* A rank that slept through some intervals did nothing in them. */
void kv_tick(uint64_t now, uint64_t total)
{
    for (; now >= ticks.next && ticks.count < kv_intervals_max; ticks.next += kv_interval()) {
        kv_mine.intervals[ticks.count++] = total - ticks.total;
        ticks.total = total;
    }
    if (ticks.count == kv_intervals_max)
        ticks.next = UINT64_MAX;
}

void kv_ticks_end(uint64_t total)
{
    if (total > ticks.total && ticks.count < kv_intervals_max)
        kv_mine.intervals[ticks.count++] = total - ticks.total;
}

/* ---- Sums */

struct total {
    struct kv_outcome sum;
    uint64_t served[3], server_cpu, client_cpu, busiest;
    uint64_t ran; /* served without what was preloaded */
    double mops, get_mops, write_mops, load;
};

static void add_counts(struct kv_counts *into, const struct kv_counts *from)
{
    uint64_t *a = (uint64_t *)into;
    const uint64_t *b = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof(*into) / sizeof(*a); i++)
        a[i] += b[i];
}

static void add_verdicts(struct kv_outcome *into, const struct kv_outcome *from)
{
    for (int check = 0; check < kv_checks; check++) {
        if (into->verdicts[check].failures == 0)
            into->verdicts[check] = from->verdicts[check];
        else
            into->verdicts[check].failures += from->verdicts[check].failures;
    }
}

static void add_server(struct total *total, const struct kv_outcome *one)
{
    uint64_t all = 0;
    for (int op = 0; op < 3; op++) {
        total->served[op] += one->answered[op];
        all += one->answered[op];
    }
    total->busiest = all > total->busiest ? all : total->busiest;
    total->server_cpu += one->cpu_ns;
    total->ran += one->measured[0];
    total->sum.digest += one->digest;
    total->sum.reordered += one->reordered;
    total->sum.lists += one->lists;
    total->sum.listed += one->listed;
    total->load += one->load / kv_servers;
    add_counts(&total->sum.counts, &one->counts);
}

/* Of both sides. */
static void add_raw(struct kv_outcome *into, const struct kv_outcome *from)
{
    into->doorbells += from->doorbells;
    into->cqes += from->cqes;
    into->polls += from->polls;
    into->pushes += from->pushes;
    into->dummies += from->dummies;
    if (from->receives_min < into->receives_min)
        into->receives_min = from->receives_min;
    into->wire_bytes += from->wire_bytes;
    into->posts += from->posts;
    into->inlined += from->inlined;
    if (from->load_ns > into->load_ns)
        into->load_ns = from->load_ns;
    into->packs += from->packs;
    into->packed += from->packed;
}

static double rate(uint64_t count, uint64_t ns)
{
    return ns ? (double)count * 1e3 / (double)ns : 0;
}

static void add_client(struct total *total, const struct kv_outcome *one)
{
    for (int op = 0; op < 3; op++) {
        total->sum.issued[op] += one->issued[op];
        total->sum.answered[op] += one->answered[op];
        total->sum.measured[op] += one->measured[op];
    }
    if (one->measured_ns > total->sum.measured_ns)
        total->sum.measured_ns = one->measured_ns;
    total->client_cpu += one->cpu_ns;
    total->sum.hits += one->hits;
    total->sum.misses += one->misses;
    total->sum.lost += one->lost;
    total->sum.unsure += one->unsure;
    total->sum.refused += one->refused;
    total->sum.reads += one->reads;
    total->sum.torn += one->torn;
    total->served[kv_get] += one->looked; /* the client served itself */
    total->ran += one->looked;
    for (int i = 0; i < kv_intervals_max; i++)
        total->sum.intervals[i] += one->intervals[i];
    for (int action = 0; action < kv_actions; action++)
        total->sum.drawn[action] += one->drawn[action];
    for (int server = 0; server < kv_shares_max; server++)
        total->sum.to_server[server] += one->to_server[server];
    total->sum.stalls += one->stalls;
    total->sum.results += one->results;
    wl_histogram_merge(&total->sum.gets, &one->gets);
    wl_histogram_merge(&total->sum.puts, &one->puts);
}

/* All operations over the longest client's time: clients that took turns on a CPU must not count as
 * if they had run at the same time. */
static void set_rates(struct total *total)
{
    const struct kv_outcome *sum = &total->sum;
    total->get_mops = rate(sum->measured[kv_get], sum->measured_ns);
    total->write_mops = rate(sum->measured[kv_put] + sum->measured[kv_delete], sum->measured_ns);
    total->mops = total->get_mops + total->write_mops;
}

/* ---- Checks that need all ranks */

static void check_sums(struct total *total)
{
    static const char *const names[] = {"GETs", "PUTs", "DELETEs"};
    struct kv_outcome *sum = &total->sum;
    const struct kv_counts *counts = &sum->counts;
    for (int op = 0; op < 3; op++)
        if (sum->issued[op] != sum->answered[op] || sum->issued[op] != total->served[op])
            fail(sum, kv_k8, "%s: %llu asked, %llu served, %llu answered", names[op],
                 (unsigned long long)sum->issued[op], (unsigned long long)total->served[op],
                 (unsigned long long)sum->answered[op]);
    uint64_t forgotten = counts->miss_index + counts->miss_log;
    uint64_t told = forgotten + counts->miss_never + counts->miss_unknown;
    if (kv_transport->reads) /* reads miss without the server's knowledge */
        return;
    if (told != sum->misses)
        fail(sum, kv_k5, "%llu misses answered, %llu counted by servers",
             (unsigned long long)sum->misses, (unsigned long long)told);
    if (counts->miss_unknown == 0 && (forgotten < sum->lost || forgotten > sum->lost + sum->unsure))
        fail(sum, kv_k5, "%llu keys missed that were there, servers forgot %llu",
             (unsigned long long)sum->lost, (unsigned long long)forgotten);
}

/* K17: with one client and a store that forgets nothing all transports have the same effect.
 * If messages overtook each other, the results of reads and the final values in stores may differ.
 */
static void check_digests(struct total *total)
{
    static uint64_t digest, results;
    static bool first = true;
    /* A foreign store cannot be inspected, only its answers. */
    bool foreign = kv_transport->way == kv_way_tcp;
    if (!kv.ops || kv_clients != 1 || kv.store != kv_exact || total->sum.reordered)
        return;
    if (!first && (results != total->sum.results || (!foreign && digest != total->sum.digest)))
        fail(&total->sum, kv_k17, "%s left %s than the first transport", kv_transport->name,
             results != total->sum.results ? "other answers" : "another store");
    results = total->sum.results;
    if (!foreign)
        digest = total->sum.digest;
    first = false;
}

/* ---- Report */

/* Over the whole run, `served` with what was preloaded. */
static void report_raw(struct wl_report *r, const struct kv_outcome *sum, double served)
{
    /* The internals of a library are not visible here. */
    bool raw = kv_transport->way == kv_way_raw;
    wl_report_real(r, wl_summary, "wire_bytes_per_op", (double)sum->wire_bytes / served);
    wl_report_real(r, wl_summary, "doorbells_per_op", raw ? (double)sum->doorbells / served : NAN);
    wl_report_real(r, wl_summary, "cqes_per_op", raw ? (double)sum->cqes / served : NAN);
    wl_report_real(r, wl_summary, "postlist_average",
                   raw ? (double)sum->listed / (double)(sum->lists ? sum->lists : 1) : NAN);
    wl_report_real(r, wl_summary, "inlined_percent",
                   raw && sum->posts ? 100.0 * (double)sum->inlined / (double)sum->posts : NAN);
    wl_report_whole(r, wl_summary, "receives_least",
                    sum->receives_min == UINT64_MAX ? -1 : (int64_t)sum->receives_min);
    wl_report_real(r, wl_summary, "reads_per_get",
                   sum->answered[kv_get] ? (double)sum->reads / (double)sum->answered[kv_get] : 0);
    wl_report_whole(r, wl_summary, "torn_reads", (int64_t)sum->torn);
    wl_report_real(r, wl_summary, "gets_per_pack",
                   (double)sum->packed / (double)(sum->packs ? sum->packs : 1));
    wl_report_real(r, wl_summary, "polls_per_op", (double)sum->polls / served);
    wl_report_real(r, wl_summary, "dummies_per_op", (double)sum->dummies / served);
}

static void report_rates(struct wl_report *r, const struct total *total)
{
    const struct kv_outcome *sum = &total->sum;
    uint64_t gets = sum->hits + sum->misses, served = 0, ops = 0;
    for (int op = 0; op < 3; op++) {
        served += total->served[op];
        ops += sum->measured[op];
    }
    wl_report_text(r, wl_summary, "transport", kv_transport->name);
    wl_report_text(r, wl_summary, "notified_by", kv_notified_by());
    wl_report_real(r, wl_summary, "load_s", (double)sum->load_ns * 1e-9);
    wl_report_real(r, wl_summary, "rate_mops", total->mops);
    wl_report_real(r, wl_summary, "get_mops", total->get_mops);
    wl_report_real(r, wl_summary, "write_mops", total->write_mops);
    /* Every rate comes with it: an answer "not there" is cheap. */
    wl_report_real(r, wl_summary, "hit_percent",
                   gets ? 100.0 * (double)sum->hits / (double)gets : 100);
    wl_report_real(r, wl_summary, "rate_per_server_mops", total->mops / kv_servers);
    wl_report_real(r, wl_summary, "rate_per_client_mops", total->mops / kv_clients);
    wl_report_times(r, "get", &sum->gets);
    wl_report_times(r, "write", &sum->puts);
    wl_report_real(r, wl_summary, "server_cpu_ns_per_op",
                   (double)total->server_cpu / (double)(total->ran ? total->ran : 1));
    wl_report_real(r, wl_summary, "client_cpu_ns_per_op",
                   (double)total->client_cpu / (double)(ops ? ops : 1));
    wl_report_real(r, wl_summary, "credit_stalls_per_op",
                   (double)sum->stalls / (double)(served ? served : 1));
    report_raw(r, sum, served ? (double)served : 1);
    wl_report_whole(r, wl_summary, "ops_total", (int64_t)served);
    wl_report_whole(r, wl_summary, "reordered_requests", (int64_t)sum->reordered);
    wl_report_real(r, wl_summary, "busiest_over_mean_server",
                   served && !kv_transport->reads
                       ? (double)total->busiest * kv_servers / (double)served
                       : NAN);
}

/* Up to the last one in which anything was answered: the rate of all clients, and that of each
 * rank. */
static void report_intervals(struct wl_report *r, const struct total *total,
                             const struct kv_outcome *all)
{
    double length = (double)kv_interval() * 1e-9, *rates = calloc(wl_job.size, sizeof(*rates));
    int count = kv_intervals_max;
    if (!rates)
        wl_job_die("no memory for intervals");
    while (count > 0 && total->sum.intervals[count - 1] == 0)
        count--;
    for (int i = 0; i < count; i++) {
        for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
            rates[rank] = (double)all[rank].intervals[i] * 1e-6 / length;
        wl_report_interval(r, length * (i + 1), (double)total->sum.intervals[i] * 1e-6 / length);
        wl_report_interval_of(r, "servers", rates, kv_servers);
        wl_report_interval_of(r, "clients", rates + kv_servers, kv_clients);
    }
    free(rates);
}

/* ---- K16: the draws match the requested distribution */

/* Whether this many of n, each with probability p, is within 5 sigma. Small numbers prove
 * nothing. */
static bool likely(uint64_t count, uint64_t n, double p)
{
    double variance = (double)n * p * (1 - p), off = (double)count - (double)n * p;
    if (p <= 0 || p >= 1)
        return count == (p >= 1 ? n : 0);
    return variance < 100 || off * off <= 25 * variance;
}

static void check_mix(struct kv_outcome *sum)
{
    static const char *const names[kv_actions] = {
        "reads", "updates", "inserts", "updates behind a read", "deletes", "scans"};
    uint64_t n = 0;
    for (int action = 0; action < kv_actions; action++)
        n += sum->drawn[action];
    for (int action = 0; action < kv_actions; action++)
        if (!likely(sum->drawn[action], n, kv.mix.percent[action] / 100.0))
            fail(sum, kv_k16, "%llu %s of %llu, %d %% were asked for",
                 (unsigned long long)sum->drawn[action], names[action], (unsigned long long)n,
                 kv.mix.percent[action]);
}

static void check_shares(struct kv_outcome *sum, const double *shares)
{
    uint64_t n = 0;
    for (uint32_t server = 0; server < kv_servers; server++)
        n += sum->to_server[server];
    for (uint32_t server = 0; server < kv_servers; server++)
        if (!likely(sum->to_server[server], n, shares[server]))
            fail(sum, kv_k16, "server %u got %llu of %llu reads, its share is %.4f", server,
                 (unsigned long long)sum->to_server[server], (unsigned long long)n, shares[server]);
}

/* Going through all ranks of a distribution takes long when there are many. */
static bool foresee(double *shares)
{
    enum { keys_max = 1 << 21 };
    if (kv.draw.n > keys_max || kv_servers > kv_shares_max || kv.draw.kind == kv_latest)
        return false;
    kv_draw_shares(&kv.draw, (uint64_t)kv.common.seed, kv_servers, shares);
    return true;
}

/* Draws whose keys follow the distribution: an update takes a key of its own client, and follow-up
 * requests are not drawn. */
static bool drawn_alike(void)
{
    return kv.mget == 1 && !kv.mix.percent[kv_act_rmw] && !kv.mix.percent[kv_act_scan] &&
           !kv.mix.percent[kv_act_insert];
}

static void check_draws(struct kv_outcome *sum)
{
    double shares[kv_shares_max];
    check_mix(sum);
    if (drawn_alike() && foresee(shares))
        check_shares(sum, shares);
}

static void list_shares(struct wl_report *r, const char *key, const double *shares)
{
    char text[kv_shares_max * 8] = "";
    size_t used = 0;
    for (uint32_t server = 0; shares && server < kv_servers && server < kv_shares_max; server++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.4f", server ? " " : "",
                                 shares[server]);
    wl_report_text(r, wl_summary, key, text);
}

/* Of reads, because those are drawn; if servers are the limit, the busiest one is. */
static void report_shares(struct wl_report *r, const struct total *total)
{
    double shares[kv_shares_max], seen[kv_shares_max], most = 0, reads = 0;
    bool known = foresee(shares);
    for (uint32_t server = 0; server < kv_shares_max; server++)
        reads += (double)total->sum.to_server[server];
    for (uint32_t server = 0; server < kv_shares_max; server++)
        seen[server] = (double)total->sum.to_server[server] / (reads > 0 ? reads : 1);
    for (uint32_t server = 0; known && server < kv_servers; server++)
        most = shares[server] > most ? shares[server] : most;
    list_shares(r, "server_shares", seen);
    list_shares(r, "predicted_shares", known ? shares : NULL);
    wl_report_real(r, wl_summary, "predicted_busiest_over_mean", known ? most * kv_servers : NAN);
    wl_report_real(r, wl_summary, "predicted_limit_mops",
                   known ? total->mops / kv_servers / most : NAN);
}

static void report_store(struct wl_report *r, const struct total *total)
{
    const struct kv_counts *counts = &total->sum.counts;
    const struct {
        const char *key;
        uint64_t value;
    } lines[] = {{"miss_never", counts->miss_never},
                 {"miss_index", counts->miss_index},
                 {"miss_log", counts->miss_log},
                 {"miss_unknown", counts->miss_unknown},
                 {"puts_new", counts->puts_new},
                 {"puts_update", counts->puts_update},
                 {"puts_refused", counts->puts_refused},
                 {"delete_misses", counts->delete_misses},
                 {"evictions", counts->evictions},
                 {"tag_twins", counts->twins},
                 {"log_laps", counts->laps},
                 {"live_entries", counts->entries}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        wl_report_whole(r, wl_summary, lines[i].key, (int64_t)lines[i].value);
    wl_report_real(r, wl_summary, "used_fraction", total->load);
}

static void report_checks(struct wl_report *r, const struct total *total)
{
    char digest[32];
    for (int check = 0; check < kv_checks; check++)
        wl_report_check(r, kv_check_names[check], total->sum.verdicts[check].failures,
                        total->sum.verdicts[check].first);
    snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)total->sum.digest);
    wl_report_text(r, wl_verify, "store_digest", digest);
    snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)total->sum.results);
    wl_report_text(r, wl_verify, "results_digest", digest);
    wl_report_text(
        r, wl_verify, "not_seen",
        kv_layout.compat ? "requests taken twice or out of order (K6): no number, no mark" : "");
}

void kv_report(struct wl_report *report, const struct kv_outcome *all)
{
    struct total *total = calloc(1, sizeof(*total));
    if (!total)
        wl_job_die("no memory for the sums");
    total->sum.receives_min = UINT64_MAX;
    wl_histogram_clear(&total->sum.gets);
    wl_histogram_clear(&total->sum.puts);
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++) {
        add_verdicts(&total->sum, &all[rank]);
        add_raw(&total->sum, &all[rank]);
        if (rank < kv_servers)
            add_server(total, &all[rank]);
        else
            add_client(total, &all[rank]);
    }
    set_rates(total);
    if (!wl_stopped()) {
        check_sums(total);
        check_draws(&total->sum);
        check_digests(total);
    }
    wl_job.medium = kv_transport->way != kv_way_tcp ? NULL
                    : kv.socket == kv_unix          ? "Unix sockets"
                                                    : "TCP over the loopback";
    wl_job.uses_ports = kv_transport->way == kv_way_raw;
    kv.common.layer = kv_transport->way == kv_way_raw ? wl_layer_raw : wl_layer_api;
    wl_job_describe(report, &kv_program, &kv, 1);
    report_rates(report, total);
    report_intervals(report, total, all);
    report_shares(report, total);
    report_store(report, total);
    report_checks(report, total);
    for (int check = 0; check < kv_checks; check++)
        if (total->sum.verdicts[check].failures)
            wl_say("%s failed %llu times, first: %s", kv_check_names[check],
                   (unsigned long long)total->sum.verdicts[check].failures,
                   total->sum.verdicts[check].first);
    free(total);
}
