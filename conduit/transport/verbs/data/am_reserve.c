/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Room taken before its message: a credit, a slot of the send queue, a bounce buffer that the
 * client itself fills. Takes the link's lock. Nobody may wait for one of these while holding
 * another that other threads wait for: reserve() takes all or none, and what send_reserved() may
 * still miss is in the hands of the device alone. */
#include "config.h"

#include <stdlib.h>

#include "base/report.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/verbs_private.h"

/* What a broken link holds never completes; only a job that is leaving goes on after that. It
 * writes to memory that nobody reads or frees. */
static void lend_nowhere(struct tk_room *room, bool buffer)
{
    room->buffer = buffer ? aligned_alloc(TK_CACHE_LINE, tk_buffer_stride) : NULL;
    if (buffer && !room->buffer)
        tk_panic("out of memory for a message of %d bytes", tk_message_max);
}

static enum tk_status borrow(struct tk_link *link, struct tk_room *room, bool buffer)
{
    room->work = tk_work_take(link, buffer);
    if (!room->work)
        return TK_BUSY;
    tk_counter_add(&link->lent, 1);
    return TK_OK;
}

static enum tk_status take(struct tk_link *link, struct tk_room *room, bool place, bool buffer)
{
    if (place && borrow(link, room, buffer) != TK_OK)
        return TK_BUSY;
    struct tk_work *work = room->work;
    room->buffer = buffer ? work->bounce->data : NULL;
    return TK_OK;
}

enum tk_status tk_verbs_reserve(struct tk_room *room, bool place, bool buffer)
{
    struct tk_link *link = tk_primary(room->peer);
    bool is_request = room->kind == TK_REQUEST;
    enum tk_status status = TK_OK;
    room->work = NULL;
    tk_lock(&link->lock);
    if (is_request)
        status = tk_credit_take(link);
    if (status == TK_OK) {
        status = take(link, room, place, buffer);
        if (status != TK_OK && is_request)
            tk_credit_return(link, 1);
    }
    if (status == TK_BUSY && tk_counter_read(&link->broken)) {
        lend_nowhere(room, buffer);
        status = TK_OK;
    }
    tk_unlock(&link->lock);
    return status;
}

/* Room that was taken on a link that died since has its slot on the one that is primary now. */
static bool move_loan(struct tk_link *link, struct tk_work *work)
{
    if (work->link == link)
        return true;
    if (!tk_slot_take(link))
        return false;
    tk_counter_add(&link->lent, 1);
    /* In this order: then a dead link never seems to have less under way than it has. */
    tk_counter_add(&work->link->lent, -1);
    tk_counter_add(&work->link->room, 1);
    work->link = link;
    return true;
}

static enum tk_status complete(struct tk_link *link, struct tk_room *room, bool is_small)
{
    struct tk_work *work = room->work;
    if (!work)
        return borrow(link, room, !is_small);
    if (!tk_link_is_live(link) || !move_loan(link, work))
        return TK_BUSY;
    if (!is_small && !work->bounce)
        work->bounce = tk_pool_take(&tk_verbs.bounce_pool);
    return is_small || work->bounce ? TK_OK : TK_BUSY;
}

enum tk_status tk_verbs_send_reserved(struct tk_room *room, struct tk_outgoing *m)
{
    struct tk_link *link = tk_primary(room->peer);
    bool is_small = m->head_size + m->nbytes <= tk_verbs.inline_limit;
    tk_lock(&link->lock);
    enum tk_status status =
        tk_counter_read(&link->broken) ? TK_FAIL : complete(link, room, is_small);
    if (status == TK_OK) {
        tk_counter_add(&link->lent, -1);
        tk_message_post_work(link, room->work, m);
    }
    tk_unlock(&link->lock);
    return status == TK_BUSY ? TK_BUSY : TK_OK;
}

void tk_verbs_release(struct tk_room *room, bool keep_credit)
{
    struct tk_work *work = room->work;
    struct tk_link *link = tk_primary_lock(room->peer);
    if (work) {
        work->covers = 0; /* it was never posted */
        tk_counter_add(&work->link->lent, -1);
        tk_work_give(work);
    }
    if (room->kind == TK_REQUEST && !keep_credit && !tk_counter_read(&link->broken))
        tk_credit_return(link, 1);
    tk_unlock(&link->lock);
    room->work = NULL;
}
