/* SPDX-License-Identifier: BSD-3-Clause */
/* The relations between the parameters of kv: the servers, transports, lengths, mixes, the
 * rules of the queues, and where a fault can happen. Each refusal is one line. Owns nothing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"
#include "paths.h"
#include "save.h"

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
    if (!good || *end || least > most || most > kv_value_max) {
        snprintf(why, size, "--value '%s' is not a length from 1 to %d bytes, nor a range LO-HI",
                 kv.value, kv_value_max);
        return false;
    }
    kv.value_min = least;
    kv.value_max = most;
    return true;
}

static bool set_ycsb(uint64_t given, char *why, size_t size)
{
    if (wl_option_given(&kv_program, given, "put") || wl_option_given(&kv_program, given, "dist") ||
        wl_option_given(&kv_program, given, "delete"))
        return no(why, size, "--ycsb sets what --put, --delete and --dist would set");
    if (!strcmp(kv.ycsb, "E") && !kv.scan)
        return no(why, size,
                  "--ycsb E scans keys in their order, and a hash store has none; --scan-emulate "
                  "reads consecutive record numbers instead");
    if (kv.ycsb[0] && !kv.ycsb[1] && kv_mix_ycsb(&kv.mix, &kv.draw, kv.ycsb[0]))
        return true;
    snprintf(why, size, "--ycsb '%s' is not one of A|B|C|D|E|F", kv.ycsb);
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

/* All transports of the layer. A transport requested by name must belong to the same layer. */
static bool only_layer(enum kv_way way, bool all, char *why, size_t size)
{
    for (int i = 0; kv_transports[i]; i++) {
        if (!kv.chosen[i] || kv_transports[i]->way == way)
            continue;
        if (!all) {
            snprintf(why, size, "--transport %s is not of --layer %s", kv_transports[i]->name,
                     wl_layer_words[kv.common.layer]);
            return false;
        }
        kv.chosen[i] = false;
    }
    return true;
}

static bool chosen(const struct kv_transport *transport)
{
    for (int i = 0; kv_transports[i]; i++)
        if (kv.chosen[i] && kv_transports[i] == transport)
            return true;
    return false;
}

static bool chosen_way(enum kv_way way)
{
    for (int i = 0; kv_transports[i]; i++)
        if (kv.chosen[i] && kv_transports[i]->way == way)
            return true;
    return false;
}

const struct kv_transport *kv_only_transport(void)
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

static bool set_transports(uint64_t given, char *why, size_t size)
{
    bool raw = kv.common.layer == wl_layer_raw;
    if (kv.common.layer == wl_layer_both)
        return no(why, size,
                  "--layer both is for swarm and sharing: --transport names several here");
    if (!kv.transport)
        kv.transport = raw ? "write-send" : "am-medium";
    const char *name = kv.transport;
    memset(kv.chosen, 0, sizeof(kv.chosen));
    for (size_t length;; name += length + 1) {
        length = strcspn(name, ",");
        if (!choose(name, length))
            return refuse_transport(name, length, why, size);
        if (!name[length])
            break;
    }
    if (wl_option_given(&kv_program, given, "layer") &&
        !only_layer(raw ? kv_way_raw : kv_way_api, !strcmp(kv.transport, "all"), why, size))
        return false;
    if (chosen_way(kv_way_tcp) && wl_job.host_ranks < (int)wl_job.size)
        return no(why, size, "memcached and redis are driven on one host only");
    if (chosen_way(kv_way_tcp) && (kv.save || kv.load || kv.preload == kv_preload_server))
        return no(why, size, "--save, --load and --preload server are not for memcached and redis");
    return true;
}

/* ---- The rules of the queues (raw) */

static bool rule(bool kept, const char *words, char *why, size_t size)
{
    return kept || no(why, size, words);
}

/* Options that were not given follow from the window. */
static void set_batches(uint64_t given)
{
    if (!wl_option_given(&kv_program, given, "cl-semi") && kv.cl_semi < kv.window)
        kv.cl_semi = kv.window;
    if (!wl_option_given(&kv_program, given, "cl-batch") && kv.cl_batch < 2 * kv.cl_semi)
        kv.cl_batch = 2 * kv.cl_semi;
}

static bool set_queues(uint64_t given, char *why, size_t size)
{
    if (!chosen_way(kv_way_raw))
        return true;
    set_batches(given);
    int64_t clients = (int64_t)wl_job.size - kv.servers;
    return rule(2 * kv.s_depth <= kv.q_depth,
                "--s-depth may be at most half of --q-depth, or the send queue overflows", why,
                size) &&
           rule(kv.cl_batch % kv.cl_semi == 0, "--cl-batch must be a multiple of --cl-semi", why,
                size) &&
           rule(kv.cl_semi % kv.window == 0, "--cl-semi must be a multiple of --window", why,
                size) &&
           rule(kv.cl_batch - kv.cl_semi >= kv.window,
                "--cl-batch less --cl-semi must leave a --window of receives", why, size) &&
           rule(kv.postlist <= kv.ws_server,
                "--postlist may be at most --ws-server, or completions are waited for that were "
                "not posted",
                why, size) &&
           rule(kv.postlist <= clients, "--postlist may be at most the number of clients", why,
                size);
}

static bool set_mget(char *why, size_t size)
{
    size_t answers = gex_AM_LUBReplyMedium() / (kv.value_max + kv_answer_image);
    size_t requests = gex_AM_LUBRequestMedium() / (kv.value_max + kv_layout.header_image);
    size_t most = answers < requests ? answers : requests;
    if (kv.scan && (!kv.ycsb || strcmp(kv.ycsb, "E")))
        return no(why, size, "--scan-emulate is for --ycsb E");
    if (kv.mget > kv.window)
        return no(why, size, "--mget may be at most --window");
    if (kv.pack > kv.window)
        return no(why, size, "--pack may be at most --window");
    if (((size_t)kv.mget <= most && (size_t)kv.pack <= most) || !chosen(&kv_am_medium))
        return true;
    snprintf(
        why, size,
        "--mget and --pack may be at most %zu: more values of %zu bytes do not fit into an answer",
        most, kv.value_max);
    return false;
}

/* ---- Faults: a fault that cannot happen would let a run pass that must fail */

enum {
    in_api_slots = 1,
    in_medium = 2,
    in_polled = 4,
    in_imm = 8,
    in_send = 16,
    in_tcp = 32,
    in_get = 64
};
enum {
    in_raw = in_polled | in_imm | in_send,
    in_all = 127,
    in_own = in_all - in_tcp,
    in_messages = in_own - in_get,
    in_api = in_api_slots | in_medium | in_get
};

static unsigned kind_of(const struct kv_transport *transport)
{
    if (transport->way == kv_way_tcp)
        return in_tcp;
    if (transport->reads)
        return in_get;
    if (transport->way == kv_way_api)
        return transport->slots ? in_api_slots : in_medium;
    if (transport == &kv_write_imm || (transport == &kv_write_send && kv.notify == kv_notify_imm))
        return in_imm;
    return transport == &kv_send_send ? in_send : in_polled;
}

/* Where a fault is certain to happen and to be detected. */
static bool can_happen(int fault, const struct kv_transport *on)
{
    static const unsigned where[] = {[kv_drop_answer] = in_own,
                                     [kv_dup_answer] = in_own,
                                     [kv_swap_answers] = in_messages,
                                     [kv_flip_bit] = in_all,
                                     [kv_dup_request] = in_medium | in_api_slots | in_imm | in_send,
                                     [kv_lose_request] = in_all,
                                     [kv_stale_len] = in_api_slots | in_polled | in_imm,
                                     [kv_wrong_server] = in_medium | in_api_slots | in_send,
                                     [kv_keep_mark] = in_polled,
                                     [kv_poll_early] = in_polled,
                                     [kv_newer_first] = in_raw,
                                     [kv_starve] = in_raw,
                                     [kv_starve_server] = in_send,
                                     [kv_lost_put] = in_api,
                                     [kv_half_entry] = in_get,
                                     [kv_flip_entry] = in_api,
                                     [kv_skew] = in_all,
                                     [kv_wrong_hello] = in_all};
    /* A second write of the same bytes leaves no trace, a put under way can't be doubled, and
     * answers that are written need no receives. */
    if (on == &kv_put_am && (fault == kv_dup_request || fault == kv_wrong_server))
        return false;
    if (on == &kv_write_write && (fault == kv_dup_answer || fault == kv_starve))
        return false;
    return (where[fault] & kind_of(on)) != 0;
}

static bool refuse_fault(int fault, char *why, size_t size)
{
    int used = snprintf(why, size, "--inject %s needs one --transport of", kv_faults[fault].name);
    for (int i = 0; kv_transports[i] && used > 0 && (size_t)used < size; i++)
        if (can_happen(fault, kv_transports[i]))
            used += snprintf(why + used, size - (size_t)used, " %s", kv_transports[i]->name);
    return false;
}

static bool set_fault(char *why, size_t size)
{
    if (!wl_inject_parse(&kv.injection, kv_faults, kv.common.inject, why, size))
        return false;
    int fault = kv.injection.fault;
    const struct kv_transport *only = kv_only_transport();
    if (fault < 0)
        return true;
    if (!only || !can_happen(fault, only))
        return refuse_fault(fault, why, size);
    if (kv.common.verify != wl_verify_full)
        return no(why, size, "--inject needs --verify full, which cannot overlook it");
    if (fault == kv_wrong_server && kv.servers < 2)
        return no(why, size, "--inject wrong-server needs at least 2 servers");
    if (fault == kv_newer_first && (!kv.pipeline || kv.store != kv_exact || !kv.remove))
        return no(why, size, "--inject newer-first needs --pipeline 1, --store exact and --delete");
    if (kv_layout.compat && (fault == kv_keep_mark || fault == kv_dup_request))
        return no(why, size, "--compat has no marks: a request that is taken twice is not seen");
    if (fault == kv_poll_early && !kv.probe)
        return no(why, size, "--inject poll-early needs --probe");
    return true;
}

/* ---- Keys and layout */

static bool all_of(bool (*good)(const struct kv_transport *))
{
    for (int i = 0; kv_transports[i]; i++)
        if (kv.chosen[i] && !good(kv_transports[i]))
            return false;
    return true;
}

static bool keys_of_any_length(const struct kv_transport *transport)
{
    return transport->way == kv_way_api;
}

static bool as_ib_kv(const struct kv_transport *transport)
{
    return transport == &kv_write_send || transport == &kv_write_imm;
}

static bool set_layout(char *why, size_t size)
{
    if (kv.key != kv_key_usual && !all_of(keys_of_any_length))
        return no(why, size,
                  "--key is 16 but for am-medium, am-long, put-am and get: the slots of raw "
                  "transports and the requests to memcached and redis are made for that");
    if (kv.compat && !all_of(as_ib_kv))
        return no(why, size,
                  "--compat is the layout of slots that Ib-KV has: --transport write-send or "
                  "write-imm");
    if (kv.compat && (kv.value_min != kv_compat_value || kv.value_max != kv_compat_value))
        return no(why, size, "--compat has values of 32 bytes");
    if (kv.compat && kv.remove)
        return no(why, size, "--compat has no DELETE");
    if (kv.notify != kv_notify_poll && !chosen(&kv_write_send))
        return no(why, size, "--notify is for write-send");
    kv_layout_set((size_t)kv.key, kv.compat != 0);
    return true;
}

static bool set_store(uint64_t given, char *why, size_t size)
{
    if (kv_only_transport() != &kv_get_put || kv.store == kv_exact)
        return true;
    if (wl_option_given(&kv_program, given, "store"))
        return no(why, size, "--transport get reads an exact store: --store exact");
    kv.store = kv_exact;
    return true;
}

/* Each server looks at its own. */
static bool look_at_files(char *why, size_t size)
{
    char rest[32], path[4096];
    snprintf(rest, sizeof(rest), ".%u", (unsigned)wl_job.me);
    if ((int64_t)wl_job.me >= kv.servers)
        return true;
    if (kv.save && !wl_prefix_writable("save", kv.save, rest, why, size))
        return false;
    if (!kv.load)
        return true;
    int length = snprintf(path, sizeof(path), "%s%s", kv.load, rest);
    if (length >= (int)sizeof(path))
        return no(why, size, "--load has a name that is too long");
    return kv_load_fits(path, wl_job.me, (uint32_t)kv.servers, why, size);
}

bool kv_related(void *values, uint64_t given, char *why, size_t size)
{
    (void)values;
    if (!set_ranks(why, size) || !set_transports(given, why, size) || !set_lengths(why, size) ||
        !set_mix(given, why, size) || !set_layout(why, size) || !set_store(given, why, size) ||
        !set_queues(given, why, size) || !set_mget(why, size) || !set_fault(why, size))
        return false;
    if (kv.load && wl_option_given(&kv_program, given, "preload"))
        return no(why, size, "--load and --preload exclude each other");
    if (!look_at_files(why, size))
        return false;
    kv_draw_open(&kv.draw, (uint64_t)kv.keys * (wl_job.size - (uint64_t)kv.servers),
                 (uint64_t)kv.common.seed);
    return true;
}
