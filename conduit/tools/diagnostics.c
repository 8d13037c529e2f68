/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that only a conduit's library has: internal self-tests, of which there are none, and a
 * mapping of pages. No state. */
#include "config.h"

#include <sys/mman.h>

#include "tools/public.h"

int gasnett_run_diagnostics(int iters, int threadcnt, const char *testsections, gex_TM_t myteam,
                            void *myseg, gex_Rank_t peer, void *peerseg)
{
    GASNETT_UNUSED_ARGS7(iters, threadcnt, testsections, myteam, myseg, peer, peerseg);
    return 0;
}

void gasnett_diagnostic_gethandlers(gex_AM_Entry_t **htable, int *htable_cnt)
{
    static gex_AM_Entry_t none;
    *htable = &none;
    *htable_cnt = 0;
}

void *gasnett_mmap(uintptr_t segsize)
{
    return mmap(NULL, segsize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
