/* SPDX-License-Identifier: BSD-3-Clause */
/* The workload kv: start, agreement on roles (K1), then a run for each transport, collective
 * step by step. Owns the numbers of servers and clients. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "kv.h"

uint32_t kv_servers, kv_clients, kv_client;
size_t kv_slot;
const struct kv_transport *kv_transport;
const struct kv_transport *const kv_transports[] = {
    &kv_write_send, &kv_write_write, &kv_write_imm, &kv_send_send, &kv_am_medium, &kv_am_long,
    &kv_put_am,     &kv_get_put,     &kv_memcached, &kv_redis,     NULL};

/* ---- K1: all ranks agree on the layout, and every client has its own place in it */

struct hello {
    uint32_t server, client, servers, clients;
    uint64_t slot, window, base, area;
};

static void meet(void)
{
    uint64_t window = (uint64_t)kv.window;
    struct hello mine = {kv_is_server(), kv_client, kv_servers, kv_clients, kv_slot, window, 0, 0};
    struct hello *all = calloc(wl_job.size, sizeof(*all));
    if (!all)
        wl_job_die("no memory for greetings");
    mine.base = kv_is_server() ? 0 : kv_slot_index(kv_client, window, 0) * kv_slot;
    mine.area = kv_area();
    if (!kv_is_server() && wl_inject(&kv.injection, kv_wrong_hello))
        mine.client++;
    wl_job_share(&mine, all, sizeof(mine));
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++) {
        struct hello expected = mine;
        expected.server = rank < kv_servers;
        expected.client = expected.server ? 0 : rank - kv_servers;
        expected.base = expected.client * window * kv_slot;
        if (memcmp(&all[rank], &expected, sizeof(expected)) || mine.area > wl_job.segment_size)
            kv_fail(kv_k1, "rank %u takes rank %u for another than it is", (unsigned)wl_job.me,
                    (unsigned)rank);
    }
    free(all);
}

static bool chosen(const struct kv_transport *transport)
{
    int i = 0;
    while (kv_transports[i] != transport)
        i++;
    return kv.chosen[i];
}

static void take_roles(void)
{
    kv_servers = (uint32_t)kv.servers;
    kv_clients = wl_job.size - kv_servers;
    kv_client = kv_is_server() ? 0 : wl_job.me - kv_servers;
    kv_slot = kv_slot_size(kv.value_max);
    bool gets = chosen(&kv_get_put);
    size_t size = kv_store_at() + (gets ? kv_get_room(kv_is_server()) : 0);
    size_t most = kv_store_at() + (gets ? kv_get_room(true) : 0); /* all refuse, or none */
    if (most > gasnet_getMaxLocalSegmentSize())
        wl_job_refuse(wl_exit_bad,
                      "a segment of %zu bytes is needed and may have at most %zu "
                      "(GASNET_MAX_SEGSIZE): lower --window, --value, --log or the number of "
                      "clients",
                      most, (size_t)gasnet_getMaxLocalSegmentSize());
    wl_job_segment(size);
}

const char *kv_notified_by(void)
{
    if (kv_transport->way == kv_way_tcp)
        return "sockets";
    if (kv_transport->way == kv_way_api)
        return "messages";
    return kv_raw_polls() ? "polling" : "completions";
}

/* ---- A run */

static uint32_t load(void)
{
    uint32_t mine = kv_is_server() && kv.load ? kv_server_load() : 0, highest = 0;
    uint32_t *all = calloc(wl_job.size, sizeof(*all));
    if (!all)
        wl_job_die("no memory for versions");
    wl_job_share(&mine, all, sizeof(mine));
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        highest = all[rank] > highest ? all[rank] : highest;
    free(all);
    return highest;
}

/* A full store refused some: then no client can be sure of others' keys. */
static void compare_refusals(void)
{
    uint64_t *all = calloc(wl_job.size, sizeof(*all)), refused = 0;
    if (!all)
        wl_job_die("no memory for refusals");
    wl_job_share(&kv_mine.refused, all, sizeof(*all));
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        refused += all[rank];
    if (refused && !kv_is_server())
        kv_known_doubt();
    free(all);
}

/* Handlers run in any wait; the other kinds of servers have to be called. */
static void barrier_serving(void)
{
    gex_Event_t event = gex_Coll_BarrierNB(wl_job.tm, 0);
    if (!kv_is_server() || !kv_transport->serve)
        gex_Event_Wait(event);
    else
        while (gex_Event_Test(event) != GASNET_OK)
            kv_transport->serve();
}

static void preload(void)
{
    uint64_t began = wl_now();
    if (!kv.load && kv.preload == kv_preload_server && kv_is_server())
        kv_server_preload();
    if (!kv.load && kv.preload == kv_preload_client && !kv_is_server())
        kv_client_preload();
    barrier_serving();
    kv_mine.load_ns = wl_now() - began;
    compare_refusals();
}

static void begin(void)
{
    memset(&kv_mine, 0, sizeof(kv_mine));
    kv_mine.receives_min = UINT64_MAX;
    wl_histogram_clear(&kv_mine.gets);
    wl_histogram_clear(&kv_mine.puts);
    memset(wl_job.segment, 0, wl_job.segment_size);
    if (kv_is_server())
        kv_server_open();
    uint32_t version = load();
    if (!kv_is_server())
        kv_client_open(version);
    meet();
    if (kv_transport->open)
        kv_transport->open();
}

/* Requests of a run that was stopped may still arrive: then everything stays as it is. */
static void end(void)
{
    wl_job_barrier();
    if (kv_transport->close && (!wl_stopped() || kv_transport->way == kv_way_tcp))
        kv_transport->close();
    if (wl_stopped())
        return;
    if (kv_is_server())
        kv_server_close();
    else
        kv_client_close();
}

static void run(struct wl_report *report)
{
    struct kv_outcome *all = wl_job.me == 0 ? calloc(wl_job.size, sizeof(*all)) : NULL;
    begin();
    preload();
    if (kv_is_server())
        kv_server_run();
    else
        kv_client_run();
    wl_job_barrier();
    if (!wl_stopped())
        kv_known_reconcile();
    if (wl_job.me == 0 && !all)
        wl_job_die("no memory for the outcomes of %u ranks", (unsigned)wl_job.size);
    wl_job_gather(0, &kv_mine, all, sizeof(kv_mine));
    if (wl_job.me == 0)
        kv_report(report, all);
    end();
    free(all);
}

struct absence {
    int32_t missing, unfit;
    char why[wl_why_max];
};

/* A transport that is not available leaves a gap in the table, and a line says why. */
static bool available(const struct kv_transport *transport)
{
    kv_transport = transport;
    struct absence mine = {0}, *all = calloc(wl_job.size, sizeof(*all));
    if (!all)
        wl_job_die("no memory for a question");
    if (transport->reads && kv.store != kv_exact) {
        mine.missing = true;
        snprintf(mine.why, sizeof(mine.why), "it reads an exact store (--store exact)");
    }
    if (transport->way == kv_way_raw)
        mine.missing = kv_raw_missing(mine.why, sizeof(mine.why));
    if (transport->way == kv_way_tcp && kv_is_server())
        mine.missing = kv_tcp_missing(transport, mine.why, sizeof(mine.why));
    if (transport->way == kv_way_raw && !mine.missing)
        mine.unfit = kv_raw_unfit(mine.why, sizeof(mine.why));
    wl_job_share(&mine, all, sizeof(mine));
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        if (all[rank].unfit)
            wl_job_refuse(wl_exit_bad, "%s", all[rank].why);
    gex_Rank_t rank = 0;
    while (rank < wl_job.size && !all[rank].missing)
        rank++;
    if (rank < wl_job.size && kv_only_transport())
        wl_job_refuse(wl_exit_skip, "%s is left out: %s", transport->name, all[rank].why);
    if (rank < wl_job.size && wl_job.me == 0)
        wl_say("%s is left out: %s", transport->name, all[rank].why);
    free(all);
    return rank == wl_job.size;
}

static void run_all(struct wl_report *report)
{
    bool first = true;
    for (int i = 0; kv_transports[i] && !wl_stopped(); i++) {
        if (!kv.chosen[i] || !available(kv_transports[i]))
            continue;
        if (!first && report)
            wl_report_run(report);
        first = false;
        run(report);
    }
    if (first)
        wl_job_refuse(wl_exit_skip, "nothing that can serve is here");
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {"transport",
                                          "rate_mops",
                                          "hit_percent",
                                          "get_mean_us",
                                          "get_p50_us",
                                          "get_p99_us",
                                          "get_p99_9_us",
                                          "server_cpu_ns_per_op",
                                          "client_cpu_ns_per_op",
                                          "wire_bytes_per_op",
                                          "credit_stalls_per_op",
                                          "doorbells_per_op",
                                          "cqes_per_op",
                                          NULL};
    struct wl_report *report = NULL;
    wl_job_start(&argc, &argv, &kv_program, &kv, NULL);
    take_roles();
    kv_api_handlers();
    if (wl_job.me == 0)
        report = wl_report_open("kv", "1");
    run_all(report);
    wl_job_end(report, &kv.common, columns);
}
