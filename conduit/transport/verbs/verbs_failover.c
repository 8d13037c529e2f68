/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A link that dies, in a job that has others. What goes over links that are not primary are pieces
 * of puts and gets whose completion nobody has seen: doing one again is harmless, for its bytes are
 * the same and the client may not rely on what lies there before it is complete. So each of them
 * goes over another link of the pair. A message may have been delivered or not, and who did not
 * hear cannot know: the death of a primary link ends the job.
 *
 * Works that wait for another link are a stack that any thread takes from; a lost link has no room
 * ever again, so nobody chooses it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/verbs_spread.h"
#include "transport/verbs/verbs_work.h"

enum { no_room_ever = 1 << 30 };

/* What it takes to post a piece again, by the number of its work request. */
struct tk_replay {
    uint64_t remote, local;
    const uint32_t *local_keys, *remote_keys;
};

enum tk_status tk_failover_open(void)
{
    tk_pool_init(&tk_verbs.homeless);
    if (tk_verbs.links_pp == 1 || !tk_settings.ibv_failover)
        return TK_OK;
    tk_verbs.replays = calloc((size_t)tk_verbs.depth_total, sizeof(*tk_verbs.replays));
    if (!tk_verbs.replays)
        tk_complain("out of memory for %d work requests", tk_verbs.depth_total);
    return tk_verbs.replays ? TK_OK : TK_FAIL;
}

void tk_failover_close(void)
{
    free(tk_verbs.replays);
    tk_verbs.replays = NULL;
}

void tk_failover_note(const struct tk_work *work, const struct ibv_sge *local, uint64_t remote,
                      const uint32_t *local_keys, const uint32_t *remote_keys)
{
    tk_verbs.replays[work - tk_verbs.works] =
        (struct tk_replay){.remote = remote,
                           .local = local->addr,
                           .local_keys = work->bounce ? work->bounce->keys : local_keys,
                           .remote_keys = remote_keys};
}

static bool is_primary(const struct tk_link *link)
{
    return link == link->peer->connection;
}

/* Told once for each link; the others of the rail follow when they are used. */
static void lose(struct tk_link *link, const struct ibv_wc *wc)
{
    const struct tk_port_address *a = &tk_rail_of(link)->address;
    if (tk_counter_add(&link->broken, 1) != 1)
        return;
    tk_counter_add(&link->room, -no_room_ever);
    tk_warn("%s:%u no longer reaches rank %u (%s): %s; what went over it goes over other ports "
            "(GASNET_IBV_FAILOVER=0 ends the job instead)",
            a->device, a->port, link->peer->rank, link->peer->host, ibv_wc_status_str(wc->status));
}

/* A read behind a put has failed. What the put wrote over this link either failed as well, and is
 * done again with a read behind it, or was acknowledged before the time in which the device tried
 * and tried again: it is in memory by now. */
static void end_read(struct tk_work *work)
{
    struct tk_op *op = work->op;
    tk_counter_add(&tk_verbs.works_out, -1);
    tk_work_give_plain(work);
    tk_counter_add(&op->pending, -1);
}

bool tk_failover(struct tk_work *work, const struct ibv_wc *wc)
{
    struct tk_link *link = work->link;
    bool is_lost = tk_counter_read(&link->broken) && wc->status == IBV_WC_WR_FLUSH_ERR;
    if (!tk_verbs.replays || is_primary(link) || !__atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE))
        return false;
    if (wc->status != IBV_WC_RETRY_EXC_ERR && !is_lost)
        return false;
    lose(link, wc);
    if (work->is_plain) {
        end_read(work);
        return true;
    }
    tk_pool_give(&tk_verbs.homeless, work);
    tk_counter_add(&tk_verbs.acks_due, 1);
    return true;
}

static void post(struct tk_work *work)
{
    const struct tk_replay *replay = &tk_verbs.replays[work - tk_verbs.works];
    uint32_t rail = work->link->rail;
    struct ibv_sge sge = {
        .addr = (uintptr_t)replay->local, .length = work->nbytes, .lkey = replay->local_keys[rail]};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = replay->remote;
    wr.wr.rdma.rkey = replay->remote_keys[rail];
    tk_counter_add(&tk_verbs.works_out, -1); /* for the time that failed */
    tk_work_post(work, &wr, (enum ibv_wr_opcode)work->opcode, 0);
}

/* With the link's lock held; the read behind a put needs a place of its own. */
static bool post_over(struct tk_link *link, struct tk_work *work)
{
    /* A copy: once posted, the work may be complete and another thread's. */
    const struct tk_replay replay = tk_verbs.replays[work - tk_verbs.works];
    bool wants_read = link->is_fenced && work->opcode == IBV_WR_RDMA_WRITE;
    if (!tk_slot_take(link))
        return false;
    struct tk_work *read = wants_read ? tk_work_take_plain(link, work->op) : NULL;
    if (wants_read && !read) {
        tk_counter_add(&link->room, 1);
        return false;
    }
    work->link = link;
    if (read)
        tk_counter_add(&work->op->pending, 1);
    post(work);
    if (read)
        tk_fence_post(read, replay.remote, replay.remote_keys);
    return true;
}

static bool find_home(struct tk_work *work)
{
    struct tk_link *link = tk_spread_link(work->link->peer, work->nbytes);
    if (!link)
        return false;
    tk_lock(&link->lock);
    bool is_posted = post_over(link, work);
    tk_unlock(&link->lock);
    return is_posted;
}

void tk_failover_replay(void)
{
    struct tk_work *work;
    while ((work = tk_pool_take(&tk_verbs.homeless)) != NULL) {
        if (!find_home(work)) {
            tk_pool_give(&tk_verbs.homeless, work);
            return;
        }
        tk_counter_add(&tk_verbs.acks_due, -1);
    }
}
