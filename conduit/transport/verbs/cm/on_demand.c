/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections on demand by librdmacm, for conn/demand.c, which opens all connections to a rank
 * together. A connect that comes before this end has queue pairs is kept until it has; the rank
 * that connects waits as long. No state of its own; nothing here waits. */
#include "config.h"

#include "base/lock.h"
#include "peer/peer.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* ---- connects that come, while events are read ---- */

/* Called with the lock; tk_cm_is_quiet() reads the count without it. */
static void kept_add(int by)
{
    __atomic_store_n(&tk_verbs.cm->kept_count, tk_verbs.cm->kept_count + (uint32_t)by,
                     __ATOMIC_RELAXED);
}

void tk_cm_connect_drop(struct tk_cm_end *end)
{
    if (!end->kept)
        return;
    rdma_destroy_id(end->kept);
    end->kept = NULL;
    kept_add(-1);
}

static uint32_t epoch_to(uint32_t rank)
{
    return TK_CM_FIRST + tk_conns_to(rank)->epoch;
}

static bool is_connected_in(const struct tk_cm_end *end, uint32_t epoch)
{
    return end->epoch == epoch &&
           (end->state == TK_CM_ANSWERED || end->state == TK_CM_GREETS || end->state == TK_CM_UP);
}

/* Replaces an earlier connect of this end: the peer asks again only after it has given that up. */
enum tk_cm_verdict tk_cm_connect_keep(struct tk_cm_end *end, struct rdma_cm_id *id, uint32_t epoch)
{
    uint32_t rank = (uint32_t)(end - tk_verbs.cm->ends) / tk_verbs.conns_pp;
    if ((int32_t)(epoch - epoch_to(rank)) < 0)
        return TK_CM_LATE;
    if (is_connected_in(end, epoch))
        return TK_CM_DUPLICATE;
    tk_cm_connect_drop(end);
    end->kept = id;
    end->kept_epoch = epoch;
    id->context = end;
    kept_add(1);
    return TK_CM_WELCOME;
}

enum tk_cm_verdict tk_cm_conn_request_came(uint32_t rank)
{
    struct tk_cm_end *end = tk_cm_ends_of(rank);
    kept_add(!end->was_requested);
    end->was_requested = true;
    return TK_CM_HEARD;
}

/* ---- what has come ---- */

static void accept_kept(struct tk_cm_end *end)
{
    struct rdma_cm_id *id = end->kept;
    end->kept = NULL;
    kept_add(-1);
    tk_cm_end_accept(end, id);
}

static void accept_all_kept(uint32_t rank)
{
    struct tk_cm_end *ends = tk_cm_ends_of(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (ends[k].kept && ends[k].state == TK_CM_AWAITS && ends[k].epoch == ends[k].kept_epoch)
            accept_kept(&ends[k]);
}

static bool connects_of(uint32_t rank, struct tk_cm_came *came)
{
    struct tk_cm_end *ends = tk_cm_ends_of(rank);
    *came = (struct tk_cm_came){.rank = rank, .epoch = tk_conns_to(rank)->epoch};
    kept_add(-ends->was_requested);
    came->is_there = ends->was_requested;
    ends->was_requested = false;
    accept_all_kept(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        if (!ends[k].kept)
            continue;
        if ((int32_t)(ends[k].kept_epoch - epoch_to(rank)) < 0) {
            tk_cm_connect_drop(&ends[k]);
            continue;
        }
        came->is_there = true;
        came->epoch = ends[k].kept_epoch - TK_CM_FIRST;
    }
    return came->is_there;
}

bool tk_cm_came(uint32_t *next, struct tk_cm_came *came)
{
    struct tk_cm *cm = tk_verbs.cm;
    came->is_there = false;
    tk_lock(&cm->lock);
    while (*next < tk_peers.size && cm->kept_count > 0 && !came->is_there)
        connects_of((*next)++, came);
    tk_unlock(&cm->lock);
    return came->is_there;
}

/* ---- what is wanted ---- */

static void open_end(struct tk_cm_end *end, uint32_t epoch)
{
    if (end->epoch == epoch && tk_cm_is_waiting(end))
        return;
    if (is_connected_in(end, epoch))
        return;
    tk_cm_end_open(end, epoch);
    if (end->state == TK_CM_HOLDS)
        tk_cm_end_begin(end);
}

void tk_cm_pair_open(const struct tk_conn *conns, uint32_t epoch, bool is_wanted)
{
    uint32_t rank = conns->peer->rank;
    struct tk_cm_end *ends = tk_cm_ends_of(rank);
    tk_lock(&tk_verbs.cm->lock);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        open_end(&ends[k], TK_CM_FIRST + epoch);
    accept_all_kept(rank);
    if (is_wanted && !tk_cm_is_asker(conns) && ends->state == TK_CM_AWAITS)
        tk_cm_conn_request_begin(ends);
    __atomic_store_n(&tk_verbs.cm->next_look, 0, __ATOMIC_RELAXED);
    tk_unlock(&tk_verbs.cm->lock);
}

void tk_cm_pair_close(const struct tk_conn *conns)
{
    struct tk_cm_end *ends = tk_cm_ends_of(conns->peer->rank);
    tk_lock(&tk_verbs.cm->lock);
    tk_cm_conn_request_end(ends);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_cm_end_drop(&ends[k]);
    tk_unlock(&tk_verbs.cm->lock);
}

/* ---- what has become of it ---- */

enum tk_cm_outcome tk_cm_pair_outcome(const struct tk_conn *conns)
{
    const struct tk_cm_end *ends = tk_cm_ends_of(conns->peer->rank);
    enum tk_cm_outcome outcome = TK_CM_CONNECTED;
    tk_lock(&tk_verbs.cm->lock);
    for (uint32_t k = 0; k < tk_verbs.conns_pp && outcome != TK_CM_REFUSED; k++) {
        if (ends[k].state == TK_CM_FAILED)
            outcome = ends[k].was_refused ? TK_CM_REFUSED : TK_CM_BROKEN;
        else if (ends[k].state != TK_CM_UP && outcome == TK_CM_CONNECTED)
            outcome = TK_CM_CONNECTING;
    }
    tk_unlock(&tk_verbs.cm->lock);
    return outcome;
}

/* Without failover no rank connects any more: closes the listeners, so that strangers can't
 * connect. */
void tk_cm_serve_no_more(void)
{
    tk_lock(&tk_verbs.cm->lock);
    __atomic_store_n(&tk_verbs.cm->is_on_demand, false, __ATOMIC_RELAXED);
    if (!tk_verbs.failover_enabled)
        tk_cm_close_listeners();
    tk_unlock(&tk_verbs.cm->lock);
}

bool tk_cm_has_heard(void)
{
    tk_lock(&tk_verbs.cm->lock);
    bool has_heard = tk_verbs.cm->has_heard;
    tk_unlock(&tk_verbs.cm->lock);
    return has_heard;
}

bool tk_cm_is_quiet(uint64_t now)
{
    return now < __atomic_load_n(&tk_verbs.cm->next_look, __ATOMIC_RELAXED) &&
           __atomic_load_n(&tk_verbs.cm->kept_count, __ATOMIC_RELAXED) == 0;
}

int tk_cm_credits_of(uint32_t rank)
{
    return (int)tk_verbs.cm->credits[rank];
}

int tk_cm_file(void)
{
    return tk_verbs.cm && __atomic_load_n(&tk_verbs.cm->is_on_demand, __ATOMIC_RELAXED)
               ? tk_verbs.cm->channel->fd
               : -1;
}
