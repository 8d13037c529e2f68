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

/* An operation, the raw one beside it, the unit and the sizes; then the aim of the ratio and at
 * which size. */
#define SERIES(name, run, raw_name, raw_run, unit, sizes, ...)                                     \
    {                                                                                              \
        {name, raw_name, bench_##run, bench_raw_##raw_run, BENCH_##unit, 0, 0, 0}, sizes,          \
            __VA_ARGS__                                                                            \
    }

static const struct series {
    struct bench_case what;
    const size_t *sizes;
    double aim;
    size_t aim_bytes;
} series[] = {
    SERIES("put latency", put, "write", write, US, rma_sizes, 1.25, 8),
    SERIES("get latency", get, "read", read, US, rma_sizes, 0, 0),
    SERIES("put flood", put_window, "write", write_window, KOPS, small_sizes, 0, 0),
    SERIES("get flood", get_window, "read", read_window, KOPS, small_sizes, 0, 0),
    SERIES("put bandwidth", put_window, "write", write_window, MBPS, bulk_sizes, 0.95, 1 << 20),
    SERIES("get bandwidth", get_window, "read", read_window, MBPS, bulk_sizes, 0, 0),
    SERIES("Short round trip", am_short, "send", send, US, no_payload, 1.5, 8),
    SERIES("Medium round trip", am_medium, "send", send, US, medium_sizes, 0, 0),
    SERIES("Long round trip", am_long, "write+imm", write_imm, US, long_sizes, 0, 0),
    SERIES("Short flood", am_short_flood, "send", flood, KOPS, no_payload, 0, 0),
    SERIES("Medium flood", am_medium_flood, "send", flood, KOPS, medium_sizes, 0, 0),
    SERIES("Long flood", am_long_flood, "write", write_window, KOPS, long_sizes, 0, 0),
    SERIES("Long arrivals", am_long_flood, "write+send", write_send, KOPS, long_sizes, 0, 0),
    SERIES("Long bandwidth", am_long_flood, "write", write_window, MBPS, long_bulk_sizes, 0, 0),
};

int bench_cases_fill(void)
{
    int count = 0;
    for (size_t i = 0; i < sizeof(series) / sizeof(*series); i++)
        for (const size_t *size = series[i].sizes; *size && count < bench_cases_max; size++) {
            struct bench_case *what = &bench_cases[count++];
            *what = series[i].what;
            what->bytes = *size;
            what->aim = *size == series[i].aim_bytes ? series[i].aim : 0;
        }
    return count;
}
