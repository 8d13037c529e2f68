/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posts puts and gets as RDMA writes and reads, by the plan of rma_plan.h. Takes the lock of a
 * connection for each piece. Must not hold it while it registers a region, because that takes long.
 * The fast paths at the end only try the lock. Owns nothing. */
#include "config.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/copy.h"
#include "base/lock.h"
#include "base/report.h"
#include "firehose/find.h"
#include "firehose/firehose.h"
#include "peer/peer.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/rma_plan.h"
#include "transport/verbs/data/rma_post.h"
#include "transport/verbs/data/stripe.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* One call of tk_verbs_rma(). */
struct post {
    struct tk_peer *peer;
    const struct tk_rma *rma;
    struct tk_rma_state *state;
    const uint32_t *remote_keys;
    const uint32_t *local_keys; /* for all that is left; NULL: not registered */
    struct tk_rma_plan plan;

    /* set by find_piece(): */
    struct tk_rma_piece piece;
    const uint32_t *keys;     /* of its local memory, if it is sent in place; else NULL */
    struct tk_pinned *region; /* of its local memory, if registered on the fly; else NULL */
};

static inline char *local_at(const struct post *p)
{
    return p->rma->local + p->state->done;
}

static inline size_t left_of(const struct post *p)
{
    return p->rma->nbytes - p->state->done;
}

/* Checks once per transfer whether the local memory may be registered: it must stay mapped until
 * the transfer ends. */
static bool may_register(const struct post *p)
{
    if (!p->state->may_hold)
        p->state->may_hold = tk_firehose_may_get(local_at(p), left_of(p));
    return p->state->may_hold;
}

static inline const uint32_t *region_keys(const struct tk_pinned *region)
{
    const struct tk_registration *r = region->handle;
    return r->local;
}

static void find_region_piece(struct post *p)
{
    size_t left = left_of(p), reach = tk_firehose_piece(local_at(p), left);
    if (tk_rma_plan_seeks_region(reach))
        p->region = p->rma->is_put ? tk_firehose_get_if_worth(local_at(p), left, reach)
                                   : tk_firehose_get_for_writing(local_at(p), left, reach);
    if (p->region) {
        p->keys = region_keys(p->region);
        reach = p->region->end - (uintptr_t)local_at(p);
    }
    p->piece = tk_rma_plan_region_piece(&p->plan, left, reach, p->region != NULL);
}

/* Looks up the keys again for each piece: a transfer that begins outside of a segment may end
 * inside it. */
static void find_piece(struct post *p)
{
    p->region = NULL;
    p->keys = NULL;
    if (p->plan.wants_register) {
        find_region_piece(p);
        return;
    }
    if (!p->local_keys)
        p->local_keys = tk_local_keys(p->rma->home, local_at(p), left_of(p));
    p->piece = tk_rma_plan_piece(&p->plan, left_of(p), p->local_keys != NULL);
    if (p->piece.path == TK_RMA_IN_PLACE)
        p->keys = p->local_keys;
}

static inline void count(struct tk_tx *tx, const struct tk_rma *rma, bool holds_source)
{
    if (rma->sources_only && !holds_source)
        return;
    tx->op = rma->op;
    tk_counter_add(&rma->op->pending, 1);
    if (!holds_source || !rma->sources)
        return;
    tx->sources = rma->sources;
    tk_counter_add(rma->sources, 1);
}

/* Puts a bounce buffer in place of the local memory. */
static void use_bounce(struct tk_tx *tx, struct ibv_sge *sge, const struct post *p)
{
    sge->addr = (uintptr_t)tx->bounce->data;
    sge->lkey = tx->bounce->keys[tx->conn->rail];
    if (p->rma->is_put)
        tk_copy_large(tx->bounce->data, local_at(p), p->piece.nbytes);
    else
        tx->get_to = local_at(p);
}

/* Counts the transfer under the path of its first piece. */
static void __attribute__((noinline)) count_transfer(const struct post *p)
{
    static const enum tk_path_counted in_place[2][2] = {
        {tk_path_gets_segment, tk_path_gets_registered},
        {tk_path_puts_segment, tk_path_puts_registered}};
    bool is_put = p->rma->is_put;
    enum tk_path_counted path = in_place[is_put][p->region != NULL];
    if (p->plan.is_striped)
        path = is_put ? tk_path_puts_striped : tk_path_gets_striped;
    else if (p->piece.path == TK_RMA_INLINE)
        path = tk_path_puts_inline;
    else if (p->piece.path == TK_RMA_BOUNCE)
        path = is_put ? tk_path_puts_bounce : tk_path_gets_bounce;
    if (!p->rma->is_payload)
        tk_count_transfer(path,
                          is_put ? tk_counter_put_bytes_network : tk_counter_get_bytes_network,
                          p->rma->nbytes);
    else if (tk_is_traced)
        tk_path_taken = 1 + path;
}

/* Posts the piece that find_piece() found; with the connection's lock held. */
static void post_piece(struct tk_tx *tx, struct post *p)
{
    const struct tk_rma *rma = p->rma;
    struct ibv_sge sge = {.addr = (uintptr_t)local_at(p), .length = (uint32_t)p->piece.nbytes};
    struct ibv_send_wr wr;
    unsigned flags = p->piece.path == TK_RMA_INLINE ? IBV_SEND_INLINE : 0;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = rma->remote + p->state->done;
    wr.wr.rdma.rkey = p->remote_keys[tx->conn->rail];
    if (p->keys)
        sge.lkey = p->keys[tx->conn->rail];
    else if (p->piece.path == TK_RMA_BOUNCE)
        use_bounce(tx, &sge, p);
    if (p->region) {
        tx->is_held = true;
        tx->held = p->region;
    }
    count(tx, rma, rma->is_put && p->keys);
    if (p->state->done == 0)
        count_transfer(p);
    tx->nbytes = sge.length;
    tk_rail_take(tx->conn->rail, sge.length);
    p->state->done += sge.length;
    if (tx->conn->is_fenced && p->plan.wants_fence)
        tk_fence_want(p->state, tx->conn);
    /* Last: `tx` may complete at once and serve another thread. */
    tk_tx_post(tx, &wr, rma->is_put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, flags, p->keys,
               p->remote_keys);
}

/* The connection for the next piece of up to nbytes; NULL: none has space. */
static struct tk_conn *find_conn(const struct post *p, size_t nbytes)
{
    if (p->plan.is_striped)
        return tk_stripe_conn(p->peer, nbytes);
    struct tk_conn *conn = tk_primary(p->peer);
    return tk_conn_space(conn) > 0 ? conn : NULL;
}

/* Has the primary changed? Then a message posted after this piece would use another connection, and
 * could overtake it. */
static bool is_passed_over(const struct post *p, const struct tk_conn *conn)
{
    return !p->plan.is_striped && tk_is_passed_over(conn, p->peer);
}

static enum tk_status __attribute__((noinline)) no_tx(const struct post *p)
{
    if (p->region)
        tk_firehose_put(p->region);
    return TK_BUSY;
}

/* Completes what the device has completed already, so that the next piece finds this one's buffer
 * in the processor's cache. Otherwise the pieces of a software device, which executes a request as
 * it is posted, would pass through as many buffers as the send queue has slots, and each copy would
 * come from memory. An empty look takes a tenth of the time of a copy of this length. */
enum { look_min = 16 << 10 };
static void __attribute__((noinline)) look_for_bounces(void)
{
    if (tk_verbs.failover_enabled)
        return;
    if (tk_verbs.device.next)
        tk_devices_reap();
    else
        tk_verbs_reap();
}

static inline enum tk_status post_next(struct post *p)
{
    struct tk_conn *conn = find_conn(p, tk_min(left_of(p), p->plan.piece_max));
    if (!conn)
        return TK_BUSY;
    find_piece(p);
    tk_lock(&conn->lock);
    struct tk_tx *tx = NULL;
    if (!is_passed_over(p, conn))
        tx = tk_tx_take(conn, p->piece.path == TK_RMA_BOUNCE);
    if (tx)
        post_piece(tx, p);
    tk_unlock(&conn->lock);
    if (!tx)
        return no_tx(p);
    if (p->plan.is_striped)
        tk_stripe_count(conn, p->piece.nbytes);
    if (p->piece.path == TK_RMA_BOUNCE && p->piece.nbytes >= look_min)
        look_for_bounces();
    return TK_OK;
}

/* ---- immediate transfers: take work requests for all pieces before they post the first */

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

/* Slots of unsignaled messages do not count: they become free only when other work completes on the
 * connection. */
static size_t idle_slots(struct tk_conn *conn)
{
    tk_lock(&conn->lock);
    size_t slots = (size_t)tk_max(1, tk_verbs.depth_pp - conn->unsignaled);
    tk_unlock(&conn->lock);
    return slots;
}

static size_t idle_slots_of_all(const struct post *p)
{
    size_t sum = 0;
    if (!p->plan.is_striped)
        return idle_slots(tk_primary(p->peer));
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_conn *conn = tk_conns_to(p->peer->rank) + k;
        if (tk_conn_is_live(conn))
            sum += idle_slots(conn);
    }
    return sum;
}

static struct tk_tx *reserve_one(const struct post *p, size_t nbytes, bool with_bounce)
{
    struct tk_conn *conn = find_conn(p, nbytes);
    if (!conn)
        return NULL;
    tk_lock(&conn->lock);
    struct tk_tx *tx = is_passed_over(p, conn) ? NULL : tk_tx_take(conn, with_bounce);
    tk_unlock(&conn->lock);
    if (tx && p->plan.is_striped)
        tk_stripe_count(conn, nbytes);
    return tx;
}

static bool reserve(const struct post *p, struct tk_tx **reserved)
{
    bool is_registered = p->local_keys != NULL;
    struct tk_rma_piece first = tk_rma_plan_piece(&p->plan, left_of(p), is_registered);
    size_t wanted = tk_rma_plan_reserve(&p->plan, &tk_verbs.rma_limits, left_of(p), is_registered,
                                        idle_slots_of_all(p));
    *reserved = NULL;
    for (; wanted > 0; wanted--) {
        struct tk_tx *tx = reserve_one(p, first.nbytes, first.path == TK_RMA_BOUNCE);
        if (!tx)
            break;
        tx->item.next = *reserved ? &(*reserved)->item : NULL;
        *reserved = tx;
    }
    if (wanted == 0)
        return true;
    if (p->plan.is_striped)
        for (const struct tk_tx *tx = *reserved; tx; tx = (struct tk_tx *)tx->item.next)
            tk_stripe_uncount(tx->conn, first.nbytes);
    give_back(*reserved);
    return false;
}

/* Skips connections that have failed since, or are no longer primary: the other work requests carry
 * the rest. */
static void post_reserved(struct post *p, struct tk_tx *reserved)
{
    while (reserved && left_of(p) > 0) {
        struct tk_tx *tx = reserved_pop(&reserved);
        struct tk_conn *conn = tx->conn;
        find_piece(p);
        tk_lock(&conn->lock);
        bool may_post = tk_conn_is_live(conn) && !is_passed_over(p, conn);
        if (may_post)
            post_piece(tx, p);
        tk_unlock(&conn->lock);
        if (!may_post)
            give_back_one(tx);
    }
    give_back(reserved);
}

static enum tk_status __attribute__((noinline)) post_at_once(struct post *p)
{
    struct tk_tx *reserved;
    if (!reserve(p, &reserved))
        return TK_BUSY;
    post_reserved(p, reserved);
    return TK_OK;
}

/* ---- all transfers ---- */

/* A read behind writes flushes what bridges between the HCA and the device hold back: over each HCA
 * that may have written. */
static void __attribute__((noinline)) want_flush(struct post *p)
{
    struct tk_conn *conns = tk_conns_to(p->peer->rank);
    if (p->state->done > 0 || !p->plan.wants_fence)
        return;
    tk_fence_sink_need();
    p->state->unfenced = 0;
    if (!p->plan.is_striped)
        tk_fence_want(p->state, tk_primary(p->peer));
    for (uint32_t k = 0; p->plan.is_striped && k < tk_verbs.conns_pp; k++)
        tk_fence_want(p->state, &conns[k]);
}

static void __attribute__((noinline)) plan_for_device_get(struct post *p)
{
    if (!p->local_keys)
        tk_panic("device memory [%p, +%zu) is not registered with the HCA", p->rma->local,
                 p->rma->nbytes);
    tk_rma_plan_for_device(&p->plan, p->rma);
}

static inline void plan_for_device(struct post *p)
{
    tk_if_likely(p->rma->is_on_device && p->rma->is_put && p->local_keys)
        tk_rma_plan_in_place(&p->plan);
    else if (p->rma->is_on_device) plan_for_device_get(p);
    tk_if_unlikely(p->rma->wants_flush) want_flush(p);
}

static enum tk_status post_all(struct tk_peer *peer, const struct tk_rma *rma,
                               struct tk_rma_state *state)
{
    enum tk_status status = TK_OK;
    struct post p;
    p.peer = peer;
    p.rma = rma;
    p.state = state;
    p.remote_keys = tk_remote_keys(peer, rma);
    p.local_keys = tk_local_keys(rma->home, local_at(&p), left_of(&p));
    tk_rma_plan_make(&p.plan, rma, &tk_verbs.rma_limits, p.local_keys != NULL);
    if (rma->is_pair && (rma->is_on_device || rma->wants_flush))
        plan_for_device(&p);
    if (p.plan.wants_register)
        p.plan.wants_register = may_register(&p);
    if (rma->immediate && state->done == 0)
        status = post_at_once(&p);
    while (status == TK_OK && left_of(&p) > 0)
        status = post_next(&p);
    return status;
}

enum tk_status tk_verbs_rma(struct tk_peer *peer, const struct tk_rma *rma,
                            struct tk_rma_state *state)
{
    enum tk_status status = state->done < rma->nbytes ? post_all(peer, rma, state) : TK_OK;
    return status == TK_OK && state->unfenced ? tk_fence(peer, rma, state) : status;
}

/* ---- fast paths: one work request whose completion only decrements op->pending. They try the
 * lock; under contention the caller uses tk_verbs_rma(). ---- */

/* A constant in each fast path: is posted work logged, or does it name the queue of its receiver?
 * Or does each thread use a connection of its own, as far as there are any? */
enum posting { POST_PLAIN, POST_LOGGED, POST_XRC, POST_SPREAD };

typedef bool put_at_once(struct tk_peer *peer, struct tk_op *op, uintptr_t remote,
                         const void *local, size_t nbytes);

/* Not inline, so that the common path saves no registers for these. All return false, and give the
 * region back, if there is one. */
static bool __attribute__((noinline)) put_undo(struct tk_pinned *region)
{
    tk_firehose_put(region);
    return false;
}

static bool __attribute__((noinline)) unlock_undo(struct tk_conn *conn, struct tk_pinned *region)
{
    tk_unlock(&conn->lock);
    return region && put_undo(region);
}

static inline bool undo(struct tk_conn *conn, struct tk_pinned *region, bool is_only)
{
    return is_only ? region && put_undo(region) : unlock_undo(conn, region);
}

/* For a thread that has not counted the transfer: the slow path counts it. */
static bool __attribute__((noinline))
retry_uncounted(struct tk_conn *conn, struct tk_tx *tx, struct tk_pinned *region, bool is_only)
{
    tx->covers = 0;
    tk_tx_give_plain(tk_lane_of(conn), tx);
    return undo(conn, region, is_only);
}

/* A work request and its range of local memory. */
struct request {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};

/* A request whose constant fields are filled in once. Calls may share it if they can't run at the
 * same time, because no device keeps or changes a request. In PAR each call has its own, except
 * those of a thread that is the only one. */
struct plain {
    enum ibv_wr_opcode opcode;
    bool is_inline;
    struct request *only;
};

#define REQUEST(name, what, flags)                                                                 \
    static struct request name = {.wr = {.sg_list = &name.sge,                                     \
                                         .num_sge = 1,                                             \
                                         .opcode = what,                                           \
                                         .send_flags = (flags) | IBV_SEND_SIGNALED}}

REQUEST(inline_put, IBV_WR_RDMA_WRITE, IBV_SEND_INLINE);
REQUEST(put_in_place, IBV_WR_RDMA_WRITE, 0);
REQUEST(get_in_place, IBV_WR_RDMA_READ, 0);

static const struct plain plain_put = {IBV_WR_RDMA_WRITE, true, &inline_put},
                          plain_put_from = {IBV_WR_RDMA_WRITE, false, &put_in_place},
                          plain_get = {IBV_WR_RDMA_READ, false, &get_in_place};

static inline void __attribute__((always_inline)) fill_plain(struct request *r, struct plain plain)
{
    r->wr.next = NULL;
    r->wr.sg_list = &r->sge;
    r->wr.num_sge = 1;
    r->wr.opcode = plain.opcode;
    r->wr.send_flags = (plain.is_inline ? IBV_SEND_INLINE : 0) | IBV_SEND_SIGNALED;
}

/* Counts the transfer. False: this thread has not counted it. */
static inline bool __attribute__((always_inline))
count_plain(struct plain plain, bool is_held, size_t nbytes)
{
    if (plain.opcode == IBV_WR_RDMA_READ)
        return tk_count_transfer_mine(tk_path_gets_segment, tk_counter_get_bytes_network, nbytes);
    if (plain.is_inline)
        return tk_count_small_put_mine(nbytes);
    return tk_count_transfer_mine(is_held ? tk_path_puts_registered : tk_path_puts_segment,
                                  tk_counter_put_bytes_network, nbytes);
}

/* `keys`: of the local memory, by rail; or `region`, which contains it; both NULL for an inline
 * put.
 */
static inline bool __attribute__((always_inline))
post_with(struct tk_conn *conn, const struct tk_peer *peer, struct tk_op *op, uintptr_t remote,
          const void *local, size_t nbytes, const uint32_t *keys, struct tk_pinned *region,
          struct plain plain, enum posting posting, bool is_only)
{
    const bool has_own = TK_THREADED && !is_only;
    struct request mine, *r = has_own ? &mine : plain.only;
    tk_if_unlikely(!is_only && !tk_trylock_free(&conn->lock)) return region && put_undo(region);
    /* segment_key belongs to the port of another connection then */
    tk_if_unlikely(posting == POST_LOGGED &&
                   tk_is_passed_over(conn, peer)) return undo(conn, region, is_only);
    struct tk_tx *tx = tk_tx_take_plain(conn, op, plain.opcode, is_only);
    tk_if_unlikely(!tx) return undo(conn, region, is_only);
    tx->nbytes = r->sge.length = (uint32_t)nbytes;
    tk_if_unlikely(!count_plain(plain, region != NULL, nbytes)) return retry_uncounted(
        conn, tx, region, is_only);
    tk_rail_take(conn->rail, nbytes);
    if (region)
        tk_tx_hold(tx, region);
    if (has_own)
        fill_plain(r, plain);
    r->sge.addr = (uintptr_t)local;
    if (region)
        keys = region_keys(region);
    if (keys)
        r->sge.lkey = keys[conn->rail];
    r->wr.wr.rdma.remote_addr = remote;
    r->wr.wr.rdma.rkey =
        posting == POST_SPREAD ? tk_peers.keys[peer->rank][conn->rail] : peer->segment_key;
    if (posting == POST_LOGGED) {
        const struct tk_tx_entry_keys both = {.local = keys, .remote = tk_peers.keys[peer->rank]};
        tk_tx_entry_plain(tx, remote, &r->sge, plain.opcode, plain.is_inline, &both);
    }
    if (posting == POST_XRC)
        tk_tx_name_queue(conn, &r->wr);
    tk_tx_post_filled(tx, &r->wr);
    if (!is_only)
        tk_unlock(&conn->lock);
    return true;
}

/* A thread that is the only one takes no lock; only in the most frequent kind of posting, because
 * each of these is one more body. */
static inline bool __attribute__((always_inline))
post_plain(struct tk_conn *conn, const struct tk_peer *peer, struct tk_op *op, uintptr_t remote,
           const void *local, size_t nbytes, const uint32_t *keys, struct tk_pinned *region,
           struct plain plain, enum posting posting)
{
    if (posting == POST_PLAIN && tk_is_only_thread())
        return post_with(conn, peer, op, remote, local, nbytes, keys, region, plain, posting, true);
    return post_with(conn, peer, op, remote, local, nbytes, keys, region, plain, posting, false);
}

/* Messages and puts are not ordered among each other. */
static inline struct tk_conn *conn_for(const struct tk_peer *peer, enum posting posting)
{
    return posting == POST_SPREAD ? tk_lane_own_conn(peer) : tk_primary(peer);
}

static inline bool __attribute__((always_inline))
put_plain(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
          size_t nbytes, enum posting posting)
{
    struct tk_conn *conn = conn_for(peer, posting);
    tk_if_unlikely(nbytes - 1 >= conn->short_put_max) return false;
    return post_plain(conn, peer, op, remote, local, nbytes, NULL, NULL, plain_put, posting);
}

/* Called with a reference to the region; drops it if nothing was done. */
static inline bool __attribute__((always_inline))
put_held(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local, size_t nbytes,
         struct tk_pinned *region, enum posting posting)
{
    return post_plain(conn_for(peer, posting), peer, op, remote, local, nbytes, NULL, region,
                      plain_put_from, posting);
}

/* Puts from a region that is registered already: mostly the one found last. The lookup of another
 * region is a separate function, so that the common path saves no registers for it. */
static inline bool __attribute__((always_inline))
put_found(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
          size_t nbytes, put_at_once *other, enum posting posting)
{
    if (nbytes < tk_verbs.rma_limits.register_min)
        return false;
    struct tk_pinned *region = tk_firehose_find_last(local, nbytes);
    tk_if_unlikely(!region) return other(peer, op, remote, local, nbytes);
    return put_held(peer, op, remote, local, nbytes, region, posting);
}

/* May it go in place and in one piece? A larger transfer may be cut. */
static inline bool is_one_piece(const struct tk_conn *conn, size_t nbytes)
{
    return nbytes - 1 < tk_verbs.put_from_max &&
           !conn->is_fenced; /* a fenced put has a read behind it */
}

static inline bool __attribute__((always_inline))
put_from_plain(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
               size_t nbytes, put_at_once *elsewhere, enum posting posting)
{
    struct tk_conn *conn = conn_for(peer, posting);
    if (!is_one_piece(conn, nbytes))
        return false;
    if (!tk_is_registered(local, nbytes))
        return elsewhere(peer, op, remote, local, nbytes);
    return post_plain(conn, peer, op, remote, local, nbytes, tk_verbs.segment->local, NULL,
                      plain_put_from, posting);
}

static inline bool __attribute__((always_inline))
get_plain(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local, size_t nbytes,
          enum posting posting)
{
    size_t max = posting == POST_LOGGED ? tk_verbs.logged_get_max : tk_verbs.short_get_max;
    tk_if_unlikely(nbytes - 1 >= max || !tk_is_registered(local, nbytes)) return false;
    return post_plain(conn_for(peer, posting), peer, op, remote, local, nbytes,
                      tk_verbs.segment->local, NULL, plain_get, posting);
}

/* All of them for one kind of posting. */
#define FAST_PATHS(name, posting)                                                                  \
    static bool __attribute__((noinline)) name##_put_other(                                        \
        struct tk_peer *peer, struct tk_op *op, uintptr_t to, const void *local, size_t nbytes)    \
    {                                                                                              \
        struct tk_pinned *region = tk_firehose_find(local, nbytes);                                \
        return region && put_held(peer, op, to, local, nbytes, region, posting);                   \
    }                                                                                              \
    static bool __attribute__((noinline)) name##_put_found(                                        \
        struct tk_peer *peer, struct tk_op *op, uintptr_t to, const void *local, size_t nbytes)    \
    {                                                                                              \
        return put_found(peer, op, to, local, nbytes, name##_put_other, posting);                  \
    }                                                                                              \
    bool name##_put(struct tk_peer *peer, struct tk_op *op, uintptr_t to, const void *local,       \
                    size_t nbytes)                                                                 \
    {                                                                                              \
        return put_plain(peer, op, to, local, nbytes, posting);                                    \
    }                                                                                              \
    bool name##_put_from(struct tk_peer *peer, struct tk_op *op, uintptr_t to, const void *local,  \
                         size_t nbytes)                                                            \
    {                                                                                              \
        return put_from_plain(peer, op, to, local, nbytes, name##_put_found, posting);             \
    }                                                                                              \
    bool name##_get(struct tk_peer *peer, struct tk_op *op, uintptr_t from, void *local,           \
                    size_t nbytes)                                                                 \
    {                                                                                              \
        return get_plain(peer, op, from, local, nbytes, posting);                                  \
    }

FAST_PATHS(tk_verbs, POST_PLAIN)
FAST_PATHS(tk_logged, POST_LOGGED)
FAST_PATHS(tk_xrc, POST_XRC)
FAST_PATHS(tk_spread, POST_SPREAD)
