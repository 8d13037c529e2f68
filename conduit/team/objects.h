/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The objects behind the interface's handles: one client, its endpoints, segments, memory kinds;
 * team.h has the teams. Endpoints are never freed, so their handles stay valid until the process
 * ends. Locks guard the list of endpoints and the bindings of segments; the other fields are
 * written before clients see the handles. */
#ifndef TK_OBJECTS_H
#define TK_OBJECTS_H

#include "gasnetex.h"
#include "kind/kind.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "team/team.h"

struct trunkline_client {
    const char *name;
    gex_Flags_t flags;
    const void *cdata;
};

struct trunkline_kind {
    struct trunkline_client *client;
    struct tk_kind_device *device; /* counted */
    const void *cdata;
};

struct trunkline_segment {
    struct trunkline_client *client;
    void *base;
    uintptr_t size;
    struct tk_kind_memory *kind_memory; /* NULL: host memory */
    struct tk_region region;
    struct tk_area area; /* memory of the library; fd -1: memory of the client */
    struct trunkline_ep *bound;
    const void *cdata;
};

struct trunkline_ep {
    struct trunkline_client *client;
    struct trunkline_segment *segment;
    struct trunkline_ep *next_bound; /* bound to the same segment */
    gex_EP_Index_t index;
    gex_EP_Capabilities_t capabilities;
    gex_Flags_t flags;
    const void *cdata;
};

extern struct trunkline_client tk_client;
extern struct trunkline_ep tk_ep;           /* endpoint 0 */
extern struct trunkline_segment tk_segment; /* of gex_Segment_Attach() */

/* NULL if there are GASNET_MAXEPS endpoints already. */
struct trunkline_ep *tk_ep_create(gex_EP_Capabilities_t capabilities, gex_Flags_t flags);
struct trunkline_ep *tk_ep_at(gex_EP_Index_t index);

/* segment.c. Functions that fail have logged the reason. */

/* With address NULL the library allocates the memory. */
enum tk_status tk_segment_fill(struct trunkline_segment *segment, void *address, uintptr_t size);
void tk_segment_empty(struct trunkline_segment *segment);
struct trunkline_segment *tk_segment_create(void *address, uintptr_t size);
void tk_segment_destroy(struct trunkline_segment *segment);

/* segment_kind.c: the same in the memory of a device. NULL: why; *is_argument: the arguments are
 * wrong, else resources lack. */
struct trunkline_segment *tk_segment_create_on(struct tk_kind_device *device, void *address,
                                               uintptr_t size, bool *is_argument,
                                               struct tk_kind_why *why);
void tk_segment_close_kind(struct trunkline_segment *segment);
/* The data that other ranks need about it. */
const struct tk_bound_kind *tk_segment_bound_kind(const struct trunkline_segment *segment);

/* False: the memory under it was freed, which was logged. True for host memory, which can't be
 * checked. */
bool tk_segment_is_valid(const struct trunkline_segment *segment);

/* False if the endpoint is bound to a segment already. */
bool tk_segment_bind(struct trunkline_ep *ep, struct trunkline_segment *segment);

/* The segment of an endpoint as other ranks reach it. */
struct tk_bound tk_segment_bound(const struct trunkline_ep *ep,
                                 const struct trunkline_segment *segment);

#endif
