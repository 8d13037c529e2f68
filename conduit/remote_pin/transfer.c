/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets over the network when the other side's memory is not registered beforehand: the
 * network's transport with other functions for these. Each piece lies in one granule of the other
 * side's memory. A piece that has a firehose is posted at once; otherwise its firehose and the
 * firehoses of some later pieces are requested, and the caller retries. Owns the transport. */
#include "config.h"

#include <inttypes.h>

#include "base/bits.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "firehose/firehose.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "remote_pin/hoses.h"
#include "remote_pin/remote_pin.h"
#include "remote_pin/remote_pin_private.h"
#include "settings/settings.h"

enum { ahead_most = 8 /* regions requested together: their answers come in one round trip */ };

static const struct tk_transport *network_below; /* through which registered pieces go */
static struct tk_transport on_demand, on_demand_unconnected;

/* The same for a peer that may not be connected yet. */
static const struct tk_transport *below(const struct tk_peer *peer)
{
    return tk_peer_transport(peer) == &on_demand ? network_below : network_below->unconnected;
}

/* The only transfer that a region may serve; NULL: any. */
static const void *owner_of(const struct tk_rma_state *state)
{
    return tk_is_everything ? state : NULL;
}

/* In a message a transfer needs one round trip, as the request alone does, but is copied twice. A
 * transfer that may be abandoned midway can't have a region of its own. */
static bool wants_hose(const struct tk_rma *rma)
{
    return !tk_is_everything || (rma->nbytes >= tk_settings.firehose_min && !rma->immediate);
}

struct range {
    uintptr_t from, to;
};

/* The whole granule of a segment, since more of it is likely to be wanted; of other memory only
 * whole pages, because memory around it may not exist. */
static struct range region_around(const struct tk_peer *peer, const struct tk_rma *rma,
                                  uintptr_t at)
{
    size_t granule = tk_firehose_granule(), page = tk_page_size();
    uintptr_t begin = at & ~(granule - 1), end = begin + granule;
    if (tk_is_everything) {
        uintptr_t last = tk_align_up(rma->remote + rma->nbytes, page);
        return (struct range){at & ~(page - 1), tk_min(end, last)};
    }
    return (struct range){tk_max(begin, peer->segment_base),
                          tk_min(end, peer->segment_base + peer->segment_size)};
}

static enum tk_status transfer_by_am(struct tk_peer *peer, const struct tk_rma *rma,
                                     struct tk_rma_state *state)
{
    return tk_transfer_by_am(peer, rma, state, NULL,
                             tk_min(rma->nbytes - state->done, tk_data_max()));
}

/* A small put is sent with the request for its region. */
static bool may_ride(const struct tk_rma *rma, size_t left, uintptr_t at, struct range region)
{
    return !tk_is_everything && rma->is_put && left <= tk_settings.putinmove_limit &&
           left <= tk_data_max() && left <= region.to - at;
}

static enum tk_status ask_for(struct tk_peer *peer, const struct tk_rma *rma,
                              struct tk_rma_state *state, struct tk_hose *hose, bool rides)
{
    enum tk_status status =
        rides ? tk_transfer_by_am(peer, rma, state, hose, rma->nbytes - state->done)
              : tk_call(peer, hose);
    if (status != TK_OK)
        tk_hose_cancel(hose);
    return status;
}

/* Uses at most half of the firehoses: the rest is for earlier pieces. */
static void ask_ahead(struct tk_peer *peer, const struct tk_rma *rma, struct tk_rma_state *state,
                      uintptr_t at)
{
    uint32_t most = tk_min(ahead_most, tk_hoses_lent(peer->rank) / 2);
    uintptr_t end = rma->remote + rma->nbytes;
    for (uint32_t i = 0; i < most; i++) {
        at = (at | (tk_firehose_granule() - 1)) + 1;
        if (at >= end)
            return;
        struct range region = region_around(peer, rma, at);
        struct tk_hose *hose =
            tk_hose_seek_ahead(peer->rank, at, owner_of(state), region.from, region.to);
        if (hose && ask_for(peer, rma, state, hose, false) != TK_OK)
            return;
    }
}

static enum tk_status transfer_next_piece(struct tk_peer *peer, const struct tk_rma *rma,
                                          struct tk_rma_state *state)
{
    uintptr_t at = rma->remote + state->done;
    enum tk_hose_state hose_state;
    bool is_new;
    if (!wants_hose(rma))
        return transfer_by_am(peer, rma, state);
    struct range region = region_around(peer, rma, at);
    struct tk_hose *hose =
        tk_hose_seek(peer->rank, at, owner_of(state), region.from, region.to, &hose_state, &is_new);
    if (is_new)
        return ask_for(peer, rma, state, hose,
                       may_ride(rma, rma->nbytes - state->done, at, region));
    if (hose_state == TK_HOSE_REFUSED)
        return transfer_by_am(peer, rma, state);
    if (hose_state != TK_HOSE_READY) {
        ask_ahead(peer, rma, state, at);
        return TK_BUSY;
    }
    size_t reach = hose->base + hose->size - at;
    return tk_post_rdma(below(peer), peer, rma, state, hose,
                        tk_min(rma->nbytes - state->done, reach));
}

static enum tk_status rma_on_demand(struct tk_peer *peer, const struct tk_rma *rma,
                                    struct tk_rma_state *state)
{
    enum tk_status status = TK_OK;
    /* Segments of other endpoints are registered whole; the segment of endpoint 0 is not, whichever
     * local endpoint the transfer uses. */
    if (rma->is_pair && rma->endpoint != 0)
        return below(peer)->rma.post(peer, rma, state);
    while (status == TK_OK && state->done < rma->nbytes)
        status = transfer_next_piece(peer, rma, state);
    if (tk_is_everything && state->done == rma->nbytes)
        tk_hoses_disown(peer->rank, state);
    return status;
}

/* ---- start ---- */

void tk_remote_open(void)
{
    tk_serve_open();
    tk_flights_open();
}

static void report_end(void)
{
    struct tk_hose_counts c = tk_hoses_count();
    if (tk_settings.firehose_verbose)
        tk_log_info("remote firehoses: %" PRIu64 " hits, %" PRIu64 " misses, %" PRIu64
                    " moves, %" PRIu64 " refusals, %" PRIu64 " there now",
                    c.hits, c.misses, c.moves, c.refusals, c.here);
    if (network_below->reports.end)
        network_below->reports.end();
}

static void make_table(struct tk_transport *table, const struct tk_transport *network)
{
    *table = *network;
    table->rma.put = tk_put_never;
    table->rma.put_from = NULL;
    table->am.send_long = NULL;
    table->rma.get = tk_get_never;
    table->rma.post = rma_on_demand;
    table->reports.end = report_end;
}

/* Returns the number of ranks with either table. */
static uint32_t set_tables(const struct tk_transport *network)
{
    uint32_t askers = 0;
    make_table(&on_demand, network);
    if (network->unconnected) {
        make_table(&on_demand_unconnected, network->unconnected);
        on_demand.unconnected = &on_demand_unconnected;
        network->demand->use_tables(&on_demand, &on_demand_unconnected);
    }
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        if (tk_peer(r)->transport == network)
            tk_peer(r)->transport = &on_demand;
        askers +=
            tk_peer(r)->transport == &on_demand || tk_peer(r)->transport == &on_demand_unconnected;
    }
    return askers;
}

const struct tk_transport *tk_remote_connect(const struct tk_transport *network)
{
    network_below = network;
    uint32_t askers = set_tables(network);
    if (askers == 0)
        return network;
    if (tk_hoses_open(tk_peers.size, tk_peers.rails, tk_firehose_granule(),
                      tk_firehose_exported()) != TK_OK)
        return NULL;
    return tk_serve_connect(network, askers) == TK_OK ? &on_demand : NULL;
}
