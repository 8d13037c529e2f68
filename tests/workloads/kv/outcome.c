/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run of kv amounts to: the outcomes of all ranks added up, the checks that need all of them
 * (K8, K17 and the sums of K5), and the report. Rank 0 only, but for kv_fail(). Owns kv_mine and
 * what the first transport of a row of runs brought. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kv.h"

struct kv_outcome kv_mine;

const char *const kv_check_names[kv_checks] = {"K1", "K3",  "K4",  "K5",  "K6",  "K7", "K8",
                                               "K9", "K10", "K15", "K17", "K18", "K19"};

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

/* ---- Sums */

struct total {
    struct kv_outcome sum;
    uint64_t served[3], server_cpu, client_cpu, busiest;
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
    total->sum.to_server[0] += one->measured[0];
    total->sum.digest += one->digest;
    for (int i = 0; i < kv_intervals_most; i++)
        total->sum.intervals[i] += one->intervals[i];
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
    total->sum.payload += one->payload;
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
    if (told != sum->misses)
        fail(sum, kv_k5, "%llu misses answered, %llu counted by servers",
             (unsigned long long)sum->misses, (unsigned long long)told);
    if (counts->miss_unknown == 0 && (forgotten < sum->lost || forgotten > sum->lost + sum->unsure))
        fail(sum, kv_k5, "%llu keys missed that were there, servers forgot %llu",
             (unsigned long long)sum->lost, (unsigned long long)forgotten);
}

/* K17: with one client and a store that forgets nothing all transports have the same effect.
 * Messages that overtook each other excuse what clients read, and stores that held what came last.
 */
static void check_digests(struct total *total)
{
    static uint64_t digest, results;
    static bool first = true;
    /* A foreign store cannot be looked into, only its answers. */
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
    wl_report_real(r, wl_summary, "doorbells_per_op", (double)sum->doorbells / served);
    wl_report_real(r, wl_summary, "cqes_per_op", (double)sum->cqes / served);
    wl_report_real(r, wl_summary, "postlist_average",
                   (double)sum->listed / (double)(sum->lists ? sum->lists : 1));
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
    wl_report_real(r, wl_summary, "rate_mops", total->mops);
    wl_report_real(r, wl_summary, "get_mops", total->get_mops);
    wl_report_real(r, wl_summary, "write_mops", total->write_mops);
    /* Never a rate without it: an answer "not there" is cheap. */
    wl_report_real(r, wl_summary, "hit_percent",
                   gets ? 100.0 * (double)sum->hits / (double)gets : 100);
    wl_report_real(r, wl_summary, "rate_per_server_mops", total->mops / kv_servers);
    wl_report_real(r, wl_summary, "rate_per_client_mops", total->mops / kv_clients);
    wl_report_times(r, "get", &sum->gets);
    wl_report_times(r, "write", &sum->puts);
    wl_report_real(r, wl_summary, "server_cpu_ns_per_op",
                   (double)total->server_cpu / (double)(sum->to_server[0] ? sum->to_server[0] : 1));
    wl_report_real(r, wl_summary, "client_cpu_ns_per_op",
                   (double)total->client_cpu / (double)(ops ? ops : 1));
    wl_report_real(r, wl_summary, "request_bytes_per_op",
                   (double)sum->payload / (double)(ops ? ops : 1));
    wl_report_real(r, wl_summary, "credit_stalls_per_op",
                   (double)sum->stalls / (double)(served ? served : 1));
    report_raw(r, sum, served ? (double)served : 1);
    wl_report_whole(r, wl_summary, "ops_total", (int64_t)served);
    wl_report_whole(r, wl_summary, "reordered_requests", (int64_t)sum->reordered);
    wl_report_real(r, wl_summary, "busiest_over_mean_server",
                   served ? (double)total->busiest * kv_servers / (double)served : 1);
}

/* Up to the last one in which anything was served. */
static void report_intervals(struct wl_report *r, const struct total *total)
{
    double length = (double)kv_interval() * 1e-9;
    int count = kv_intervals_most;
    while (count > 0 && total->sum.intervals[count - 1] == 0)
        count--;
    for (int i = 0; i < count; i++)
        wl_report_interval(r, length * (i + 1), (double)total->sum.intervals[i] * 1e-6 / length);
}

/* Going through all ranks of a distribution takes long when there are many. */
static void report_shares(struct wl_report *r, const struct total *total)
{
    enum { keys_most = 1 << 21 };
    double shares[64], most = 0;
    bool known = kv.draw.n <= keys_most && kv_servers <= 64 && kv.draw.kind != kv_latest;
    if (known)
        kv_draw_shares(&kv.draw, (uint64_t)kv.common.seed, kv_servers, shares);
    for (uint32_t server = 0; known && server < kv_servers; server++)
        most = shares[server] > most ? shares[server] : most;
    wl_report_real(r, wl_summary, "predicted_busiest_over_mean", known ? most * kv_servers : -1);
    wl_report_real(r, wl_summary, "predicted_limit_mops",
                   known ? total->mops / kv_servers / most : -1);
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
}

void kv_report(struct wl_report *report, const struct kv_outcome *all)
{
    struct total *total = calloc(1, sizeof(*total));
    if (!total)
        wl_job_die("no memory for the sums");
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
        check_digests(total);
    }
    wl_job.medium = kv_transport->way != kv_way_tcp ? NULL
                    : kv.socket == kv_unix          ? "Unix sockets"
                                                    : "TCP over the loopback";
    kv.common.layer = kv_transport->way == kv_way_raw ? wl_layer_raw : wl_layer_api;
    wl_job_describe(report, &kv_program, &kv, 1);
    report_rates(report, total);
    report_intervals(report, total);
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
