/* SPDX-License-Identifier: BSD-3-Clause */
/* See client.h. Each key has one writer, so its versions are a row that its writer knows exactly
 * and others see grow. Owns two numbers for each own key and one for each key of others. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "client.h"

/* An own key. A DELETE counts as a version, too. */
struct own {
    uint32_t issued, answered; /* the last version that was sent, and that was confirmed */
    bool gone, unsure;         /* the last one was a DELETE; unknown whether it is there */
};

static struct {
    struct own *own;
    uint32_t *seen;      /* of every key: the highest version read */
    uint64_t keys, room; /* own keys that exist; for which there is space */
    uint32_t loaded;     /* versions up to this came with a file */
    uint64_t newest;
    bool preloaded;
} known;

enum { insert_room = 2 }; /* times --keys */

static uint64_t index_of(uint64_t number)
{
    return number / kv_clients;
}

static bool is_own(uint64_t number)
{
    return number % kv_clients == kv_client;
}

/* Without verification only versions are kept. */
static bool watching(void)
{
    return kv.common.verify != wl_verify_none;
}

void kv_known_open(uint32_t loaded_version)
{
    memset(&known, 0, sizeof(known));
    known.keys = (uint64_t)kv.keys;
    known.room = known.keys * (kv.mix.percent[kv_act_insert] ? insert_room : 1);
    known.loaded = loaded_version;
    known.newest = known.keys * kv_clients - 1;
    known.preloaded = kv.preload != kv_preload_none && !kv.load;
    known.own = calloc(known.room, sizeof(*known.own));
    known.seen = watching() ? calloc(known.room * kv_clients, sizeof(*known.seen)) : NULL;
    if (!known.own || (watching() && !known.seen))
        wl_job_die("no memory for what is known of %llu keys",
                   (unsigned long long)(known.room * kv_clients));
    for (uint64_t k = 0; k < known.keys; k++) {
        known.own[k].issued = kv.load ? loaded_version : kv.preload == kv_preload_server;
        known.own[k].answered = kv.load ? 0 : known.own[k].issued;
        known.own[k].unsure = kv.load != NULL;
    }
}

void kv_known_close(void)
{
    free(known.own);
    free(known.seen);
}

void kv_known_doubt(void)
{
    known.preloaded = false;
}

uint64_t kv_known_insert(uint64_t instead)
{
    if (known.keys == known.room)
        return instead;
    known.newest = known.keys++ * kv_clients + kv_client;
    return known.newest;
}

uint64_t kv_known_newest(void)
{
    return known.newest;
}

static size_t length_for(const struct kv_pending *pending)
{
    size_t choices = kv.value_max - kv.value_min + 1;
    return kv.value_min + wl_mix(pending->hash.lo + pending->version) % choices;
}

/* Certainly present: put, confirmed, and no operation on it under way. */
static bool surely_there(uint64_t number)
{
    if (is_own(number)) {
        const struct own *own = &known.own[index_of(number)];
        return own->answered && own->answered == own->issued && !own->gone && !own->unsure;
    }
    return known.preloaded && index_of(number) < (uint64_t)kv.keys &&
           kv.mix.percent[kv_act_delete] == 0;
}

void kv_known_issue(struct kv_pending *pending)
{
    if (pending->op == kv_get) {
        pending->sure = surely_there(pending->number);
        if (is_own(pending->number))
            pending->least_version = known.own[index_of(pending->number)].answered;
        else
            pending->least_version = watching() ? known.seen[pending->number] : 0;
        return;
    }
    struct own *own = &known.own[index_of(pending->number)];
    pending->version = ++own->issued;
    own->gone = pending->op == kv_delete;
    if (pending->op == kv_put)
        pending->len = length_for(pending);
}

/* The version in an answer must lie between the version confirmed when the request was sent and the
 * one sent when the answer came; short values hold too few bits of a version to be put in order. */
static const char *judge_version(const struct kv_pending *pending, const struct kv_value *seen)
{
    if (pending->answer_len < sizeof(seen->version))
        return NULL;
    if (pending->answer_len >= kv_value_full && seen->writer != pending->number % kv_clients)
        return "is of a client that does not write this key";
    if (seen->version < pending->least_version)
        return "is older than one that was there before";
    if (is_own(pending->number) && seen->version > known.own[index_of(pending->number)].issued)
        return "was never written";
    return NULL;
}

static void judge_hit(const struct kv_pending *pending)
{
    struct kv_value seen = {0, 0};
    const char *wrong = kv_value_check(pending->answer, pending->answer_len, pending->hash, &seen);
    if (!wrong && (pending->answer_len < kv.value_min || pending->answer_len > kv.value_max))
        wrong = "has a length that nobody wrote";
    if (!wrong)
        wrong = judge_version(pending, &seen);
    if (wrong)
        kv_fail(kv_k4, "client %u, GET %u of server %u, key %llu: version %u %s", kv_client,
                pending->seq, pending->server, (unsigned long long)pending->number, seen.version,
                wrong);
    else if (pending->answer_len >= sizeof(seen.version) &&
             seen.version > known.seen[pending->number])
        known.seen[pending->number] = seen.version;
}

static void judge_get(const struct kv_pending *pending)
{
    if (pending->status == kv_ok) {
        kv_mine.hits++;
        /* A sample: every 16th. */
        if (kv.common.verify == wl_verify_full || (watching() && pending->seq % 16 == 0))
            judge_hit(pending);
        return;
    }
    kv_mine.misses++;
    kv_mine.lost += pending->sure;
    kv_mine.unsure += !pending->sure;
    if (!pending->sure || kv.store != kv_exact)
        return;
    /* K10: a PUT or DELETE that was asked for later must not be seen by what came before it. */
    bool overtaken = is_own(pending->number) &&
                     known.own[index_of(pending->number)].issued > pending->least_version;
    kv_fail(overtaken ? kv_k10 : kv_k5,
            "client %u, GET %u of server %u: key %llu is missing, and nothing is lossy", kv_client,
            pending->seq, pending->server, (unsigned long long)pending->number);
}

static void judge_write(const struct kv_pending *pending)
{
    struct own *own = &known.own[index_of(pending->number)];
    if (pending->version > own->answered)
        own->answered = pending->version;
    if (pending->status == kv_full) {
        kv_mine.refused++;
        own->unsure = true;
    } else if (pending->version == own->issued) {
        own->unsure = false;
    }
}

void kv_known_judge(const struct kv_pending *pending)
{
    /* Of all answers, in any order: a digest of requests and results. */
    uint64_t version = 0;
    if (pending->op == kv_get && pending->status == kv_ok && pending->answer_len >= 8)
        memcpy(&version, pending->answer + pending->answer_len - 8, 8);
    kv_mine.results += wl_mix(wl_mix(pending->number ^ version) + pending->r * 8 +
                              (uint64_t)pending->op * 4 + pending->status);
    if (pending->op == kv_get)
        judge_get(pending);
    else
        judge_write(pending);
}

/* Writers publish what they sent last, block by block; readers compare. */
void kv_known_reconcile(void)
{
    enum { block = 4096 };
    uint32_t mine[block] = {0}, *all = calloc((size_t)wl_job.size * block, sizeof(*all));
    uint64_t room = (uint64_t)kv.keys * (kv.mix.percent[kv_act_insert] ? insert_room : 1);
    if (!all)
        wl_job_die("no memory for versions");
    for (uint64_t first = 0; watching() && first < room; first += block) {
        for (uint64_t k = first; !kv_is_server() && k < room && k < first + block; k++)
            mine[k - first] = known.own[k].issued;
        uint64_t count = room - first < block ? room - first : block;
        wl_job_share(mine, all, count * sizeof(*mine));
        for (uint64_t k = first; !kv_is_server() && k < room && k < first + block; k++)
            for (uint32_t c = 0; c < kv_clients; c++)
                if (known.seen[k * kv_clients + c] > all[(kv_servers + c) * count + k - first])
                    kv_fail(kv_k4, "client %u saw version %u of key %llu, of which %u was the last",
                            kv_client, known.seen[k * kv_clients + c],
                            (unsigned long long)(k * kv_clients + c),
                            all[(kv_servers + c) * count + k - first]);
    }
    free(all);
}
