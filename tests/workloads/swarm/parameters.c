/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of swarm: the table, and the relations between them. Owns swarm. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "swarm.h"

struct swarm_values swarm;

static const char *const mode_words[] = {"swarm", "outbound", "inbound", NULL};

/* clang-format off: one option a line */
static const struct wl_option table[] = {
    {"vms", wl_whole, offsetof(struct swarm_values, vms), "1", 1, 4096, "machines", 0, 0,
     "machines that each process plays (M); over the interface they share its connections"},
    {"threads", wl_whole, offsetof(struct swarm_values, threads), "1", 1, 256, "threads", 0, 0,
     "worker threads of each process (W)"},
    {"op", wl_text, offsetof(struct swarm_values, op), "read", 0, 0, 0, 0, 0,
     "read, write or mixed:PERCENT of writes"},
    {"size", wl_size, offsetof(struct swarm_values, size), "32", 1, 1048576, "bytes", 0, 0,
     "of an operation, at most a 16th of --buf"},
    {"window", wl_whole, offsetof(struct swarm_values, window), "16", 1, 4096, "operations", 0, 0,
     "in flight for each thread; window * size at most a 10th of --buf"},
    {"buf", wl_size, offsetof(struct swarm_values, buf), "2M", 65536, 1073741824, "bytes", 0, 0,
     "memory of each thread that others read"},
    {"align", wl_whole, offsetof(struct swarm_values, align), "64", 1, 4096, "bytes", 0,
     wl_power_of_2, "of remote addresses"},
    {"mode", wl_word, offsetof(struct swarm_values, mode), "swarm", 0, 0, 0, mode_words, 0,
     "who posts: all, rank 0, or all others to rank 0"},
    {"ops", wl_whole, offsetof(struct swarm_values, ops), "0", 0, 1000000000000, "operations", 0, 0,
     "of each thread, without warm-up; 0: as many as --duration allows"},
    {"dump-names", wl_flag, offsetof(struct swarm_values, dump_names), "0", 0, 1, 0, 0, 0,
     "print the names of all connections"},
    WL_COMMON_OPTIONS(struct swarm_values),
};
/* clang-format on */

static const struct wl_fault faults[] = {
    [rma_misroute] = {"misroute", "S3", "a connection greets under another name"},
    [rma_corrupt] = {"corrupt", "S4", "a bit of what was read is wrong"},
    [rma_dropcqe] = {"dropcqe", "S5", "a completion is not counted"},
    [rma_misread] = {"misread", "S4", "a read from another address"},
    [rma_stray] = {"stray", "S7", "a write where nobody may write"},
    [rma_lost_write] = {"lost-write", "S6", "writes of a connection no longer arrive"},
    {NULL, NULL, NULL},
};

static bool no(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

static bool set_op(char *why, size_t size)
{
    char *end;
    if (!strcmp(swarm.op, "read") || !strcmp(swarm.op, "write")) {
        swarm.write_percent = swarm.op[0] == 'w' ? 100 : 0;
        return true;
    }
    if (!strncmp(swarm.op, "mixed:", 6) && swarm.op[6] >= '0' && swarm.op[6] <= '9') {
        unsigned long percent = strtoul(swarm.op + 6, &end, 10);
        swarm.write_percent = (unsigned)percent;
        if (!*end && percent >= 1 && percent <= 99)
            return true;
    }
    snprintf(why, size, "--op '%s' is not one of read|write|mixed:PERCENT, 1 to 99", swarm.op);
    return false;
}

static bool set_sizes(char *why, size_t size)
{
    int64_t stride = (swarm.size + rma_line - 1) / rma_line * rma_line;
    if (swarm.size > swarm.buf / 16) {
        snprintf(why, size, "--size %lld is more than a 16th of --buf %lld", (long long)swarm.size,
                 (long long)swarm.buf);
        return false;
    }
    if (swarm.window * stride <= swarm.buf / 10)
        return true;
    snprintf(why, size, "--window %lld times %lld bytes is more than a 10th of --buf %lld",
             (long long)swarm.window, (long long)stride, (long long)swarm.buf);
    return false;
}

static bool set_fault(char *why, size_t size)
{
    int fault;
    if (!wl_inject_parse(&swarm.injection, faults, swarm.common.inject, why, size))
        return false;
    fault = swarm.injection.fault;
    if (fault < 0)
        return true;
    if (swarm.common.verify != wl_verify_full)
        return no(why, size, "--inject needs --verify full, which cannot overlook it");
    if ((fault == rma_corrupt || fault == rma_misread) && swarm.write_percent == 100)
        return no(why, size, "--inject corrupt and misread need reads");
    if ((fault == rma_stray || fault == rma_lost_write) && swarm.write_percent == 0)
        return no(why, size, "--inject stray and lost-write need writes");
    return true;
}

static bool related(void *values, uint64_t given, char *why, size_t size)
{
    (void)values, (void)given;
    if (swarm.common.layer == wl_layer_raw)
        return no(why, size,
                  "--layer raw needs trunkline_rails.h, which this version does not have");
    if (wl_job.size < 2)
        return no(why, size, "needs at least 2 ranks: gasnetrun_ibv -n 2");
    return set_op(why, size) && set_sizes(why, size) && set_fault(why, size);
}

const struct wl_program swarm_program = {
    "swarm",
    "Every thread reads from or writes to a thread of every other process, as if each process were "
    "M machines.\nFaults for --inject: misroute (S3), corrupt, misread (S4), dropcqe (S5), "
    "lost-write (S6), stray (S7).",
    table, sizeof(table) / sizeof(*table), related};
