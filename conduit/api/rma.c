/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_RMA_*. */
#include "config.h"

#include "api/check.h"
#include "rma/rma.h"
#include "team/objects.h"

static void check(const char *call, const struct tk_transfer *t)
{
    (void)call, (void)t;
    TK_CHECK_MAY_COMMUNICATE(call);
    TK_CHECK(tk_peer_has(t->peer, t->rma.remote, t->rma.nbytes),
             "%s: [%p, +%zu) is not inside the segment of rank %u", call, (void *)t->rma.remote,
             t->rma.nbytes, t->peer->rank);
}

static struct tk_transfer transfer(gex_TM_t tm, gex_Rank_t rank, bool is_put, void *remote,
                                   void *local, size_t nbytes, gex_Flags_t flags)
{
    TK_CHECK_RANK(is_put ? "gex_RMA_Put" : "gex_RMA_Get", rank);
    return (struct tk_transfer){
        .peer = tk_peer_of(tm, rank),
        .rma = {.remote = (uintptr_t)remote, .local = local, .nbytes = nbytes, .is_put = is_put},
        .immediate = flags & GEX_FLAG_IMMEDIATE};
}

int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    struct tk_transfer t = transfer(tm, rank, true, dest, (void *)src, nbytes, flags);
    check("gex_RMA_PutBlocking", &t);
    return tk_transfer_blocking(&t);
}

int gex_RMA_GetBlocking(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    struct tk_transfer t = transfer(tm, rank, false, src, dest, nbytes, flags);
    check("gex_RMA_GetBlocking", &t);
    return tk_transfer_blocking(&t);
}

gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                          gex_Event_t *lc_opt, gex_Flags_t flags)
{
    struct tk_transfer t = transfer(tm, rank, true, dest, (void *)src, nbytes, flags);
    check("gex_RMA_PutNB", &t);
    TK_CHECK(lc_opt != NULL, "gex_RMA_PutNB: lc_opt must not be NULL");
    return tk_transfer_start(&t, lc_opt);
}

gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                          gex_Flags_t flags)
{
    struct tk_transfer t = transfer(tm, rank, false, src, dest, nbytes, flags);
    check("gex_RMA_GetNB", &t);
    return tk_transfer_start(&t, GEX_EVENT_DEFER);
}
