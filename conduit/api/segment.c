/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_Segment_* and what tells about segments, ours and others'. */
#include "config.h"

#include "api/check.h"
#include "memory/memory.h"
#include "start/start.h"
#include "team/objects.h"

int gex_Segment_Attach(gex_Segment_t *segment_p, gex_TM_t tm, uintptr_t size)
{
    TK_CHECK_MAY_COMMUNICATE("gex_Segment_Attach");
    TK_CHECK(size > 0 && size % GASNET_PAGESIZE == 0,
             "gex_Segment_Attach: size %zu is not a non-zero multiple of %d", (size_t)size,
             GASNET_PAGESIZE);
    if (tm->ep->segment)
        tk_panic("gex_Segment_Attach was called twice");
    if (size == 0 || size > tk_segment_limit_local) {
        tk_verbose_error(
            "gex_Segment_Attach: %zu bytes are not between 1 and %zu, this process's limit by "
            "GASNET_MAX_SEGSIZE and this host's memory",
            (size_t)size, (size_t)tk_segment_limit_local);
        return GASNET_ERR_BAD_ARG;
    }
    if (tk_attach(size) != TK_OK)
        return GASNET_ERR_RESOURCE;
    tm->ep->segment = &tk_segment;
    *segment_p = &tk_segment;
    return GASNET_OK;
}

gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment)
{
    return segment->client;
}

gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t segment)
{
    (void)segment;
    return 0;
}

void *gex_Segment_QueryAddr(gex_Segment_t segment)
{
    return segment->base;
}

uintptr_t gex_Segment_QuerySize(gex_Segment_t segment)
{
    return segment->size;
}

void gex_Segment_SetCData(gex_Segment_t segment, const void *value)
{
    segment->cdata = value;
}

void *gex_Segment_QueryCData(gex_Segment_t segment)
{
    return (void *)segment->cdata;
}

int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p, void **localaddr_p,
                           uintptr_t *size_p)
{
    TK_CHECK_RANK("gex_Segment_QueryBound", rank);
    const struct tk_peer *peer = tk_peer_of(tm, rank);
    if (peer->segment_size == 0)
        return 1;
    if (owneraddr_p)
        *owneraddr_p = (void *)peer->segment_base;
    if (localaddr_p)
        *localaddr_p = peer->rank == tk_peers.me ? (void *)peer->segment_base : NULL;
    if (size_p)
        *size_p = peer->segment_size;
    return 0;
}

gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p,
                                       void **localaddr_p, uintptr_t *size_p, gex_Flags_t flags)
{
    (void)flags;
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
