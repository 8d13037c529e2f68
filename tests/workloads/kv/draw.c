/* SPDX-License-Identifier: BSD-3-Clause */
/* See draw.h. The Zipf generator is that of Gray et al., "Quickly generating billion-record
 * synthetic databases", which YCSB made the custom; it hits the two most popular ranks exactly and
 * the others closely. Owns nothing. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "key.h"

enum { zeta_exact = 100000, feistel_rounds = 4 };

/* ---- Zipf */

/* The first terms one by one, the rest by Euler and Maclaurin: 2^31 powers would take a minute. */
double kv_zeta(uint64_t n, double theta)
{
    uint64_t exact = n < zeta_exact ? n : zeta_exact;
    double sum = 0, a = (double)exact, b = (double)n;
    for (uint64_t i = exact; i >= 1; i--)
        sum += pow((double)i, -theta);
    if (n == exact)
        return sum;
    return sum + (pow(b, 1 - theta) - pow(a, 1 - theta)) / (1 - theta) +
           (pow(b, -theta) - pow(a, -theta)) / 2 +
           theta / 12 * (pow(a, -theta - 1) - pow(b, -theta - 1));
}

static void open_zipf(struct kv_draw *draw)
{
    double theta = draw->theta, n = (double)draw->n;
    draw->zetan = kv_zeta(draw->n, theta);
    draw->zeta2 = kv_zeta(2, theta);
    /* With two keys or fewer the first two ranks are all there is, and eta is never used. */
    draw->eta = draw->n > 2 ? (1 - pow(2 / n, 1 - theta)) / (1 - draw->zeta2 / draw->zetan) : 1;
}

static uint64_t zipf_rank(const struct kv_draw *draw, double u)
{
    double scaled = u * draw->zetan;
    if (scaled < 1)
        return 0;
    if (scaled < draw->zeta2 || draw->n <= 2)
        return draw->n > 1;
    uint64_t rank =
        (uint64_t)((double)draw->n * pow(draw->eta * u - draw->eta + 1, 1 / (1 - draw->theta)));
    return rank < draw->n ? rank : draw->n - 1;
}

static double zipf_head(const struct kv_draw *draw, uint64_t k)
{
    if (k <= 2)
        return kv_zeta(k, draw->theta) / draw->zetan;
    double u = (pow((double)k / (double)draw->n, 1 - draw->theta) - 1 + draw->eta) / draw->eta;
    /* Ranks 0 and 1 take the values below this; the formula begins there. */
    return fmax(u, draw->zeta2 / draw->zetan);
}

/* ---- Hotspot */

static uint64_t hot_keys(const struct kv_draw *draw)
{
    uint64_t hot = (uint64_t)(draw->part * (double)draw->n + 0.5);
    return hot < 1 ? 1 : (hot > draw->n ? draw->n : hot);
}

static uint64_t hotspot_rank(const struct kv_draw *draw, struct wl_random *r)
{
    uint64_t hot = hot_keys(draw);
    if (hot == draw->n || wl_unit(r) < draw->access)
        return wl_below(r, hot);
    return hot + wl_below(r, draw->n - hot);
}

static double hotspot_head(const struct kv_draw *draw, uint64_t k)
{
    uint64_t hot = hot_keys(draw);
    if (hot == draw->n)
        return (double)k / (double)hot;
    if (k <= hot)
        return draw->access * (double)k / (double)hot;
    return draw->access + (1 - draw->access) * (double)(k - hot) / (double)(draw->n - hot);
}

/* ---- All */

/* "word" or "word:number", the number behind *number, which else stays as it is. */
static bool word_and_number(const char *text, const char *word, double *number)
{
    size_t length = strlen(word);
    char *end;
    if (strncmp(text, word, length))
        return false;
    if (!text[length])
        return true;
    *number = strtod(text + length + 1, &end);
    return text[length] == ':' && end != text + length + 1 && !*end;
}

static bool parse_hotspot(struct kv_draw *draw, const char *text)
{
    int used = 0;
    if (sscanf(text, "hotspot:%lf/%lf%n", &draw->access, &draw->part, &used) != 2 || text[used])
        return false;
    draw->access /= 100;
    draw->part /= 100;
    draw->kind = kv_hotspot;
    return draw->access > 0 && draw->access <= 1 && draw->part > 0 && draw->part <= 1;
}

bool kv_draw_parse(struct kv_draw *draw, const char *text, char *why, size_t size)
{
    *draw = (struct kv_draw){.kind = kv_uniform, .theta = 0.99};
    if (!strcmp(text, "uniform") || parse_hotspot(draw, text))
        return true;
    draw->kind = kv_zipf;
    bool known = word_and_number(text, "zipf", &draw->theta);
    if (!known) {
        draw->kind = kv_latest;
        known = word_and_number(text, "latest", &draw->theta);
    }
    /* At 1 the generator divides by 0. */
    if (known && draw->theta > 0 && draw->theta <= 5 && fabs(draw->theta - 1) >= 1e-6)
        return true;
    snprintf(why, size,
             "--dist '%s' is not one of uniform|zipf[:THETA]|latest[:THETA]|hotspot:A/B, with "
             "0 < THETA <= 5 but not 1, 0 < A, B <= 100",
             text);
    return false;
}

void kv_draw_open(struct kv_draw *draw, uint64_t n, uint64_t seed)
{
    draw->n = n;
    draw->scramble = wl_mix(seed ^ WL_GOLDEN);
    if (draw->kind == kv_zipf || draw->kind == kv_latest)
        open_zipf(draw);
}

uint64_t kv_draw_rank(const struct kv_draw *draw, struct wl_random *r)
{
    switch (draw->kind) {
    case kv_uniform:
        return wl_below(r, draw->n);
    case kv_hotspot:
        return hotspot_rank(draw, r);
    default:
        return zipf_rank(draw, wl_unit(r));
    }
}

double kv_draw_head(const struct kv_draw *draw, uint64_t k)
{
    if (k >= draw->n)
        return 1;
    switch (draw->kind) {
    case kv_uniform:
        return (double)k / (double)draw->n;
    case kv_hotspot:
        return hotspot_head(draw, k);
    default:
        return zipf_head(draw, k);
    }
}

/* A Feistel network permutes the least even power of two that holds n; a value outside of n is
 * permuted again.
 */
uint64_t kv_draw_number(const struct kv_draw *draw, uint64_t rank)
{
    unsigned half = 1;
    while (half < 32 && UINT64_C(1) << (2 * half) < draw->n)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = rank >> half, right = rank & mask;
        for (unsigned round = 0; round < feistel_rounds; round++) {
            uint64_t next = left ^ (wl_mix(right + draw->scramble + round * WL_GOLDEN) & mask);
            left = right;
            right = next;
        }
        rank = left << half | right;
    } while (rank >= draw->n);
    return rank;
}

void kv_draw_shares(const struct kv_draw *draw, uint64_t seed, uint32_t servers, double *shares)
{
    double below = 0;
    memset(shares, 0, servers * sizeof(*shares));
    for (uint64_t rank = 0; rank < draw->n; rank++) {
        double head = kv_draw_head(draw, rank + 1);
        struct kv_key key = kv_key_of(seed, kv_draw_number(draw, rank));
        shares[kv_server_of(kv_hash_of(&key), servers)] += head - below;
        below = head;
    }
}

bool kv_mix_ycsb(struct kv_mix *mix, struct kv_draw *draw, char letter)
{
    static const struct {
        char letter;
        enum kv_distribution kind;
        struct kv_mix mix;
    } known[] = {
        {'A', kv_zipf, {{[kv_act_read] = 50, [kv_act_update] = 50}}},
        {'B', kv_zipf, {{[kv_act_read] = 95, [kv_act_update] = 5}}},
        {'C', kv_zipf, {{[kv_act_read] = 100}}},
        {'D', kv_latest, {{[kv_act_read] = 95, [kv_act_insert] = 5}}},
        {'E', kv_zipf, {{[kv_act_scan] = 95, [kv_act_insert] = 5}}},
        {'F', kv_zipf, {{[kv_act_read] = 50, [kv_act_rmw] = 50}}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].letter == letter) {
            *mix = known[i].mix;
            *draw = (struct kv_draw){.kind = known[i].kind, .theta = 0.99};
            return true;
        }
    return false;
}
