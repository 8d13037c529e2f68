/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posting of sends: inline when small, else through a bounce buffer; the payload is gathered from
 * its place if it is registered and its owner can wait. Called with the connection's lock held,
 * except tk_verbs_send() and tk_verbs_send_short(), which take it. */
#include "config.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/copy.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/report.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/send_trace.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* Copies head and payload into one range; the payload may be empty. The device copies them anyway,
 * and a software device has a shorter path for requests with one range. */
static void post_inline(struct tk_tx *tx, const struct tk_outgoing *m)
{
    char bytes[tk_inline_max];
    struct ibv_sge sge = {.addr = (uintptr_t)m->head,
                          .length = (uint32_t)(m->head_size + m->nbytes)};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    if (m->nbytes > 0) {
        memcpy(bytes, m->head, m->head_size);
        memcpy(bytes + m->head_size, m->payload, m->nbytes);
        sge.addr = (uintptr_t)bytes;
    }
    tx->nbytes = sge.length;
    tk_tx_post(tx, &wr, IBV_WR_SEND, IBV_SEND_INLINE, NULL, NULL);
}

static void post_gathered(struct tk_tx *tx, const struct tk_outgoing *m)
{
    struct ibv_sge sge[2] = {{.addr = (uintptr_t)tx->bounce->data,
                              .length = (uint32_t)m->head_size,
                              .lkey = tx->bounce->keys[tx->conn->rail]},
                             {.addr = (uintptr_t)m->payload,
                              .length = (uint32_t)m->nbytes,
                              .lkey = tk_verbs.segment->local[tx->conn->rail]}};
    struct ibv_send_wr wr;
    wr.sg_list = sge;
    wr.num_sge = 2;
    memcpy(tx->bounce->data, m->head, m->head_size);
    tx->op = m->source;
    tk_counter_add(&m->source->pending, 1);
    tx->nbytes = (uint32_t)(m->head_size + m->nbytes);
    tk_tx_post(tx, &wr, IBV_WR_SEND, 0, tk_verbs.segment->local, NULL);
}

/* Its completion also frees the buffers of the unsignaled messages before it. */
static inline void take_over_bounces(struct tk_tx *tx)
{
    struct tk_conn *conn = tx->conn;
    if (conn->unsignaled_tx.more_bounces == 0)
        return;
    tx->bounce->item.next = &conn->unsignaled_tx.bounce->item;
    tx->more_bounces = conn->unsignaled_tx.more_bounces;
    conn->unsignaled_tx.more_bounces = 0;
}

/* Posts a message that lies in its buffer. */
static inline void post_buffer(struct tk_tx *tx, const void *at, size_t size)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)at, .length = (uint32_t)size, .lkey = tx->bounce->keys[tx->conn->rail]};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    tx->nbytes = sge.length;
    take_over_bounces(tx);
    tk_tx_post(tx, &wr, IBV_WR_SEND, 0, NULL, NULL);
}

static void copy_message(char *to, const struct tk_outgoing *m)
{
    memcpy(to, m->head, m->head_size);
    tk_copy_large(to + m->head_size, m->payload, m->nbytes);
}

static void post_copied(struct tk_tx *tx, const struct tk_outgoing *m)
{
    copy_message(tx->bounce->data, m);
    post_buffer(tx, tx->bounce->data, m->head_size + m->nbytes);
}

static bool worth_gathering(const struct tk_outgoing *m)
{
    int64_t min = tk_settings.am_gather_min;
    return m->source && min >= 0 && m->nbytes >= (size_t)min && m->nbytes > 0 &&
           tk_is_registered(m->payload, m->nbytes);
}

static inline bool is_small(const struct tk_outgoing *m)
{
    return m->head_size + m->nbytes <= tk_verbs.inline_limit;
}

static bool is_in_place(const struct tk_tx *tx, const struct tk_outgoing *m)
{
    return (uintptr_t)m->head - (uintptr_t)tx->bounce->data < tk_am_buffer_size;
}

/* The message is larger than the peer's receive buffers. */
static bool is_rndv(const struct tk_conn *conn, const struct tk_outgoing *m)
{
    return conn->takes_small && m->head_size + m->nbytes > tk_verbs.small_max;
}

static void __attribute__((noinline)) post_offer(struct tk_tx *tx, const struct tk_outgoing *m)
{
    struct tk_rndv_request offer;
    struct tk_outgoing out = {.head = &offer.head, .head_size = sizeof(offer)};
    tk_rndv_request(tx, m, &offer);
    if (is_small(&out))
        post_inline(tx, &out);
    else
        post_copied(tx, &out);
}

/* `tx` has a bounce buffer unless the message is small. */
void tk_message_post_tx(struct tk_conn *conn, struct tk_tx *tx, struct tk_outgoing *m)
{
    tk_credits_hand_over(conn, m->head);
    if (is_small(m)) {
        tk_message_take(conn, m->head, m->nbytes, tk_path_puts_inline);
        post_inline(tx, m);
    } else if (is_rndv(conn, m)) {
        tk_message_take(conn, m->head, m->nbytes, tk_trace_path_rendezvous);
        post_offer(tx, m);
    } else if (is_in_place(tx, m)) {
        tk_message_take(conn, m->head, m->nbytes, tk_path_puts_bounce);
        post_buffer(tx, m->head, m->head_size + m->nbytes);
    } else if (worth_gathering(m)) {
        tk_message_take(conn, m->head, m->nbytes, tk_path_puts_segment);
        post_gathered(tx, m);
    } else {
        tk_message_take(conn, m->head, m->nbytes, tk_path_puts_bounce);
        post_copied(tx, m);
    }
}

/* Posts the message in unsignaled_data. It completes only in case of an error. */
static inline void unsignaled_post(struct tk_conn *conn, size_t size)
{
    struct ibv_send_wr *bad;
    conn->unsignaled_sge.length = (uint32_t)size;
    int error = ibv_post_send(conn->qp, &conn->unsignaled_wr, &bad);
    /* the device returns the request, so no register is saved for it */
    tk_if_unlikely(error) tk_post_failed((struct tk_tx *)(uintptr_t)bad->wr_id, error);
}

static size_t gather_unsignaled(struct tk_conn *conn, const struct tk_outgoing *m)
{
    char *bytes = conn->unsignaled_data.bytes;
    tk_message_take(conn, m->head, m->nbytes, tk_path_puts_inline);
    tk_credits_hand_over(conn, m->head);
    memcpy(bytes, m->head, m->head_size);
    if (m->nbytes)
        memcpy(bytes + m->head_size, m->payload, m->nbytes);
    return m->head_size + m->nbytes;
}

static bool post_unsignaled(struct tk_conn *conn, const struct tk_outgoing *m)
{
    if (!is_small(m) || m->head_size + m->nbytes > tk_unsignaled_max || !tk_unsignaled_take(conn))
        return false;
    unsignaled_post(conn, gather_unsignaled(conn, m));
    return true;
}

void tk_unsignaled_post_logged(struct tk_conn *conn, size_t size)
{
    tk_tx_entry_unsignaled(conn, size);
    unsignaled_post(conn, size);
}

/* In a failover group every small message fits its log entry; see inline_limit() in open.c. */
static bool post_logged(struct tk_conn *conn, const struct tk_outgoing *m)
{
    if (!tk_verbs.failover_enabled || !is_small(m) || !tk_logged_unsignaled_take(conn))
        return false;
    tk_unsignaled_post_logged(conn, gather_unsignaled(conn, m));
    return true;
}

/* A bounce buffer for a message that needs no completion of its own, with its slot. NULL: nothing
 * was taken; the message has to be signaled. */
static inline struct tk_buffer *unsignaled_bounce_take(struct tk_conn *conn)
{
    if (conn->unsignaled_tx.more_bounces >= tk_verbs.unsignaled_bounces_max ||
        !tk_unsignaled_fits(conn, tk_verbs.unsignaled_max))
        return NULL;
    struct tk_buffer *bounce = tk_pool_take(&tk_verbs.bounce_pool);
    if (bounce)
        tk_unsignaled_count(conn);
    return bounce;
}

/* Posts the message in the buffer, which the connection keeps. */
static inline void unsignaled_bounce_post(struct tk_conn *conn, struct tk_buffer *bounce,
                                          size_t size)
{
    struct ibv_sge sge = {.addr = (uintptr_t)bounce->data,
                          .length = (uint32_t)size,
                          .lkey = bounce->keys[conn->rail]};
    struct ibv_send_wr wr, *bad;
    wr.wr_id = conn->unsignaled_wr.wr_id;
    wr.next = NULL;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = 0;
    tk_if_unlikely(tk_verbs.needs_more) tk_tx_name_queue(conn, &wr);
    bounce->item.next =
        conn->unsignaled_tx.more_bounces > 0 ? &conn->unsignaled_tx.bounce->item : NULL;
    conn->unsignaled_tx.bounce = bounce;
    conn->unsignaled_tx.more_bounces++;
    int error = ibv_post_send(conn->qp, &wr, &bad);
    tk_if_unlikely(error) tk_post_failed((struct tk_tx *)(uintptr_t)bad->wr_id, error);
}

static bool post_copied_unsignaled(struct tk_conn *conn, const struct tk_outgoing *m)
{
    if (is_small(m) || is_rndv(conn, m) || worth_gathering(m))
        return false;
    struct tk_buffer *bounce = unsignaled_bounce_take(conn);
    if (!bounce)
        return false;
    tk_message_take(conn, m->head, m->nbytes, tk_path_puts_bounce);
    tk_credits_hand_over(conn, m->head);
    copy_message(bounce->data, m);
    unsignaled_bounce_post(conn, bounce, m->head_size + m->nbytes);
    return true;
}

static enum tk_status __attribute__((noinline))
post_signaled(struct tk_conn *conn, struct tk_outgoing *m)
{
    if (post_logged(conn, m) || post_copied_unsignaled(conn, m))
        return TK_OK;
    struct tk_tx *tx = tk_tx_take(conn, !is_small(m));
    if (!tx)
        return TK_BUSY;
    tk_message_post_tx(conn, tx, m);
    return TK_OK;
}

enum tk_status tk_message_post(struct tk_conn *conn, struct tk_outgoing *m)
{
    return post_unsignaled(conn, m) ? TK_OK : post_signaled(conn, m);
}

/* Work requests of a broken connection never complete. Only a job that is leaving continues after
 * that, and its notices to other peers must not wait for this one. */
static enum tk_status __attribute__((noinline)) queue_full(struct tk_conn *conn, bool give_credit)
{
    if (give_credit)
        tk_credit_return(conn, 1);
    return tk_counter_read(&conn->broken) ? TK_OK : TK_BUSY;
}

static enum tk_status send_request(struct tk_conn *conn, struct tk_outgoing *m)
{
    tk_if_unlikely(tk_credit_take(conn) != TK_OK) return queue_full(conn, false);
    return tk_message_post(conn, m) == TK_OK ? TK_OK : queue_full(conn, true);
}

/* Its receive buffer is always there. */
static enum tk_status send_bounded(struct tk_conn *conn, struct tk_outgoing *m)
{
    if (tk_message_post(conn, m) != TK_OK)
        return queue_full(conn, false);
    conn->loan->bounded_sent++;
    return TK_OK;
}

static enum tk_status send_locked(struct tk_conn *conn, struct tk_outgoing *m)
{
    if (m->head->kind == TK_BOUNDED && tk_verbs.has_bounded)
        return send_bounded(conn, m);
    if (m->head->kind == TK_BOUNDED)
        m->head->kind = TK_REQUEST;
    if (m->head->kind == TK_REQUEST)
        return send_request(conn, m);
    if (tk_message_post(conn, m) != TK_OK)
        return queue_full(conn, false);
    conn->has_sent_control |= m->head->kind == TK_CONTROL;
    return TK_OK;
}

/* Locks the primary connection, and checks that it still is the primary: another thread may have
 * switched, and the old connection may be in use again. There a request would find no credit. A
 * reply or an ACK takes none: it would be sent where the peer has no buffer for it, and would
 * return its credit to a connection that uses none. */
enum tk_status tk_verbs_send(struct tk_peer *peer, struct tk_outgoing *m)
{
    struct tk_conn *conn = tk_primary_lock(peer);
    enum tk_status status = send_locked(conn, m);
    tk_unlock(&conn->lock);
    return status;
}

/* The four below send the message in unsignaled_data. */

/* With a completion, which also covers the messages before it. */
static bool post_prebuilt_signaled(struct tk_conn *conn, size_t size)
{
    struct ibv_send_wr *wr = &conn->unsignaled_wr;
    struct tk_tx *tx =
        size > tk_verbs.inline_limit || tk_verbs.failover_enabled ? NULL : tk_tx_take(conn, false);
    if (!tx)
        return false;
    tk_message_take(conn, &conn->unsignaled_data.message.head, 0, tk_path_puts_inline);
    tk_credits_hand_over(conn, &conn->unsignaled_data.message.head);
    tx->nbytes = conn->unsignaled_sge.length = (uint32_t)size;
    tk_tx_post_more(tx, wr, IBV_WR_SEND, IBV_SEND_INLINE, false, NULL);
    wr->wr_id = (uintptr_t)&conn->unsignaled_tx;
    wr->send_flags = IBV_SEND_INLINE;
    return true;
}

static enum tk_status __attribute__((noinline)) post_short_signaled(struct tk_conn *conn)
{
    size_t size = tk_short_size(conn->unsignaled_data.message.head.nargs);
    if (post_prebuilt_signaled(conn, size))
        return TK_OK;
    struct tk_short message = conn->unsignaled_data.message;
    struct tk_outgoing out = {.head = &message.head, .head_size = size};
    bool is_request = message.head.kind == TK_REQUEST;
    return post_signaled(conn, &out) == TK_OK ? TK_OK : queue_full(conn, is_request);
}

/* Takes everything that an inline Short needs, including the receive buffer for the reply. False:
 * nothing was taken. `is_logged` is a constant of each of the two copies of the fast path: in a
 * failover group posts are logged. */
static inline bool __attribute__((always_inline))
take_at_once(struct tk_conn *conn, bool is_request, bool is_logged)
{
    int max = is_logged ? tk_verbs.logged_unsignaled_max : tk_verbs.unsignaled_max;
    if (!tk_unsignaled_fits(conn, max))
        return false;
    if (is_request && (conn->rx_extra <= 0 || !tk_credit_take_alone(conn, tk_credit_waiting(conn))))
        return false;
    tk_unsignaled_count(conn);
    return true;
}

static inline void __attribute__((always_inline))
post_taken(struct tk_conn *conn, size_t size, size_t nbytes, bool is_logged)
{
    tk_message_take(conn, &conn->unsignaled_data.message.head, nbytes, tk_path_puts_inline);
    tk_credits_hand_over(conn, &conn->unsignaled_data.message.head);
    if (is_logged)
        tk_unsignaled_post_logged(conn, size);
    else
        unsignaled_post(conn, size);
}

static enum tk_status post_short(struct tk_conn *conn, bool is_request, size_t size)
{
    bool is_logged = tk_verbs.failover_enabled;
    if (is_request && tk_credit_take(conn) != TK_OK)
        return queue_full(conn, false);
    if (size > tk_verbs.inline_limit || !take_at_once(conn, false, is_logged))
        return post_short_signaled(conn);
    post_taken(conn, size, 0, is_logged);
    return TK_OK;
}

TK_FIRST_USE static enum tk_status send_slowly(struct tk_peer *peer, struct tk_message_head head,
                                               const int32_t *args)
{
    struct tk_conn *conn = tk_primary_lock(peer);
    tk_short_build(&conn->unsignaled_data.message, head, args);
    enum tk_status status = post_short(conn, head.kind == TK_REQUEST, tk_short_size(head.nargs));
    tk_unlock(&conn->lock);
    return status;
}

/* Entered by tail jumps, with the original arguments and nothing taken, so that the fast path saves
 * no registers for the rare cases. */
TK_FIRST_USE static enum tk_status __attribute__((noinline))
send_short_slowly(struct tk_peer *peer, struct tk_message_head head, const int32_t *args,
                  tk_short_busy *busy)
{
    enum tk_status status = send_slowly(peer, head, args);
    return status != TK_BUSY || !busy ? status : busy(peer, head, args);
}

TK_FIRST_USE static enum tk_status __attribute__((noinline))
send_small_slowly(struct tk_peer *peer, unsigned tag, uint64_t args, tk_small_busy *busy)
{
    const int32_t both[] = {(int32_t)args, (int32_t)(args >> 32)};
    enum tk_status status = send_slowly(peer, tk_tag_head(tag), both);
    return status != TK_BUSY || !busy ? status : busy(peer, tag, args);
}

static inline enum tk_status __attribute__((always_inline))
send_short(struct tk_peer *peer, struct tk_message_head head, const int32_t *args,
           tk_short_busy *busy, bool is_logged)
{
    struct tk_conn *conn = tk_primary(peer);
    size_t size = tk_short_size(head.nargs);
    tk_if_unlikely(!tk_trylock_free(&conn->lock)) return send_short_slowly(peer, head, args, busy);
    tk_if_unlikely((is_logged && tk_is_passed_over(conn, peer)) || size > tk_verbs.inline_limit ||
                   !take_at_once(conn, head.kind == TK_REQUEST, is_logged))
    {
        tk_unlock(&conn->lock);
        return send_short_slowly(peer, head, args, busy);
    }
    tk_short_build(&conn->unsignaled_data.message, head, args);
    post_taken(conn, size, 0, is_logged);
    tk_unlock(&conn->lock);
    return TK_OK;
}

enum tk_status tk_verbs_send_short(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, tk_short_busy *busy)
{
    return send_short(peer, head, args, busy, false);
}

enum tk_status tk_logged_send_short(struct tk_peer *peer, struct tk_message_head head,
                                    const int32_t *args, tk_short_busy *busy)
{
    return send_short(peer, head, args, busy, true);
}

static inline enum tk_status __attribute__((always_inline))
send_small(struct tk_peer *peer, unsigned tag, uint64_t args, tk_small_busy *busy, bool is_logged)
{
    struct tk_conn *conn = tk_primary(peer);
    size_t size = tk_short_size(tk_tag_nargs(tag));
    tk_if_unlikely(!tk_trylock_free(&conn->lock)) return send_small_slowly(peer, tag, args, busy);
    /* such a message is inline: allow_unsignaled() in open.c */
    tk_if_unlikely((is_logged && tk_is_passed_over(conn, peer)) ||
                   !take_at_once(conn, !(tag & tk_tag_reply), is_logged))
    {
        tk_unlock(&conn->lock);
        return send_small_slowly(peer, tag, args, busy);
    }
    struct tk_short *message = &conn->unsignaled_data.message;
    message->head = tk_tag_head(tag);
    message->args[0] = (int32_t)args;
    message->args[1] = (int32_t)(args >> 32);
    post_taken(conn, size, 0, is_logged);
    tk_unlock(&conn->lock);
    return TK_OK;
}

enum tk_status tk_verbs_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy)
{
    return send_small(peer, tag, args, busy, false);
}

enum tk_status tk_logged_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                    tk_small_busy *busy)
{
    return send_small(peer, tag, args, busy, true);
}

static inline void build_medium(struct tk_conn *conn, char *at, uint64_t head, const int32_t *args,
                                const void *payload, size_t nbytes)
{
    struct tk_short *message = (struct tk_short *)(void *)at;
    tk_short_build(message, tk_head_of_number(head), args);
    tk_credits_hand_over(conn, &message->head);
    tk_copy_large(at + tk_short_size(tk_head_nargs(head)), payload, nbytes);
    tk_message_take(conn, &message->head, nbytes, tk_path_puts_bounce);
}

static enum tk_status __attribute__((noinline))
post_medium_signaled(struct tk_conn *conn, uint64_t head, const int32_t *args, const void *payload,
                     size_t nbytes)
{
    struct tk_tx *tx = tk_tx_take(conn, true);
    tk_if_unlikely(!tx) return queue_full(conn, !tk_head_is_reply(head));
    build_medium(conn, tx->bounce->data, head, args, payload, nbytes);
    post_buffer(tx, tx->bounce->data, tk_short_size(tk_head_nargs(head)) + nbytes);
    return TK_OK;
}

/* A Medium that is too large to be inline: built in the buffer from which it is sent. */
static enum tk_status post_medium(struct tk_conn *conn, uint64_t head, const int32_t *args,
                                  const void *payload, size_t nbytes)
{
    bool is_request = !tk_head_is_reply(head);
    tk_if_unlikely(is_request && tk_credit_take(conn) != TK_OK) return queue_full(conn, false);
    struct tk_buffer *bounce = unsignaled_bounce_take(conn);
    if (!bounce)
        return post_medium_signaled(conn, head, args, payload, nbytes);
    build_medium(conn, bounce->data, head, args, payload, nbytes);
    unsignaled_bounce_post(conn, bounce, tk_short_size(tk_head_nargs(head)) + nbytes);
    return TK_OK;
}

static enum tk_status __attribute__((noinline))
send_medium_copied(struct tk_peer *peer, uint64_t head, const int32_t *args, const void *payload,
                   size_t nbytes, tk_medium_busy *busy)
{
    tk_if_unlikely(tk_primary(peer)->takes_small) return tk_send_medium_whole(
        peer, head, args, payload, nbytes, busy);
    struct tk_conn *conn = tk_primary_lock(peer);
    enum tk_status status = post_medium(conn, head, args, payload, nbytes);
    tk_unlock(&conn->lock);
    return status == TK_BUSY && busy ? busy(peer, head, args, payload, nbytes) : status;
}

/* Sends without a completion: copies head and payload into unsignaled_data. Other cases leave by a
 * tail jump, as above. */
static inline enum tk_status __attribute__((always_inline))
send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args, const void *payload,
            size_t nbytes, tk_medium_busy *busy, bool is_logged)
{
    struct tk_conn *conn = tk_primary(peer);
    size_t front = tk_short_size(tk_head_nargs(head)), size = front + nbytes;
    if (size > tk_verbs.inline_limit)
        return send_medium_copied(peer, head, args, payload, nbytes, busy);
    tk_if_unlikely(size > tk_unsignaled_max ||
                   !tk_trylock_free(&conn->lock)) return tk_send_medium_whole(peer, head, args,
                                                                              payload, nbytes,
                                                                              busy);
    tk_if_unlikely((is_logged && tk_is_passed_over(conn, peer)) ||
                   !take_at_once(conn, !tk_head_is_reply(head), is_logged))
    {
        tk_unlock(&conn->lock);
        return tk_send_medium_whole(peer, head, args, payload, nbytes, busy);
    }
    tk_short_build(&conn->unsignaled_data.message, tk_head_of_number(head), args);
    tk_copy(conn->unsignaled_data.bytes + front, payload, nbytes);
    post_taken(conn, size, nbytes, is_logged);
    tk_unlock(&conn->lock);
    return TK_OK;
}

enum tk_status tk_verbs_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                    const void *payload, size_t nbytes, tk_medium_busy *busy)
{
    return send_medium(peer, head, args, payload, nbytes, busy, false);
}

enum tk_status tk_logged_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                     const void *payload, size_t nbytes, tk_medium_busy *busy)
{
    return send_medium(peer, head, args, payload, nbytes, busy, true);
}
