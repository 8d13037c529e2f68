/* SPDX-License-Identifier: BSD-3-Clause */
/* Small transfers between neighbours, of a size that the compiler does not know: one after the
 * other, each complete before the next begins, and implicit ones, which are waited for together.
 * Rank 1 only waits in the barrier that follows. */
#include "config.h"

#include "bench.h"

enum { peer = 1 }; /* only rank 0 measures */

/* SMALL(NAME, CALL, AFTER): rank 0 does CALL `count` times, then AFTER. What the loop needs are a
 * few local variables and a constant rank, so that all of them fit into registers. */
#define SMALL(name, call, after)                                                                   \
    void name(size_t nbytes, long count)                                                           \
    {                                                                                              \
        const gex_TM_t tm = bench_job.tm;                                                          \
        char *remote = bench_job.theirs + BENCH_TARGET, *local = bench_job.mine + BENCH_SOURCE;    \
        size_t at = 0;                                                                             \
        uint64_t sum = 0;                                                                          \
        for (long left = bench_job.me == 0 ? count : 0; left > 0; left--) {                        \
            call;                                                                                  \
            at = BENCH_NEXT(at);                                                                   \
        }                                                                                          \
        if (bench_job.me == 0)                                                                     \
            after;                                                                                 \
        __asm__ __volatile__("" : : "r"(sum), "r"(local));                                         \
    }

SMALL(nbrhd_put_blocking, gex_RMA_PutBlocking(tm, peer, remote + at, local + at, nbytes, 0),
      (void)0)
SMALL(nbrhd_get_blocking, gex_RMA_GetBlocking(tm, local + at, peer, remote + at, nbytes, 0),
      (void)0)
SMALL(nbrhd_put_nb,
      gex_Event_Wait(gex_RMA_PutNB(tm, peer, remote + at, local + at, nbytes, GEX_EVENT_NOW, 0)),
      (void)0)
SMALL(nbrhd_get_nb, gex_Event_Wait(gex_RMA_GetNB(tm, local + at, peer, remote + at, nbytes, 0)),
      (void)0)
SMALL(nbrhd_put_nbi, gex_RMA_PutNBI(tm, peer, remote + at, local + at, nbytes, GEX_EVENT_NOW, 0),
      gex_NBI_Wait(GEX_EC_PUT, 0))
SMALL(nbrhd_get_nbi, gex_RMA_GetNBI(tm, local + at, peer, remote + at, nbytes, 0),
      gex_NBI_Wait(GEX_EC_GET, 0))
SMALL(nbrhd_put_val,
      gex_RMA_PutBlockingVal(tm, peer, remote + at, (gex_RMA_Value_t)left, nbytes, 0), (void)0)
SMALL(nbrhd_put_nb_val,
      gex_Event_Wait(gex_RMA_PutNBVal(tm, peer, remote + at, (gex_RMA_Value_t)left, nbytes, 0)),
      (void)0)
SMALL(nbrhd_put_nbi_val, gex_RMA_PutNBIVal(tm, peer, remote + at, (gex_RMA_Value_t)left, nbytes, 0),
      gex_NBI_Wait(GEX_EC_PUT, 0))
SMALL(nbrhd_get_val, sum += gex_RMA_GetBlockingVal(tm, peer, remote + at, nbytes, 0), (void)0)
