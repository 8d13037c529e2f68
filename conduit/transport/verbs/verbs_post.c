/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posting of sends: inline when small, else through a bounce buffer, with the payload gathered from
 * where it lies when its owner can wait and it is registered. Called with the link's lock held,
 * except tk_verbs_send(), which takes it. */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/verbs_private.h"
#include "transport/verbs/verbs_work.h"

bool tk_is_registered(const void *address, size_t size)
{
    return tk_verbs.segment_mr && tk_area_holds(&tk_segment_area, address, size);
}

/* Head and payload are gathered by the device; the payload's length may be 0. */
static void post_inline(struct tk_link *link, struct tk_work *work, const struct tk_outgoing *m)
{
    struct ibv_sge sge[2] = {{.addr = (uintptr_t)m->head, .length = (uint32_t)m->head_size},
                             {.addr = (uintptr_t)m->payload, .length = (uint32_t)m->nbytes}};
    struct ibv_send_wr wr;
    wr.sg_list = sge;
    wr.num_sge = m->nbytes ? 2 : 1;
    if (!work) {
        tk_quiet_post(link, &wr, IBV_SEND_INLINE);
        return;
    }
    work->nbytes = (uint32_t)(m->head_size + m->nbytes);
    tk_work_post(work, &wr, IBV_WR_SEND, IBV_SEND_INLINE);
}

static void post_gathered(struct tk_work *work, const struct tk_outgoing *m)
{
    struct ibv_sge sge[2] = {{.addr = (uintptr_t)work->bounce->data,
                              .length = (uint32_t)m->head_size,
                              .lkey = work->bounce->key},
                             {.addr = (uintptr_t)m->payload,
                              .length = (uint32_t)m->nbytes,
                              .lkey = tk_verbs.segment_mr->lkey}};
    struct ibv_send_wr wr;
    wr.sg_list = sge;
    wr.num_sge = 2;
    memcpy(work->bounce->data, m->head, m->head_size);
    work->op = m->source;
    tk_counter_add(&m->source->pending, 1);
    work->nbytes = (uint32_t)(m->head_size + m->nbytes);
    tk_work_post(work, &wr, IBV_WR_SEND, 0);
}

static void post_copied(struct tk_work *work, const struct tk_outgoing *m)
{
    char *bytes = work->bounce->data;
    struct ibv_sge sge = {.addr = (uintptr_t)bytes,
                          .length = (uint32_t)(m->head_size + m->nbytes),
                          .lkey = work->bounce->key};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    memcpy(bytes, m->head, m->head_size);
    if (m->nbytes)
        memcpy(bytes + m->head_size, m->payload, m->nbytes);
    work->nbytes = sge.length;
    tk_work_post(work, &wr, IBV_WR_SEND, 0);
}

static bool worth_gathering(const struct tk_outgoing *m)
{
    int64_t least = tk_settings.am_gather_min;
    return m->source && least >= 0 && m->nbytes >= (size_t)least && m->nbytes > 0 &&
           tk_is_registered(m->payload, m->nbytes);
}

/* Banked credits ride on every message to the peer. */
static void hand_over_credits(struct tk_link *link, struct tk_message_head *head)
{
    int credits = head->kind == TK_CONTROL ? 0 : (int)tk_min((size_t)link->banked, UINT8_MAX);
    head->credits = (uint8_t)credits;
    link->banked -= credits;
}

static bool is_small(const struct tk_outgoing *m)
{
    return m->head_size + m->nbytes <= (size_t)tk_verbs.rail.inline_limit;
}

static void post_in_place(struct tk_work *work, const struct tk_outgoing *m)
{
    struct ibv_sge sge = {.addr = (uintptr_t)m->head,
                          .length = (uint32_t)(m->head_size + m->nbytes),
                          .lkey = work->bounce->key};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    work->nbytes = sge.length;
    tk_work_post(work, &wr, IBV_WR_SEND, 0);
}

static bool is_in_place(const struct tk_work *work, const struct tk_outgoing *m)
{
    return (uintptr_t)m->head - (uintptr_t)work->bounce->data < tk_room_size;
}

/* Whoever took `work` took a buffer with it unless the message is small. */
void tk_message_post_work(struct tk_link *link, struct tk_work *work, struct tk_outgoing *m)
{
    hand_over_credits(link, m->head);
    if (is_small(m))
        post_inline(link, work, m);
    else if (is_in_place(work, m))
        post_in_place(work, m);
    else if (worth_gathering(m))
        post_gathered(work, m);
    else
        post_copied(work, m);
}

enum tk_status tk_message_post(struct tk_link *link, struct tk_outgoing *m)
{
    bool small = is_small(m);
    if (small && tk_quiet_take(link)) {
        hand_over_credits(link, m->head);
        post_inline(link, NULL, m);
        return TK_OK;
    }
    struct tk_work *work = tk_work_take(link, !small);
    if (!work)
        return TK_BUSY;
    tk_message_post_work(link, work, m);
    return TK_OK;
}

enum tk_status tk_verbs_send(struct tk_peer *peer, struct tk_outgoing *m)
{
    struct tk_link *link = peer->connection;
    bool is_request = m->head->kind == TK_REQUEST;
    enum tk_status status = TK_OK;
    tk_lock(&link->lock);
    if (is_request)
        status = tk_credit_take(link);
    if (status == TK_OK) {
        status = tk_message_post(link, m);
        if (status != TK_OK && is_request)
            tk_credit_return(link, 1);
    }
    /* What a broken link holds never completes. Only a job that is leaving goes on after that, and
     * its notices to other peers must not wait for this one. */
    if (status == TK_BUSY && tk_counter_read(&link->broken))
        status = TK_OK;
    tk_unlock(&link->lock);
    return status;
}
