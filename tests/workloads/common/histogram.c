/* SPDX-License-Identifier: BSD-3-Clause */
/* See histogram.h. Owns nothing. */
#include "config.h"

#include <string.h>

#include "histogram.h"

void wl_histogram_clear(struct wl_histogram *h)
{
    memset(h, 0, sizeof(*h));
    h->least = UINT64_MAX;
}

void wl_histogram_merge(struct wl_histogram *into, const struct wl_histogram *from)
{
    for (unsigned i = 0; i < wl_buckets; i++)
        into->bucket[i] += from->bucket[i];
    into->count += from->count;
    into->sum += from->sum;
    if (from->least < into->least)
        into->least = from->least;
    if (from->most > into->most)
        into->most = from->most;
}

/* The largest value that belongs to a bucket. */
static uint64_t end_of(unsigned bucket)
{
    if (bucket < 2u << wl_step_bits)
        return bucket;
    unsigned exponent = (bucket >> wl_step_bits) - 1;
    uint64_t mantissa = (bucket & ((1u << wl_step_bits) - 1)) + (1u << wl_step_bits);
    return ((mantissa + 1) << exponent) - 1;
}

uint64_t wl_histogram_at(const struct wl_histogram *h, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)h->count + 0.999999), seen = 0;
    if (h->count == 0)
        return 0;
    if (wanted < 1)
        wanted = 1;
    for (unsigned i = 0; i < wl_buckets; i++) {
        seen += h->bucket[i];
        if (seen >= wanted)
            return i == wl_buckets - 1 || end_of(i) > h->most ? h->most : end_of(i);
    }
    return h->most;
}

double wl_histogram_mean(const struct wl_histogram *h)
{
    return h->count ? (double)h->sum / (double)h->count : 0;
}
