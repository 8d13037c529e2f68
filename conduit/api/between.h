/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages in teams that have no fast path: pairs, teams whose job ranks are no range, and
 * endpoints other than endpoint 0. Owns nothing, locks nothing. */
#ifndef TK_BETWEEN_H
#define TK_BETWEEN_H

#include "base/report.h"
#include "message/endpoint.h"
#include "team/objects.h"

/* The peer of a request from our endpoint to that of (tm, rank); `copy` is used if either is not
 * endpoint 0; the peer is then valid as long as `copy`. */
static inline struct tk_peer *tk_peer_between(const char *call, struct tk_ep_peer *copy,
                                              gex_TM_t tm, gex_Rank_t rank)
{
    struct tk_peer *peer = tk_peer_of(tm, rank);
    const struct trunkline_ep *ours = tk_team_ep(tm);
    unsigned theirs = tk_team_ep_index(tm, rank);
    if (ours->index == 0 && theirs == 0)
        return peer;
    if (!(ours->capabilities & GEX_EP_CAPABILITY_AM))
        tk_panic("%s: endpoint %u was created without GEX_EP_CAPABILITY_AM", call, ours->index);
    if (theirs >= GASNET_MAXEPS)
        tk_panic("%s: there is no endpoint %u; a process has up to %d", call, theirs,
                 GASNET_MAXEPS);
    return tk_ep_peer_open(copy, peer, ours->index, theirs);
}

#endif
