/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of sharing: the table, and the relations between them. Owns sharing. */
#include "config.h"

#include <stdio.h>

#include "sharing.h"

struct sharing_values sharing;
uint32_t sharing_clients;

enum { usual_qps = 100 };

static const char *const op_words[] = {"read", "write", NULL};
static const char *const cb_words[] = {"qp", "rail", "one", NULL};
static const char *const lock_words[] = {"verbs", "spin", "mutex", "none", "combining", NULL};
static const char *const route_words[] = {"owner", "steal", NULL};
static const char *const dst_words[] = {"own", "common", NULL};
static const char *const transport_words[] = {"rc", "uc", NULL};

/* Parameters that the interface leaves to the conduit. */
static const char *const raw_options[] = {"cb",       "sq-depth", "lock",      "route",     "dst",
                                          "postlist", "ports",    "base-port", "transport", NULL};

/* clang-format off: one option a line */
static const struct wl_option table[] = {
    {"servers", wl_whole, offsetof(struct sharing_values, servers), "1", 1, 65535, "ranks", 0, 0,
     "ranks that post: threads of one process beside processes of one thread"},
    {"threads", wl_whole, offsetof(struct sharing_values, threads), "1", 1, wl_threads_max,
     "threads", 0, 0, "of each server (T)"},
    {"qps", wl_whole, offsetof(struct sharing_values, qps), "0", 0, 65536, "connections", 0, 0,
     "of each server (Q), a multiple of the clients; 0: the largest up to 100"},
    {"degree", wl_whole, offsetof(struct sharing_values, degree), "0", 0, 256, "threads", 0, 0,
     "that share a connection, a divisor of --threads; over the interface all do; 0: all"},
    {"op", wl_word, offsetof(struct sharing_values, op), "read", 0, 0, 0, op_words, 0,
     "what is done"},
    {"size", wl_size, offsetof(struct sharing_values, size), "8", 1, 4096, "bytes", 0, 0,
     "of an operation"},
    {"window", wl_whole, offsetof(struct sharing_values, window), "32", 1, 1024, "operations", 0, 0,
     "in flight for each thread"},
    {"buf", wl_size, offsetof(struct sharing_values, buf), "8M", 65536, 1073741824, "bytes", 0, 0,
     "memory of each client that is read"},
    {"align", wl_whole, offsetof(struct sharing_values, align), "1", 1, 4096, "bytes", 0,
     wl_power_of_2, "of remote addresses"},
    {"ops", wl_whole, offsetof(struct sharing_values, ops), "0", 0, 1000000000000, "operations", 0,
     0, "of each thread, without warm-up; 0: as many as --duration allows"},
    {"cb", wl_word, offsetof(struct sharing_values, cb), "qp", 0, 0, 0, cb_words, 0,
     "raw: a device context and protection domain for each connection, each rail, or each device"},
    {"sq-depth", wl_whole, offsetof(struct sharing_values, sq_depth), "0", 0, 65536, "operations",
     0, 0, "raw: of a connection, as many credits; 0: degree * window, rounded up to a power of 2"},
    {"lock", wl_word, offsetof(struct sharing_values, lock), "verbs", 0, 0, 0, lock_words, 0,
     "raw: what keeps threads apart on a connection; combining: one posts what others lay down"},
    {"route", wl_word, offsetof(struct sharing_values, route), "owner", 0, 0, 0, route_words, 0,
     "raw: a completion is its owner's, or whoever's took it (no latency, nothing verified)"},
    {"dst", wl_word, offsetof(struct sharing_values, dst), "own", 0, 0, 0, dst_words, 0,
     "raw: where reads go; common: all threads to one place (nothing verified)"},
    {"postlist", wl_whole, offsetof(struct sharing_values, postlist), "1", 1, 1024, "operations", 0,
     0, "raw: on one connection, rung for once; at most --window"},
    {"ports", wl_whole, offsetof(struct sharing_values, ports), "0", 0, 64, "rails", 0, 0,
     "raw: rails to use (P), 0: all; connection i uses rail i mod P"},
    {"base-port", wl_whole, offsetof(struct sharing_values, base_port), "0", 0, 63, "rail", 0, 0,
     "raw: the first of them"},
    {"transport", wl_word, offsetof(struct sharing_values, transport), "rc", 0, 0, 0,
     transport_words, 0, "raw: reliable or unreliable (writes only) connections"},
    {"rounds", wl_whole, offsetof(struct sharing_values, rounds), "3", 1, 1000, "rounds", 0, 0,
     "of --layer both: each layer is measured so often, in turn; the ratio is the median"},
    RMA_OPTIONS(struct sharing_values),
    WL_COMMON_OPTIONS(struct sharing_values, "raw"),
};
/* clang-format on */

static const struct wl_fault faults[] = {
    [rma_misroute] = {"misroute", "H2", "a connection greets under another name"},
    [rma_corrupt] = {"corrupt", "H5", "a bit of what was read is wrong"},
    [rma_dropcqe] = {"dropcqe", "H3", "a completion is not counted"},
    [rma_misread] = {"misread", "H5", "a read from another address"},
    [rma_stray] = {"stray", "H5", "a write where nobody may write"},
    [rma_lost_write] = {"lost-write", "H5", "writes of a connection no longer arrive"},
    [rma_overfill] = {"overfill", "window", "one operation too many is under way"},
    [rma_miscount] = {"miscount", "H10", "an operation counts twice"},
    [rma_mistime] = {"mistime", "little", "an operation seems to have begun a second earlier"},
    [rma_reseed] = {"reseed", "H7", "the layers make different choices"},
    [rma_bias] = {"bias", "shares", "one connection gets all from now on"},
    [sharing_swap] = {"swap", "H3", "two operations change their wr_ids"},
    [sharing_lose_credit] = {"lose-credit", "H4", "a credit does not come back"},
    [sharing_misown] = {"misown", "H6", "a completion seems to be another thread's"},
    [sharing_intrude] = {"intrude", "H8", "a thread posts on a connection of another group"},
    [sharing_awake] = {"awake", "H13", "clients do not sleep"},
    {NULL, NULL, NULL},
};

static bool no(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

static bool set_ranks(char *why, size_t size)
{
    if (sharing.servers < (int64_t)wl_job.size) {
        sharing_clients = wl_job.size - (uint32_t)sharing.servers;
        return true;
    }
    snprintf(why, size, "needs more ranks than %lld servers, has %u: gasnetrun_ibv -n %lld",
             (long long)sharing.servers, (unsigned)wl_job.size, (long long)sharing.servers + 1);
    return false;
}

static bool set_connections(char *why, size_t size)
{
    int64_t clients = sharing_clients;
    if (sharing.qps == 0)
        sharing.qps = usual_qps < clients ? clients : usual_qps / clients * clients;
    if (sharing.qps % clients == 0)
        return true;
    snprintf(why, size, "--qps %lld is no multiple of %lld clients", (long long)sharing.qps,
             (long long)clients);
    return false;
}

static bool set_degree(char *why, size_t size)
{
    if (sharing.degree == 0)
        sharing.degree = sharing.threads;
    if (sharing.threads % sharing.degree) {
        snprintf(why, size, "--degree %lld does not divide --threads %lld",
                 (long long)sharing.degree, (long long)sharing.threads);
        return false;
    }
    if (sharing.threads / sharing.degree > sharing.qps) {
        snprintf(why, size, "%lld groups of threads have but %lld connections (--qps)",
                 (long long)(sharing.threads / sharing.degree), (long long)sharing.qps);
        return false;
    }
    if (sharing.degree == sharing.threads || sharing.common.layer == wl_layer_raw)
        return true;
    return no(why, size,
              "--degree: over the interface all threads of a process share all connections; for "
              "degree 1 give --servers T --threads 1");
}

static bool set_fault(char *why, size_t size)
{
    int fault;
    if (!wl_inject_parse(&sharing.injection, faults, sharing.common.inject, why, size))
        return false;
    fault = sharing.injection.fault;
    if (fault < 0)
        return true;
    if (sharing.common.verify != wl_verify_full)
        return no(why, size, "--inject needs --verify full, which cannot overlook it");
    if ((fault == rma_corrupt || fault == rma_misread) && sharing.op)
        return no(why, size, "--inject corrupt and misread need reads");
    if ((fault == rma_stray || fault == rma_lost_write) && !sharing.op)
        return no(why, size, "--inject stray and lost-write need writes");
    if (fault == rma_reseed && sharing.common.layer != wl_layer_both)
        return no(why, size, "--inject reseed needs --layer both");
    if (fault >= sharing_swap && fault < sharing_awake && sharing.common.layer != wl_layer_raw)
        return no(why, size, "--inject swap, lose-credit, misown and intrude need --layer raw");
    if (fault == sharing_swap && (sharing.lock == sharing_lock_combining || sharing.postlist > 1))
        return no(why, size, "--inject swap needs --postlist 1 and another --lock than combining");
    if ((fault == sharing_misown && sharing.degree > 1) ||
        (fault == sharing_intrude && sharing.degree == sharing.threads))
        return no(why, size, "--inject misown needs --degree 1, intrude a degree below --threads");
    return true;
}

static bool set_queues(char *why, size_t size)
{
    int64_t wanted = sharing.degree * sharing.window;
    if (sharing.sq_depth == 0)
        for (sharing.sq_depth = 1; sharing.sq_depth < wanted;)
            sharing.sq_depth *= 2;
    if (sharing.window > sharing.sq_depth) {
        snprintf(why, size, "--window %lld is more than --sq-depth %lld", (long long)sharing.window,
                 (long long)sharing.sq_depth);
        return false;
    }
    if (sharing.postlist > sharing.window)
        return no(why, size, "--postlist is more than --window");
    if (sharing.lock == sharing_lock_none && sharing.degree > 1)
        return no(why, size, "--lock none needs --degree 1");
    if (sharing.lock == sharing_lock_combining && sharing.postlist > 1)
        return no(why, size, "--lock combining makes lists of its own: no --postlist");
    if (sharing.transport && !sharing.op)
        return no(why, size, "--transport uc can't read: give --op write");
    if ((sharing.route || sharing.dst) && (sharing.op || sharing.common.verify != wl_verify_none))
        return no(why, size, "--route steal and --dst common are for --op read --verify none");
    return true;
}

static bool set_layer(uint64_t given, char *why, size_t size)
{
    if (sharing.common.layer != wl_layer_api)
        return set_queues(why, size);
    return wl_options_absent(&sharing_program, given, raw_options, rma_for_raw, why, size);
}

static bool related(void *values, uint64_t given, char *why, size_t size)
{
    (void)values;
    return set_ranks(why, size) && rma_values_set(&sharing.rma, why, size) &&
           set_connections(why, size) && set_degree(why, size) && set_layer(given, why, size) &&
           set_fault(why, size);
}

const struct wl_program sharing_program = {
    "sharing",
    "Threads of a server share its connections to clients, who only lend their memory.\nFaults for "
    "--inject: misroute (H2), dropcqe, swap (H3), lose-credit (H4), corrupt, misread, lost-write, "
    "stray "
    "(H5), misown (H6), reseed (H7), intrude (H8), miscount (H10), awake (H13), overfill (window), "
    "mistime (little), bias (shares).",
    table, sizeof(table) / sizeof(*table), related};
