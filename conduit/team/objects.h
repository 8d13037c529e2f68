/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The objects behind the interface's handles: one client, its endpoints, the team of all processes,
 * segments. Endpoints are never freed, so their handles stay valid until the process ends. Locks
 * guard the list of endpoints and the bindings of segments; the other fields are written before
 * clients see the handles. */
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
    struct tk_area area; /* memory of the library; fd -1: memory of the client */
    struct trunkline_ep *bound;
    const void *cdata;
};

struct trunkline_ep {
    struct trunkline_client *client;
    struct trunkline_segment *segment;
    struct trunkline_ep *next_bound; /* bound to the same segment */
    gex_EP_Index_t index;
    gex_Flags_t flags;
    const void *cdata;
};

struct trunkline_tm {
    uintptr_t *offsets; /* first: read by inline code in clients (trunkline_rma.h) */
    struct trunkline_ep *ep;
    const void *cdata;
};

extern struct trunkline_client tk_client;
extern struct trunkline_ep tk_ep; /* endpoint 0 */
extern struct trunkline_tm tk_tm;
extern struct trunkline_segment tk_segment; /* of gex_Segment_Attach() */

/* Sets the address offsets of the team and of the pairs. Before any client thread has a handle. */
void tk_teams_open(void);

/* NULL if there are GASNET_MAXEPS endpoints already. */
struct trunkline_ep *tk_ep_create(gex_Flags_t flags);
struct trunkline_ep *tk_ep_at(gex_EP_Index_t index);

/* segment.c. Functions that fail have logged the reason. */

/* With address NULL the library allocates the memory. */
enum tk_status tk_segment_fill(struct trunkline_segment *segment, void *address, uintptr_t size);
void tk_segment_empty(struct trunkline_segment *segment);
struct trunkline_segment *tk_segment_create(void *address, uintptr_t size);
void tk_segment_destroy(struct trunkline_segment *segment);

/* False if the endpoint is bound to a segment already. */
bool tk_segment_bind(struct trunkline_ep *ep, struct trunkline_segment *segment);

/* The segment of an endpoint as other ranks reach it. */
struct tk_bound tk_segment_bound(const struct trunkline_ep *ep,
                                 const struct trunkline_segment *segment);

/* What gex_TM_Pair() returns: entries of a table, whose index encodes the two endpoints. They
 * begin like teams, with a pointer to address offsets, but all of these are tk_unmapped, so that
 * inline code in clients calls the library. The last column stands for all indices that no
 * endpoint has. */
enum { tk_pair_columns = 64 };

_Static_assert((int)tk_endpoints_max < (int)tk_pair_columns,
               "a column for each endpoint, and one more");

struct tk_ep_pair {
    uintptr_t *offsets;
};

extern TK_HIDDEN struct tk_ep_pair tk_pairs[tk_endpoints_max * tk_pair_columns];

static inline size_t tk_pair_place(gex_TM_t tm)
{
    return ((uintptr_t)tm - (uintptr_t)tk_pairs) / sizeof(struct tk_ep_pair);
}

static inline bool tk_is_pair(gex_TM_t tm)
{
    return (uintptr_t)tm - (uintptr_t)tk_pairs < sizeof(tk_pairs);
}

static inline gex_TM_t tk_pair(gex_EP_Index_t local, gex_EP_Index_t remote)
{
    return (
        gex_TM_t)(void *)&tk_pairs[local * tk_pair_columns + tk_min(remote, tk_pair_columns - 1)];
}

static inline gex_EP_Index_t tk_pair_remote(gex_TM_t pair)
{
    return tk_pair_place(pair) % tk_pair_columns;
}

static inline gex_EP_Index_t tk_pair_local(gex_TM_t pair)
{
    return (gex_EP_Index_t)(tk_pair_place(pair) / tk_pair_columns);
}

/* The peer that (tm, rank) names. So far there is one team, whose ranks are job ranks, as are ranks
 * in pairs. */
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
