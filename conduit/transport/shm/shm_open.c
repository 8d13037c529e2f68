/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of the shared memory transport: fills tk_shm (shm_layout.c), and owns the table. No
 * lock: start-up and exit are single-threaded. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/ranges.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/shm/shm_private.h"

/* Replaces the owner's mapping of the area by one that has the payloads twice. */
static enum tk_status map_own(void)
{
    tk_shm.base = tk_shm_map_rings(tk_shm.area.fd);
    if (!tk_shm.base) {
        tk_log_error("can't map %zu bytes for message rings: %s (ulimit -v may be too low)",
                     tk_shm_mapped_size(), strerror(errno));
        return TK_FAIL;
    }
    tk_area_unmap(&tk_shm.area);
    const struct tk_range range = {tk_shm.base, tk_shm_mapped_size(), "message rings", -1,
                                   tk_shm.area.fd};
    tk_range_add(&range);
    return TK_OK;
}

/* The area is zeroed, and zeros are a valid ring: writing its slots would touch 32 pages of each
 * rank, most of which a short job never needs. */
static enum tk_status open_rings(void)
{
    const struct tk_shm_parts at = tk_shm_parts(tk_shm.base);
    tk_doorbell_open(at.bell);
    if (tk_ring_in_open(&tk_shm.requests, at.requests, at.request_payload, tk_shm_slots,
                        tk_shm_lines) != TK_OK)
        return TK_FAIL;
    return tk_ring_in_open(&tk_shm.replies, at.replies, at.reply_payload, tk_shm_slots,
                           tk_shm_lines);
}

static enum tk_status describe_rings(struct tk_rings_place *place)
{
    if (getrandom(place->nonce, sizeof(place->nonce), 0) != sizeof(place->nonce)) {
        tk_log_error("getrandom: %s", strerror(errno));
        return TK_FAIL;
    }
    memcpy(tk_shm.base, place->nonce, sizeof(place->nonce));
    place->inode = tk_shm.area.inode;
    place->fd = tk_shm.area.fd;
    return TK_OK;
}

enum tk_status tk_shm_open(struct tk_peer_info *info)
{
    tk_shm.front = tk_shm_front();
    tk_shm.scratch =
        tk_align_up((size_t)tk_settings.coll_channels * tk_scratch_channel, tk_page_size());
    if (tk_area_open_by_need(&tk_shm.area, "message rings", tk_shm_rings_size(),
                             info->memory_left) != TK_OK ||
        tk_area_grow(&tk_shm.area, "message rings", tk_shm.scratch) != TK_OK ||
        map_own() != TK_OK || open_rings() != TK_OK)
        return TK_FAIL;
    return describe_rings(&info->rings);
}

static void add_neighbour(uint32_t index)
{
    uint32_t rank = tk_topology.nbrhd_ranks[index];
    struct tk_peer *peer = tk_peer(rank);
    struct tk_shm_conn *link = &tk_shm.links[index];
    link->peer = tk_shm.peers[index] = peer;
    link->place = tk_peer_info_of(rank)->rings;
    if (index != tk_topology.nbrhd_rank)
        peer->transport = &tk_transport_shm;
}

enum tk_status tk_shm_connect(void)
{
    uint32_t size = tk_topology.nbrhd_size;
    uint32_t next = (tk_topology.nbrhd_rank + 1) % size;
    tk_shm.links = aligned_alloc(TK_CACHE_LINE, tk_shm_links_bytes(size));
    tk_shm.peers = malloc(tk_shm_peers_bytes(size));
    if (!tk_shm.links || !tk_shm.peers) {
        tk_log_error("out of memory for %u neighbours", size);
        return TK_FAIL;
    }
    memset(tk_shm.links, 0, tk_shm_links_bytes(size));
    tk_shm.size = size;
    for (uint32_t i = 0; i < size; i++)
        add_neighbour(i);
    return tk_shm_conn_make(tk_peer(tk_topology.nbrhd_ranks[next])) ? TK_OK : TK_FAIL;
}

/* Mapped neighbours stay mapped: a job ends with this process. */
void tk_shm_close(void)
{
    if (tk_shm.base) {
        tk_range_drop(tk_shm.base);
        munmap(tk_shm.base, tk_shm_mapped_size());
    }
    tk_ring_in_close(&tk_shm.requests);
    tk_ring_in_close(&tk_shm.replies);
    tk_area_close(&tk_shm.area);
    free(tk_shm.links);
    free(tk_shm.peers);
    tk_shm = (struct tk_shm){.area = {.fd = -1}};
}

void tk_shm_describe(char *text, size_t size)
{
    snprintf(text, size, "(rings of %d messages, %d KiB for each process)", tk_shm_slots,
             (int)(tk_shm_rings_size() >> 10));
}

static void describe(const struct tk_peer *peer, char *text, size_t size)
{
    (void)peer;
    tk_shm_describe(text, size);
}

static enum tk_status open_rings_of_ours(struct tk_peer_info **info, uint32_t turn)
{
    (void)turn;
    return tk_shm_open(*info);
}

static const struct tk_transport *connect_neighbours(void)
{
    return tk_shm_connect() == TK_OK ? &tk_transport_shm : NULL;
}

/* Sharing memory needs no agreement between ranks. */
static enum tk_status narrow_never(struct tk_peer_info **info, uint32_t turn, bool *is_again)
{
    (void)info, (void)turn, (void)is_again;
    return TK_OK;
}

static bool agree_always(void)
{
    return true;
}

static const struct tk_transport_lifecycle shm_lifecycle = {.open = open_rings_of_ours,
                                                            .narrow = narrow_never,
                                                            .agree = agree_always,
                                                            .connect = connect_neighbours,
                                                            .close = tk_shm_close};

static const struct tk_transport_neighbour shm_neighbour = {.flags = tk_shm_flags,
                                                            .scratch = tk_shm_scratch,
                                                            .wake = tk_shm_wake,
                                                            .bell = tk_shm_bell,
                                                            .offset = tk_shm_addr_offset,
                                                            .try_segment = tk_shm_try_segment,
                                                            .admit = tk_shm_admit_neighbours,
                                                            .set_liveness = tk_shm_set_liveness,
                                                            .liveness_of = tk_shm_liveness_of};

const struct tk_transport tk_transport_shm = {
    .name = "shm",
    .reach = TK_REACH_NEIGHBOUR,
    .rma = {.put = tk_shm_put, .get = tk_shm_get, .post = tk_shm_rma},
    .am = {.send_short = tk_shm_send_short,
           .send_small = tk_shm_send_small,
           .send_medium = tk_shm_send_medium,
           .medium_below = SIZE_MAX,
           .send = tk_shm_send,
           .reserve = tk_shm_reserve,
           .reserve_place = tk_shm_reserve_place,
           .send_reserved = tk_shm_send_reserved,
           .release = tk_shm_release,
           .leave_queue = tk_shm_leave_queue,
           .packed_max = 0, /* a Long's payload is copied once, to its place */
           .reservation_is_no_hold = true},
    .poll = tk_shm_poll,
    .reap = tk_shm_reap,
    .reap_in_handler = tk_shm_poll_replies,
    .has_come = tk_shm_has_come,
    .reports = {.describe = describe},
    .lifecycle = &shm_lifecycle,
    .neighbour = &shm_neighbour,
};
