/* SPDX-License-Identifier: BSD-3-Clause */
/* Which key next, and what to do with it: distributions over 0..n-1 and mixes of operations. All
 * constants are computed for the actual n; all randomness is the caller's. */
#ifndef KV_DRAW_H
#define KV_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "random.h"

enum kv_distribution { kv_uniform, kv_zipf, kv_latest, kv_hotspot };

struct kv_draw {
    enum kv_distribution kind;
    uint64_t n, scramble;
    double theta;             /* zipf, latest */
    double access, part;      /* hotspot: this share of operations goes to that part of the keys */
    double zetan, zeta2, eta; /* constants of Gray's generator */
};

/* uniform, zipf[:THETA], latest[:THETA], hotspot:A/B (A % of operations on B % of the keys). False
 * with one line in `why`. n and seed come with kv_draw_open(). */
bool kv_draw_parse(struct kv_draw *draw, const char *text, char *why, size_t size);
void kv_draw_open(struct kv_draw *draw, uint64_t n, uint64_t seed);

/* Popularity rank, 0: most popular. Arbitrary for uniform. */
uint64_t kv_draw_rank(const struct kv_draw *draw, struct wl_random *r);

/* The key of this rank: a permutation, so that popular keys are spread over servers and no two
 * ranks share a key. */
uint64_t kv_draw_number(const struct kv_draw *draw, uint64_t rank);

/* The next key; `newest` (latest only) is the number of the one put last. */
static inline uint64_t kv_draw(const struct kv_draw *draw, struct wl_random *r, uint64_t newest)
{
    uint64_t rank = kv_draw_rank(draw, r);
    if (draw->kind == kv_latest)
        return (newest + draw->n - rank) % draw->n;
    return kv_draw_number(draw, rank);
}

/* The probability that a rank is below k. */
double kv_draw_head(const struct kv_draw *draw, uint64_t k);

/* 1/1^theta + ... + 1/n^theta */
double kv_zeta(uint64_t n, double theta);

/* Each server's share of the operations, for keys of this seed; by going through all ranks. */
void kv_draw_shares(const struct kv_draw *draw, uint64_t seed, uint32_t servers, double *shares);

enum kv_action {
    kv_act_read,
    kv_act_update,
    kv_act_insert,
    kv_act_rmw,
    kv_act_delete,
    kv_act_scan,
    kv_actions
};

/* Percentages that add up to 100. */
struct kv_mix {
    int percent[kv_actions];
};

static inline enum kv_action kv_mix_draw(const struct kv_mix *mix, struct wl_random *r)
{
    int at = (int)wl_below(r, 100), action = 0;
    while (action < kv_actions - 1 && at >= mix->percent[action])
        at -= mix->percent[action++];
    return (enum kv_action)action;
}

/* Workload A to F of YCSB; false for others. */
bool kv_mix_ycsb(struct kv_mix *mix, struct kv_draw *draw, char letter);

#endif
