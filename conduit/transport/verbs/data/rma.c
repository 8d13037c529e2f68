/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets as RDMA writes and reads. What is registered goes from and to where it lies. Memory
 * outside the segment is registered on the fly when the transfer is large, and goes through bounce
 * buffers else. Pieces are as large as a stripe, the port's largest message, a region or a bounce
 * buffer, and go over one connection, or by turns over all of the pair.
 * Takes the connection's lock once for as many pieces as there is room for, but anew for each piece
 * that is registered: that takes long, and others wait for the lock.
 */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "base/copy.h"
#include "firehose/firehose.h"
#include "settings/settings.h"
#include "transport/verbs/data/stripe.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/verbs_private.h"

struct piece {
    char *local;
    size_t nbytes;
    const uint32_t *keys; /* of the local memory, where that is used as it is */
    bool is_inline, is_bounced;
};

static size_t piece_max(const struct tk_rma *rma, bool is_bounced)
{
    size_t most = tk_verbs.message_max;
    if (tk_is_striped(rma))
        most = rma->is_blocking ? tk_verbs.blocking_stripe : tk_verbs.stripe[rma->is_put];
    return is_bounced ? tk_min(tk_buffer_size, most) : most;
}

/* The segment of endpoint 0, and that of the local endpoint where it is another. */
static bool find_keys(const struct tk_rma *rma, struct piece *piece, size_t nbytes)
{
    if (tk_is_registered(piece->local, nbytes))
        piece->keys = tk_verbs.segment->local;
    else if (rma->home && tk_region_holds(rma->home, piece->local, nbytes))
        piece->keys = rma->home->local_keys;
    else
        return false;
    return true;
}

static bool wants_copy(const struct tk_rma *rma)
{
    return rma->copy_source && rma->nbytes <= tk_settings.nonbulkput_bounce_limit;
}

/* Once a piece is not bounced, no later one is. */
static struct piece next_piece(const struct tk_rma *rma, struct tk_rma_state *state)
{
    size_t left = rma->nbytes - state->done;
    struct piece piece = {.local = rma->local + state->done};
    bool copy = wants_copy(rma);
    if (rma->is_put && left <= tk_verbs.inline_limit && !tk_is_striped(rma))
        piece.is_inline = true;
    else
        piece.is_bounced = copy || !find_keys(rma, &piece, left);
    piece.nbytes = tk_min(left, piece_max(rma, piece.is_bounced));
    return piece;
}

static void count(struct tk_tx *tx, const struct tk_rma *rma, const struct piece *piece)
{
    bool holds_source = rma->is_put && !piece->is_bounced && !piece->is_inline;
    if (rma->sources_only && !holds_source)
        return;
    tx->op = rma->op;
    tk_counter_add(&rma->op->pending, 1);
    if (!holds_source || !rma->sources)
        return;
    tx->sources = rma->sources;
    tk_counter_add(rma->sources, 1);
}

static void post_piece(struct tk_tx *tx, const struct tk_rma *rma, struct tk_rma_state *state,
                       const struct piece *piece, const uint32_t *remote_keys)
{
    struct ibv_sge sge = {.addr = (uintptr_t)piece->local, .length = (uint32_t)piece->nbytes};
    struct ibv_send_wr wr;
    unsigned flags = piece->is_inline ? IBV_SEND_INLINE : 0;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = rma->remote + state->done;
    wr.wr.rdma.rkey = remote_keys[tx->conn->rail];
    if (piece->is_bounced) {
        sge.addr = (uintptr_t)tx->bounce->data;
        sge.lkey = tx->bounce->keys[tx->conn->rail];
        if (rma->is_put)
            tk_copy_large(tx->bounce->data, piece->local, piece->nbytes);
        else
            tx->get_to = piece->local;
    } else if (!piece->is_inline) {
        sge.lkey = piece->keys[tx->conn->rail];
    }
    tx->nbytes = sge.length;
    state->done += piece->nbytes;
    tk_fence_want(rma, state, tx->conn);
    /* Last: it may be complete at once, and another thread's. */
    tk_tx_post(tx, &wr, rma->is_put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, flags, piece->keys,
               remote_keys);
}

/* A small put is one piece whose source is free on return: most of what next_piece() weighs up does
 * not arise. */
static enum tk_status put_inline(struct tk_conn *conn, const struct tk_rma *rma,
                                 struct tk_rma_state *state, const uint32_t *remote_keys)
{
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (!tx)
        return TK_BUSY;
    struct ibv_sge sge = {.addr = (uintptr_t)rma->local, .length = (uint32_t)rma->nbytes};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = rma->remote;
    wr.wr.rdma.rkey = remote_keys[conn->rail];
    if (!rma->sources_only) {
        tx->op = rma->op;
        tk_counter_add(&rma->op->pending, 1);
    }
    tx->nbytes = sge.length;
    state->done = rma->nbytes;
    tk_tx_post(tx, &wr, IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, NULL, remote_keys);
    tk_fence_want(rma, state, conn);
    return TK_OK;
}

/* ---- what is reserved for a transfer that must be immediate: a stack of work requests ---- */

static struct tk_tx *reserved_pop(struct tk_tx **reserved)
{
    struct tk_tx *tx = *reserved;
    *reserved = (struct tk_tx *)tx->item.next;
    return tx;
}

static void give_back_one(struct tk_tx *tx)
{
    tx->covers = 0;
    tk_tx_give(tx);
}

static void give_back(struct tk_tx *reserved)
{
    while (reserved)
        give_back_one(reserved_pop(&reserved));
}

/* Quiet messages keep their slots until something else completes on the connection. */
static size_t idle_room(const struct tk_conn *conn, bool is_bounced)
{
    int room = tk_verbs.depth_pp - conn->unsignaled;
    return tk_max(1, tk_min((size_t)tk_min(room, tk_verbs.depth_total),
                            is_bounced ? (size_t)tk_verbs.bounces : SIZE_MAX));
}

/* False: not now. More than an idle queue holds is never asked for, or the largest transfers would
 * be refused for ever. */
static bool reserve(struct tk_conn *conn, const struct tk_rma *rma, struct tk_rma_state *state,
                    struct tk_tx **reserved)
{
    struct piece first = next_piece(rma, state);
    size_t most = piece_max(rma, first.is_bounced);
    size_t wanted = tk_min((rma->nbytes + most - 1) / most, idle_room(conn, first.is_bounced));
    while (wanted-- > 0) {
        struct tk_tx *tx = tk_tx_take(conn, first.is_bounced);
        if (!tx) {
            give_back(*reserved);
            *reserved = NULL;
            return false;
        }
        tx->item.next = *reserved ? &(*reserved)->item : NULL;
        *reserved = tx;
    }
    return true;
}

static enum tk_status post_pieces(struct tk_conn *conn, const struct tk_rma *rma,
                                  struct tk_rma_state *state, const uint32_t *remote_keys)
{
    struct tk_tx *reserved = NULL;
    if (rma->immediate && state->done == 0 && !reserve(conn, rma, state, &reserved))
        return TK_BUSY;
    while (state->done < rma->nbytes) {
        struct piece piece = next_piece(rma, state);
        struct tk_tx *tx = reserved ? reserved_pop(&reserved) : tk_tx_take(conn, piece.is_bounced);
        if (!tx)
            return TK_BUSY;
        count(tx, rma, &piece);
        post_piece(tx, rma, state, &piece, remote_keys);
    }
    give_back(reserved);
    return TK_OK;
}

/* ---- local memory that is registered on the fly ---- */

enum {
    held_min = 16 << 10 /* of a piece at an end of a transfer: less is copied in the time that it
                             takes to find or make a region */
};

/* An immediate transfer would have to find regions for all its pieces before the first is posted.
 */
static bool wants_hold(const struct tk_rma *rma, struct tk_rma_state *state)
{
    struct piece rest = {.local = rma->local + state->done};
    size_t whole = tk_is_on_demand ? tk_max(rma->nbytes, rma->whole) : rma->nbytes;
    return whole >= tk_settings.firehose_min && tk_firehose_is_open() && !rma->immediate &&
           !wants_copy(rma) && !find_keys(rma, &rest, rma->nbytes - state->done);
}

/* To be asked once is enough: its memory does not go away before it ends. */
static bool may_hold(const struct tk_rma *rma, struct tk_rma_state *state)
{
    if (!state->may_hold)
        state->may_hold = tk_firehose_may_get(rma->local + state->done, rma->nbytes - state->done);
    return state->may_hold;
}

static struct piece held_piece(const struct tk_rma *rma, struct tk_rma_state *state,
                               struct tk_pinned **held)
{
    size_t left = rma->nbytes - state->done;
    struct piece piece = {.local = rma->local + state->done};
    piece.nbytes = tk_firehose_piece(piece.local, left);
    *held =
        piece.nbytes < held_min ? NULL : tk_firehose_get_if_worth(piece.local, left, piece.nbytes);
    piece.is_bounced = !*held;
    if (*held) {
        piece.keys = tk_pinned_keys(*held);
        piece.nbytes = (*held)->base + (*held)->size - (uintptr_t)piece.local;
    }
    piece.nbytes = tk_min(tk_min(piece.nbytes, left), piece_max(rma, piece.is_bounced));
    return piece;
}

static enum tk_status post_one_held(struct tk_conn *conn, const struct tk_rma *rma,
                                    struct tk_rma_state *state, const uint32_t *remote_keys)
{
    struct tk_pinned *held;
    if (tk_counter_read(&conn->room) <= 0)
        return TK_BUSY;
    struct piece piece = held_piece(rma, state, &held);
    tk_lock(&conn->lock);
    struct tk_tx *tx = tk_tx_take(conn, piece.is_bounced);
    if (tx) {
        tx->is_held = held != NULL;
        if (held)
            tx->held = held;
        count(tx, rma, &piece);
        post_piece(tx, rma, state, &piece, remote_keys);
    }
    tk_unlock(&conn->lock);
    if (!tx && held)
        tk_firehose_put(held);
    return tx ? TK_OK : TK_BUSY;
}

static enum tk_status post_held(struct tk_conn *conn, const struct tk_rma *rma,
                                struct tk_rma_state *state, const uint32_t *remote_keys)
{
    enum tk_status status = TK_OK;
    while (status == TK_OK && state->done < rma->nbytes)
        status = post_one_held(conn, rma, state, remote_keys);
    return status;
}

/* ---- over all connections ---- */

static enum tk_status post_one_striped(struct tk_peer *peer, const struct tk_rma *rma,
                                       struct tk_rma_state *state, bool wants_region)
{
    size_t left = tk_min(rma->nbytes - state->done, piece_max(rma, false));
    struct tk_conn *conn = tk_stripe_conn(peer, left);
    if (!conn)
        return TK_BUSY;
    size_t before = state->done;
    const uint32_t *remote_keys = tk_remote_keys(peer, rma);
    enum tk_status status = TK_BUSY;
    if (wants_region) {
        status = post_one_held(conn, rma, state, remote_keys);
    } else {
        tk_lock(&conn->lock);
        struct piece piece = next_piece(rma, state);
        struct tk_tx *tx = tk_tx_take(conn, piece.is_bounced);
        if (tx) {
            count(tx, rma, &piece);
            post_piece(tx, rma, state, &piece, remote_keys);
            status = TK_OK;
        }
        tk_unlock(&conn->lock);
    }
    tk_stripe_count(conn, state->done - before);
    return status;
}

/* For one that must be immediate: one after another, without the locks of the others. */
static struct tk_tx *reserve_one_striped(const struct tk_peer *peer, size_t nbytes, bool bounced)
{
    struct tk_conn *conn = tk_stripe_conn(peer, nbytes);
    if (!conn)
        return NULL;
    tk_lock(&conn->lock);
    struct tk_tx *tx = tk_tx_take(conn, bounced);
    tk_unlock(&conn->lock);
    if (tx)
        tk_stripe_count(conn, nbytes);
    return tx;
}

static size_t idle_room_of_all(const struct tk_peer *peer, bool is_bounced)
{
    size_t sum = 0, most = (size_t)(is_bounced ? tk_verbs.bounces : tk_verbs.depth_total);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        const struct tk_conn *conn = tk_conns_to(peer->rank) + k;
        if (tk_conn_is_live(conn))
            sum += idle_room(conn, is_bounced);
    }
    return tk_max(1, tk_min(sum, tk_min(most, (size_t)tk_verbs.depth_total)));
}

static bool reserve_striped(const struct tk_peer *peer, const struct tk_rma *rma,
                            struct tk_rma_state *state, struct tk_tx **reserved)
{
    struct piece first = next_piece(rma, state);
    size_t most = piece_max(rma, first.is_bounced);
    size_t wanted =
        tk_min((rma->nbytes + most - 1) / most, idle_room_of_all(peer, first.is_bounced));
    for (; wanted > 0; wanted--) {
        struct tk_tx *tx = reserve_one_striped(peer, most, first.is_bounced);
        if (!tx)
            break;
        tx->item.next = *reserved ? &(*reserved)->item : NULL;
        *reserved = tx;
    }
    if (wanted == 0)
        return true;
    for (const struct tk_tx *tx = *reserved; tx; tx = (struct tk_tx *)tx->item.next)
        tk_stripe_uncount(tx->conn, most);
    give_back(*reserved);
    *reserved = NULL;
    return false;
}

/* Over a connection that died meanwhile nothing is posted: what is left then goes over others. */
static void post_reserved(const struct tk_peer *peer, const struct tk_rma *rma,
                          struct tk_rma_state *state, struct tk_tx *reserved)
{
    const uint32_t *remote_keys = tk_remote_keys(peer, rma);
    while (reserved && state->done < rma->nbytes) {
        struct tk_tx *tx = reserved_pop(&reserved);
        struct tk_conn *conn = tx->conn;
        struct piece piece = next_piece(rma, state);
        tk_lock(&conn->lock);
        bool is_live = tk_conn_is_live(conn);
        if (is_live) {
            count(tx, rma, &piece);
            post_piece(tx, rma, state, &piece, remote_keys);
        }
        tk_unlock(&conn->lock);
        if (!is_live)
            give_back_one(tx);
    }
    give_back(reserved);
}

static enum tk_status post_striped(struct tk_peer *peer, const struct tk_rma *rma,
                                   struct tk_rma_state *state)
{
    bool wants_region = wants_hold(rma, state) && may_hold(rma, state);
    enum tk_status status = TK_OK;
    if (rma->immediate && state->done == 0) {
        struct tk_tx *reserved = NULL;
        if (!reserve_striped(peer, rma, state, &reserved))
            return TK_BUSY;
        post_reserved(peer, rma, state, reserved);
    }
    while (status == TK_OK && state->done < rma->nbytes)
        status = post_one_striped(peer, rma, state, wants_region);
    return status;
}

/* ---- the shortest way there is, for what nobody but its operation has to know of. It waits for no
 * lock: where threads meet, they go the long way, which does. ---- */

/* Not inline: what is rare then leaves the registers of what is not alone. */
static bool __attribute__((noinline)) unlock_in_vain(struct tk_conn *conn)
{
    tk_unlock(&conn->lock);
    return false;
}

static inline bool __attribute__((always_inline))
post_plain(struct tk_conn *conn, const struct tk_peer *peer, struct tk_op *op, uintptr_t remote,
           struct ibv_sge *sge, uint32_t nbytes, enum ibv_wr_opcode opcode, unsigned flags,
           bool is_logged)
{
    struct tk_tx_entry_keys keys;
    struct ibv_send_wr wr;
    tk_if_unlikely(!tk_trylock(&conn->lock)) return false;
    struct tk_tx *tx = tk_tx_take_plain(conn, op);
    tk_if_unlikely(!tx) return unlock_in_vain(conn);
    tx->nbytes = sge->length = nbytes;
    wr.sg_list = sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = peer->segment_key;
    if (is_logged) {
        keys.remote = tk_peers.keys[peer->rank];
        keys.local = opcode == IBV_WR_RDMA_READ ? tk_verbs.segment->local : NULL;
        tk_tx_entry_plain(tx, remote, sge, opcode, &keys);
    }
    tk_tx_post_logged(tx, &wr, opcode, flags, false, NULL);
    tk_unlock(&conn->lock);
    return true;
}

bool tk_verbs_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                  size_t nbytes)
{
    struct ibv_sge sge;
    struct tk_conn *conn = tk_primary(peer);
    tk_if_unlikely(nbytes - 1 >= conn->short_put_max) return false;
    sge.addr = (uintptr_t)local;
    return post_plain(conn, peer, op, remote, &sge, (uint32_t)nbytes, IBV_WR_RDMA_WRITE,
                      IBV_SEND_INLINE, false);
}

static inline bool __attribute__((always_inline))
get_plain(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local, size_t nbytes,
          bool is_logged)
{
    struct ibv_sge sge;
    size_t most = is_logged ? tk_verbs.logged_get_max : tk_verbs.short_get_max;
    tk_if_unlikely(nbytes - 1 >= most || !tk_is_registered(local, nbytes)) return false;
    struct tk_conn *conn = tk_primary(peer);
    sge.addr = (uintptr_t)local;
    sge.lkey = tk_verbs.segment->local[conn->rail];
    return post_plain(conn, peer, op, remote, &sge, (uint32_t)nbytes, IBV_WR_RDMA_READ, 0,
                      is_logged);
}

bool tk_verbs_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                  size_t nbytes)
{
    return get_plain(peer, op, remote, local, nbytes, false);
}

/* Where connections stand in for each other everything is logged. */
bool tk_logged_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                   size_t nbytes)
{
    struct ibv_sge sge;
    struct tk_conn *conn = tk_primary(peer);
    tk_if_unlikely(nbytes - 1 >= conn->short_put_max) return false;
    sge.addr = (uintptr_t)local;
    return post_plain(conn, peer, op, remote, &sge, (uint32_t)nbytes, IBV_WR_RDMA_WRITE,
                      IBV_SEND_INLINE, true);
}

bool tk_logged_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                   size_t nbytes)
{
    return get_plain(peer, op, remote, local, nbytes, true);
}

static enum tk_status post_all(struct tk_peer *peer, const struct tk_rma *rma,
                               struct tk_rma_state *state)
{
    struct tk_conn *conn = tk_primary(peer);
    if (tk_is_striped(rma))
        return post_striped(peer, rma, state);
    bool is_small = rma->is_put && rma->nbytes <= tk_verbs.inline_limit;
    const uint32_t *remote_keys = tk_remote_keys(peer, rma);
    if (wants_hold(rma, state) && may_hold(rma, state))
        return post_held(conn, rma, state, remote_keys);
    tk_lock(&conn->lock);
    enum tk_status status = is_small ? put_inline(conn, rma, state, remote_keys)
                                     : post_pieces(conn, rma, state, remote_keys);
    tk_unlock(&conn->lock);
    return status;
}

enum tk_status tk_verbs_rma(struct tk_peer *peer, const struct tk_rma *rma,
                            struct tk_rma_state *state)
{
    enum tk_status status = state->done < rma->nbytes ? post_all(peer, rma, state) : TK_OK;
    return status == TK_OK && state->unfenced ? tk_fence(peer, rma, state) : status;
}
