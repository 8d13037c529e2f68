/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The objects behind the interface's handles: one client, its endpoint 0, the team of all
 * processes, one segment. Made at start-up (the segment: on attach) and never freed: handles stay
 * valid until the process ends. */
#ifndef TK_OBJECTS_H
#define TK_OBJECTS_H

#include "gasnetex.h"
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
    const void *cdata;
};

struct trunkline_ep {
    struct trunkline_client *client;
    struct trunkline_segment *segment;
    const void *cdata;
};

struct trunkline_tm {
    struct trunkline_ep *ep;
    const void *cdata;
};

extern struct trunkline_client tk_client;
extern struct trunkline_ep tk_ep;
extern struct trunkline_tm tk_tm;
extern struct trunkline_segment tk_segment;

/* The peer that (tm, rank) names. There is one team so far, in which ranks are job ranks. */
static inline struct tk_peer *tk_peer_of(gex_TM_t tm, gex_Rank_t rank)
{
    (void)tm;
    return tk_peer(rank);
}

#endif
