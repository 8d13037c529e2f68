/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The objects behind the interface's handles: one client, its endpoints, the team of all processes,
 * segments. Endpoints are never freed: their handles stay valid until the process ends. A lock
 * guards the list of endpoints and the segments bound to them; the objects' own fields are written
 * before clients see the handles. */
#ifndef TK_OBJECTS_H
#define TK_OBJECTS_H

#include "gasnetex.h"
#include "memory/memory.h"
#include "peer/peer.h"

struct trunkline_client {
    const char *name;
    gex_Flags_t flags;
    const void *cdata;
};

struct trunkline_segment {
    struct trunkline_client *client;
    void *base;
    uintptr_t size;
    struct tk_region region;
    struct tk_area area; /* the library's memory; the client's: fd -1 */
    struct trunkline_ep *bound;
    const void *cdata;
};

struct trunkline_ep {
    struct trunkline_client *client;
    struct trunkline_segment *segment;
    struct trunkline_ep *next_bound; /* to the same segment */
    gex_EP_Index_t index;
    gex_Flags_t flags;
    const void *cdata;
};

struct trunkline_tm {
    struct trunkline_ep *ep;
    const void *cdata;
};

extern struct trunkline_client tk_client;
extern struct trunkline_ep tk_ep; /* endpoint 0 */
extern struct trunkline_tm tk_tm;
extern struct trunkline_segment tk_segment; /* that of gex_Segment_Attach() */

/* NULL: there are GASNET_MAXEPS already. */
struct trunkline_ep *tk_ep_create(gex_Flags_t flags);
struct trunkline_ep *tk_ep_at(gex_EP_Index_t index);

/* segment.c. What fails has said why. */

/* With address NULL the memory is the library's. */
enum tk_status tk_segment_fill(struct trunkline_segment *segment, void *address, uintptr_t size);
void tk_segment_empty(struct trunkline_segment *segment);
struct trunkline_segment *tk_segment_create(void *address, uintptr_t size);
void tk_segment_destroy(struct trunkline_segment *segment);

/* False: the endpoint has a segment. */
bool tk_segment_bind(struct trunkline_ep *ep, struct trunkline_segment *segment);

/* The segment of an endpoint as others reach it. */
struct tk_bound tk_segment_bound(const struct trunkline_ep *ep,
                                 const struct trunkline_segment *segment);

/* gex_TM_Pair() makes no object: the handle holds both indices, and a bit that no pointer has. */
enum { tk_pair_bit = 1, tk_pair_remote_shift = 1, tk_pair_local_shift = 17 };

static inline bool tk_is_pair(gex_TM_t tm)
{
    return (uintptr_t)tm & tk_pair_bit;
}

static inline gex_TM_t tk_pair(gex_EP_Index_t local, gex_EP_Index_t remote)
{
    return (gex_TM_t)((uintptr_t)local << tk_pair_local_shift |
                      (uintptr_t)remote << tk_pair_remote_shift | tk_pair_bit);
}

static inline gex_EP_Index_t tk_pair_remote(gex_TM_t pair)
{
    return (gex_EP_Index_t)((uintptr_t)pair >> tk_pair_remote_shift);
}

static inline gex_EP_Index_t tk_pair_local(gex_TM_t pair)
{
    return (gex_EP_Index_t)((uintptr_t)pair >> tk_pair_local_shift);
}

/* The peer that (tm, rank) names. There is one team so far, in which ranks are job ranks, as they
 * are in pairs. */
static inline struct tk_peer *tk_peer_of(gex_TM_t tm, gex_Rank_t rank)
{
    (void)tm;
    return tk_peer(rank);
}

static inline struct tk_bound tk_bound_by(gex_TM_t tm, gex_Rank_t rank)
{
    return tk_bound_of(rank, tk_is_pair(tm) ? tk_pair_remote(tm) : 0);
}

#endif
