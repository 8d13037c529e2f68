/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Matches messages of collectives with receives. Owns a table of receives that wait for their
 * message and of messages that wait for their receive; one lock protects it, which is held for a
 * copy at most and never while sending. Handlers only copy and count.
 *
 * An unexpected message, which arrives before its receive, is copied and kept: either it has at
 * most tk_coll_eager_max bytes, or a receiver waits for it by then. Their number is bounded by the
 * collectives that the other members start before we do. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "collective/coll_private.h"
#include "message/message.h"

enum { match_buckets = 256, unexpected_small = 192 };

/* A message without a receive. */
struct unexpected {
    struct tk_pool_item item;
    struct unexpected *next;
    struct tk_coll_key key;
    uint64_t word;
    uint32_t nbytes;
    bool is_word;
    _Alignas(16) char payload[];
};

/* The contents of a message. */
struct arrived {
    const void *payload;
    size_t nbytes, offset;
    uint64_t word;
    bool is_word;
};

static struct {
    tk_lock_t lock;
    struct tk_coll_post *posts[match_buckets];
    struct unexpected *unexpected[match_buckets];
} match = {.lock = TK_LOCK_INIT};

static struct tk_pool small_unexpected = {.lock = TK_LOCK_INIT};
static struct tk_pool large_unexpected = {.lock = TK_LOCK_INIT};
tk_counter_t tk_coll_news;

static unsigned bucket_of(const struct tk_coll_key *key)
{
    uint64_t h = key->team * UINT64_C(0x9e3779b97f4a7c15) + key->sequence;
    h = (h ^ (uint64_t)key->from << 32 ^ key->to ^ (uint64_t)key->tag << 20) *
        UINT64_C(0xff51afd7ed558ccd);
    return (unsigned)(h >> 32) % match_buckets;
}

static bool key_is(const struct tk_coll_key *a, const struct tk_coll_key *b)
{
    return a->sequence == b->sequence && a->from == b->from && a->tag == b->tag && a->to == b->to &&
           a->team == b->team;
}

/* ---- messages that wait */

static struct unexpected *unexpected_take(size_t nbytes)
{
    bool is_small = nbytes <= unexpected_small;
    struct unexpected *unexpected = tk_pool_take(is_small ? &small_unexpected : &large_unexpected);
    size_t size = is_small ? unexpected_small : tk_coll_eager_max;
    if (!unexpected && !(unexpected = malloc(sizeof(*unexpected) + size)))
        tk_panic("out of memory for a message of a collective (%zu bytes)", size);
    return unexpected;
}

static void unexpected_give(struct unexpected *unexpected)
{
    tk_pool_give(unexpected->nbytes <= unexpected_small ? &small_unexpected : &large_unexpected,
                 unexpected);
}

static void unexpected_keep(const struct tk_coll_key *key, const struct arrived *m)
{
    struct unexpected *unexpected = unexpected_take(m->nbytes);
    unexpected->key = *key;
    unexpected->word = m->word;
    unexpected->is_word = m->is_word;
    unexpected->nbytes = (uint32_t)m->nbytes;
    if (m->nbytes)
        memcpy(unexpected->payload, m->payload, m->nbytes);
    struct unexpected **bucket = &match.unexpected[bucket_of(key)];
    unexpected->next = *bucket;
    *bucket = unexpected;
}

static struct unexpected *unexpected_find(const struct tk_coll_key *key)
{
    struct unexpected **at = &match.unexpected[bucket_of(key)];
    while (*at && !key_is(&(*at)->key, key))
        at = &(*at)->next;
    struct unexpected *unexpected = *at;
    if (unexpected)
        *at = unexpected->next;
    return unexpected;
}

/* ---- receives */

static struct tk_coll_post **post_find(const struct tk_coll_key *key)
{
    struct tk_coll_post **at = &match.posts[bucket_of(key)];
    while (*at && !key_is(&(*at)->key, key))
        at = &(*at)->next;
    return at;
}

static _Noreturn void does_not_fit(const struct tk_coll_post *post, const struct arrived *m)
{
    tk_panic(
        "rank %u of a team sent %zu bytes at offset %zu to a collective in which this rank, %u "
        "of that team, expects %zu bytes from it: do all members call the same collectives in "
        "the same order with the same sizes?",
        post->key.from, m->is_word ? (size_t)m->word : m->nbytes, m->offset, post->key.to,
        post->nbytes);
}

/* True if that was the last piece. A word carries the number of bytes that were put before it; if
 * no bytes are expected, the word itself is the message. */
static bool post_bring(struct tk_coll_post *post, const struct arrived *m)
{
    size_t bytes = m->is_word ? (size_t)m->word : m->nbytes;
    if (post->key.tag & tk_coll_ready_tag) {
        post->word = m->word;
        return true;
    }
    if (post->nbytes <= tk_coll_eager_max ? bytes != post->nbytes : bytes > post->left)
        does_not_fit(post, m);
    if (m->offset > post->nbytes || m->nbytes > post->nbytes - m->offset)
        does_not_fit(post, m);
    if (m->nbytes)
        memcpy(post->memory + m->offset, m->payload, m->nbytes);
    post->left -= bytes;
    return post->left == 0;
}

static void post_finish(struct tk_coll_post *post)
{
    tk_counter_add(&post->done, 1); /* last: its owner may free it */
    tk_counter_add(&tk_coll_news, 1);
}

static bool is_part(const struct tk_coll_key *key, const struct arrived *m)
{
    return m->offset > 0 || m->nbytes > tk_coll_eager_max ||
           (m->is_word && m->word > 0 && !(key->tag & tk_coll_ready_tag));
}

static void arrive(const struct tk_peer *from, const struct tk_coll_key *key,
                   const struct arrived *m)
{
    tk_lock(&match.lock);
    struct tk_coll_post **at = post_find(key), *post = *at;
    if (!post) {
        if (is_part(key, m))
            tk_panic("rank %u (%s) sent a part of a payload for collective %" PRIu32
                     " of a team, and nothing waits for it here",
                     from->rank, from->host, key->sequence);
        unexpected_keep(key, m);
    } else if (post_bring(post, m)) {
        *at = post->next;
        post_finish(post);
    }
    tk_unlock(&match.lock);
}

void tk_coll_post_enter(struct tk_coll_post *post)
{
    post->left = post->nbytes;
    tk_counter_set(&post->done, 0);
    tk_lock(&match.lock);
    struct unexpected *unexpected = unexpected_find(&post->key);
    if (unexpected) {
        const struct arrived m = {.payload = unexpected->payload,
                                  .nbytes = unexpected->nbytes,
                                  .word = unexpected->word,
                                  .is_word = unexpected->is_word};
        if (!post_bring(post, &m))
            does_not_fit(post, &m);
        tk_counter_add(&post->done, 1);
        unexpected_give(unexpected);
    } else {
        struct tk_coll_post **bucket = &match.posts[bucket_of(&post->key)];
        post->next = *bucket;
        *bucket = post;
    }
    tk_unlock(&match.lock);
}

void tk_coll_post_withdraw(struct tk_coll_post *post)
{
    tk_lock(&match.lock);
    struct tk_coll_post **at = &match.posts[bucket_of(&post->key)];
    while (*at && *at != post)
        at = &(*at)->next;
    if (*at)
        *at = post->next;
    tk_unlock(&match.lock);
}

/* ---- messages: the key in six arguments, then an offset or a word */

enum { key_args = 6, all_args = 8 };

static void key_pack(const struct tk_coll_key *key, int32_t *args)
{
    args[0] = (int32_t)(uint32_t)key->team;
    args[1] = (int32_t)(uint32_t)(key->team >> 32);
    args[2] = (int32_t)key->sequence;
    args[3] = (int32_t)key->from;
    args[4] = (int32_t)key->to;
    args[5] = (int32_t)key->tag;
}

static struct tk_coll_key key_unpack(const int32_t *args)
{
    return (struct tk_coll_key){.team = (uint32_t)args[0] | (uint64_t)(uint32_t)args[1] << 32,
                                .sequence = (uint32_t)args[2],
                                .from = (uint32_t)args[3],
                                .to = (uint32_t)args[4],
                                .tag = (uint32_t)args[5]};
}

static uint64_t word_unpack(const int32_t *args)
{
    return (uint32_t)args[key_args] | (uint64_t)(uint32_t)args[key_args + 1] << 32;
}

static void word_pack(uint64_t word, int32_t *args)
{
    args[key_args] = (int32_t)(uint32_t)word;
    args[key_args + 1] = (int32_t)(uint32_t)(word >> 32);
}

static void on_word(struct tk_peer *from, const int32_t *args)
{
    const struct tk_coll_key key = key_unpack(args);
    const struct arrived m = {.word = word_unpack(args), .is_word = true};
    arrive(from, &key, &m);
}

static void on_data(struct tk_arrival *arrival)
{
    const int32_t *args = (const int32_t *)(arrival->head + 1);
    const struct tk_coll_key key = key_unpack(args);
    const struct arrived m = {.payload = arrival->payload,
                              .nbytes = arrival->nbytes,
                              .offset = arrival->head->nargs == all_args ? word_unpack(args) : 0};
    arrive(arrival->peer, &key, &m);
}

void tk_coll_match_open(void)
{
    tk_internal_register(TK_HANDLER_COLL, on_word);
    tk_internal_register_whole(TK_HANDLER_COLL, on_data);
}

static enum tk_status send_data(struct tk_peer *peer, const int32_t *args, unsigned nargs,
                                const void *payload, size_t nbytes)
{
    const struct tk_internal_medium medium = {.handler = TK_HANDLER_COLL,
                                              .nargs = nargs,
                                              .args = args,
                                              .payload = payload,
                                              .nbytes = nbytes};
    return tk_internal_request(peer, &medium);
}

enum tk_status tk_coll_send_whole(struct tk_peer *peer, const struct tk_coll_key *key,
                                  const void *payload, size_t nbytes)
{
    int32_t args[key_args];
    if (nbytes == 0)
        return tk_coll_send_word(peer, key, 0);
    key_pack(key, args);
    return send_data(peer, args, key_args, payload, nbytes);
}

enum tk_status tk_coll_send_chunk(struct tk_peer *peer, const struct tk_coll_key *key,
                                  const void *payload, size_t nbytes, size_t offset)
{
    int32_t args[all_args];
    key_pack(key, args);
    word_pack(offset, args);
    return send_data(peer, args, all_args, payload, nbytes);
}

enum tk_status tk_coll_send_word(struct tk_peer *peer, const struct tk_coll_key *key, uint64_t word)
{
    int32_t args[all_args];
    key_pack(key, args);
    word_pack(word, args);
    return tk_internal_send(peer, TK_REQUEST, TK_HANDLER_COLL, all_args, args);
}

size_t tk_coll_chunk_max(void)
{
    return tk_medium_max(all_args);
}
