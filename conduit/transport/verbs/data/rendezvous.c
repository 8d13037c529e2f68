/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiver of rendezvous messages (rendezvous.h). Owns tk_verbs.rndv except the sources in it.
 * No other lock is held while its lock is taken. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/rendezvous_queue.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/library.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs_state.h"

enum tk_status tk_rndv_open(void)
{
    unsigned places = tk_verbs.recv_small ? tk_verbs_landings(TK_THREADED) : 0;
    struct tk_rndv_state *state = tk_verbs.rndv = calloc(1, sizeof(*state));
    if (!state) {
        tk_log_error("out of memory for messages larger than GASNET_RBUF_SIZE");
        return TK_FAIL;
    }
    tk_lock_init(&state->lock);
    tk_lock_init(&state->source_lock);
    tk_rndv_queue_open(&state->queue, places);
    return tk_large_pool_open(places);
}

void tk_rndv_close(void)
{
    struct tk_rndv_state *state = tk_verbs.rndv;
    while (state && state->newest) {
        struct tk_rndv *rndv = state->newest;
        state->newest = rndv->older;
        free(rndv);
    }
    free(state);
    tk_verbs.rndv = NULL;
}

/* ---- requests ---- */

/* With the lock. Reuses an entry or makes one: as many exist as were ever in flight at once, which
 * credits of peers bound. */
static struct tk_rndv *rndv_make(struct tk_rndv_state *state)
{
    struct tk_rndv *rndv = tk_rndv_list_take(&state->free);
    if (rndv)
        return rndv;
    rndv = calloc(1, sizeof(*rndv));
    if (!rndv)
        tk_panic("out of memory for an active message (%zu bytes)", sizeof(*rndv));
    rndv->older = state->newest;
    state->newest = rndv;
    return rndv;
}

static void rndv_end(struct tk_rndv *rndv)
{
    struct tk_rndv_state *state = tk_verbs.rndv;
    tk_counter_add(&rndv->conn->rndv_count, -1);
    tk_counter_add(&tk_verbs.rndv_count, -1);
    tk_counter_add(&tk_verbs.pending_work, -1);
    tk_lock(&state->lock);
    tk_rndv_list_add(&state->free, rndv);
    tk_unlock(&state->lock);
}

void tk_rndv_request_came(struct tk_conn *conn, const void *bytes, size_t size)
{
    struct tk_rndv_state *state = tk_verbs.rndv;
    struct tk_rndv_request request;
    if (size < sizeof(request))
        tk_wire_error(conn, "a malformed message came");
    memcpy(&request, bytes, sizeof(request));
    if (!tk_verbs.recv_small || request.size > tk_message_max ||
        request.size <= tk_verbs.recv_small)
        tk_wire_error(conn, "a malformed rendezvous request came");
    tk_counter_add(&conn->rndv_count, 1);
    /* This order keeps tk_work_besides_rndv() from being negative. */
    tk_counter_add(&tk_verbs.pending_work, 1);
    tk_counter_add(&tk_verbs.rndv_count, 1);
    tk_lock(&state->lock);
    struct tk_rndv *rndv = rndv_make(state), *older = rndv->older;
    *rndv = (struct tk_rndv){.conn = conn,
                             .address = request.address,
                             .word = request.word,
                             .key = request.key,
                             .size = request.size,
                             .older = older};
    tk_rndv_queue_add(&state->queue, rndv);
    tk_unlock(&state->lock);
    tk_rndv_start();
}

/* ---- access to the sender's memory ---- */

/* Returns the primary connection, as for replies. If it is not connected, because nothing was sent
 * to this peer before, begins to connect. A connection that may not be used yet has no space. */
static struct tk_conn *conn_back(const struct tk_rndv *rndv)
{
    struct tk_peer *peer = rndv->conn->peer;
    const struct tk_transport *transport = tk_peer_transport(peer);
    if (transport->am.before_reply)
        transport->am.before_reply(peer);
    return tk_primary_lock(peer);
}

static void set_stuck(struct tk_rndv *rndv, bool is_stuck)
{
    tk_counter_add(&tk_verbs.rndv_stuck, is_stuck - rndv->is_stuck);
    rndv->is_stuck = is_stuck;
}

static void post_read(struct tk_conn *conn, struct tk_tx *tx, struct tk_rndv *rndv)
{
    rndv->buffer = tk_large_buffer_take();
    struct ibv_sge sge = {.addr = (uintptr_t)rndv->buffer->data,
                          .length = rndv->size,
                          .lkey = rndv->buffer->keys[conn->rail]};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = rndv->address;
    wr.wr.rdma.rkey = rndv->key;
    tk_counter_set(&rndv->op.pending, 1);
    tx->op = &rndv->op;
    tx->nbytes = rndv->size;
    tk_tx_post_more(tx, &wr, IBV_WR_RDMA_READ, 0, tk_verbs.needs_more, NULL);
}

static bool start(struct tk_rndv *rndv)
{
    struct tk_conn *conn = conn_back(rndv);
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (tx)
        post_read(conn, tx, rndv);
    tk_unlock(&conn->lock);
    set_stuck(rndv, !tx);
    return tx != NULL;
}

/* If nothing can be inline, the word is sent from a buffer of its own: the large buffer may soon be
 * the source of another message, and must not change before the device has read it. */
static void post_word(struct tk_conn *conn, struct tk_tx *tx, const struct tk_rndv *rndv)
{
    uint64_t word = 1;
    struct ibv_sge sge = {.addr = (uintptr_t)&word, .length = sizeof(word)};
    struct ibv_send_wr wr;
    if (tx->bounce) {
        memcpy(tx->bounce->data, &word, sizeof(word));
        sge.addr = (uintptr_t)tx->bounce->data;
        sge.lkey = tx->bounce->keys[conn->rail];
    }
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = rndv->word;
    wr.wr.rdma.rkey = rndv->key;
    tx->nbytes = sizeof(word);
    tk_tx_post_more(tx, &wr, IBV_WR_RDMA_WRITE, tx->bounce ? 0 : IBV_SEND_INLINE,
                    tk_verbs.needs_more, NULL);
}

/* Tells the sender that its source may be used again. */
static void ack(struct tk_rndv *rndv)
{
    struct tk_conn *conn = conn_back(rndv);
    struct tk_tx *tx = tk_tx_take(conn, tk_verbs.inline_limit < sizeof(uint64_t));
    if (tx)
        post_word(conn, tx, rndv);
    tk_unlock(&conn->lock);
    set_stuck(rndv, !tx);
    rndv->is_acked = tx != NULL;
}

/* ---- progress ---- */

static void ack_all(struct tk_rndv_state *state)
{
    struct tk_rndv *rndv;
    bool is_acked; /* another thread may reuse the entry at once */
    do {
        tk_lock(&state->lock);
        rndv = tk_rndv_list_take(&state->unacked);
        tk_unlock(&state->lock);
        if (!rndv)
            return;
        ack(rndv);
        is_acked = rndv->is_acked;
        if (is_acked)
            rndv_end(rndv);
    } while (is_acked);
    tk_lock(&state->lock);
    tk_rndv_list_add(&state->unacked, rndv);
    tk_unlock(&state->lock);
}

static struct tk_rndv *next(struct tk_rndv_state *state, int *tries)
{
    tk_lock(&state->lock);
    if (*tries < 0)
        *tries = state->queue.count;
    struct tk_rndv *rndv = *tries > 0 ? tk_rndv_queue_next(&state->queue) : NULL;
    tk_unlock(&state->lock);
    --*tries;
    return rndv;
}

/* Tries each message once, because one connection may have no space while others have. */
void tk_rndv_start(void)
{
    struct tk_rndv_state *state = tk_verbs.rndv;
    int tries = -1;
    ack_all(state);
    for (struct tk_rndv *rndv; (rndv = next(state, &tries)) != NULL;) {
        bool is_begun = start(rndv);
        tk_lock(&state->lock);
        if (is_begun)
            tk_rndv_queue_read(&state->queue, rndv);
        else
            tk_rndv_queue_put_back(&state->queue, rndv);
        tk_unlock(&state->lock);
    }
}

struct tk_rndv *tk_rndv_take(void)
{
    struct tk_rndv_state *state = tk_verbs.rndv;
    tk_lock(&state->lock);
    struct tk_rndv *rndv = tk_rndv_queue_take(&state->queue);
    tk_unlock(&state->lock);
    if (rndv)
        ack(rndv);
    return rndv;
}

void tk_rndv_give(struct tk_rndv *rndv)
{
    struct tk_rndv_state *state = tk_verbs.rndv;
    bool is_acked = rndv->is_acked;
    tk_pool_give(&tk_verbs.large_pool, rndv->buffer);
    rndv->buffer = NULL;
    tk_lock(&state->lock);
    tk_rndv_queue_leave(&state->queue);
    if (!is_acked)
        tk_rndv_list_add(&state->unacked, rndv);
    tk_unlock(&state->lock);
    if (is_acked)
        rndv_end(rndv);
}
