/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiver of messages that are pulled (rendezvous.h). Owns tk_verbs.pulling, but for the
 * sources in it. Its lock is taken alone. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "peer/peer.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/limits.h"

enum tk_status tk_pulls_open(void)
{
    unsigned places = tk_verbs.recv_small ? tk_verbs_landings(TK_THREADED) : 0;
    struct tk_pulls *pulls = tk_verbs.pulling = calloc(1, sizeof(*pulls));
    if (!pulls) {
        tk_log_error("out of memory for messages larger than GASNET_RBUF_SIZE");
        return TK_FAIL;
    }
    tk_lock_init(&pulls->lock);
    tk_lock_init(&pulls->source_lock);
    tk_pull_queue_open(&pulls->queue, places);
    return tk_large_pool_open(places);
}

void tk_pulls_close(void)
{
    struct tk_pulls *pulls = tk_verbs.pulling;
    while (pulls && pulls->newest) {
        struct tk_pull *pull = pulls->newest;
        pulls->newest = pull->older;
        free(pull);
    }
    free(pulls);
    tk_verbs.pulling = NULL;
}

/* ---- offers ---- */

/* With the lock; as many as ever were there at once, which credits of peers bound. */
static struct tk_pull *pull_make(struct tk_pulls *pulls)
{
    struct tk_pull *pull = tk_pull_list_take(&pulls->free);
    if (pull)
        return pull;
    pull = calloc(1, sizeof(*pull));
    if (!pull)
        tk_panic("out of memory for an active message (%zu bytes)", sizeof(*pull));
    pull->older = pulls->newest;
    pulls->newest = pull;
    return pull;
}

static void pull_end(struct tk_pull *pull)
{
    struct tk_pulls *pulls = tk_verbs.pulling;
    tk_counter_add(&pull->conn->pulls, -1);
    tk_counter_add(&tk_verbs.pulls, -1);
    tk_counter_add(&tk_verbs.pending_work, -1);
    tk_lock(&pulls->lock);
    tk_pull_list_add(&pulls->free, pull);
    tk_unlock(&pulls->lock);
}

void tk_pull_came(struct tk_conn *conn, const void *bytes, size_t size)
{
    struct tk_pulls *pulls = tk_verbs.pulling;
    struct tk_pull_offer offer;
    if (size < sizeof(offer))
        tk_wire_error(conn, "a malformed message came");
    memcpy(&offer, bytes, sizeof(offer));
    if (!tk_verbs.recv_small || offer.size > tk_message_max || offer.size <= tk_verbs.recv_small)
        tk_wire_error(conn, "a large message was offered that is none");
    tk_counter_add(&conn->pulls, 1);
    /* In this order: what is pending besides is never less than nothing. */
    tk_counter_add(&tk_verbs.pending_work, 1);
    tk_counter_add(&tk_verbs.pulls, 1);
    tk_lock(&pulls->lock);
    struct tk_pull *pull = pull_make(pulls), *older = pull->older;
    *pull = (struct tk_pull){.conn = conn,
                             .address = offer.address,
                             .word = offer.word,
                             .key = offer.key,
                             .size = offer.size,
                             .older = older};
    tk_pull_queue_add(&pulls->queue, pull);
    tk_unlock(&pulls->lock);
    tk_pulls_start();
}

/* ---- to the sender's memory ---- */

/* The primary one, as for replies; the message may be the first that is to go to this peer, whose
 * connection is then begun. A connection that may not be used yet has no room. */
static struct tk_conn *conn_back(const struct tk_pull *pull)
{
    struct tk_peer *peer = pull->conn->peer;
    const struct tk_transport *transport = tk_peer_transport(peer);
    if (transport->replies)
        transport->replies(peer);
    return tk_primary_lock(peer);
}

static void set_stuck(struct tk_pull *pull, bool is_stuck)
{
    tk_counter_add(&tk_verbs.pulls_stuck, is_stuck - pull->is_stuck);
    pull->is_stuck = is_stuck;
}

static void post_read(struct tk_conn *conn, struct tk_tx *tx, struct tk_pull *pull)
{
    pull->buffer = tk_large_buffer_take();
    struct ibv_sge sge = {.addr = (uintptr_t)pull->buffer->data,
                          .length = pull->size,
                          .lkey = pull->buffer->keys[conn->rail]};
    struct ibv_send_wr wr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = pull->address;
    wr.wr.rdma.rkey = pull->key;
    tk_counter_set(&pull->op.pending, 1);
    tx->op = &pull->op;
    tx->nbytes = pull->size;
    tk_tx_post_more(tx, &wr, IBV_WR_RDMA_READ, 0, tk_verbs.needs_more, NULL);
}

static bool start(struct tk_pull *pull)
{
    struct tk_conn *conn = conn_back(pull);
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (tx)
        post_read(conn, tx, pull);
    tk_unlock(&conn->lock);
    set_stuck(pull, !tx);
    return tx != NULL;
}

/* From a buffer of its own where nothing goes inline: the large one may soon be another's source,
 * and is not to change before the device has read it. */
static void post_word(struct tk_conn *conn, struct tk_tx *tx, const struct tk_pull *pull)
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
    wr.wr.rdma.remote_addr = pull->word;
    wr.wr.rdma.rkey = pull->key;
    tx->nbytes = sizeof(word);
    tk_tx_post_more(tx, &wr, IBV_WR_RDMA_WRITE, tx->bounce ? 0 : IBV_SEND_INLINE,
                    tk_verbs.needs_more, NULL);
}

/* Its source may be used again. */
static void tell(struct tk_pull *pull)
{
    struct tk_conn *conn = conn_back(pull);
    struct tk_tx *tx = tk_tx_take(conn, tk_verbs.inline_limit < sizeof(uint64_t));
    if (tx)
        post_word(conn, tx, pull);
    tk_unlock(&conn->lock);
    set_stuck(pull, !tx);
    pull->is_told = tx != NULL;
}

/* ---- going on ---- */

static void tell_all(struct tk_pulls *pulls)
{
    struct tk_pull *pull;
    bool is_told; /* a pull that has ended may serve another thread at once */
    do {
        tk_lock(&pulls->lock);
        pull = tk_pull_list_take(&pulls->untold);
        tk_unlock(&pulls->lock);
        if (!pull)
            return;
        tell(pull);
        is_told = pull->is_told;
        if (is_told)
            pull_end(pull);
    } while (is_told);
    tk_lock(&pulls->lock);
    tk_pull_list_add(&pulls->untold, pull);
    tk_unlock(&pulls->lock);
}

static struct tk_pull *next(struct tk_pulls *pulls, int *tries)
{
    tk_lock(&pulls->lock);
    if (*tries < 0)
        *tries = pulls->queue.count;
    struct tk_pull *pull = *tries > 0 ? tk_pull_queue_next(&pulls->queue) : NULL;
    tk_unlock(&pulls->lock);
    --*tries;
    return pull;
}

/* Each of them once: the connection of one may have no room, and those of others have. */
void tk_pulls_start(void)
{
    struct tk_pulls *pulls = tk_verbs.pulling;
    int tries = -1;
    tell_all(pulls);
    for (struct tk_pull *pull; (pull = next(pulls, &tries)) != NULL;) {
        bool is_begun = start(pull);
        tk_lock(&pulls->lock);
        if (is_begun)
            tk_pull_queue_read(&pulls->queue, pull);
        else
            tk_pull_queue_put_back(&pulls->queue, pull);
        tk_unlock(&pulls->lock);
    }
}

struct tk_pull *tk_pull_take(void)
{
    struct tk_pulls *pulls = tk_verbs.pulling;
    tk_lock(&pulls->lock);
    struct tk_pull *pull = tk_pull_queue_take(&pulls->queue);
    tk_unlock(&pulls->lock);
    if (pull)
        tell(pull);
    return pull;
}

void tk_pull_give(struct tk_pull *pull)
{
    struct tk_pulls *pulls = tk_verbs.pulling;
    bool is_told = pull->is_told;
    tk_pool_give(&tk_verbs.large_pool, pull->buffer);
    pull->buffer = NULL;
    tk_lock(&pulls->lock);
    tk_pull_queue_leave(&pulls->queue);
    if (!is_told)
        tk_pull_list_add(&pulls->untold, pull);
    tk_unlock(&pulls->lock);
    if (is_told)
        pull_end(pull);
}
