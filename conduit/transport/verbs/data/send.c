/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posting of sends: inline when small, else through a bounce buffer, with the payload gathered from
 * where it lies when its owner can wait and it is registered. Called with the link's lock held,
 * except tk_verbs_send() and tk_verbs_send_short(), which take it. */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/verbs_private.h"

bool tk_is_registered(const void *address, size_t size)
{
    return tk_verbs.segment && tk_area_holds(&tk_segment_area, address, size);
}

/* Head and payload are gathered by the device; the payload's length may be 0. */
static void post_inline(struct tk_work *work, const struct tk_outgoing *m)
{
    struct ibv_sge sge[2] = {{.addr = (uintptr_t)m->head, .length = (uint32_t)m->head_size},
                             {.addr = (uintptr_t)m->payload, .length = (uint32_t)m->nbytes}};
    struct ibv_send_wr wr;
    wr.sg_list = sge;
    wr.num_sge = m->nbytes ? 2 : 1;
    work->nbytes = (uint32_t)(m->head_size + m->nbytes);
    tk_work_post(work, &wr, IBV_WR_SEND, IBV_SEND_INLINE, NULL, NULL);
}

static void post_gathered(struct tk_work *work, const struct tk_outgoing *m)
{
    struct ibv_sge sge[2] = {{.addr = (uintptr_t)work->bounce->data,
                              .length = (uint32_t)m->head_size,
                              .lkey = work->bounce->keys[work->link->rail]},
                             {.addr = (uintptr_t)m->payload,
                              .length = (uint32_t)m->nbytes,
                              .lkey = tk_verbs.segment->local[work->link->rail]}};
    struct ibv_send_wr wr;
    wr.sg_list = sge;
    wr.num_sge = 2;
    memcpy(work->bounce->data, m->head, m->head_size);
    work->op = m->source;
    tk_counter_add(&m->source->pending, 1);
    work->nbytes = (uint32_t)(m->head_size + m->nbytes);
    tk_work_post(work, &wr, IBV_WR_SEND, 0, tk_verbs.segment->local, NULL);
}

static void post_copied(struct tk_work *work, const struct tk_outgoing *m)
{
    char *bytes = work->bounce->data;
    struct ibv_sge sge = {.addr = (uintptr_t)bytes,
                          .length = (uint32_t)(m->head_size + m->nbytes),
                          .lkey = work->bounce->keys[work->link->rail]};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    memcpy(bytes, m->head, m->head_size);
    if (m->nbytes)
        memcpy(bytes + m->head_size, m->payload, m->nbytes);
    work->nbytes = sge.length;
    tk_work_post(work, &wr, IBV_WR_SEND, 0, NULL, NULL);
}

static bool worth_gathering(const struct tk_outgoing *m)
{
    int64_t least = tk_settings.am_gather_min;
    return m->source && least >= 0 && m->nbytes >= (size_t)least && m->nbytes > 0 &&
           tk_is_registered(m->payload, m->nbytes);
}

/* Banked credits ride on every message to the peer. */
static inline void hand_over_credits(struct tk_link *link, struct tk_message_head *head)
{
    if (link->banked == 0 || head->kind >= TK_CONTROL)
        return;
    int credits = (int)tk_min((size_t)link->banked, UINT8_MAX);
    head->credits = (uint8_t)credits;
    link->banked -= credits;
}

static inline bool is_small(const struct tk_outgoing *m)
{
    return m->head_size + m->nbytes <= tk_verbs.inline_limit;
}

static void post_in_place(struct tk_work *work, const struct tk_outgoing *m)
{
    struct ibv_sge sge = {.addr = (uintptr_t)m->head,
                          .length = (uint32_t)(m->head_size + m->nbytes),
                          .lkey = work->bounce->keys[work->link->rail]};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    work->nbytes = sge.length;
    tk_work_post(work, &wr, IBV_WR_SEND, 0, NULL, NULL);
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
        post_inline(work, m);
    else if (is_in_place(work, m))
        post_in_place(work, m);
    else if (worth_gathering(m))
        post_gathered(work, m);
    else
        post_copied(work, m);
}

/* What lies in quiet_data. It comes back in errors only. */
static inline void quiet_post(struct tk_link *link, size_t size)
{
    struct ibv_send_wr *bad;
    link->quiet_sge.length = (uint32_t)size;
    int error = ibv_post_send(link->qp, &link->quiet_wr, &bad);
    tk_if_unlikely(error) tk_post_failed(&link->quiet_work, error);
}

static size_t gather_quiet(struct tk_link *link, const struct tk_outgoing *m)
{
    char *bytes = link->quiet_data.bytes;
    hand_over_credits(link, m->head);
    memcpy(bytes, m->head, m->head_size);
    if (m->nbytes)
        memcpy(bytes + m->head_size, m->payload, m->nbytes);
    return m->head_size + m->nbytes;
}

static bool post_quietly(struct tk_link *link, const struct tk_outgoing *m)
{
    if (!is_small(m) || m->head_size + m->nbytes > tk_quiet_max || !tk_quiet_take(link))
        return false;
    quiet_post(link, gather_quiet(link, m));
    return true;
}

void tk_quiet_post_noted(struct tk_link *link, size_t size)
{
    tk_note_quiet(link, size);
    quiet_post(link, size);
}

/* Where messages are noted no small one is too large for its note; see inline_limit() in
 * open.c. */
static bool post_noted(struct tk_link *link, const struct tk_outgoing *m)
{
    if (!tk_verbs.keeps || !is_small(m) || !tk_noted_quiet_take(link))
        return false;
    tk_quiet_post_noted(link, gather_quiet(link, m));
    return true;
}

static enum tk_status __attribute__((noinline))
post_loudly(struct tk_link *link, struct tk_outgoing *m)
{
    if (post_noted(link, m))
        return TK_OK;
    struct tk_work *work = tk_work_take(link, !is_small(m));
    if (!work)
        return TK_BUSY;
    tk_message_post_work(link, work, m);
    return TK_OK;
}

enum tk_status tk_message_post(struct tk_link *link, struct tk_outgoing *m)
{
    return post_quietly(link, m) ? TK_OK : post_loudly(link, m);
}

/* What a broken link holds never completes. Only a job that is leaving goes on after that, and its
 * notices to other peers must not wait for this one. */
static enum tk_status __attribute__((noinline)) no_room(struct tk_link *link, bool give_credit)
{
    if (give_credit)
        tk_credit_return(link, 1);
    return tk_counter_read(&link->broken) ? TK_OK : TK_BUSY;
}

static enum tk_status send_locked(struct tk_link *link, struct tk_outgoing *m)
{
    bool is_request = m->head->kind == TK_REQUEST;
    tk_if_unlikely(is_request && tk_credit_take(link) != TK_OK) return no_room(link, false);
    return tk_message_post(link, m) == TK_OK ? TK_OK : no_room(link, is_request);
}

enum tk_status tk_verbs_send(struct tk_peer *peer, struct tk_outgoing *m)
{
    struct tk_link *link = tk_primary(peer);
    tk_lock(&link->lock);
    enum tk_status status = send_locked(link, m);
    tk_unlock(&link->lock);
    return status;
}

/* The four below are about the message in quiet_data. */

static enum tk_status __attribute__((noinline)) post_short_loudly(struct tk_link *link)
{
    struct tk_short message = link->quiet_data.message;
    struct tk_outgoing out = {.head = &message.head,
                              .head_size = tk_short_size(message.head.nargs)};
    bool is_request = message.head.kind == TK_REQUEST;
    return post_loudly(link, &out) == TK_OK ? TK_OK : no_room(link, is_request);
}

/* `notes` is a constant: where links stand in for each other what is posted is noted, and has its
 * own functions, so that nobody has to ask. */
static inline enum tk_status __attribute__((always_inline))
post_short(struct tk_link *link, bool notes)
{
    struct tk_message_head *head = &link->quiet_data.message.head;
    size_t size = tk_short_size(head->nargs);
    tk_if_unlikely(
        size > (size_t)tk_verbs.inline_limit ||
        !(notes ? tk_noted_quiet_take(link) : tk_quiet_take(link))) return post_short_loudly(link);
    hand_over_credits(link, head);
    if (notes)
        tk_quiet_post_noted(link, size);
    else
        quiet_post(link, size);
    return TK_OK;
}

static enum tk_status __attribute__((noinline)) no_credit(struct tk_link *link)
{
    tk_credit_none(link);
    return no_room(link, false);
}

static enum tk_status __attribute__((noinline)) post_buffer_and_short(struct tk_link *link)
{
    if (tk_credit_post_reply_buffer(link) != TK_OK)
        return no_room(link, false);
    return tk_verbs.keeps ? post_short(link, true) : post_short(link, false);
}

/* The message is built. What is rare is left by jumps to functions of their own: then there is
 * little to be saved on the way that is not. */
static inline enum tk_status __attribute__((always_inline))
send_short_locked(struct tk_link *link, uint8_t kind, bool notes)
{
    if (kind == TK_REQUEST) {
        tk_if_unlikely(!tk_credit_take_alone(link)) return no_credit(link);
        tk_if_unlikely(link->surplus < 0) return post_buffer_and_short(link);
    }
    return post_short(link, notes);
}

static inline enum tk_status __attribute__((always_inline))
send_short(struct tk_peer *peer, struct tk_message_head head, const int32_t *args,
           tk_short_busy *busy, bool notes)
{
    struct tk_link *link = tk_primary(peer);
    tk_lock(&link->lock);
    tk_short_build(&link->quiet_data.message, head, args);
    enum tk_status status = send_short_locked(link, head.kind, notes);
    tk_unlock(&link->lock);
    tk_if_likely(status != TK_BUSY || !busy) return status;
    return busy(peer, head, args);
}

enum tk_status tk_verbs_send_short(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, tk_short_busy *busy)
{
    return send_short(peer, head, args, busy, false);
}

enum tk_status tk_noting_send_short(struct tk_peer *peer, struct tk_message_head head,
                                    const int32_t *args, tk_short_busy *busy)
{
    return send_short(peer, head, args, busy, true);
}

static inline enum tk_status __attribute__((always_inline))
send_small(struct tk_peer *peer, unsigned tag, uint64_t args, tk_small_busy *busy, bool notes)
{
    struct tk_link *link = tk_primary(peer);
    tk_lock(&link->lock);
    struct tk_short *message = &link->quiet_data.message;
    message->head = tk_tag_head(tag);
    message->args[0] = (int32_t)args;
    message->args[1] = (int32_t)(args >> 32);
    enum tk_status status = send_short_locked(link, message->head.kind, notes);
    tk_unlock(&link->lock);
    tk_if_likely(status != TK_BUSY || !busy) return status;
    return busy(peer, tag, args);
}

enum tk_status tk_verbs_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy)
{
    return send_small(peer, tag, args, busy, false);
}

enum tk_status tk_noting_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                    tk_small_busy *busy)
{
    return send_small(peer, tag, args, busy, true);
}
