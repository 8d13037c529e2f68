/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ibv_poll_cq. The empty case is six loads. Otherwise, under cq->lock: first the fifo of what this
 * process completed itself, then the queue pairs whose ready bit is set, in turn. Owns only the
 * consumer side of the CQ. */
#include "config.h"

#include <sched.h>

#include "verbs/verbs.h"
#include "wire/entry.h"

/* Consecutive empty polls before the CPU is yielded: on an oversubscribed machine the peer cannot
 * answer until it runs (measured: 432 us per round trip without, 28 us with). */
enum { yield_every = 256 };

/* Hardware orders the completions of one queue pair only; a program that relies on more should fail
 * here. The next entry is chosen among this many of the oldest. */
enum { choice = 8 };
/* One in this many polls that would find a completion finds none, as if the completion took longer.
 */
enum { hide_every = 16 };

/* Which of n waiting entries is next: the oldest of a random queue pair. */
static uint32_t choose(struct shca_cq *cq, uint32_t head, uint32_t n)
{
    uint32_t at = shca_random_below(&cq->random, n < choice ? n : choice), oldest = 0;
    const struct shca_qp *qp = cq->fifo[(head + at) & cq->fifo_mask].qp;

    while (cq->fifo[(head + oldest) & cq->fifo_mask].qp != qp)
        oldest++;
    return oldest;
}

/* Moves the entry up to the head; those before it keep their order. */
static void bring_forward(struct shca_cq *cq, uint32_t head, uint32_t at)
{
    struct shca_cqe chosen = cq->fifo[(head + at) & cq->fifo_mask];

    for (; at > 0; at--)
        cq->fifo[(head + at) & cq->fifo_mask] = cq->fifo[(head + at - 1) & cq->fifo_mask];
    cq->fifo[head & cq->fifo_mask] = chosen;
}

static void stamp_forward(struct shca_cq *cq, uint32_t head, uint32_t at)
{
    uint64_t chosen = cq->stamps[(head + at) & cq->fifo_mask];

    for (; at > 0; at--)
        cq->stamps[(head + at) & cq->fifo_mask] = cq->stamps[(head + at - 1) & cq->fifo_mask];
    cq->stamps[head & cq->fifo_mask] = chosen;
}

static inline void take_entry(struct shca_cqe *e, struct ibv_wc *wc)
{
    *wc = e->wc;
    /* Only now are the work requests up to this one free in the send queue. */
    atomic_store_explicit(&e->qp->sq_head, e->sq_index + 1, memory_order_release);
}

/* Stores the data that the completion of a read carries where the request wants it. */
static void store_held(const struct shca_cqe *e)
{
    struct shca_hold *h = e->qp->holds ? &e->qp->holds[e->sq_index & e->qp->wqe_mask] : NULL;
    const char *from = h ? h->data : NULL;

    for (uint32_t i = 0; h && e->wc.status == IBV_WC_SUCCESS && i < h->n; i++) {
        memcpy(h->to[i].iov_base, from, h->to[i].iov_len);
        from += h->to[i].iov_len;
    }
    if (h)
        h->n = 0;
}

/* Their time stamps are kept, and the next one may have to be chosen at random. */
static uint32_t take_fifo(struct shca_cq *cq, uint32_t max, struct ibv_wc *wc)
{
    uint32_t head = atomic_load_explicit(&cq->fifo_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&cq->fifo_tail, memory_order_acquire);
    uint32_t n = 0;

    while (n < max && head != tail) {
        uint32_t at = cq->seeded && tail - head > 1 ? choose(cq, head, tail - head) : 0;

        if (at > 0)
            bring_forward(cq, head, at);
        if (at > 0 && cq->stamps)
            stamp_forward(cq, head, at);
        if (cq->stamps)
            cq->stamp = cq->stamps[head & cq->fifo_mask];
        if (cq->holds)
            store_held(&cq->fifo[head & cq->fifo_mask]);
        take_entry(&cq->fifo[head++ & cq->fifo_mask], &wc[n++]);
    }
    atomic_store_explicit(&cq->fifo_head, head, memory_order_relaxed);
    return n;
}

/* Takes completions of the fifo in order; used if none is chosen at random. */
static inline uint32_t take_in_order(struct shca_cq *cq, uint32_t max, struct ibv_wc *wc)
{
    uint32_t head = atomic_load_explicit(&cq->fifo_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&cq->fifo_tail, memory_order_acquire);
    uint32_t n = 0;

    while (n < max && head != tail)
        take_entry(&cq->fifo[head++ & cq->fifo_mask], &wc[n++]);
    atomic_store_explicit(&cq->fifo_head, head, memory_order_relaxed);
    return n;
}

/* Whether the next completion is chosen at random. */
static inline bool fifo_has_choice(const struct shca_cq *cq)
{
    return cq->seeded && atomic_load_explicit(&cq->fifo_tail, memory_order_relaxed) -
                                 atomic_load_explicit(&cq->fifo_head, memory_order_relaxed) >
                             1;
}

static void collect_rest(struct shca_cq *cq)
{
    uint64_t mid = atomic_exchange(&cq->sh->mid, 0), words = mid;

    while (words) {
        unsigned w = (unsigned)__builtin_ctzll(words);

        words &= words - 1;
        cq->ready[w] |= atomic_exchange(&cq->sh->leaf[w], 0);
    }
    atomic_store_explicit(&cq->ready_root, cq->ready_root | mid, memory_order_relaxed);
}

/* The slot is read next: fetch its line while the exchange below is in progress. */
static inline void prefetch_first(struct shca_feed *feed)
{
    struct shca_qp_sh *sh;

    if (!feed || feed->kind != SHCA_FEED_QP)
        return;
    sh = shca_container(feed, struct shca_qp, feed)->sh;
    __builtin_prefetch(
        shca_slot_at(shca.seg, &sh->rq, atomic_load_explicit(&sh->rq_done, memory_order_relaxed)));
}

static void collect(struct shca_cq *cq)
{
    const uint64_t more = UINT64_C(1) << SHCA_ROOT_MORE;
    uint64_t root = atomic_load_explicit(&cq->sh->root, memory_order_relaxed);

    if (root == 0)
        return;
    prefetch_first(cq->feeds[__builtin_ctzll(root)]);
    root = atomic_exchange(&cq->sh->root, 0);
    if (root & ~more) {
        cq->ready[0] |= root & ~more;
        atomic_store_explicit(&cq->ready_root, cq->ready_root | 1, memory_order_relaxed);
    }
    if (root & more)
        collect_rest(cq);
}

/* The next ready queue pair at or after cq->turn, round the ring; false: none. */
static bool next_ready(struct shca_cq *cq, uint32_t *bit)
{
    uint64_t root = atomic_load_explicit(&cq->ready_root, memory_order_relaxed);
    uint32_t w = cq->turn / 64;
    uint64_t word = cq->ready[w] & (~UINT64_C(0) << (cq->turn % 64));

    if (word == 0) {
        uint64_t above = w == 63 ? 0 : root & (~UINT64_C(0) << (w + 1));

        if (root == 0)
            return false;
        w = (uint32_t)__builtin_ctzll(above ? above : root);
        word = cq->ready[w];
    }
    if (word == 0) { /* summary bit without a leaf: a producer was between its two steps */
        atomic_store_explicit(&cq->ready_root, root & ~(UINT64_C(1) << w), memory_order_relaxed);
        return next_ready(cq, bit);
    }
    *bit = w * 64 + (uint32_t)__builtin_ctzll(word);
    return true;
}

static void clear_ready(struct shca_cq *cq, uint32_t bit)
{
    uint32_t w = bit / 64;

    cq->ready[w] &= ~(UINT64_C(1) << (bit % 64));
    if (cq->ready[w] == 0)
        atomic_store_explicit(&cq->ready_root, cq->ready_root & ~(UINT64_C(1) << w),
                              memory_order_relaxed);
}

/* The posted receives to check; in ERR also those that are being posted right now (see recv.c). */
static uint32_t posted(struct shca_qp *qp)
{
    if (atomic_load_explicit(&qp->sh->state, memory_order_acquire) == IBV_QPS_ERR) {
        shca_lock(&qp->rq_lock);
        shca_unlock(&qp->rq_lock);
    }
    return atomic_load_explicit(&qp->sh->rq_tail, memory_order_acquire);
}

/* Polls finished (or flushed) receives in order; *counted of them were in the count. */
static uint32_t take_receives(struct shca_qp *qp, uint32_t max, struct ibv_wc *wc, bool *drained,
                              uint32_t *counted)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t at = atomic_load_explicit(&sh->rq_done, memory_order_relaxed);
    uint32_t tail = posted(qp);
    uint32_t n = 0;
    bool dead = false;

    *drained = false;
    while (n < max) {
        struct shca_slot *s = shca_slot_at(shca.seg, &sh->rq, at);

        if (at == tail) {
            *drained = true;
            break;
        }
        if (atomic_load_explicit(&s->seq, memory_order_acquire) == at + 1) {
            if (s->eager)
                shca_eager_unpack(&sh->rq, at, s);
            shca_receive_wc(s, qp->rq_wr_id[at & sh->rq.mask], qp->qp.qp_num, &wc[n++]);
            if (qp->rcq->stamps)
                qp->rcq->stamp = s->stamp;
            *counted += s->counted;
        } else if (dead) {
            shca_flushed_wc(qp->rq_wr_id[at & sh->rq.mask], qp->qp.qp_num, &wc[n++]);
            if (qp->rcq->stamps)
                qp->rcq->stamp = tk_now();
        } else if (atomic_load(&sh->state) == IBV_QPS_ERR && shca_settled_error(qp)) {
            dead = true;
            continue; /* check again: the last holder may have completed this one */
        } else {
            *drained = true;
            break;
        }
        atomic_store_explicit(&sh->rq_done, ++at, memory_order_release);
    }
    return n;
}

static uint32_t take_from(struct shca_feed *feed, uint32_t max, struct ibv_wc *wc, bool *drained,
                          uint32_t *counted)
{
    struct shca_qp *qp = shca_container(feed, struct shca_qp, feed);

    if (feed->kind == SHCA_FEED_QP)
        return take_receives(qp, max, wc, drained, counted);
    if (feed->kind == SHCA_FEED_SHARED)
        return shca_shared_collect(qp, max, wc, drained, counted);
    return shca_xrc_collect(shca_container(feed, struct shca_srq, feed), max, wc, drained, counted);
}

static uint32_t random_bit(struct shca_cq *cq, uint64_t word)
{
    uint32_t skip = shca_random_below(&cq->random, (uint32_t)__builtin_popcountll(word));

    while (skip-- > 0)
        word &= word - 1;
    return (uint32_t)__builtin_ctzll(word);
}

static bool several(uint64_t word)
{
    return (word & (word - 1)) != 0;
}

/* Chooses a random ready feed as the next one; false: at most one feed is ready. */
static bool turn_anywhere(struct shca_cq *cq)
{
    uint64_t root = atomic_load_explicit(&cq->ready_root, memory_order_relaxed);
    uint32_t w;

    if (root == 0)
        return false;
    w = several(root) ? random_bit(cq, root) : (uint32_t)__builtin_ctzll(root);
    if (several(cq->ready[w]))
        cq->turn = w * 64 + random_bit(cq, cq->ready[w]);
    else if (several(root))
        cq->turn = w * 64;
    else
        return false;
    return true;
}

static uint32_t take_ready(struct shca_cq *cq, uint32_t max, struct ibv_wc *wc, uint32_t *counted)
{
    uint32_t n = 0, bit;

    while (n < max) {
        /* Takes one completion at a time from a randomly chosen feed, and all completions if there
         * is only one feed. */
        uint32_t most = cq->seeded && turn_anywhere(cq) ? 1 : max - n;
        struct shca_feed *feed;
        bool drained = true;

        if (!next_ready(cq, &bit))
            break;
        feed = cq->feeds[bit];
        if (feed)
            n += take_from(feed, most, wc + n, &drained, counted);
        if (drained)
            clear_ready(cq, bit);
        cq->turn = (bit + 1) % SHCA_CQ_QPS;
        if (atomic_load_explicit(&cq->ready_root, memory_order_relaxed) == 0)
            break;
    }
    return n;
}

/* After an overrun entries are lost, so every queue pair of the CQ is broken. */
__attribute__((noinline)) static void fail_queue_pairs(struct shca_cq *cq)
{
    if (atomic_exchange(&cq->overrun_reported, true))
        return;
    pthread_mutex_lock(&shca.lock);
    for (uint32_t i = 0; i < shca.qp_high; i++) {
        struct shca_qp *qp = shca.qps[i];

        if (!qp || (qp->scq != cq && qp->rcq != cq))
            continue;
        shca_lock(&qp->sq_lock);
        shca_qp_error(qp);
        shca_unlock(&qp->sq_lock);
    }
    pthread_mutex_unlock(&shca.lock);
}

/* Rare work of an empty poll. */
__attribute__((noinline)) static int use_time(uint32_t empty_polls)
{
    if (atomic_load_explicit(&shca.pending, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&shca_fault_polls, 1, memory_order_relaxed);
        shca_pending_run();
    }
    if (empty_polls % yield_every == 0)
        sched_yield();
    return 0;
}

static inline int nothing(struct shca_cq *cq)
{
    uint32_t n = atomic_load_explicit(&cq->empty_polls, memory_order_relaxed) + 1;

    atomic_store_explicit(&cq->empty_polls, n, memory_order_relaxed);
    if (__builtin_expect(n % yield_every == 0 ||
                             atomic_load_explicit(&shca.pending, memory_order_relaxed) != 0,
                         0))
        return use_time(n);
    return 0;
}

/* Own completions and receives; if both are waiting, either may come first. */
static uint32_t take_any(struct shca_cq *cq, uint32_t max, struct ibv_wc *wc, uint32_t *counted)
{
    uint32_t own, theirs = 0;

    collect(cq);
    if (cq->seeded && atomic_load_explicit(&cq->ready_root, memory_order_relaxed) != 0 &&
        (int32_t)(cq->fifo_head - cq->failed) >= 0 && (shca_random(&cq->random) & 1))
        theirs = take_ready(cq, max, wc, counted);
    own = take_fifo(cq, max - theirs, wc + theirs);
    *counted += own;
    if (own + theirs < max && atomic_load_explicit(&cq->ready_root, memory_order_relaxed) != 0)
        theirs += take_ready(cq, max - own - theirs, wc + own + theirs, counted);
    return own + theirs;
}

/* There is an entry: whether to hide it from this poll. */
static bool hides(struct shca_cq *cq)
{
    cq->hid_last = !cq->hid_last && shca_random_below(&cq->random, hide_every) == 0;
    return cq->hid_last;
}

/* Handles any poll that is not empty, unless another thread was faster; stores the time of the last
 * completion in *stamp if that is not NULL. */
__attribute__((noinline)) static int poll_any(struct shca_cq *cq, uint32_t max, struct ibv_wc *wc,
                                              uint64_t *stamp)
{
    uint32_t n = 0, counted = 0;

    if (atomic_load_explicit(&cq->sh->overrun, memory_order_relaxed))
        fail_queue_pairs(cq);
    shca_lock(&cq->lock);
    if (!cq->may_hide || !hides(cq))
        n = take_any(cq, max, wc, &counted);
    atomic_store_explicit(&cq->sh->taken, cq->sh->taken + counted, memory_order_relaxed);
    if (stamp)
        *stamp = cq->stamp;
    shca_unlock(&cq->lock);
    if (n == 0)
        return nothing(cq);
    atomic_store_explicit(&cq->empty_polls, 0, memory_order_relaxed);
    return (int)n;
}

/* ---- the two usual cases, which call nothing, so that no register is saved ---- */

static inline bool own_waits(const struct shca_cq *cq)
{
    return atomic_load_explicit(&cq->fifo_head, memory_order_relaxed) !=
           atomic_load_explicit(&cq->fifo_tail, memory_order_relaxed);
}

/* Takes the lock if it is free and only the usual cases are possible. */
static inline bool usual_begins(struct shca_cq *cq)
{
    if (atomic_load_explicit(&cq->sh->overrun, memory_order_relaxed) || !shca_trylock(&cq->lock))
        return false;
    if (!cq->slow)
        return true;
    shca_unlock(&cq->lock);
    return false;
}

static inline int poll_end(struct shca_cq *cq, uint32_t n, uint32_t counted)
{
    atomic_store_explicit(&cq->sh->taken, cq->sh->taken + counted, memory_order_relaxed);
    atomic_store_explicit(&cq->empty_polls, 0, memory_order_relaxed);
    shca_unlock(&cq->lock);
    return (int)n;
}

/* Only own completions. */
__attribute__((noinline)) static int poll_own(struct shca_cq *cq, uint32_t max, struct ibv_wc *wc)
{
    uint32_t n;

    if (!usual_begins(cq))
        return poll_any(cq, max, wc, NULL);
    if (fifo_has_choice(cq)) {
        shca_unlock(&cq->lock);
        return poll_any(cq, max, wc, NULL);
    }
    if (cq->may_hide && hides(cq)) {
        shca_unlock(&cq->lock);
        return nothing(cq);
    }
    n = take_in_order(cq, max, wc);
    return poll_end(cq, n, n);
}

/* The receives of a queue pair that are complete and in place, with its lone bit in root cleared. A
 * queue pair in ERR, and what another thread has taken, is left to poll_any(). */
static inline uint32_t take_complete(struct shca_qp *qp, uint32_t max, struct ibv_wc *wc,
                                     bool *drained, uint32_t *counted)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t at = atomic_load_explicit(&sh->rq_done, memory_order_relaxed), n = 0;
    uint32_t tail = atomic_load_explicit(&sh->rq_tail, memory_order_acquire);

    *drained = false;
    if (atomic_load_explicit(&sh->state, memory_order_acquire) == IBV_QPS_ERR)
        return 0;
    for (; n < max; at++) {
        struct shca_slot *s = shca_slot_at(shca.seg, &sh->rq, at);

        *drained = at == tail || atomic_load_explicit(&s->seq, memory_order_acquire) != at + 1;
        if (*drained || s->eager)
            break;
        *counted += s->counted;
        shca_receive_wc(s, qp->rq_wr_id[at & sh->rq.mask], qp->qp.qp_num, &wc[n++]);
    }
    atomic_store_explicit(&sh->rq_done, at, memory_order_release);
    return n;
}

/* Receives of one queue pair, and nothing else. */
__attribute__((noinline)) static int poll_lone(struct shca_cq *cq, uint64_t root, uint32_t max,
                                               struct ibv_wc *wc)
{
    uint32_t bit = (uint32_t)__builtin_ctzll(root), n, counted = 0;
    struct shca_feed *feed;
    bool drained;

    if (several(root) || bit == SHCA_ROOT_MORE || !usual_begins(cq))
        return poll_any(cq, max, wc, NULL);
    feed = cq->feeds[bit];
    if (!feed || feed->kind != SHCA_FEED_QP ||
        atomic_load_explicit(&cq->ready_root, memory_order_relaxed) != 0) {
        shca_unlock(&cq->lock);
        return poll_any(cq, max, wc, NULL);
    }
    if (cq->may_hide && hides(cq)) {
        shca_unlock(&cq->lock);
        return nothing(cq);
    }
    prefetch_first(feed);
    /* First the bit, then the receives: initiators do it in the opposite order. Bits that others
     * set meanwhile stay for the next poll. */
    atomic_fetch_and(&cq->sh->root, ~root);
    n = take_complete(shca_container(feed, struct shca_qp, feed), max, wc, &drained, &counted);
    if (!drained) {
        cq->ready[0] |= root;
        atomic_store_explicit(&cq->ready_root, 1, memory_order_relaxed);
    }
    cq->turn = bit + 1;
    poll_end(cq, n, counted);
    if (n > 0)
        return (int)n;
    return drained ? nothing(cq) : poll_any(cq, max, wc, NULL);
}

bool shca_poll_idle(struct shca_cq *cq)
{
    return atomic_load_explicit(&cq->sh->root, memory_order_relaxed) == 0 &&
           atomic_load_explicit(&cq->ready_root, memory_order_relaxed) == 0 && !own_waits(cq) &&
           nothing(cq) == 0;
}

int shca_poll_cq(struct ibv_cq *ibcq, int max, struct ibv_wc *wc)
{
    struct shca_cq *cq = shca_container(ibcq, struct shca_cq, cq);
    uint64_t root = atomic_load_explicit(&cq->sh->root, memory_order_relaxed);
    uint64_t ready = atomic_load_explicit(&cq->ready_root, memory_order_relaxed);
    uint32_t most = max > 0 ? (uint32_t)max : 0;

    if ((root | ready) == 0)
        return own_waits(cq) ? poll_own(cq, most, wc) : nothing(cq);
    return ready == 0 && !own_waits(cq) ? poll_lone(cq, root, most, wc)
                                        : poll_any(cq, most, wc, NULL);
}

bool shca_poll_one(struct shca_cq *cq, struct ibv_wc *wc, uint64_t *stamp)
{
    return !shca_poll_idle(cq) && poll_any(cq, 1, wc, stamp) == 1;
}
