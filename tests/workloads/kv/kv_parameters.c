/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of kv: the table of options, and the faults. The relations between them are in
 * relations.c. Owns kv. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

struct kv_values kv;

static const char *const store_words[] = {"lossy", "exact", NULL};
static const char *const socket_words[] = {"tcp", "unix", NULL};
static const char *const order_words[] = {"oldest", "any", NULL};
static const char *const backoff_words[] = {"auto", "on", "off", NULL};
static const char *const ud_words[] = {"server", "shared", NULL};
static const char *const notify_words[] = {"poll", "imm", "auto", NULL};
static const char *const preload_words[] = {"client", "server", "none", NULL};

/* clang-format off: one option a line */
static const struct wl_option table[] = {
    {"servers", wl_whole, offsetof(struct kv_values, servers), "0", 0, 65535, "ranks", 0, 0,
     "ranks that serve; 0: a third of all, at least one"},
    {"transport", wl_text, offsetof(struct kv_values, transport), 0, 0, 0, 0, 0, 0,
     "how requests travel; several with commas between run one after the other, with one table; "
     "all: those of ours (none: am-medium, with --layer raw write-send)"},
    {"socket", wl_word, offsetof(struct kv_values, socket), "tcp", 0, 0, 0, socket_words, 0,
     "memcached, redis: over the loopback or a Unix socket"},
    {"window", wl_whole, offsetof(struct kv_values, window), "4", 1, kv_window_max, "requests", 0,
     wl_power_of_2, "outstanding requests of each client"},
    {"put", wl_whole, offsetof(struct kv_values, put), "5", 0, 100, "%", 0, 0,
     "operations that are PUTs"},
    {"delete", wl_whole, offsetof(struct kv_values, remove), "0", 0, 100, "%", 0, 0,
     "operations that are DELETEs"},
    {"keys", wl_whole, offsetof(struct kv_values, keys), "65536", 1, 2147483648, "keys", 0, 0,
     "for each client"},
    {"value", wl_text, offsetof(struct kv_values, value), "32", 0, 0, 0, 0, 0,
     "bytes of a value, 1..1024, or a range LO-HI"},
    {"key", wl_whole, offsetof(struct kv_values, key), "16", kv_key_min, kv_key_max, "bytes", 0, 0,
     "of a key; 16 for all but the transports of --layer api"},
    {"compat", wl_flag, offsetof(struct kv_values, compat), "0", 0, 1, 0, 0, 0,
     "slots and answers as Ib-KV had them, for write-send and write-imm"},
    {"dist", wl_text, offsetof(struct kv_values, dist), "uniform", 0, 0, 0, 0, 0,
     "uniform, zipf[:THETA], latest[:THETA] or hotspot:A/B, A % of operations on B % of keys"},
    {"ycsb", wl_text, offsetof(struct kv_values, ycsb), 0, 0, 0, 0, 0, 0,
     "A to F: mix and distribution of that YCSB workload; E needs --scan-emulate"},
    {"mget", wl_whole, offsetof(struct kv_values, mget), "1", 1, kv_window_max, "keys", 0, 0,
     "read together, at most --window; am-medium packs those of one server into a message"},
    {"pack", wl_whole, offsetof(struct kv_values, pack), "1", 1, kv_window_max, "requests", 0, 0,
     "am-medium: of one server that leave in one message, when the client has to wait; at most "
     "--window"},
    {"order", wl_word, offsetof(struct kv_values, order), "oldest", 0, 0, 0, order_words, 0,
     "whose answer is taken next: the oldest request's, or any that is there"},
    {"scan-emulate", wl_flag, offsetof(struct kv_values, scan), "0", 0, 1, 0, 0, 0,
     "YCSB E: a scan is a multi-get of 1 to --mget consecutive record numbers"},
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
    {"uc", wl_flag, offsetof(struct kv_values, uc), "1", 0, 1, 0, 0, 0,
     "raw: requests by unreliable connections, else by reliable ones"},
    {"ud", wl_word, offsetof(struct kv_values, ud), "server", 0, 0, 0, ud_words, 0,
     "raw: a client's queue pairs for datagrams, one for each server or one for all"},
    {"notify", wl_word, offsetof(struct kv_values, notify), "poll", 0, 0, 0, notify_words, 0,
     "write-send: the server polls slots, or gets completions; auto: those if K3 finds no order"},
    {"inline", wl_flag, offsetof(struct kv_values, use_inline), "1", 0, 1, 0, 0, 0,
     "raw: what is small enough goes along with its work request"},
    {"ws-server", wl_whole, offsetof(struct kv_values, ws_server), "64", 1, 16384, "answers", 0,
     wl_power_of_2, "raw: a server signals one in so many"},
    {"s-depth", wl_whole, offsetof(struct kv_values, s_depth), "512", 1, 16384, "requests", 0,
     wl_power_of_2, "raw: a client signals one in so many"},
    {"q-depth", wl_whole, offsetof(struct kv_values, q_depth), "1024", 2, 32768, "requests", 0, 0,
     "raw: of a client's send queues"},
    {"cl-batch", wl_whole, offsetof(struct kv_values, cl_batch), "128", 2, 16384, "buffers", 0, 0,
     "raw: receives that a client posts"},
    {"cl-semi", wl_whole, offsetof(struct kv_values, cl_semi), "64", 1, 8192, "buffers", 0, 0,
     "raw: of them so many at a time again"},
    {"fail-lim", wl_whole, offsetof(struct kv_values, fail_lim), "100", 1, 1000000, "looks", 0, 0,
     "raw: fruitless looks in a row before a server pushes a dummy"},
    {"postlist", wl_whole, offsetof(struct kv_values, postlist), "1", 1, 16384, "answers", 0, 0,
     "raw: posted in one piece"},
    {"pipeline", wl_flag, offsetof(struct kv_values, pipeline), "1", 0, 1, 0, 0, 0,
     "raw: two stages; 0: requests are served at once"},
    {"backoff", wl_word, offsetof(struct kv_values, backoff), "auto", 0, 0, 0, backoff_words, 0,
     "raw: who looks in vain for long naps; auto: when ranks outnumber CPUs; off: never yields"},
    {"probe", wl_whole, offsetof(struct kv_values, probe), "100000", 0, 1000000000, "writes", 0, 0,
     "raw: looked at for their order before (K3)"},
    {"ports", wl_whole, offsetof(struct kv_values, ports), "0", 0, 8, "rails", 0, 0,
     "raw: used at most; 0: all"},
    WL_COMMON_OPTIONS(struct kv_values, "api"),
};
/* clang-format on */

const struct wl_fault kv_faults[] = {
    [kv_drop_answer] = {"drop-answer", "K7", "a server does not answer"},
    [kv_dup_answer] = {"dup-answer", "K7", "a server answers twice"},
    [kv_swap_answers] = {"swap-answers", "K4", "two answers change places"},
    [kv_flip_bit] = {"flip-bit", "K4", "a bit of an answer is wrong"},
    [kv_dup_request] = {"dup-request", "K6", "a request arrives twice"},
    [kv_lose_request] = {"lose-request", "K7", "a request does not leave"},
    [kv_stale_len] = {"stale-len", "K8", "the length of a PUT stays for the GET behind it"},
    [kv_wrong_server] = {"wrong-server", "K9", "a request goes to another server"},
    [kv_keep_mark] = {"keep-mark", "K6", "a request stays in its slot"},
    [kv_poll_early] = {"poll-early", "K3", "the probe looks at the first byte, not at the last"},
    [kv_newer_first] = {"newer-first", "K10",
                        "the pipeline begins the newer before it ends the older"},
    [kv_starve] = {"starve", "K15", "receives are not posted again"},
    [kv_starve_server] = {"starve-server", "K15", "nor at a server"},
    [kv_lost_put] = {"lost-put", "K4", "a PUT is confirmed and not done"},
    [kv_half_entry] = {"half-entry", "K4", "an entry is never written to its end"},
    [kv_flip_entry] = {"flip-entry", "K4", "a bit of an entry is wrong"},
    [kv_skew] = {"skew", "K16", "one request in four reads the same key"},
    [kv_wrong_hello] = {"wrong-hello", "K1", "a client takes itself for the next one"},
    {NULL, NULL, NULL},
};

const struct wl_program kv_program = {
    "kv",
    "Key-value service: ranks 0..S-1 serve, the others ask with a window of requests and judge "
    "every answer.\nFaults for --inject: drop-answer, dup-answer, lose-request (K7), swap-answers, "
    "flip-bit (K4), dup-request, keep-mark (K6), stale-len (K8), wrong-server (K9), newer-first "
    "(K10), poll-early (K3), starve, starve-server (K15), lost-put, half-entry, flip-entry (K4), "
    "skew (K16), wrong-hello (K1).",
    table, sizeof(table) / sizeof(*table), kv_related};
