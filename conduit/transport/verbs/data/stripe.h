/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large transfers over all links of a pair, and the reads behind puts. */
#ifndef TK_VERBS_STRIPE_H
#define TK_VERBS_STRIPE_H

#include "transport/verbs/verbs_private.h"

/* Does it go over all links? What must be in order (the payload of a Long whose head does not wait
 * for it) does not. */
static inline bool tk_is_spread(const struct tk_rma *rma)
{
    return tk_verbs.links_pp > 1 && rma->nbytes > tk_verbs.spread_max[rma->is_put] &&
           !rma->sources_only;
}

/* The link whose turn it is to carry a piece of so many bytes, by what each has carried and how
 * fast its rail is; another one when that has no room. NULL: none has. */
struct tk_link *tk_spread_link(const struct tk_peer *peer, size_t nbytes);

/* From now on it has carried them; or, after all, has not. */
void tk_spread_count(struct tk_link *link, size_t nbytes);
void tk_spread_uncount(struct tk_link *link, size_t nbytes);

/* What a link's turns depend on, once it is known what is at its other end. */
void tk_spread_open(struct tk_link *link, uint32_t remote_rate);

/* Notes that the link has written for this put, by its number in tk_rma.unfenced; then the reads
 * behind all such writes. TK_BUSY when some are left. */
static inline void tk_fence_want(struct tk_rma *rma, const struct tk_link *link)
{
    if (!link->is_fenced || !rma->is_put || rma->sources_only)
        return;
    if (!rma->unfenced)
        rma->returns = tk_counter_read(&tk_verbs.returns);
    rma->unfenced |= UINT64_C(1) << (link - tk_links_to(link->peer->rank));
}

enum tk_status tk_fence(const struct tk_peer *peer, struct tk_rma *rma);

static inline const uint32_t *tk_remote_keys(const struct tk_peer *peer, const struct tk_rma *rma)
{
    return rma->is_pair ? rma->remote_keys : tk_peers.keys[peer->rank];
}

#endif
