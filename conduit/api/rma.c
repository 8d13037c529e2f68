/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_RMA_*. No state, no lock. Puts and gets between endpoints 0 are inlined down to the
 * transport, if the team's job ranks are a range. */
#include "config.h"

#include "api/check.h"
#include "base/bits.h"
#include "base/copy.h"
#include "kind_rma/kind_rma.h"
#include "rma/rma.h"
#include "team/objects.h"
#include "trace/trace.h"

/* The rank is not checked yet. */
#define TRACED(id, tm, rank, nbytes)                                                               \
    TK_TRACED(id, (rank) < tk_team_size(tm) ? tk_peer_of(tm, rank)->rank : tk_trace_no_peer, nbytes)

#define CHECK_RANGE(call, tm, rank, address, nbytes)                                               \
    TK_CHECK_MAY_COMMUNICATE(call);                                                                \
    TK_CHECK_RANK(call, tm, rank);                                                                 \
    TK_CHECK(tk_peer_has(tk_peer_of(tm, rank), (uintptr_t)(address), nbytes),                      \
             "%s: [%p, +%zu) is not inside the segment of rank %u", call, address,                 \
             (size_t)(nbytes), (unsigned)(rank))

#define CHECK_VALUE(call, nbytes)                                                                  \
    TK_CHECK((nbytes) >= 1 && (nbytes) <= SIZEOF_GEX_RMA_VALUE_T,                                  \
             "%s: a value has 1 to %d bytes, not %zu", call, SIZEOF_GEX_RMA_VALUE_T,               \
             (size_t)(nbytes))

/* What a call transfers. The local end of a value is this library's, and lies on the stack. */
enum what { GET, PUT, GET_VALUE, PUT_VALUE };

/* Either endpoint may be other than endpoint 0. */
static void use_endpoints(const char *call, struct tk_kind_transfer *k, gex_TM_t tm,
                          gex_Rank_t rank, enum what what)
{
    (void)call;
    struct tk_rma *rma = &k->t.rma;
    const struct tk_bound remote = tk_bound_by(tm, rank);
    const struct trunkline_ep *local = tk_team_ep(tm);
    TK_CHECK(tk_bound_has(&remote, rma->remote, rma->nbytes),
             "%s: [%p, +%zu) is not inside the segment of endpoint %u of rank %u, as far as it is "
             "known here",
             call, (void *)rma->remote, rma->nbytes, (unsigned)remote.endpoint, rank);
    if (local == &tk_ep && remote.endpoint == 0)
        return;
    rma->is_pair = true;
    rma->endpoint = remote.endpoint;
    rma->remote_keys = remote.keys;
    rma->home = local->segment ? &local->segment->region : NULL;
    if (local->segment && what < GET_VALUE)
        k->local = local->segment->kind_memory;
    k->remote = remote.kind;
    TK_CHECK(!k->local || rma->nbytes == 0 || tk_region_holds(rma->home, rma->local, rma->nbytes),
             "%s: [%p, +%zu) is not inside the device segment of the local endpoint %u", call,
             (void *)rma->local, rma->nbytes, (unsigned)local->index);
}

/* For pairs, and teams of any kind but the simplest. Out of line, so that the path of the simplest
 * needs no stack space for a transfer. */
static struct tk_kind_transfer __attribute__((noinline))
between(const char *call, gex_TM_t tm, gex_Rank_t rank, enum what what, void *remote, void *local,
        size_t nbytes, gex_Flags_t flags)
{
    (void)call;
    TK_CHECK_MAY_COMMUNICATE(call);
    TK_CHECK_RANK(call, tm, rank);
    struct tk_kind_transfer k = {.t = {.peer = tk_peer_of(tm, rank),
                                       .rma = {.remote = (uintptr_t)remote,
                                               .local = local,
                                               .nbytes = nbytes,
                                               .is_put = what == PUT || what == PUT_VALUE,
                                               .immediate = flags & GEX_FLAG_IMMEDIATE}}};
    use_endpoints(call, &k, tm, rank, what);
    return k;
}

static inline bool is_of_kinds(struct tk_kind_transfer *k)
{
    return (k->local || k->remote) && !tk_kind_is_plain_put(k);
}

static int __attribute__((noinline))
team_blocking(const char *call, gex_TM_t tm, gex_Rank_t rank, enum what what, void *remote,
              void *local, size_t nbytes, gex_Flags_t flags)
{
    struct tk_kind_transfer k = between(call, tm, rank, what, remote, local, nbytes, flags);
    return is_of_kinds(&k) ? tk_kind_blocking(&k) : tk_transfer_blocking(&k.t);
}

static gex_Event_t __attribute__((noinline))
team_start(const char *call, gex_TM_t tm, gex_Rank_t rank, enum what what, void *remote,
           void *local, size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    struct tk_kind_transfer k = between(call, tm, rank, what, remote, local, nbytes, flags);
    return is_of_kinds(&k) ? tk_kind_start(&k, lc_opt) : tk_transfer_start(&k.t, lc_opt);
}

static int __attribute__((noinline))
team_implicit(const char *call, gex_TM_t tm, gex_Rank_t rank, enum what what, void *remote,
              void *local, size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    struct tk_kind_transfer k = between(call, tm, rank, what, remote, local, nbytes, flags);
    return is_of_kinds(&k) ? tk_kind_implicit(&k, lc_opt) : tk_transfer_implicit(&k.t, lc_opt);
}

/* ---- Puts ---- */

#define CHECK_LC_NB(call, lc_opt)                                                                  \
    TK_CHECK((lc_opt) != NULL && (lc_opt) != GEX_EVENT_GROUP,                                      \
             "%s: lc_opt must be GEX_EVENT_NOW, GEX_EVENT_DEFER or an event's address", call)

#define CHECK_LC_NBI(call, lc_opt)                                                                 \
    TK_CHECK((lc_opt) == GEX_EVENT_NOW || (lc_opt) == GEX_EVENT_DEFER ||                           \
                 (lc_opt) == GEX_EVENT_GROUP,                                                      \
             "%s: lc_opt must be GEX_EVENT_NOW, GEX_EVENT_DEFER or GEX_EVENT_GROUP", call)

static inline int put_blocking(const char *call, enum what what, gex_TM_t tm, gex_Rank_t rank,
                               void *dest, const void *src, size_t nbytes, gex_Flags_t flags)
{
    TK_CHECK_TM(call, tm);
    TRACED(put, tm, rank, nbytes);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return team_blocking(call, tm, rank, what, dest, (void *)src, nbytes,
                                                flags);
    CHECK_RANGE(call, tm, rank, dest, nbytes);
    return tk_blocking(true, &peers[rank], dest, src, nbytes, flags);
}

int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    return put_blocking("gex_RMA_PutBlocking", PUT, tm, rank, dest, src, nbytes, flags);
}

static inline gex_Event_t put_start(const char *call, enum what what, gex_TM_t tm, gex_Rank_t rank,
                                    void *dest, const void *src, size_t nbytes, gex_Event_t *lc_opt,
                                    gex_Flags_t flags)
{
    TK_CHECK_TM(call, tm);
    TRACED(put_nb, tm, rank, nbytes);
    CHECK_LC_NB(call, lc_opt);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return team_start(call, tm, rank, what, dest, (void *)src, nbytes,
                                             lc_opt, flags);
    CHECK_RANGE(call, tm, rank, dest, nbytes);
    return tk_start(true, &peers[rank], dest, src, nbytes, lc_opt, flags);
}

gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                          gex_Event_t *lc_opt, gex_Flags_t flags)
{
    return put_start("gex_RMA_PutNB", PUT, tm, rank, dest, src, nbytes, lc_opt, flags);
}

static inline int put_implicit(const char *call, enum what what, gex_TM_t tm, gex_Rank_t rank,
                               void *dest, const void *src, size_t nbytes, gex_Event_t *lc_opt,
                               gex_Flags_t flags)
{
    TK_CHECK_TM(call, tm);
    TRACED(put_nbi, tm, rank, nbytes);
    CHECK_LC_NBI(call, lc_opt);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return team_implicit(call, tm, rank, what, dest, (void *)src, nbytes,
                                                lc_opt, flags);
    CHECK_RANGE(call, tm, rank, dest, nbytes);
    return tk_implicit(true, &peers[rank], dest, src, nbytes, lc_opt, flags);
}

int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                   gex_Event_t *lc_opt, gex_Flags_t flags)
{
    return put_implicit("gex_RMA_PutNBI", PUT, tm, rank, dest, src, nbytes, lc_opt, flags);
}

/* ---- Gets ---- */

static inline int get_blocking(const char *call, enum what what, gex_TM_t tm, void *dest,
                               gex_Rank_t rank, void *src, size_t nbytes, gex_Flags_t flags)
{
    TK_CHECK_TM(call, tm);
    TRACED(get, tm, rank, nbytes);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return team_blocking(call, tm, rank, what, src, dest, nbytes, flags);
    CHECK_RANGE(call, tm, rank, src, nbytes);
    return tk_blocking(false, &peers[rank], src, dest, nbytes, flags);
}

int gex_RMA_GetBlocking(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    return get_blocking("gex_RMA_GetBlocking", GET, tm, dest, rank, src, nbytes, flags);
}

gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                          gex_Flags_t flags)
{
    TK_CHECK_TM("gex_RMA_GetNB", tm);
    TRACED(get_nb, tm, rank, nbytes);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return team_start("gex_RMA_GetNB", tm, rank, GET, src, dest, nbytes,
                                             GEX_EVENT_DEFER, flags);
    CHECK_RANGE("gex_RMA_GetNB", tm, rank, src, nbytes);
    return tk_start(false, &peers[rank], src, dest, nbytes, GEX_EVENT_DEFER, flags);
}

int gex_RMA_GetNBI(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                   gex_Flags_t flags)
{
    TK_CHECK_TM("gex_RMA_GetNBI", tm);
    TRACED(get_nbi, tm, rank, nbytes);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return team_implicit("gex_RMA_GetNBI", tm, rank, GET, src, dest, nbytes,
                                                GEX_EVENT_DEFER, flags);
    CHECK_RANGE("gex_RMA_GetNBI", tm, rank, src, nbytes);
    return tk_implicit(false, &peers[rank], src, dest, nbytes, GEX_EVENT_DEFER, flags);
}

/* ---- Values ---- */

/* Address of the low-order bytes of a value; all processes of a job have one byte order. */
static void *value_low_bytes(gex_RMA_Value_t *value, size_t nbytes)
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
    return put_blocking("gex_RMA_PutBlockingVal", PUT_VALUE, tm, rank, dest,
                        value_low_bytes(&value, nbytes), nbytes, flags);
}

int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                      size_t nbytes, gex_Flags_t flags)
{
    CHECK_VALUE("gex_RMA_PutNBIVal", nbytes);
    return put_implicit("gex_RMA_PutNBIVal", PUT_VALUE, tm, rank, dest,
                        value_low_bytes(&value, nbytes), nbytes, GEX_EVENT_NOW, flags);
}

gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                             size_t nbytes, gex_Flags_t flags)
{
    CHECK_VALUE("gex_RMA_PutNBVal", nbytes);
    return put_start("gex_RMA_PutNBVal", PUT_VALUE, tm, rank, dest, value_low_bytes(&value, nbytes),
                     nbytes, GEX_EVENT_NOW, flags);
}

/* The interface cannot return "nothing was done" here, so GEX_FLAG_IMMEDIATE is dropped. */
gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *src, size_t nbytes,
                                       gex_Flags_t flags)
{
    gex_RMA_Value_t value = 0;
    CHECK_VALUE("gex_RMA_GetBlockingVal", nbytes);
    get_blocking("gex_RMA_GetBlockingVal", GET_VALUE, tm, value_low_bytes(&value, nbytes), rank,
                 src, nbytes, flags & ~(gex_Flags_t)GEX_FLAG_IMMEDIATE);
    return value;
}

/* ---- For the inline forms (trunkline_rma.h) ---- */

_Static_assert((int)TRUNKLINE_UNMAPPED == (int)tk_unmapped &&
                   offsetof(struct trunkline_tm, head.offsets) == 0 &&
                   offsetof(struct tk_ep_pair, head.offsets) == 0,
               "inline code in clients reads address offsets");

void trunkline_copy(void *to, const void *from, size_t nbytes);
void trunkline_copy(void *to, const void *from, size_t nbytes)
{
    /* First what clients do not copy themselves. */
    tk_if_unlikely(nbytes >= 8) tk_copy_whole(to, from, nbytes);
    else tk_copy_whole_below_8(to, from, nbytes);
}

#define ALSO_NAMED(name, function)                                                                 \
    extern __typeof__(function) name __attribute__((__alias__(#function)))

ALSO_NAMED(trunkline_put_blocking, gex_RMA_PutBlocking);
ALSO_NAMED(trunkline_get_blocking, gex_RMA_GetBlocking);
ALSO_NAMED(trunkline_put_nb, gex_RMA_PutNB);
ALSO_NAMED(trunkline_get_nb, gex_RMA_GetNB);
ALSO_NAMED(trunkline_put_nbi, gex_RMA_PutNBI);
ALSO_NAMED(trunkline_get_nbi, gex_RMA_GetNBI);
ALSO_NAMED(trunkline_put_blocking_val, gex_RMA_PutBlockingVal);
ALSO_NAMED(trunkline_put_nb_val, gex_RMA_PutNBVal);
ALSO_NAMED(trunkline_put_nbi_val, gex_RMA_PutNBIVal);
ALSO_NAMED(trunkline_get_blocking_val, gex_RMA_GetBlockingVal);
