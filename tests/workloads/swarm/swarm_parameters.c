/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of swarm: the table, and the relations between them. Owns swarm. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "swarm.h"

struct swarm_values swarm;

static const char *const mode_words[] = {"swarm", "outbound", "inbound", NULL};
static const char *const cq_words[] = {"qp", "thread", NULL};
static const char *const map_words[] = {"thread", "vm", NULL};
static const char *const transport_words[] = {"rc", "uc", NULL};

/* Parameters that the interface leaves to the conduit. */
static const char *const raw_options[] = {
    "cq",        "allsig",   "unsig",     "sq-depth", "max-rd-atomic", "postlist", "ports",
    "base-port", "rail-map", "transport", NULL};

/* clang-format off: one option a line */
static const struct wl_option table[] = {
    {"vms", wl_whole, offsetof(struct swarm_values, vms), "1", 1, 4096, "machines", 0, 0,
     "machines that each process plays (M); over the interface they share its connections"},
    {"threads", wl_whole, offsetof(struct swarm_values, threads), "1", 1, wl_threads_max, "threads",
     0, 0, "worker threads of each process (W)"},
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
    {"cq", wl_word, offsetof(struct swarm_values, cq), "qp", 0, 0, 0, cq_words, 0,
     "raw: a completion queue for each queue pair or for all of a thread"},
    {"allsig", wl_flag, offsetof(struct swarm_values, allsig), "1", 0, 1, 0, 0, 0,
     "raw: every operation makes a completion; 0: one in --unsig, and reads are seen to arrive"},
    {"unsig", wl_whole, offsetof(struct swarm_values, unsig), "16", 1, 8192, "operations", 0, 0,
     "raw: of a queue pair to one completion, without --allsig; at most half of --sq-depth"},
    {"sq-depth", wl_whole, offsetof(struct swarm_values, sq_depth), "0", 0, 65536, "operations", 0,
     0, "raw: of a send queue; 0: the larger of 2 * unsig and window"},
    {"max-rd-atomic", wl_whole, offsetof(struct swarm_values, max_rd_atomic), "16", 1, 255, "reads",
     0, 0, "raw: at once on a queue pair, at most what the device allows"},
    {"postlist", wl_whole, offsetof(struct swarm_values, postlist), "1", 1, 4096, "operations", 0,
     0, "raw: on one queue pair, rung for once; at most --unsig and --window"},
    {"ports", wl_whole, offsetof(struct swarm_values, ports), "0", 0, 64, "rails", 0, 0,
     "raw: rails to use (P), 0: all; thread t uses rail t mod P"},
    {"base-port", wl_whole, offsetof(struct swarm_values, base_port), "0", 0, 63, "rail", 0, 0,
     "raw: the first of them"},
    {"rail-map", wl_word, offsetof(struct swarm_values, rail_map), "thread", 0, 0, 0, map_words, 0,
     "raw: rail by thread, or by thread + machine"},
    {"transport", wl_word, offsetof(struct swarm_values, transport), "rc", 0, 0, 0, transport_words,
     0, "raw: reliable or unreliable (writes only) connections"},
    {"rounds", wl_whole, offsetof(struct swarm_values, rounds), "3", 1, 1000, "rounds", 0, 0,
     "of --layer both: each layer is measured so often, in turn; the ratio is the median"},
    {"dump-names", wl_flag, offsetof(struct swarm_values, dump_names), "0", 0, 1, 0, 0, 0,
     "print the names of all connections"},
    RMA_OPTIONS(struct swarm_values),
    WL_COMMON_OPTIONS(struct swarm_values, "raw"),
};
/* clang-format on */

static const struct wl_fault faults[] = {
    [rma_misroute] = {"misroute", "S3", "a connection greets under another name"},
    [rma_corrupt] = {"corrupt", "S4", "a bit of what was read is wrong"},
    [rma_dropcqe] = {"dropcqe", "S5", "a completion is not counted"},
    [rma_misread] = {"misread", "S4", "a read from another address"},
    [rma_stray] = {"stray", "S7", "a write where nobody may write"},
    [rma_lost_write] = {"lost-write", "S6", "writes of a connection no longer arrive"},
    [rma_bias] = {"bias", "S8", "one connection gets all from now on"},
    [rma_overfill] = {"overfill", "S9", "one operation too many is under way"},
    [rma_miscount] = {"miscount", "S11", "an operation counts twice"},
    [rma_mistime] = {"mistime", "S12", "an operation seems to have begun a second earlier"},
    [rma_reseed] = {"reseed", "S15", "the layers make different choices"},
    [rma_own_faults] = {"recount", "S2", "a connection is counted twice"},
    [swarm_awake] = {"awake", "passive", "ranks that do not post do not sleep"},
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
    if (fault == rma_reseed && swarm.common.layer != wl_layer_both)
        return no(why, size, "--inject reseed needs --layer both");
    if (fault == swarm_awake && swarm.mode == swarm_all)
        return no(why, size, "--inject awake needs --mode outbound or inbound");
    return true;
}

static bool set_queues(uint64_t given, char *why, size_t size)
{
    int64_t least = 2 * swarm.unsig > swarm.window ? 2 * swarm.unsig : swarm.window;
    swarm.max_rd_given = wl_option_given(&swarm_program, given, "max-rd-atomic");
    if (swarm.sq_depth == 0)
        swarm.sq_depth = least;
    if (swarm.sq_depth < least) {
        snprintf(why, size, "--sq-depth %lld is less than 2 * --unsig %lld or --window %lld",
                 (long long)swarm.sq_depth, (long long)swarm.unsig, (long long)swarm.window);
        return false;
    }
    if (swarm.postlist > swarm.unsig || swarm.postlist > swarm.window) {
        snprintf(why, size, "--postlist %lld is more than --unsig %lld or --window %lld",
                 (long long)swarm.postlist, (long long)swarm.unsig, (long long)swarm.window);
        return false;
    }
    if (swarm.transport && swarm.write_percent < 100)
        return no(why, size, "--transport uc can't read: give --op write");
    if (swarm.cq && swarm.rail_map)
        return no(why, size, "--cq thread needs --rail-map thread: rails may be of two devices");
    return true;
}

static bool set_layer(uint64_t given, char *why, size_t size)
{
    if (swarm.common.layer != wl_layer_api)
        return set_queues(given, why, size);
    return wl_options_absent(&swarm_program, given, raw_options, rma_for_raw, why, size);
}

static bool related(void *values, uint64_t given, char *why, size_t size)
{
    (void)values;
    if (wl_job.size < 2)
        return no(why, size, "needs at least 2 ranks: gasnetrun_ibv -n 2");
    return set_op(why, size) && rma_values_set(&swarm.rma, why, size) && set_sizes(why, size) &&
           set_layer(given, why, size) && set_fault(why, size);
}

const struct wl_program swarm_program = {
    "swarm",
    "Every thread reads from or writes to a thread of every other process, as if each process were "
    "M machines.\nFaults for --inject: recount (S2), misroute (S3), corrupt, misread (S4), dropcqe "
    "(S5), lost-write (S6), stray (S7), bias (S8), overfill (S9), miscount (S11), mistime (S12), "
    "reseed (S15), awake (passive).",
    table, sizeof(table) / sizeof(*table), related};
