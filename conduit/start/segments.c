/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The collective calls about segments: gex_Segment_Attach() and gex_EP_PublishBoundSegment(). A
 * rank that fails still takes part and reports its failure to the others. No lock: collective calls
 * are single-threaded. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "collective/barrier.h"
#include "collective/exchange.h"
#include "firehose/firehose.h"
#include "progress/progress.h"
#include "start/start.h"
#include "team/objects.h"
#include "transport/neighbour.h"

/* Weak: a client may define its own. */
__attribute__((weak)) void (*gasnet_client_attach_hook)(void *addr, uintptr_t size);

static void wait_for_all(void)
{
    struct tk_op op;
    tk_op_init(&op);
    tk_barrier_start(&op);
    tk_wait_done(&op);
}

/* Neighbours' segments that are memory of the client are tried now: accesses to them later have no
 * way to report an error. */
static enum tk_status try_neighbours(void)
{
    enum tk_status status = TK_OK;
    for (uint32_t i = 0; i < tk_topology.nbrhd_size; i++) {
        struct tk_peer *peer = tk_peer(tk_topology.nbrhd_ranks[i]);
        for (uint32_t e = 0; e < tk_endpoints_max && peer->rank != tk_peers.me; e++) {
            const struct tk_bound bound = tk_bound_of(peer->rank, e);
            if (bound.size > 0 && bound.base > 0 && bound.fd < 0 && !bound.kind &&
                tk_neighbour_try_segment(peer, &bound) != TK_OK)
                status = TK_FAIL;
        }
    }
    return status;
}

/* After a barrier: the launcher matches fences by their sequence number only, so a fence by a rank
 * that is exiting instead of taking part would count as this one. */
static enum tk_status exchange_segments(const struct tk_bound *mine, uint32_t count,
                                        uint32_t *unable)
{
    wait_for_all();
    return tk_segments_exchange(mine, count, tk_poll_asleep, unable);
}

static enum tk_status make_segment(uintptr_t size)
{
    uint64_t before = tk_now();
    if (size == 0 || tk_segment_fill(&tk_segment, NULL, size) != TK_OK)
        return TK_FAIL;
    double seconds = (double)(tk_now() - before) / 1e9;
    if (seconds > 1 && tk_peers.me == 0)
        tk_log_warn("making a segment of %zu bytes took %.1f s (%.1f GB/s)", (size_t)size, seconds,
                    (double)size / seconds / 1e9);
    return TK_OK;
}

/* EVERYTHING: nothing to attach, but the call is still a barrier. */
static enum tk_status attach_nothing(void)
{
    wait_for_all();
    return TK_OK;
}

enum tk_status tk_attach(uintptr_t size)
{
    uint32_t unable;
    if (tk_is_everything)
        return attach_nothing();
    bool is_made = make_segment(size) == TK_OK;
    struct tk_bound mine = tk_segment_bound(&tk_ep, &tk_segment);
    enum tk_status status = exchange_segments(is_made ? &mine : NULL, is_made, &unable);
    if (status == TK_OK && unable != tk_nobody) {
        if (is_made)
            tk_log_error("rank %u (%s) could not attach its segment, so no rank has one", unable,
                         tk_peer(unable)->host);
        status = TK_FAIL;
    }
    if (status != TK_OK) {
        if (is_made)
            tk_segment_empty(&tk_segment);
        return TK_FAIL;
    }
    tk_firehose_set_permanent(tk_segment.base, tk_segment.size);
    tk_segment_bind(&tk_ep, &tk_segment);
    if (gasnet_client_attach_hook)
        gasnet_client_attach_hook(tk_segment.base, tk_segment.size);
    /* A rank may send requests as soon as it returns, and the replies may be Longs into its
     * segment. */
    wait_for_all();
    tk_segments_withdraw();
    return TK_OK;
}

static void *publish_memory(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        tk_panic("out of memory for publishing segments (%zu bytes)", count * size);
    return memory;
}

static enum tk_status exchange_records(struct trunkline_tm *tm, const struct tk_bound *mine,
                                       uint32_t count, const uint32_t *sizes, size_t width)
{
    uint32_t size = tk_team_size(tm);
    char *own = publish_memory(1, width), *all = publish_memory(size, width);
    void *offer = tk_bound_offer(mine, count);
    memcpy(own, offer, tk_bound_offer_size(mine, count));
    tk_exchange(tm, TK_CALL_PUBLISH, own, all, width);
    enum tk_status status = TK_OK;
    for (uint32_t r = 0; r < size && status == TK_OK; r++)
        status = tk_bound_accept(tk_team_jobrank(tm, r), all + r * width, sizes[r]);
    free(own);
    free(all);
    free(offer);
    return status;
}

/* Members of a team that is not the whole job exchange records by messages, all of the largest
 * size. Size 0: that member is unable, and nothing is exchanged. */
static enum tk_status exchange_in_team(struct trunkline_tm *tm, const struct tk_bound *mine,
                                       uint32_t count, uint32_t *unable)
{
    uint32_t size = tk_team_size(tm), most = 0;
    uint32_t ours = mine ? (uint32_t)tk_bound_offer_size(mine, count) : 0;
    uint32_t *sizes = publish_memory(size, sizeof(*sizes));
    enum tk_status status = TK_OK;
    *unable = tk_nobody;
    tk_exchange(tm, TK_CALL_PUBLISH, &ours, sizes, sizeof(ours));
    for (uint32_t r = 0; r < size; r++) {
        most = (uint32_t)tk_max(most, sizes[r]);
        if (sizes[r] == 0)
            *unable = (uint32_t)tk_min(*unable, tk_team_jobrank(tm, r));
    }
    if (*unable == tk_nobody)
        status = exchange_records(tm, mine, count, sizes, tk_align_up(most, 8));
    free(sizes);
    return status;
}

/* The records of the segments of these endpoints, and one of the staging buffers if any segment is
 * in the memory of a device. TK_FAIL: the memory under one of them is gone, which was logged. */
static enum tk_status collect(struct trunkline_ep *const *eps, size_t count, struct tk_bound *mine,
                              uint32_t *used)
{
    bool has_device = false;
    *used = 0;
    for (size_t i = 0; i < count; i++) {
        struct trunkline_segment *segment = eps[i]->segment;
        if (!segment)
            continue;
        if (!tk_segment_is_valid(segment))
            return TK_FAIL;
        mine[*used] = tk_segment_bound(eps[i], segment);
        has_device |= mine[(*used)++].kind != NULL;
    }
    if (has_device && tk_staging.bound && tk_staging.bound(&mine[*used]))
        ++*used;
    return TK_OK;
}

/* If the device memory under a segment is gone, no rank publishes anything: others must not learn
 * addresses that belong to something else by now, and all ranks return the error. */
enum tk_status tk_publish(struct trunkline_tm *tm, struct trunkline_ep *const *eps, size_t count)
{
    uint32_t used, unable;
    struct tk_bound records[GASNET_MAXEPS + 1];
    const struct tk_bound *mine = collect(eps, count, records, &used) == TK_OK ? records : NULL;
    if (!mine)
        used = 0;
    enum tk_status status = tm == &tk_tm ? exchange_segments(mine, used, &unable)
                                         : exchange_in_team(tm, mine, used, &unable);
    if (status == TK_OK && unable != tk_nobody) {
        if (mine)
            tk_log_error("rank %u (%s) could not publish its segments, so no rank's were published",
                         unable, tk_peer(unable)->host);
        return TK_FAIL;
    }
    return status == TK_OK ? try_neighbours() : TK_FAIL;
}
