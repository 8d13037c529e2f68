/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram of times in nanoseconds: linear below 128, above that 64 steps for each doubling, so
 * a percentile is at most 1/64 above the true value. Plain data: it is added to others of other
 * threads and sent between ranks as it is. */
#ifndef WL_HISTOGRAM_H
#define WL_HISTOGRAM_H

#include <stdint.h>

enum {
    wl_step_bits = 6,
    wl_exponents = 40, /* up to 2^46 ns, almost a day; longer times count as 2^46 ns */
    wl_buckets = (wl_exponents + 2) << wl_step_bits
};

struct wl_histogram {
    uint64_t count, sum, least, most; /* least: UINT64_MAX when empty */
    uint64_t bucket[wl_buckets];
};

void wl_histogram_clear(struct wl_histogram *h);
void wl_histogram_merge(struct wl_histogram *into, const struct wl_histogram *from);

/* The upper end of the bucket in which the part `share` (0..1) of all lies, at most the largest
 * value seen; 0 when empty. */
uint64_t wl_histogram_at(const struct wl_histogram *h, double share);
double wl_histogram_mean(const struct wl_histogram *h);

static inline unsigned wl_bucket_of(uint64_t value)
{
    if (value < 2u << wl_step_bits)
        return (unsigned)value;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(value) - wl_step_bits;
    if (exponent > wl_exponents)
        return wl_buckets - 1;
    return (exponent << wl_step_bits) + (unsigned)(value >> exponent);
}

static inline void wl_histogram_add(struct wl_histogram *h, uint64_t value)
{
    h->bucket[wl_bucket_of(value)]++;
    h->count++;
    h->sum += value;
    if (value < h->least)
        h->least = value;
    if (value > h->most)
        h->most = value;
}

#endif
