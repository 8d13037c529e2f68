/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of kv: the table, and the relations between them. Owns kv. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

struct kv_values kv;

static const char *const store_words[] = {"lossy", "exact", NULL};
static const char *const socket_words[] = {"tcp", "unix", NULL};
static const char *const preload_words[] = {"client", "server", "none", NULL};

/* clang-format off: one option a line */
static const struct wl_option table[] = {
    {"servers", wl_whole, offsetof(struct kv_values, servers), "0", 0, 65535, "ranks", 0, 0,
     "ranks that serve; 0: a third of all, at least one"},
    {"transport", wl_text, offsetof(struct kv_values, transport), "am-medium", 0, 0, 0, 0, 0,
     "how requests travel; several with commas between run one after the other, with one table; "
     "all: those of ours"},
    {"socket", wl_word, offsetof(struct kv_values, socket), "tcp", 0, 0, 0, socket_words, 0,
     "memcached, redis: over the loopback or a Unix socket"},
    {"window", wl_whole, offsetof(struct kv_values, window), "4", 1, kv_window_most, "requests", 0,
     wl_power_of_2, "outstanding requests of each client"},
    {"put", wl_whole, offsetof(struct kv_values, put), "5", 0, 100, "%", 0, 0,
     "operations that are PUTs"},
    {"delete", wl_whole, offsetof(struct kv_values, remove), "0", 0, 100, "%", 0, 0,
     "operations that are DELETEs"},
    {"keys", wl_whole, offsetof(struct kv_values, keys), "65536", 1, 2147483648, "keys", 0, 0,
     "for each client"},
    {"value", wl_text, offsetof(struct kv_values, value), "32", 0, 0, 0, 0, 0,
     "bytes of a value, 1..1024, or a range LO-HI"},
    {"dist", wl_text, offsetof(struct kv_values, dist), "uniform", 0, 0, 0, 0, 0,
     "uniform, zipf[:THETA], latest[:THETA] or hotspot:A/B, A % of operations on B % of keys"},
    {"ycsb", wl_text, offsetof(struct kv_values, ycsb), 0, 0, 0, 0, 0, 0,
     "A, B, C, D or F: mix and distribution of that YCSB workload"},
    {"store", wl_word, offsetof(struct kv_values, store), "lossy", 0, 0, 0, store_words, 0,
     "lossy: never full, forgets; exact: forgets nothing, may be full"},
    {"index-bkts", wl_whole, offsetof(struct kv_values, buckets), "16384", 1, 4294967296, "buckets",
     0, wl_power_of_2, "of the index, 8 keys each (exact: chains)"},
    {"log", wl_size, offsetof(struct kv_values, log), "16M", 1048576, 1099511627776, "bytes", 0,
     wl_power_of_2, "of entries, for each server"},
    {"inplace", wl_flag, offsetof(struct kv_values, inplace), "0", 0, 1, 0, 0, 0,
     "lossy: a value of the same length is replaced where it lies"},
    {"preload", wl_word, offsetof(struct kv_values, preload), "client", 0, 0, 0, preload_words, 0,
     "who puts every key once before"},
    {"ops", wl_whole, offsetof(struct kv_values, ops), "0", 0, 1000000000000, "requests", 0, 0,
     "of each client, without warm-up; 0: as many as --duration allows"},
    {"save", wl_text, offsetof(struct kv_values, save), 0, 0, 0, 0, 0, 0,
     "PREFIX: each server leaves its store in PREFIX.<rank>"},
    {"load", wl_text, offsetof(struct kv_values, load), 0, 0, 0, 0, 0, 0,
     "PREFIX: each server begins with what --save left, instead of preloading"},
    WL_COMMON_OPTIONS(struct kv_values),
};
/* clang-format on */

static const struct wl_fault faults[] = {
    [kv_drop_answer] = {"drop-answer", "K7", "a server does not answer"},
    [kv_dup_answer] = {"dup-answer", "K7", "a server answers twice"},
    [kv_swap_answers] = {"swap-answers", "K4", "two answers change places"},
    [kv_flip_bit] = {"flip-bit", "K4", "a bit of an answer is wrong"},
    [kv_dup_request] = {"dup-request", "K6", "a request arrives twice"},
    [kv_lose_request] = {"lose-request", "K7", "a request does not leave"},
    [kv_stale_len] = {"stale-len", "K8", "the length of a PUT stays for the GET behind it"},
    [kv_wrong_server] = {"wrong-server", "K9", "a request goes to another server"},
    {NULL, NULL, NULL},
};

static bool no(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

static bool set_ranks(char *why, size_t size)
{
    if (wl_job.size < 2)
        return no(why, size, "needs at least 2 ranks, a server and a client: gasnetrun_ibv -n 2");
    if (kv.servers == 0)
        kv.servers = wl_job.size / 3 > 1 ? wl_job.size / 3 : 1;
    if (kv.servers < (int64_t)wl_job.size)
        return true;
    snprintf(why, size, "--servers %lld leaves no client among %u ranks", (long long)kv.servers,
             (unsigned)wl_job.size);
    return false;
}

static bool set_lengths(char *why, size_t size)
{
    char *end;
    unsigned long least = strtoul(kv.value, &end, 10), most = least;
    bool good = kv.value[0] >= '1' && kv.value[0] <= '9';
    if (good && *end == '-' && end[1] >= '1' && end[1] <= '9')
        most = strtoul(end + 1, &end, 10);
    if (!good || *end || least > most || most > kv_value_most) {
        snprintf(why, size, "--value '%s' is not a length from 1 to %d bytes, nor a range LO-HI",
                 kv.value, kv_value_most);
        return false;
    }
    kv.value_least = least;
    kv.value_most = most;
    return true;
}

static bool set_ycsb(uint64_t given, char *why, size_t size)
{
    if (wl_option_given(&kv_program, given, "put") || wl_option_given(&kv_program, given, "dist") ||
        wl_option_given(&kv_program, given, "delete"))
        return no(why, size, "--ycsb sets what --put, --delete and --dist would set");
    if (!strcmp(kv.ycsb, "E"))
        return no(why, size, "--ycsb E scans keys in their order, and a hash store has none");
    if (kv.ycsb[0] && !kv.ycsb[1] && kv_mix_ycsb(&kv.mix, &kv.draw, kv.ycsb[0]))
        return true;
    snprintf(why, size, "--ycsb '%s' is not one of A|B|C|D|F", kv.ycsb);
    return false;
}

static bool set_mix(uint64_t given, char *why, size_t size)
{
    if (kv.ycsb)
        return set_ycsb(given, why, size);
    if (kv.put + kv.remove > 100)
        return no(why, size, "--put and --delete are more than 100 % together");
    kv.mix = (struct kv_mix){{[kv_act_read] = (int)(100 - kv.put - kv.remove),
                              [kv_act_update] = (int)kv.put,
                              [kv_act_delete] = (int)kv.remove}};
    return kv_draw_parse(&kv.draw, kv.dist, why, size);
}

static bool refuse_transport(const char *name, size_t length, char *why, size_t size)
{
    int used = snprintf(why, size, "--transport '%.*s' is not one of all", (int)length, name);
    for (int i = 0; kv_transports[i] && used > 0 && (size_t)used < size; i++)
        used += snprintf(why + used, size - (size_t)used, "|%s", kv_transports[i]->name);
    return false;
}

static bool choose(const char *name, size_t length)
{
    bool all = length == 3 && !strncmp(name, "all", 3), found = false;
    for (int i = 0; kv_transports[i]; i++)
        if (all ? kv_transports[i]->way != kv_way_tcp
                : strlen(kv_transports[i]->name) == length &&
                      !strncmp(kv_transports[i]->name, name, length))
            kv.chosen[i] = found = true;
    return found;
}

static bool chosen_way(enum kv_way way)
{
    for (int i = 0; kv_transports[i]; i++)
        if (kv.chosen[i] && kv_transports[i]->way == way)
            return true;
    return false;
}

/* NULL when there are several. */
static const struct kv_transport *only_transport(void)
{
    const struct kv_transport *only = NULL;
    for (int i = 0; kv_transports[i]; i++)
        if (kv.chosen[i]) {
            if (only)
                return NULL;
            only = kv_transports[i];
        }
    return only;
}

static bool set_transports(char *why, size_t size)
{
    const char *name = kv.transport;
    memset(kv.chosen, 0, sizeof(kv.chosen));
    for (size_t length;; name += length + 1) {
        length = strcspn(name, ",");
        if (!choose(name, length))
            return refuse_transport(name, length, why, size);
        if (!name[length])
            break;
    }
    if (chosen_way(kv_way_tcp) && wl_job.host_ranks < (int)wl_job.size)
        return no(why, size, "memcached and redis are driven on one host only");
    if (chosen_way(kv_way_tcp) && (kv.save || kv.load || kv.preload == kv_preload_server))
        return no(why, size, "--save, --load and --preload server are not for memcached and redis");
    return true;
}

/* A fault that cannot happen would let a run pass that was meant to fail. */
static bool set_fault(char *why, size_t size)
{
    if (!wl_inject_parse(&kv.injection, faults, kv.common.inject, why, size))
        return false;
    int fault = kv.injection.fault;
    const char *way = kv.transport;
    if (fault < 0)
        return true;
    const struct kv_transport *only = only_transport();
    if (!only)
        return no(why, size, "--inject needs one --transport, not several");
    if (kv.common.verify != wl_verify_full)
        return no(why, size, "--inject needs --verify full, which cannot overlook it");
    if (fault == kv_stale_len && !strcmp(way, "am-medium"))
        return no(why, size, "--inject stale-len needs a transport with slots, am-long or put-am");
    if ((fault == kv_dup_request || fault == kv_wrong_server) && !strcmp(way, "put-am"))
        return no(why, size, "--inject dup-request and wrong-server need am-medium or am-long");
    if (only->way == kv_way_tcp && fault != kv_lose_request && fault != kv_flip_bit)
        return no(why, size, "--inject lose-request and flip-bit are all for memcached and redis");
    if (fault == kv_wrong_server && kv.servers < 2)
        return no(why, size, "--inject wrong-server needs at least 2 servers");
    return true;
}

static bool related(void *values, uint64_t given, char *why, size_t size)
{
    (void)values;
    if (kv.common.layer == wl_layer_raw)
        return no(why, size,
                  "--layer raw needs trunkline_rails.h, which this version does not have");
    if (!set_ranks(why, size) || !set_transports(why, size) || !set_lengths(why, size) ||
        !set_mix(given, why, size) || !set_fault(why, size))
        return false;
    if (kv.load && wl_option_given(&kv_program, given, "preload"))
        return no(why, size, "--load and --preload exclude each other");
    kv_draw_open(&kv.draw, (uint64_t)kv.keys * (wl_job.size - (uint64_t)kv.servers),
                 (uint64_t)kv.common.seed);
    return true;
}

const struct wl_program kv_program = {
    "kv",
    "Key-value service: ranks 0..S-1 serve, the others ask with a window of requests and judge "
    "every answer.\nFaults for --inject: drop-answer, dup-answer, lose-request (K7), swap-answers, "
    "flip-bit (K4), dup-request (K6), stale-len (K8), wrong-server (K9).",
    table, sizeof(table) / sizeof(*table), related};
