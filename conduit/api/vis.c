/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_VIS_*: checks of arguments, then one call down. No state, no lock. */
#include "config.h"

#include "api/check.h"
#include "base/bits.h"
#include "gasnet_vis.h"
#include "team/objects.h"
#include "trace/trace.h"
#include "vector/vector.h"

_Static_assert((int)GEX_VIS_MAX_PEERCOMPLETION == (int)tk_vector_notice_max, "one limit");

/* As for contiguous transfers: either endpoint may be other than endpoint 0. */
static void set_endpoints(struct tk_vector_call *v, gex_TM_t tm, gex_Rank_t rank)
{
    const struct tk_bound remote = tk_bound_by(tm, rank);
    const struct trunkline_ep *local = tk_team_ep(tm);
    v->endpoint = remote.endpoint;
    if (local == &tk_ep && remote.endpoint == 0)
        return;
    v->is_pair = true;
    v->remote_keys = remote.keys;
    v->home = local->segment ? &local->segment->region : NULL;
    v->kinds.local = local->segment ? local->segment->kind_memory : NULL;
    v->kinds.remote = remote.kind;
    v->has_device = v->kinds.local || v->kinds.remote;
}

static void set_peer(const char *call, struct tk_vector_call *v, gex_TM_t tm, gex_Rank_t rank,
                     bool is_put, gex_Flags_t flags)
{
    (void)call;
    TK_CHECK_MAY_COMMUNICATE(call);
    TK_CHECK_TM(call, tm);
    TK_CHECK_RANK(call, tm, rank);
    v->peer = tk_peer_of(tm, rank);
    v->is_put = is_put;
    v->wants_leaf = is_put && flags & GEX_FLAG_ENABLE_LEAF_LC;
    v->is_box = v->is_pair = v->is_empty = v->has_device = false;
    v->endpoint = 0;
    v->remote_keys = NULL;
    v->home = NULL;
    if (!tk_team_peers(tm))
        set_endpoints(v, tm, rank);
}

struct bounds {
    const char *call;
    struct tk_bound bound;
    uint32_t rank;
};

static bool check_range(void *context, const char *at, size_t nbytes)
{
    const struct bounds *b = context;
    TK_CHECK(tk_bound_has(&b->bound, (uintptr_t)at, nbytes),
             "%s: [%p, +%zu) is not inside the segment of rank %u", b->call, (const void *)at,
             nbytes, b->rank);
    (void)b, (void)at, (void)nbytes;
    return true;
}

static void check_remote(const char *call, const struct tk_vector_call *v,
                         const struct tk_stream *remote)
{
    struct bounds b = {
        .call = call, .bound = tk_bound_of(v->peer->rank, v->endpoint), .rank = v->peer->rank};
    if (TK_IS_DEBUG)
        tk_stream_ranges(remote, check_range, &b);
}

/* ---- the three forms; false: nothing to do ---- */

/* A peer completion handler belongs to the next put, also to one that moves nothing: left armed, it
 * would run at the target of a later one. */
static bool set_empty(struct tk_vector_call *v)
{
    v->is_empty = v->is_put && tk_vector_is_armed();
    return v->is_empty;
}

static bool set_lists(const char *call, struct tk_vector_call *v, size_t to, size_t from)
{
    tk_if_unlikely(to != from)
        tk_panic("%s: the destination has %zu bytes, the source %zu", call, to, from);
    if (to == 0)
        return set_empty(v);
    check_remote(call, v, &v->remote);
    return true;
}

static bool set_vector(const char *call, struct tk_vector_call *v, size_t dstcount,
                       const gex_Memvec_t *dstlist, size_t srccount, const gex_Memvec_t *srclist)
{
    struct tk_stream *to = v->is_put ? &v->remote : &v->local;
    struct tk_stream *from = v->is_put ? &v->local : &v->remote;
    tk_stream_vector(to, dstcount, dstlist);
    tk_stream_vector(from, srccount, srclist);
    return set_lists(call, v, tk_stream_bytes(to), tk_stream_bytes(from));
}

static bool set_indexed(const char *call, struct tk_vector_call *v, size_t dstcount,
                        void *const *dstlist, size_t dstlen, size_t srccount, void *const *srclist,
                        size_t srclen)
{
    struct tk_stream *to = v->is_put ? &v->remote : &v->local;
    struct tk_stream *from = v->is_put ? &v->local : &v->remote;
    tk_stream_indexed(to, dstcount, dstlist, dstlen);
    tk_stream_indexed(from, srccount, srclist, srclen);
    return set_lists(call, v, tk_stream_bytes(to), tk_stream_bytes(from));
}

static bool set_strided(const char *call, struct tk_vector_call *v, const struct tk_strided *what)
{
    if (!tk_box_open(&v->box, what))
        return set_empty(v);
    v->is_box = true;
    if (TK_IS_DEBUG) {
        tk_stream_box(&v->remote, &v->box, v->is_put);
        check_remote(call, v, &v->remote);
        tk_stream_close(&v->remote);
    }
    return true;
}

/* ---- the calls ---- */

#define STRIDED                                                                                    \
    &(const struct tk_strided)                                                                     \
    {                                                                                              \
        dstaddr, dststrides, srcaddr, srcstrides, elemsz, count, stridelevels                      \
    }

/* ---- Vector ---- */

gex_Event_t gex_VIS_VectorPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                gex_Memvec_t const dstlist[], size_t srccount,
                                gex_Memvec_t const srclist[], gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_VectorPutNB", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    return set_vector("gex_VIS_VectorPutNB", &v, dstcount, dstlist, srccount, srclist)
               ? tk_vector_start(&v)
               : GEX_EVENT_INVALID;
}

int gex_VIS_VectorPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                         gex_Memvec_t const dstlist[], size_t srccount,
                         gex_Memvec_t const srclist[], gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_VectorPutNBI", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_vector("gex_VIS_VectorPutNBI", &v, dstcount, dstlist, srccount, srclist))
        tk_vector_implicit(&v);
    return 0;
}

int gex_VIS_VectorPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                              gex_Memvec_t const dstlist[], size_t srccount,
                              gex_Memvec_t const srclist[], gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_VectorPutBlocking", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_vector("gex_VIS_VectorPutBlocking", &v, dstcount, dstlist, srccount, srclist))
        tk_vector_blocking(&v);
    return 0;
}

gex_Event_t gex_VIS_VectorGetNB(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                                gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                                gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_VectorGetNB", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    return set_vector("gex_VIS_VectorGetNB", &v, dstcount, dstlist, srccount, srclist)
               ? tk_vector_start(&v)
               : GEX_EVENT_INVALID;
}

int gex_VIS_VectorGetNBI(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                         gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                         gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_VectorGetNBI", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_vector("gex_VIS_VectorGetNBI", &v, dstcount, dstlist, srccount, srclist))
        tk_vector_implicit(&v);
    return 0;
}

int gex_VIS_VectorGetBlocking(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                              gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                              gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_VectorGetBlocking", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_vector("gex_VIS_VectorGetBlocking", &v, dstcount, dstlist, srccount, srclist))
        tk_vector_blocking(&v);
    return 0;
}

/* ---- Indexed ---- */

gex_Event_t gex_VIS_IndexedPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                 void *const dstlist[], size_t dstlen, size_t srccount,
                                 void *const srclist[], size_t srclen, gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_IndexedPutNB", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    return set_indexed("gex_VIS_IndexedPutNB", &v, dstcount, dstlist, dstlen, srccount, srclist,
                       srclen)
               ? tk_vector_start(&v)
               : GEX_EVENT_INVALID;
}

int gex_VIS_IndexedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount, void *const dstlist[],
                          size_t dstlen, size_t srccount, void *const srclist[], size_t srclen,
                          gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_IndexedPutNBI", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_indexed("gex_VIS_IndexedPutNBI", &v, dstcount, dstlist, dstlen, srccount, srclist,
                    srclen))
        tk_vector_implicit(&v);
    return 0;
}

int gex_VIS_IndexedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                               void *const dstlist[], size_t dstlen, size_t srccount,
                               void *const srclist[], size_t srclen, gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_IndexedPutBlocking", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_indexed("gex_VIS_IndexedPutBlocking", &v, dstcount, dstlist, dstlen, srccount, srclist,
                    srclen))
        tk_vector_blocking(&v);
    return 0;
}

gex_Event_t gex_VIS_IndexedGetNB(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                                 gex_Rank_t srcrank, size_t srccount, void *const srclist[],
                                 size_t srclen, gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_IndexedGetNB", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    return set_indexed("gex_VIS_IndexedGetNB", &v, dstcount, dstlist, dstlen, srccount, srclist,
                       srclen)
               ? tk_vector_start(&v)
               : GEX_EVENT_INVALID;
}

int gex_VIS_IndexedGetNBI(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                          gex_Rank_t srcrank, size_t srccount, void *const srclist[], size_t srclen,
                          gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_IndexedGetNBI", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_indexed("gex_VIS_IndexedGetNBI", &v, dstcount, dstlist, dstlen, srccount, srclist,
                    srclen))
        tk_vector_implicit(&v);
    return 0;
}

int gex_VIS_IndexedGetBlocking(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                               gex_Rank_t srcrank, size_t srccount, void *const srclist[],
                               size_t srclen, gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_IndexedGetBlocking", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_indexed("gex_VIS_IndexedGetBlocking", &v, dstcount, dstlist, dstlen, srccount, srclist,
                    srclen))
        tk_vector_blocking(&v);
    return 0;
}

/* ---- Strided ---- */

gex_Event_t gex_VIS_StridedPutNB(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                                 const ptrdiff_t dststrides[], void *srcaddr,
                                 const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                                 size_t stridelevels, gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_StridedPutNB", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    return set_strided("gex_VIS_StridedPutNB", &v, STRIDED) ? tk_vector_start(&v)
                                                            : GEX_EVENT_INVALID;
}

int gex_VIS_StridedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                          const ptrdiff_t dststrides[], void *srcaddr, const ptrdiff_t srcstrides[],
                          size_t elemsz, const size_t count[], size_t stridelevels,
                          gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_StridedPutNBI", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_strided("gex_VIS_StridedPutNBI", &v, STRIDED))
        tk_vector_implicit(&v);
    return 0;
}

int gex_VIS_StridedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                               const ptrdiff_t dststrides[], void *srcaddr,
                               const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                               size_t stridelevels, gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_StridedPutBlocking", &v, tm, dstrank, true, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_strided("gex_VIS_StridedPutBlocking", &v, STRIDED))
        tk_vector_blocking(&v);
    return 0;
}

gex_Event_t gex_VIS_StridedGetNB(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                                 gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                                 size_t elemsz, const size_t count[], size_t stridelevels,
                                 gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_StridedGetNB", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    return set_strided("gex_VIS_StridedGetNB", &v, STRIDED) ? tk_vector_start(&v)
                                                            : GEX_EVENT_INVALID;
}

int gex_VIS_StridedGetNBI(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                          gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                          size_t elemsz, const size_t count[], size_t stridelevels,
                          gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_StridedGetNBI", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_strided("gex_VIS_StridedGetNBI", &v, STRIDED))
        tk_vector_implicit(&v);
    return 0;
}

int gex_VIS_StridedGetBlocking(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                               gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                               size_t elemsz, const size_t count[], size_t stridelevels,
                               gex_Flags_t flags)
{
    struct tk_vector_call v;
    set_peer("gex_VIS_StridedGetBlocking", &v, tm, srcrank, false, flags);
    TK_TRACED(vector, v.peer->rank, 0);
    if (set_strided("gex_VIS_StridedGetBlocking", &v, STRIDED))
        tk_vector_blocking(&v);
    return 0;
}

/* ---- completion at the peer ---- */

void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source_addr,
                                      size_t nbytes, gex_Flags_t flags)
{
    (void)flags;
    tk_if_unlikely(handler && handler < GEX_AM_INDEX_BASE) tk_panic(
        "gex_VIS_SetPeerCompletionHandler: handler %u belongs to the library; clients have "
        "%d..255",
        (unsigned)handler, GEX_AM_INDEX_BASE);
    tk_if_unlikely(handler && nbytes > GEX_VIS_MAX_PEERCOMPLETION)
        tk_panic("gex_VIS_SetPeerCompletionHandler: %zu bytes are more than the limit %d", nbytes,
                 GEX_VIS_MAX_PEERCOMPLETION);
    tk_vector_arm(handler, source_addr, handler ? nbytes : 0);
}
