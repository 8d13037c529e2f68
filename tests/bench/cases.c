/* SPDX-License-Identifier: BSD-3-Clause */
/* The measured cases: operation, sizes, and the raw operation that each is compared with. */
#include "config.h"

#include "bench.h"

struct bench_case bench_cases[bench_cases_max];

static const size_t rma_sizes[] = {8, 64, 512, 4096, 32768, 262144, 1048576, 4194304, 0};
static const size_t small_sizes[] = {8, 64, 512, 4096, 0};
static const size_t medium_sizes[] = {8, 512, 4096, 32768, 0};
static const size_t long_sizes[] = {8, 2048, 8192, 131072, 1048576, 0};
static const size_t long_bulk_sizes[] = {131072, 1048576, 0};
static const size_t no_payload[] = {8, 0}; /* of the raw message: what the head of a Short has */
static const size_t bulk_sizes[] = {4096, 32768, 262144, 1048576, 4194304, 0};

/* The aims: put within 1.25 of a raw write at 8 B, 0.95 of its bandwidth at 1 MiB, Short within 1.5
 * of a raw ping-pong. */
static const struct series {
    struct bench_case what;
    const size_t *sizes;
    size_t aim_bytes;
} series[] = {
    {{"put latency", "write", bench_put, bench_raw_write, BENCH_US, 0, 1.25, 0}, rma_sizes, 8},
    {{"get latency", "read", bench_get, bench_raw_read, BENCH_US, 0, 0, 0}, rma_sizes, 0},
    {{"put flood", "write", bench_put_window, bench_raw_write_window, BENCH_KOPS, 0, 0, 0},
     small_sizes,
     0},
    {{"get flood", "read", bench_get_window, bench_raw_read_window, BENCH_KOPS, 0, 0, 0},
     small_sizes,
     0},
    {{"put bandwidth", "write", bench_put_window, bench_raw_write_window, BENCH_MBPS, 0, 0.95, 0},
     bulk_sizes,
     1 << 20},
    {{"get bandwidth", "read", bench_get_window, bench_raw_read_window, BENCH_MBPS, 0, 0, 0},
     bulk_sizes,
     0},
    {{"Short round trip", "send", bench_am_short, bench_raw_send, BENCH_US, 0, 1.5, 0},
     no_payload,
     8},
    {{"Medium round trip", "send", bench_am_medium, bench_raw_send, BENCH_US, 0, 0, 0},
     medium_sizes,
     0},
    {{"Long round trip", "write+imm", bench_am_long, bench_raw_write_imm, BENCH_US, 0, 0, 0},
     long_sizes,
     0},
    {{"Short flood", "send", bench_am_short_flood, bench_raw_flood, BENCH_KOPS, 0, 0, 0},
     no_payload,
     0},
    {{"Medium flood", "send", bench_am_medium_flood, bench_raw_flood, BENCH_KOPS, 0, 0, 0},
     medium_sizes,
     0},
    {{"Long flood", "write", bench_am_long_flood, bench_raw_write_window, BENCH_KOPS, 0, 0, 0},
     long_sizes,
     0},
    {{"Long bandwidth", "write", bench_am_long_flood, bench_raw_write_window, BENCH_MBPS, 0, 0, 0},
     long_bulk_sizes,
     0},
};

int bench_cases_fill(void)
{
    int count = 0;
    for (size_t i = 0; i < sizeof(series) / sizeof(*series); i++)
        for (const size_t *size = series[i].sizes; *size && count < bench_cases_max; size++) {
            struct bench_case *what = &bench_cases[count++];
            *what = series[i].what;
            what->bytes = *size;
            what->aim = *size == series[i].aim_bytes ? what->aim : 0;
        }
    return count;
}
