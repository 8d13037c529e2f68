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
    TK_CHECK(
        t->nbytes == 0 ||
            ((uintptr_t)t->remote - t->peer->segment_base <= t->peer->segment_size &&
             t->nbytes <= t->peer->segment_size - ((uintptr_t)t->remote - t->peer->segment_base)),
        "%s: [%p, +%zu) is not inside the segment of rank %u", call, t->remote, t->nbytes,
        t->peer->rank);
}

static struct tk_transfer put_of(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
                                 size_t nbytes, gex_Flags_t flags)
{
    TK_CHECK_RANK("gex_RMA_Put", rank);
    return (struct tk_transfer){.peer = tk_peer_of(tm, rank),
                                .remote = dest,
                                .local = (void *)src,
                                .nbytes = nbytes,
                                .is_put = true,
                                .immediate = flags & GEX_FLAG_IMMEDIATE};
}

static struct tk_transfer get_of(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                                 gex_Flags_t flags)
{
    TK_CHECK_RANK("gex_RMA_Get", rank);
    return (struct tk_transfer){.peer = tk_peer_of(tm, rank),
                                .remote = src,
                                .local = dest,
                                .nbytes = nbytes,
                                .immediate = flags & GEX_FLAG_IMMEDIATE};
}

int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    struct tk_transfer t = put_of(tm, rank, dest, src, nbytes, flags);
    check("gex_RMA_PutBlocking", &t);
    return tk_transfer_blocking(&t);
}

int gex_RMA_GetBlocking(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    struct tk_transfer t = get_of(tm, dest, rank, src, nbytes, flags);
    check("gex_RMA_GetBlocking", &t);
    return tk_transfer_blocking(&t);
}

gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                          gex_Event_t *lc_opt, gex_Flags_t flags)
{
    struct tk_transfer t = put_of(tm, rank, dest, src, nbytes, flags);
    check("gex_RMA_PutNB", &t);
    TK_CHECK(lc_opt != NULL, "gex_RMA_PutNB: lc_opt must not be NULL");
    return tk_transfer_start(&t, lc_opt);
}

gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                          gex_Flags_t flags)
{
    struct tk_transfer t = get_of(tm, dest, rank, src, nbytes, flags);
    check("gex_RMA_GetNB", &t);
    return tk_transfer_start(&t, GEX_EVENT_DEFER);
}
