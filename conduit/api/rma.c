/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_RMA_*. */
#include "config.h"

#include "api/check.h"
#include "base/bits.h"
#include "rma/rma.h"
#include "team/objects.h"

static void check(const char *call, const struct tk_transfer *t)
{
    (void)call, (void)t;
    TK_CHECK_MAY_COMMUNICATE(call);
    TK_CHECK(t->rma.is_pair || tk_peer_has(t->peer, t->rma.remote, t->rma.nbytes),
             "%s: [%p, +%zu) is not inside the segment of rank %u", call, (void *)t->rma.remote,
             t->rma.nbytes, t->peer->rank);
}

/* The same for what has no struct to look at. */
#define CHECK_RANGE(call, tm, rank, address, nbytes)                                               \
    TK_CHECK_MAY_COMMUNICATE(call);                                                                \
    TK_CHECK_RANK(call, rank);                                                                     \
    TK_CHECK(tk_peer_has(tk_peer_of(tm, rank), (uintptr_t)(address), nbytes),                      \
             "%s: [%p, +%zu) is not inside the segment of rank %u", call, address,                 \
             (size_t)(nbytes), (unsigned)(rank))

#define CHECK_VALUE(call, nbytes)                                                                  \
    TK_CHECK((nbytes) >= 1 && (nbytes) <= SIZEOF_GEX_RMA_VALUE_T,                                  \
             "%s: a value has 1 to %d bytes, not %zu", call, SIZEOF_GEX_RMA_VALUE_T,               \
             (size_t)(nbytes))

/* Between endpoints of which one is not endpoint 0, or may not be. */
static void use_pair(struct tk_transfer *t, gex_TM_t pair)
{
    const struct tk_bound remote = tk_bound_of(t->peer->rank, tk_pair_remote(pair));
    const struct trunkline_ep *local = tk_ep_at(tk_pair_local(pair));
    TK_CHECK(tk_bound_has(&remote, t->rma.remote, t->rma.nbytes),
             "%s: [%p, +%zu) is not inside the segment of endpoint %u of rank %u, as far as it is "
             "known here",
             t->rma.is_put ? "gex_RMA_Put" : "gex_RMA_Get", (void *)t->rma.remote, t->rma.nbytes,
             tk_pair_remote(pair), t->peer->rank);
    t->rma.is_pair = true;
    t->rma.endpoint = tk_pair_remote(pair);
    t->rma.remote_key = remote.key;
    t->rma.home = local->segment ? &local->segment->region : NULL;
}

static struct tk_transfer transfer(gex_TM_t tm, gex_Rank_t rank, bool is_put, void *remote,
                                   void *local, size_t nbytes, gex_Flags_t flags)
{
    TK_CHECK_RANK(is_put ? "gex_RMA_Put" : "gex_RMA_Get", rank);
    struct tk_transfer t = {
        .peer = tk_peer_of(tm, rank),
        .rma = {.remote = (uintptr_t)remote, .local = local, .nbytes = nbytes, .is_put = is_put},
        .immediate = flags & GEX_FLAG_IMMEDIATE};
    tk_if_unlikely(tk_is_pair(tm)) use_pair(&t, tm);
    return t;
}

int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    tk_if_likely(!tk_is_pair(tm))
    {
        CHECK_RANGE("gex_RMA_PutBlocking", tm, rank, dest, nbytes);
        return tk_put_blocking(tk_peer_of(tm, rank), dest, src, nbytes, flags);
    }
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
    TK_CHECK(lc_opt != NULL && lc_opt != GEX_EVENT_GROUP,
             "gex_RMA_PutNB: lc_opt must be GEX_EVENT_NOW, GEX_EVENT_DEFER or an event's address");
    tk_if_likely(!tk_is_pair(tm))
    {
        CHECK_RANGE("gex_RMA_PutNB", tm, rank, dest, nbytes);
        return tk_put_start(tk_peer_of(tm, rank), dest, src, nbytes, lc_opt, flags);
    }
    struct tk_transfer t = transfer(tm, rank, true, dest, (void *)src, nbytes, flags);
    check("gex_RMA_PutNB", &t);
    return tk_transfer_start(&t, lc_opt);
}

gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                          gex_Flags_t flags)
{
    struct tk_transfer t = transfer(tm, rank, false, src, dest, nbytes, flags);
    check("gex_RMA_GetNB", &t);
    return tk_transfer_start(&t, GEX_EVENT_DEFER);
}

int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                   gex_Event_t *lc_opt, gex_Flags_t flags)
{
    TK_CHECK(lc_opt == GEX_EVENT_NOW || lc_opt == GEX_EVENT_DEFER || lc_opt == GEX_EVENT_GROUP,
             "gex_RMA_PutNBI: lc_opt must be GEX_EVENT_NOW, GEX_EVENT_DEFER or GEX_EVENT_GROUP");
    tk_if_likely(!tk_is_pair(tm))
    {
        CHECK_RANGE("gex_RMA_PutNBI", tm, rank, dest, nbytes);
        return tk_put_implicit(tk_peer_of(tm, rank), dest, src, nbytes, lc_opt, flags);
    }
    struct tk_transfer t = transfer(tm, rank, true, dest, (void *)src, nbytes, flags);
    check("gex_RMA_PutNBI", &t);
    return tk_transfer_implicit(&t, lc_opt);
}

int gex_RMA_GetNBI(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                   gex_Flags_t flags)
{
    struct tk_transfer t = transfer(tm, rank, false, src, dest, nbytes, flags);
    check("gex_RMA_GetNBI", &t);
    return tk_transfer_implicit(&t, GEX_EVENT_DEFER);
}

/* Where the low-order bytes of a value lie; all processes of a job have one byte order. */
static void *low_bytes(gex_RMA_Value_t *value, size_t nbytes)
{
    static const union {
        uint16_t number;
        uint8_t first;
    } order = {.number = 1};
    return (char *)value + (order.first ? 0 : sizeof(*value) - nbytes);
}

int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                           size_t nbytes, gex_Flags_t flags)
{
    CHECK_VALUE("gex_RMA_PutBlockingVal", nbytes);
    return gex_RMA_PutBlocking(tm, rank, dest, low_bytes(&value, nbytes), nbytes, flags);
}

int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                      size_t nbytes, gex_Flags_t flags)
{
    CHECK_VALUE("gex_RMA_PutNBIVal", nbytes);
    return gex_RMA_PutNBI(tm, rank, dest, low_bytes(&value, nbytes), nbytes, GEX_EVENT_NOW, flags);
}

gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                             size_t nbytes, gex_Flags_t flags)
{
    CHECK_VALUE("gex_RMA_PutNBVal", nbytes);
    return gex_RMA_PutNB(tm, rank, dest, low_bytes(&value, nbytes), nbytes, GEX_EVENT_NOW, flags);
}

/* There is no way to say "nothing was done" here. */
gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *src, size_t nbytes,
                                       gex_Flags_t flags)
{
    gex_RMA_Value_t value = 0;
    CHECK_VALUE("gex_RMA_GetBlockingVal", nbytes);
    gex_RMA_GetBlocking(tm, low_bytes(&value, nbytes), rank, src, nbytes,
                        flags & ~(gex_Flags_t)GEX_FLAG_IMMEDIATE);
    return value;
}
