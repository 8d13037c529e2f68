/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_Segment_* and queries of segments, our own and those of others. No state, no lock. */
#include "config.h"

#include "api/check.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "kind_rma/kind_open.h"
#include "memory/memory.h"
#include "start/start.h"
#include "team/objects.h"
#include "transport/neighbour.h"

static bool may_attach(uintptr_t size)
{
    if (tk_ep.segment)
        tk_verbose_error("gex_Segment_Attach: a segment of gex_Segment_Create is bound already");
    else if (size == 0 || size > tk_segment_limit_local)
        tk_verbose_error(
            "gex_Segment_Attach: %zu bytes are not between 1 and %zu, this process's limit by "
            "GASNET_MAX_SEGSIZE and this host's memory",
            (size_t)size, (size_t)tk_segment_limit_local);
    else
        return true;
    return false;
}

/* A rank whose arguments are wrong takes part all the same: the others wait for all ranks. */
int gex_Segment_Attach(gex_Segment_t *segment_p, gex_TM_t tm, uintptr_t size)
{
    TK_CHECK_MAY_COMMUNICATE("gex_Segment_Attach");
    if (tm == GEX_TM_INVALID) {
        tk_refused("gex_Segment_Attach: the team is GEX_TM_INVALID");
        return GASNET_ERR_BAD_ARG;
    }
    TK_CHECK(tm == &tk_tm, "gex_Segment_Attach: not the team of gex_Client_Init");
    TK_CHECK(tk_is_everything || (size > 0 && size % GASNET_PAGESIZE == 0),
             "gex_Segment_Attach: size %zu is not a non-zero multiple of %d", (size_t)size,
             GASNET_PAGESIZE);
    if (tk_ep.segment == &tk_segment)
        tk_panic("gex_Segment_Attach was called twice");
    bool may = tk_is_everything || may_attach(size);
    tk_report_returned(true);
    enum tk_status status = tk_attach(may ? size : 0);
    tk_report_returned(false);
    if (status != TK_OK)
        return may ? GASNET_ERR_RESOURCE : GASNET_ERR_BAD_ARG;
    *segment_p = tk_is_everything ? GEX_SEGMENT_INVALID : &tk_segment;
    return GASNET_OK;
}

/* GASNET_OK, or the code and the reason. */
static int create_on_device(gex_Segment_t *segment_p, gex_Addr_t address, uintptr_t length,
                            const struct trunkline_kind *kind)
{
    struct tk_kind_why why;
    bool is_argument;
    struct trunkline_segment *segment =
        tk_segment_create_on(kind->device, address, length, &is_argument, &why);
    if (segment) {
        *segment_p = segment;
        return GASNET_OK;
    }
    tk_verbose_error("gex_Segment_Create: %zu bytes of %s: %s", (size_t)length,
                     kind->device->class->name, why.text);
    return is_argument ? GASNET_ERR_BAD_ARG : GASNET_ERR_RESOURCE;
}

int gex_Segment_Create(gex_Segment_t *segment_p, gex_Client_t client, gex_Addr_t address,
                       uintptr_t length, gex_MK_t kind, gex_Flags_t flags)
{
    TK_CHECK_MAY_COMMUNICATE("gex_Segment_Create");
    if (length == 0)
        tk_panic("gex_Segment_Create: a segment has at least one byte");
    if (!segment_p || client != &tk_client || kind == GEX_MK_INVALID || flags != 0) {
        tk_refused("gex_Segment_Create: segment_p must not be NULL, client not GEX_CLIENT_INVALID, "
                   "kind not GEX_MK_INVALID, and flags (0x%x) 0",
                   flags);
        return GASNET_ERR_BAD_ARG;
    }
    if (kind != GEX_MK_HOST)
        return create_on_device(segment_p, address, length, kind);
    tk_report_returned(true);
    struct trunkline_segment *segment = tk_segment_create(address, length);
    tk_report_returned(false);
    if (!segment)
        return GASNET_ERR_RESOURCE;
    *segment_p = segment;
    return GASNET_OK;
}

void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags)
{
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_Segment_Destroy");
    TK_CHECK(flags == 0, "gex_Segment_Destroy: flags are 0x%x, not 0", flags);
    if (segment == GEX_SEGMENT_INVALID || segment == &tk_segment)
        tk_misused("gex_Segment_Destroy: %s cannot be destroyed",
                   segment ? "the segment of gex_Segment_Attach" : "GEX_SEGMENT_INVALID");
    struct tk_kind_device *device = segment->kind_memory ? segment->kind_memory->device : NULL;
    if (device)
        tk_kind_device_hold(device);
    tk_segment_destroy(segment);
    if (device)
        tk_kind_rma_put(device);
}

int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags)
{
    TK_CHECK_MAY_COMMUNICATE("gex_EP_BindSegment");
    if (ep == GEX_EP_INVALID || segment == GEX_SEGMENT_INVALID || flags != 0) {
        tk_refused("gex_EP_BindSegment: %s", flags ? "flags must be 0"
                                             : ep == GEX_EP_INVALID
                                                 ? "the endpoint is GEX_EP_INVALID"
                                                 : "GEX_SEGMENT_INVALID cannot be bound");
        return GASNET_ERR_BAD_ARG;
    }
    if (ep == &tk_ep && segment->kind_memory) {
        tk_verbose_error("gex_EP_BindSegment: a segment in the memory of a device can't be bound "
                         "to endpoint 0, whose segment takes active messages: use one of "
                         "gex_EP_Create()");
        return GASNET_ERR_BAD_ARG;
    }
    tk_report_returned(true);
    bool is_valid = tk_segment_is_valid(segment);
    tk_report_returned(false);
    if (!is_valid)
        return GASNET_ERR_BAD_ARG;
    if (!tk_segment_bind(ep, segment)) {
        tk_verbose_error("gex_EP_BindSegment: endpoint %u has a segment already", ep->index);
        return GASNET_ERR_BAD_ARG;
    }
    return GASNET_OK;
}

static bool are_endpoints(const gex_EP_t *eps, size_t count)
{
    if (count > GASNET_MAXEPS || (!eps && count > 0))
        return false;
    for (size_t i = 0; i < count; i++)
        if (eps[i] == GEX_EP_INVALID)
            return false;
    return true;
}

/* A rank whose arguments are wrong takes part all the same, if it has a team: the others wait for
 * all ranks. */
int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t num_eps, gex_Flags_t flags)
{
    TK_CHECK_MAY_COMMUNICATE("gex_EP_PublishBoundSegment");
    if (tm == GEX_TM_INVALID) {
        tk_refused("gex_EP_PublishBoundSegment: the team is GEX_TM_INVALID");
        return GASNET_ERR_BAD_ARG;
    }
    TK_CHECK(!tk_is_pair(tm), "gex_EP_PublishBoundSegment: the argument is a pair, not a team");
    bool is_legal = are_endpoints(eps, num_eps) && flags == 0;
    if (!is_legal)
        tk_refused("gex_EP_PublishBoundSegment: %zu endpoints at %p, none of which may be "
                   "GEX_EP_INVALID, flags 0x%x",
                   num_eps, (void *)eps, flags);
    if (tk_publish(tm, eps, is_legal ? num_eps : 0) != TK_OK)
        return GASNET_ERR_RESOURCE;
    return is_legal ? GASNET_OK : GASNET_ERR_BAD_ARG;
}

gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment)
{
    TK_CHECK_SEGMENT("gex_Segment_QueryClient", segment);
    return segment->client;
}

gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t segment)
{
    TK_CHECK_SEGMENT("gex_Segment_QueryFlags", segment);
    (void)segment;
    return 0;
}

void *gex_Segment_QueryAddr(gex_Segment_t segment)
{
    TK_CHECK_SEGMENT("gex_Segment_QueryAddr", segment);
    return segment->base;
}

uintptr_t gex_Segment_QuerySize(gex_Segment_t segment)
{
    TK_CHECK_SEGMENT("gex_Segment_QuerySize", segment);
    return segment->size;
}

void gex_Segment_SetCData(gex_Segment_t segment, const void *value)
{
    TK_CHECK_SEGMENT("gex_Segment_SetCData", segment);
    segment->cdata = value;
}

void *gex_Segment_QueryCData(gex_Segment_t segment)
{
    TK_CHECK_SEGMENT("gex_Segment_QueryCData", segment);
    return (void *)segment->cdata;
}

/* The address at which this process can load and store; NULL: none. */
static void *local_address(gex_TM_t tm, gex_Rank_t rank, const struct tk_bound *bound)
{
    struct tk_peer *peer = tk_peer_of(tm, rank);
    if (bound->kind)
        return NULL;
    if (peer->rank == tk_peers.me)
        return (void *)bound->base;
    if (!tk_is_neighbour(peer->rank))
        return NULL;
    uintptr_t offset = tk_neighbour_addr_offset(peer, bound->endpoint);
    return offset == tk_unmapped ? NULL : (void *)(bound->base + offset);
}

int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p, void **localaddr_p,
                           uintptr_t *size_p)
{
    if (tm == GEX_TM_INVALID) {
        tk_refused("gex_Segment_QueryBound: the team is GEX_TM_INVALID");
        return GASNET_ERR_BAD_ARG;
    }
    TK_CHECK_RANK("gex_Segment_QueryBound", tm, rank);
    const struct tk_bound bound = tk_bound_by(tm, rank);
    bool is_everything = tk_is_everything && bound.endpoint == 0;
    if (bound.size == 0 || is_everything)
        return 1;
    if (owneraddr_p)
        *owneraddr_p = (void *)bound.base;
    if (localaddr_p)
        *localaddr_p = local_address(tm, rank, &bound);
    if (size_p)
        *size_p = bound.size;
    return 0;
}

gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p,
                                       void **localaddr_p, uintptr_t *size_p, gex_Flags_t flags)
{
    TK_CHECK_TM("gex_EP_QueryBoundSegmentNB", tm);
    if (!(flags & GEX_FLAG_IMMEDIATE))
        TK_CHECK_MAY_COMMUNICATE("gex_EP_QueryBoundSegmentNB");
    if (gex_Segment_QueryBound(tm, rank, owneraddr_p, localaddr_p, size_p) != 0 && size_p)
        *size_p = 0;
    return GEX_EVENT_INVALID;
}

uintptr_t gasnet_getMaxLocalSegmentSize(void)
{
    return tk_segment_limit_local;
}

uintptr_t gasnet_getMaxGlobalSegmentSize(void)
{
    return tk_segment_limit_global;
}

int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries)
{
    if (numentries < 0 || (numentries > 0 && !table)) {
        tk_verbose_error("gasnet_getSegmentInfo: %d entries", numentries);
        return GASNET_ERR_BAD_ARG;
    }
    for (uint32_t r = 0; r < tk_peers.size && r < (uint32_t)numentries; r++) {
        table[r].addr = (void *)tk_peer(r)->segment_base;
        table[r].size = tk_peer(r)->segment_size;
    }
    return GASNET_OK;
}
