/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-contiguous transfers: over the network beside as many single puts or gets, between neighbours
 * beside the plain loop over memory that both share. Replaces cases.c; the cases depend on whether
 * the peer shares memory. Owns the lists of addresses. One thread. */
#include "config.h"

#include <string.h>

#include <gasnet.h>

#include "bench.h"

enum { pieces_max = 1000 };

static char *mapped; /* the peer's segment in this process; NULL: it shares no memory */
static void *here[pieces_max], *there[pieces_max], *packed[pieces_max];

/* As many as fit with as large gaps between them. */
static size_t pieces(size_t nbytes)
{
    size_t most = 4 * BENCH_MIB / 2 / nbytes;
    return most < pieces_max ? most : pieces_max;
}

static bool is_rank_0(void)
{
    return bench_job.me == 0;
}

/* ---- the interface ---- */

static void strided(bool is_put, bool is_whole, size_t nbytes, long count)
{
    const size_t counts[] = {pieces(nbytes)};
    const ptrdiff_t spread[] = {2 * (ptrdiff_t)nbytes}, close[] = {(ptrdiff_t)nbytes};
    const ptrdiff_t *remote = is_whole ? close : spread;
    char *far_side = bench_job.theirs + BENCH_TARGET, *near_side = bench_job.mine + BENCH_SOURCE;
    for (long i = 0; is_rank_0() && i < count; i++)
        if (is_put)
            gex_VIS_StridedPutBlocking(bench_job.tm, bench_job.peer, far_side, remote, near_side,
                                       spread, nbytes, counts, 1, 0);
        else
            gex_VIS_StridedGetBlocking(bench_job.tm, near_side, spread, bench_job.peer, far_side,
                                       remote, nbytes, counts, 1, 0);
}

static void put_strided(size_t nbytes, long count)
{
    strided(true, false, nbytes, count);
}

static void get_strided(size_t nbytes, long count)
{
    strided(false, false, nbytes, count);
}

static void put_whole(size_t nbytes, long count)
{
    strided(true, true, nbytes, count);
}

static void get_whole(size_t nbytes, long count)
{
    strided(false, true, nbytes, count);
}

static void fill_lists(size_t nbytes)
{
    for (size_t i = 0; i < pieces_max; i++) {
        here[i] = bench_job.mine + BENCH_SOURCE + 2 * i * nbytes;
        there[i] = bench_job.theirs + BENCH_TARGET + 2 * i * nbytes;
        packed[i] = mapped + BENCH_TARGET + 2 * i * nbytes;
    }
}

static void put_indexed(size_t nbytes, long count)
{
    fill_lists(nbytes);
    for (long i = 0; is_rank_0() && i < count; i++)
        gex_VIS_IndexedPutBlocking(bench_job.tm, bench_job.peer, pieces(nbytes), there, nbytes,
                                   pieces(nbytes), here, nbytes, 0);
}

static void fill(size_t nbytes, long count)
{
    for (long i = 0; is_rank_0() && i < count; i++)
        gasnet_memset(bench_job.peer, bench_job.theirs + BENCH_TARGET, 1, nbytes);
}

/* ---- as many puts or gets ---- */

static void put_each(size_t nbytes, long count)
{
    size_t all = pieces(nbytes);
    for (long i = 0; is_rank_0() && i < count; i++) {
        for (size_t k = 0; k < all; k++)
            gex_RMA_PutNBI(
                bench_job.tm, bench_job.peer, bench_job.theirs + BENCH_TARGET + 2 * k * nbytes,
                bench_job.mine + BENCH_SOURCE + 2 * k * nbytes, nbytes, GEX_EVENT_DEFER, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
}

static void get_each(size_t nbytes, long count)
{
    size_t all = pieces(nbytes);
    for (long i = 0; is_rank_0() && i < count; i++) {
        for (size_t k = 0; k < all; k++)
            gex_RMA_GetNBI(bench_job.tm, bench_job.mine + BENCH_SOURCE + 2 * k * nbytes,
                           bench_job.peer, bench_job.theirs + BENCH_TARGET + 2 * k * nbytes, nbytes,
                           0);
        gex_NBI_Wait(GEX_EC_GET, 0);
    }
}

static void put_once(size_t nbytes, long count)
{
    for (long i = 0; is_rank_0() && i < count; i++)
        gex_RMA_PutBlocking(bench_job.tm, bench_job.peer, bench_job.theirs + BENCH_TARGET,
                            bench_job.mine + BENCH_SOURCE, nbytes, 0);
}

/* ---- plain loops ---- */

static inline __attribute__((always_inline)) void loop(char *to, const char *from, size_t size,
                                                       long count)
{
    for (long i = 0; is_rank_0() && i < count; i++) {
        for (size_t k = 0; k < pieces(size); k++)
            memcpy(to + 2 * k * size, from + 2 * k * size, size);
        __asm__ volatile("" : : : "memory");
    }
}

/* The compiler knows the size where it would know it in a client's loop. */
static void loop_of(char *to, const char *from, size_t nbytes, long count)
{
    if (nbytes == 8)
        loop(to, from, 8, count);
    else if (nbytes == 64)
        loop(to, from, 64, count);
    else
        loop(to, from, nbytes, count);
}

static void put_loop(size_t nbytes, long count)
{
    loop_of(mapped + BENCH_TARGET, bench_job.mine + BENCH_SOURCE, nbytes, count);
}

static void get_loop(size_t nbytes, long count)
{
    loop_of(bench_job.mine + BENCH_SOURCE, mapped + BENCH_TARGET, nbytes, count);
}

static void list_loop(size_t nbytes, long count)
{
    fill_lists(nbytes);
    for (long i = 0; is_rank_0() && i < count; i++) {
        for (size_t k = 0; k < pieces(nbytes); k++)
            memcpy(packed[k], here[k], nbytes == 64 ? 64 : nbytes);
        __asm__ volatile("" : : : "memory");
    }
}

/* ---- the cases ---- */

struct bench_case bench_cases[bench_cases_max];

static const struct bench_case network[] = {
    {"strided put", "puts", put_strided, put_each, BENCH_US, 8, 0, 0},
    {"strided put", "puts", put_strided, put_each, BENCH_US, 64, 0.2, 0},
    {"strided put", "puts", put_strided, put_each, BENCH_US, 256, 0, 0},
    {"strided put", "puts", put_strided, put_each, BENCH_US, 1024, 0, 0},
    {"strided put", "puts", put_strided, put_each, BENCH_US, 2048, 0, 0},
    {"strided put", "puts", put_strided, put_each, BENCH_US, 4096, 0, 0},
    {"strided put", "puts", put_strided, put_each, BENCH_US, 8192, 0, 0},
    {"strided put", "puts", put_strided, put_each, BENCH_US, 32768, 0, 0},
    {"strided get", "gets", get_strided, get_each, BENCH_US, 8, 0, 0},
    {"strided get", "gets", get_strided, get_each, BENCH_US, 64, 0.2, 0},
    {"strided get", "gets", get_strided, get_each, BENCH_US, 1024, 0, 0},
    {"strided get", "gets", get_strided, get_each, BENCH_US, 4096, 0, 0},
    {"strided get", "gets", get_strided, get_each, BENCH_US, 32768, 0, 0},
    {"indexed put", "puts", put_indexed, put_each, BENCH_US, 8, 0, 0},
    {"indexed put", "puts", put_indexed, put_each, BENCH_US, 64, 0.2, 0},
    {"put to a block", "puts", put_whole, put_each, BENCH_US, 64, 0, 0},
    {"put to a block", "puts", put_whole, put_each, BENCH_US, 1024, 0, 0},
    {"put to a block", "puts", put_whole, put_each, BENCH_US, 4096, 0, 0},
    {"put to a block", "puts", put_whole, put_each, BENCH_US, 16384, 0, 0},
    {"get of a block", "gets", get_whole, get_each, BENCH_US, 64, 0, 0},
    {"get of a block", "gets", get_whole, get_each, BENCH_US, 4096, 0, 0},
    {"memset", "put", fill, put_once, BENCH_US, 1024, 0, 0},
    {"memset", "put", fill, put_once, BENCH_US, 4096, 0, 0},
    {"memset", "put", fill, put_once, BENCH_US, 65536, 0, 0},
    {"memset", "put", fill, put_once, BENCH_US, 1 << 20, 0, 0},
};

static const struct bench_case neighbours[] = {
    {"strided put", "loop", put_strided, put_loop, BENCH_US, 8, 0, 0},
    {"strided put", "loop", put_strided, put_loop, BENCH_US, 64, 1.3, 0},
    {"strided put", "loop", put_strided, put_loop, BENCH_US, 1024, 0, 0},
    {"strided get", "loop", get_strided, get_loop, BENCH_US, 8, 0, 0},
    {"strided get", "loop", get_strided, get_loop, BENCH_US, 64, 1.3, 0},
    {"indexed put", "loop", put_indexed, list_loop, BENCH_US, 8, 0, 0},
    {"indexed put", "loop", put_indexed, list_loop, BENCH_US, 64, 1.3, 0},
};

int bench_cases_fill(void)
{
    void *owner, *local = NULL;
    uintptr_t size;
    gex_Event_Wait(
        gex_EP_QueryBoundSegmentNB(bench_job.tm, bench_job.peer, &owner, &local, &size, 0));
    mapped = local;
    size_t count =
        mapped ? sizeof(neighbours) / sizeof(*neighbours) : sizeof(network) / sizeof(*network);
    memcpy(bench_cases, mapped ? neighbours : network, count * sizeof(*bench_cases));
    return (int)count;
}

/* This benchmark opens no raw queue pair. */
void bench_raw_open(const char *port)
{
    if (port)
        bench_die("--port has no meaning here");
    bench_pin();
}

const char *bench_raw_describe(void)
{
    return mapped ? "1000 pieces between neighbours, beside plain loops"
                  : "1000 pieces, at most 2 MiB, over the network, beside single puts and gets";
}

void bench_raw_close(void)
{
}
