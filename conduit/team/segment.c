/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Segments of this process: allocates and registers their memory and binds them to endpoints. One
 * lock guards the bindings. */
#include "config.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "settings/settings.h"
#include "team/objects.h"
#include "transport/neighbour.h"
#include "transport/transport.h"

static tk_lock_t binding_lock = TK_LOCK_INIT;

/* With on-demand registration the segment of gex_Segment_Attach() is registered piece by piece;
 * segments of gex_Segment_Create() are always registered whole, with keys of their own. */
static bool is_registered_whole(const struct trunkline_segment *segment)
{
    return !(tk_is_on_demand && segment == &tk_segment);
}

/* If registration pins, memory of the client is first made present by several threads. If that
 * fails (memory may be read-only), the registration accepts or refuses it. */
static enum tk_status register_memory(struct trunkline_segment *segment)
{
    if (!is_registered_whole(segment))
        return TK_OK;
    if (segment->area.fd < 0 && tk_transports_pin())
        tk_populate(segment->base, segment->size);
    return tk_transports_register(&segment->region);
}

/* Pages are allocated at first touch, unless the device pins all of them. */
static enum tk_status open_area(const struct trunkline_segment *segment, struct tk_area *area,
                                uintptr_t size)
{
    bool is_pinned = is_registered_whole(segment) && tk_transports_pin();
    if (tk_settings.use_hugepages)
        return tk_area_open_huge(area, "segment", size);
    if (tk_area_open(area, "segment", size, tk_settings.segment_reserve || is_pinned) != TK_OK)
        return TK_FAIL;
    tk_allow_huge_pages(area->base, area->size);
    return TK_OK;
}

enum tk_status tk_segment_fill(struct trunkline_segment *segment, void *address, uintptr_t size)
{
    segment->area = (struct tk_area){.base = address, .size = size, .fd = -1};
    if (!address && open_area(segment, &segment->area, size) != TK_OK)
        return TK_FAIL;
    segment->base = segment->area.base;
    segment->size = size;
    segment->region = (struct tk_region){.base = segment->base, .size = size};
    if (address && tk_topology.nbrhd_size > 1)
        tk_neighbours_admit();
    if (register_memory(segment) == TK_OK)
        return TK_OK;
    tk_segment_empty(segment);
    return TK_FAIL;
}

/* The client frees its own memory. */
void tk_segment_empty(struct trunkline_segment *segment)
{
    if (segment->region.handle)
        tk_transports_unregister(&segment->region);
    if (segment->area.fd >= 0)
        tk_area_close(&segment->area);
    if (segment->kind_memory)
        tk_segment_close_kind(segment);
    segment->base = NULL;
    segment->size = 0;
}

struct trunkline_segment *tk_segment_create(void *address, uintptr_t size)
{
    struct trunkline_segment *segment = calloc(1, sizeof(*segment));
    if (!segment)
        tk_panic("out of memory for the description of a segment");
    segment->client = &tk_client;
    if (tk_segment_fill(segment, address, size) == TK_OK)
        return segment;
    free(segment);
    return NULL;
}

struct tk_bound tk_segment_bound(const struct trunkline_ep *ep,
                                 const struct trunkline_segment *segment)
{
    return (struct tk_bound){.base = (uintptr_t)segment->base,
                             .size = segment->size,
                             .keys = segment->region.handle ? segment->region.remote_keys : NULL,
                             .endpoint = ep->index,
                             .inode = segment->area.inode,
                             .fd = segment->area.fd,
                             .kind = tk_segment_bound_kind(segment)};
}

/* Messages and teams use the segment of endpoint 0. */
static void segment_use(struct trunkline_ep *ep, struct trunkline_segment *segment)
{
    struct tk_bound bound = {.endpoint = ep->index, .fd = -1};
    if (segment)
        bound = tk_segment_bound(ep, segment);
    ep->segment = segment;
    tk_bound_set(tk_peers.me, &bound);
    if (ep->index > 0)
        return;
    tk_transports_use_segment(segment && segment->region.handle ? &segment->region : NULL);
    tk_segment_area = (struct tk_area){.base = (void *)bound.base, .size = bound.size, .fd = -1};
}

bool tk_segment_bind(struct trunkline_ep *ep, struct trunkline_segment *segment)
{
    tk_lock(&binding_lock);
    bool is_free = !ep->segment;
    if (is_free) {
        segment_use(ep, segment);
        ep->next_bound = segment->bound;
        segment->bound = ep;
    }
    tk_unlock(&binding_lock);
    return is_free;
}

static void unbind(const struct trunkline_segment *segment)
{
    tk_lock(&binding_lock);
    for (struct trunkline_ep *ep = segment->bound; ep; ep = ep->next_bound)
        segment_use(ep, NULL);
    tk_unlock(&binding_lock);
}

void tk_segment_destroy(struct trunkline_segment *segment)
{
    unbind(segment);
    tk_segment_empty(segment);
    free(segment);
}
