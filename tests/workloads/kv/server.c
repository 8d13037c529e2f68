/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's side of kv: takes requests from each transport, keeps account of
 * each client's sequence, serves from the store. Everything runs in handlers, that is, in the one
 * thread that polls. Owns the store and the answers that faults hold back. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact.h"
#include "kv.h"
#include "progress.h"
#include "save.h"

enum { held_max = 8 };

struct sequence {
    uint32_t next;             /* all before were served */
    bool ahead[kv_window_max]; /* of those behind `next`, by seq */
};

static struct {
    struct kv_store *store;
    struct sequence *clients;
    uint64_t served;
    volatile uint32_t done;
    struct kv_reply held[held_max]; /* answers that leave outside of handlers */
    volatile int held_count;
    struct kv_reply swapped; /* waits for another one to be swapped with */
    bool swapping, faults, spoiling;
    struct kv_key spoiled;
} server;

struct kv_store_options kv_store_wanted(void)
{
    return (struct kv_store_options){.kind = (enum kv_store_kind)kv.store,
                                     .buckets = (uint64_t)kv.buckets,
                                     .log_bytes = (uint64_t)kv.log,
                                     .value_max = kv.value_max,
                                     .inplace = kv.inplace != 0,
                                     .ledger = kv.common.verify != wl_verify_none};
}

void kv_server_open(void)
{
    struct kv_store_options options = kv_store_wanted();
    memset(&server, 0, sizeof(server));
    if (kv_transport->reads)
        options.memory = wl_job.segment + kv_store_at();
    server.store = kv_store_open(&options);
    server.clients = calloc(kv_clients, sizeof(*server.clients));
    if (!server.store || !server.clients)
        wl_job_die("no memory for a store of %lld buckets and %lld bytes", (long long)kv.buckets,
                   (long long)kv.log);
}

void kv_server_close(void)
{
    kv_store_close(server.store);
    free(server.clients);
}

void kv_client_done(void)
{
    server.done++;
}

/* Only this server's part of the keys, as the clients would have put them. */
void kv_server_preload(void)
{
    char value[kv_value_max];
    for (uint64_t number = 0; number < (uint64_t)kv.keys * kv_clients; number++) {
        struct kv_key key = kv_key_of((uint64_t)kv.common.seed, number);
        struct kv_hash hash = kv_hash_of(&key);
        if (kv_server_of(hash, kv_servers) != wl_job.me)
            continue;
        kv_value_fill(value, kv.value_max, hash, (uint32_t)(number % kv_clients), 1);
        if (kv_store_put(server.store, &key, hash, value, kv.value_max) != kv_ok)
            wl_job_die("the store is too small for its part of the keys: raise --log");
    }
}

static void highest_version(void *arg, const struct kv_key *key, const char *value, size_t len)
{
    struct kv_value seen;
    uint32_t *highest = arg;
    const char *wrong = kv_value_check(value, len, kv_hash_of(key), &seen);
    if (wrong)
        kv_fail(kv_k18, "server %u loaded %s", (unsigned)wl_job.me, wrong);
    if (seen.version > *highest)
        *highest = seen.version;
}

uint32_t kv_server_load(void)
{
    char path[4096], why[512];
    uint32_t highest = 0;
    snprintf(path, sizeof(path), "%s.%u", kv.load, (unsigned)wl_job.me);
    if (!kv_load(server.store, path, wl_job.me, kv_servers, why, sizeof(why)))
        wl_job_die("%s", why);
    kv_store_each(server.store, highest_version, &highest);
    return highest;
}

/* ---- Account of sequences (K6): every number exactly once. Messages are not ordered, so early
 * ones are remembered; they can be no further ahead than the window. */
static void account(uint32_t client, uint32_t seq)
{
    struct sequence *s = &server.clients[client];
    uint32_t ahead = seq - s->next;
    if (ahead >= (uint32_t)kv.window) {
        kv_fail(kv_k6, "server %u: request %u of client %u %s, %u was next", (unsigned)wl_job.me,
                seq, client, ahead > UINT32_MAX / 2 ? "came again" : "is out of its window",
                s->next);
        return;
    }
    if (s->ahead[seq % kv_window_max])
        kv_fail(kv_k6, "server %u: request %u of client %u came again", (unsigned)wl_job.me, seq,
                client);
    kv_mine.reordered += ahead != 0;
    s->ahead[seq % kv_window_max] = true;
    while (s->ahead[s->next % kv_window_max])
        s->ahead[s->next++ % kv_window_max] = false;
}

/* ---- Faults */

static void hold(const struct kv_reply *reply)
{
    if (server.held_count < held_max)
        server.held[server.held_count++] = *reply;
}

static void swap_contents(struct kv_reply *a, struct kv_reply *b)
{
    struct kv_reply c = *a;
    uint32_t seq = a->seq, client = a->client;
    *a = *b;
    a->seq = seq;
    a->client = client;
    seq = b->seq, client = b->client;
    *b = c;
    b->seq = seq;
    b->client = client;
}

/* Whether the handler sends the answer. */
static bool disturb(struct kv_reply *reply)
{
    struct wl_injection *injection = &kv.injection;
    bool value = reply->len > 0;
    if (server.swapping && value) {
        server.swapping = false;
        swap_contents(&server.swapped, reply);
        hold(&server.swapped);
        return true;
    }
    if (wl_inject(injection, kv_drop_answer))
        return false;
    if (wl_inject(injection, kv_dup_answer))
        hold(reply);
    if (value && wl_inject(injection, kv_flip_bit))
        reply->value[reply->len / 2] ^= 1;
    if (value && wl_inject(injection, kv_swap_answers)) {
        server.swapped = *reply;
        server.swapping = true;
        return false;
    }
    return true;
}

/* ---- Serving */

static bool read_request(char *end, size_t image, struct kv_request *request)
{
    char padded[kv_get_max + 2] = {0};
    if (image >= kv_layout.header_image)
        return kv_record_read(end, kv.value_max, request);
    /* A GET that is no part of a slot brings no length. */
    memcpy(padded + sizeof(padded) - kv_layout.get_image, end - kv_layout.get_image,
           kv_layout.get_image);
    return kv_record_read(padded + sizeof(padded), kv.value_max, request);
}

static void make_reply(const struct kv_item *item, struct kv_reply *reply)
{
    reply->client = item->client;
    reply->seq = item->request.seq;
    reply->op = item->request.op;
    reply->status = item->status;
    reply->len = item->request.op == kv_get && item->status == kv_ok ? item->len : 0;
    if (reply->len)
        memcpy(reply->value, item->value, reply->len);
}

struct kv_store *kv_server_store(void)
{
    return server.store;
}

bool kv_server_fault(enum kv_fault fault)
{
    return server.faults && wl_inject(&kv.injection, (int)fault);
}

/* From its occasion on, every PUT leaves its length: a single PUT might not be followed by a GET.
 */
static bool leaves_length(enum kv_op op)
{
    return op == kv_put && server.faults && wl_inject_since(&kv.injection, kv_stale_len);
}

/* Before its answer, after which the client may write the slot again. */
static void clear_slot(char *end, enum kv_op op)
{
    kv_record_clear(end, !kv_server_fault(kv_keep_mark), !leaves_length(op));
}

bool kv_server_accept(uint32_t client, char *end, size_t image, bool slot, struct kv_item *item)
{
    bool whole = slot ? kv_record_read(end, kv.value_max, &item->request)
                      : read_request(end, image, &item->request);
    if (!whole || client >= kv_clients) {
        kv_fail(kv_k6, "server %u: no request, from client %u", (unsigned)wl_job.me, client);
        return false;
    }
    item->real = true;
    item->client = client;
    item->hash = kv_hash_of(&item->request.key);
    if (kv_server_of(item->hash, kv_servers) != wl_job.me)
        kv_fail(kv_k9, "server %u: a key of server %u, from client %u", (unsigned)wl_job.me,
                kv_server_of(item->hash, kv_servers), client);
    if (kv_layout.compat)
        item->request.seq = server.clients[client].next;
    account(client, item->request.seq);
    if (slot)
        clear_slot(end, item->request.op);
    return true;
}

bool kv_server_finish(const struct kv_item *item, struct kv_reply *reply)
{
    make_reply(item, reply);
    kv_mine.answered[item->request.op]++;
    server.served++;
    return !server.faults || disturb(reply);
}

/* Faults that the store itself has: a PUT that is confirmed and not done, an entry that is not
 * written to its end, a bit that has changed; from then on always with that key, or the next PUT
 * would repair it before a client reads it. True when the request has been dealt with. */
static bool spoil(struct kv_item *item)
{
    const struct kv_key *key = &item->request.key;
    enum kv_fault fault = (enum kv_fault)kv.injection.fault;
    bool of_store = fault == kv_lost_put || fault == kv_half_entry || fault == kv_flip_entry;
    if (!of_store || item->request.op != kv_put)
        return false;
    if (kv_server_fault(fault)) {
        server.spoiling = true;
        server.spoiled = *key;
    }
    if (!server.spoiling || !kv_key_same(key, &server.spoiled))
        return false;
    item->status = kv_ok;
    if (fault == kv_lost_put)
        return true;
    kv_serve(server.store, item);
    kv_exact_damage(server.store, key, item->hash,
                    fault == kv_half_entry ? kv_damage_half : kv_damage_bit);
    return true;
}

bool kv_server_take(uint32_t client, char *end, size_t image, bool slot, struct kv_reply *reply)
{
    struct kv_item item; /* not cleared: it is large, and what is needed is set */
    if (!kv_server_accept(client, end, image, slot, &item))
        return false;
    if (!server.faults || !spoil(&item))
        kv_serve(server.store, &item);
    return kv_server_finish(&item, reply);
}

static void release_held(void)
{
    while (server.held_count > 0) {
        struct kv_reply reply = server.held[--server.held_count];
        kv_transport->reply(&reply);
    }
}

/* Served so far by now; the intervals of the report are rank 0's. */
static void save_store(void)
{
    char path[4096], why[512];
    snprintf(path, sizeof(path), "%s.%u", kv.save, (unsigned)wl_job.me);
    if (!kv_save(server.store, path, wl_job.me, kv_servers, why, sizeof(why)))
        kv_fail(kv_k18, "%.150s", why);
}

/* Called after each poll; reading the clock takes as long as the shortest poll. */
static bool is_over(uint64_t end)
{
    enum { looks = 8 };
    static unsigned asked;
    return ++asked % looks == 0 && wl_now() > end;
}

/* Some milliseconds at a time, or all the time in a handler for what comes in one poll. */
static void serve_api(void)
{
    uint64_t end = wl_now() + WL_SECOND / 50;
    GASNET_BLOCKUNTIL(server.done == kv_clients || server.held_count || wl_stopped() ||
                      is_over(end));
}

static uint64_t served_by_now(void)
{
    if (!kv_transport->account)
        return server.served;
    kv_transport->account(&kv_mine);
    return kv_mine.answered[kv_get] + kv_mine.answered[kv_put] + kv_mine.answered[kv_delete];
}

static void account_store(void)
{
    kv_mine.counts = kv_store_count(server.store);
    kv_mine.load = kv_store_load_factor(server.store);
    kv_mine.digest = kv_store_digest(server.store);
    if (kv.save)
        save_store();
}

void kv_server_run(void)
{
    uint64_t before = served_by_now(), cpu = wl_cpu() + kv_mine.cpu_ns;
    server.faults = kv.injection.fault >= 0;
    wl_progress_start(kv_transport->name, wl_now(),
                      kv.ops ? 0 : (uint64_t)((kv.common.duration + kv.common.warmup) * 1e9));
    kv_ticks_start(wl_now(), before);
    while (server.done < kv_clients && !wl_stopped()) {
        uint64_t now = wl_now();
        if (kv_tick_due(now))
            kv_tick(now, served_by_now());
        if (kv_transport->serve)
            kv_transport->serve();
        else
            serve_api();
        release_held();
        if (wl_job.me == 0)
            wl_progress(now, server.served - before);
    }
    wl_progress_end();
    kv_ticks_end(served_by_now());
    kv_mine.measured[0] = served_by_now() - before;
    kv_mine.cpu_ns = wl_cpu() + (kv_transport->account ? kv_mine.cpu_ns : 0) - cpu;
    if (!kv_transport->account)
        account_store();
}
