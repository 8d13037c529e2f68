/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases measured between neighbours, with their aims, and the operations that only neighbours
 * have: puts and gets of a size known to the compiler are loads and stores in place. Takes the
 * place of cases.c. */
#include "config.h"

#include "bench.h"

static void nbrhd_put_8(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_RMA_PutBlocking(bench_job.tm, bench_job.peer, bench_job.theirs + BENCH_TARGET,
                            bench_job.mine + BENCH_SOURCE, 8, 0);
}

static void nbrhd_get_8(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_RMA_GetBlocking(bench_job.tm, bench_job.mine + BENCH_SOURCE, bench_job.peer,
                            bench_job.theirs + BENCH_TARGET, 8, 0);
}

static void nbrhd_poll(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gasnet_AMPoll();
}

static void nbrhd_barrier(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; i < count; i++)
        gex_Event_Wait(gex_Coll_BarrierNB(bench_job.tm, 0));
}

#define ROUND_TRIP(bytes, aim)                                                                     \
    {                                                                                              \
        "Medium round trip", "copies", bench_am_medium, nbrhd_raw_copies, BENCH_US, bytes, aim, 0  \
    }
#define FLOOD(bytes, aim)                                                                          \
    {                                                                                              \
        "Medium flood", "4 buffers", bench_am_medium_flood, nbrhd_raw_copy_flood, BENCH_MBPS,      \
            bytes, aim, 0                                                                          \
    }
#define CARELESS(bytes)                                                                            \
    {                                                                                              \
        "Medium flood", "careless", bench_am_medium_flood, nbrhd_raw_careless_flood, BENCH_MBPS,   \
            bytes, 0, 0                                                                            \
    }

/* Sizes of the small transfers: below, at and above a word, in one step of a copy, in several. */
#define SMALL(name, conduit, raw, bytes)                                                           \
    {                                                                                              \
        name, "copy", conduit, raw, BENCH_NS, bytes, 1.1, 0                                        \
    }
#define SMALLS(name, conduit, raw)                                                                 \
    SMALL(name, conduit, raw, 1), SMALL(name, conduit, raw, 8), SMALL(name, conduit, raw, 64),     \
        SMALL(name, conduit, raw, 256), SMALL(name, conduit, raw, 512)

struct bench_case bench_cases[bench_cases_max];

static const struct bench_case cases[] = {
    {"Short round trip", "ping-pong", bench_am_short, nbrhd_raw_ping_pong, BENCH_US, 8, 1.3, 0},
    ROUND_TRIP(64, 0),
    ROUND_TRIP(128, 0),
    ROUND_TRIP(1024, 1.35),
    ROUND_TRIP(4096, 1.15),
    ROUND_TRIP(16384, 1.15),
    ROUND_TRIP(32768, 1.15),
    FLOOD(64, 0),
    FLOOD(128, 0),
    FLOOD(1024, 0.5),
    FLOOD(4096, 0.7),
    FLOOD(16384, 0.85),
    FLOOD(32768, 0.85),
    FLOOD(65408, 0.85),
    CARELESS(1024),
    CARELESS(4096),
    CARELESS(16384),
    CARELESS(65408),
    {"put bandwidth", "memcpy", bench_put, nbrhd_raw_memcpy, BENCH_MBPS, 1 << 20, 0.95, 0},
    {"get bandwidth", "memcpy", bench_get, nbrhd_raw_memcpy, BENCH_MBPS, 1 << 20, 0, 0},
    {"Short flood", "ring", bench_am_short_flood, nbrhd_raw_flood, BENCH_KOPS, 8, 0, 10000},
    {"empty poll", "look", nbrhd_poll, nbrhd_raw_look, BENCH_NS, 0, 0, 0},
    {"put latency", "store", nbrhd_put_8, nbrhd_raw_store, BENCH_NS, 8, 0, 0},
    {"get latency", "load", nbrhd_get_8, nbrhd_raw_load, BENCH_NS, 8, 0, 0},
    SMALLS("PutBlocking", nbrhd_put_blocking, nbrhd_raw_small_put),
    SMALLS("GetBlocking", nbrhd_get_blocking, nbrhd_raw_small_get),
    SMALLS("PutNB, wait", nbrhd_put_nb, nbrhd_raw_small_put),
    SMALLS("GetNB, wait", nbrhd_get_nb, nbrhd_raw_small_get),
    SMALLS("PutNBI flood", nbrhd_put_nbi, nbrhd_raw_small_put),
    SMALLS("GetNBI flood", nbrhd_get_nbi, nbrhd_raw_small_get),
    SMALL("PutBlockingVal", nbrhd_put_val, nbrhd_raw_small_value, 1),
    SMALL("PutBlockingVal", nbrhd_put_val, nbrhd_raw_small_value, 8),
    SMALL("PutNBVal, wait", nbrhd_put_nb_val, nbrhd_raw_small_value, 8),
    SMALL("PutNBIVal flood", nbrhd_put_nbi_val, nbrhd_raw_small_value, 8),
    SMALL("GetBlockingVal", nbrhd_get_val, nbrhd_raw_small_load, 1),
    SMALL("GetBlockingVal", nbrhd_get_val, nbrhd_raw_small_load, 8),
    {"barrier of 2", "two flags", nbrhd_barrier, nbrhd_raw_both, BENCH_US, 0, 0, 0},
};

/* configure may have made the largest Medium smaller than some. */
int bench_cases_fill(void)
{
    int count = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bool is_medium =
            cases[i].conduit == bench_am_medium || cases[i].conduit == bench_am_medium_flood;
        if (!is_medium || cases[i].bytes <= gex_AM_LUBRequestMedium())
            bench_cases[count++] = cases[i];
    }
    return count;
}
