/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of sharing: the table, and the relations between them. Owns sharing. */
#include "config.h"

#include <stdio.h>

#include "sharing.h"

struct sharing_values sharing;
uint32_t sharing_clients;

enum { usual_qps = 100 };

static const char *const op_words[] = {"read", "write", NULL};

/* clang-format off: one option a line */
static const struct wl_option table[] = {
    {"servers", wl_whole, offsetof(struct sharing_values, servers), "1", 1, 65535, "ranks", 0, 0,
     "ranks that post: threads of one process beside processes of one thread"},
    {"threads", wl_whole, offsetof(struct sharing_values, threads), "1", 1, 256, "threads", 0, 0,
     "of each server (T)"},
    {"qps", wl_whole, offsetof(struct sharing_values, qps), "0", 0, 65536, "connections", 0, 0,
     "of each server (Q), a multiple of the clients; 0: the largest up to 100"},
    {"degree", wl_whole, offsetof(struct sharing_values, degree), "0", 0, 256, "threads", 0, 0,
     "that share a connection; over the interface all do; 0: all"},
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
    WL_COMMON_OPTIONS(struct sharing_values),
};
/* clang-format on */

static const struct wl_fault faults[] = {
    [rma_misroute] = {"misroute", "H2", "a connection greets under another name"},
    [rma_corrupt] = {"corrupt", "H5", "a bit of what was read is wrong"},
    [rma_dropcqe] = {"dropcqe", "H3", "a completion is not counted"},
    [rma_misread] = {"misread", "H5", "a read from another address"},
    [rma_stray] = {"stray", "H5", "a write where nobody may write"},
    [rma_lost_write] = {"lost-write", "H5", "writes of a connection no longer arrive"},
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
    if (sharing.degree == sharing.threads)
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
    return true;
}

static bool related(void *values, uint64_t given, char *why, size_t size)
{
    (void)values, (void)given;
    if (sharing.common.layer == wl_layer_raw)
        return no(why, size,
                  "--layer raw needs trunkline_rails.h, which this version does not have");
    return set_ranks(why, size) && set_connections(why, size) && set_degree(why, size) &&
           set_fault(why, size);
}

const struct wl_program sharing_program = {
    "sharing",
    "Threads of a server share its connections to clients, who only lend their memory.\nFaults for "
    "--inject: misroute (H2), dropcqe (H3), corrupt, misread, lost-write, stray (H5).",
    table, sizeof(table) / sizeof(*table), related};
