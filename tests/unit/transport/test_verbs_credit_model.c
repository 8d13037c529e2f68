/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flow control as a whole: several ranks send, reply, poll and reap in random order, the network
 * delivers and acknowledges in random order, with random limits. In every order: no message ever
 * finds the receiver without a buffer, no queue overruns, no credit and no buffer is lost, and
 * every rank can continue. In half of the schedules receive queues are shared, with any number of
 * buffers from the minimum on, and in some of these one rank's device has no shared queues; in most
 * of these buffers are small, so that large messages, also those of that rank, go by rendezvous,
 * one to three at once. UNIT_SEED=n runs schedule n alone. */
#include "config.h"

#include "fake_world.h"
#include "settings/settings.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

enum { schedules = 400, steps = 400, shared_steps = 1600, nap = 200 };

static struct unit_random dice;
static uint32_t ranks;
static unsigned reply_percent;
static uint32_t sleeper; /* does not poll for a while, and gets most of the messages */
static bool is_shared, is_uneven;
static uint32_t plain_rank; /* with shared receive queues: the rank without them */
static int totals[world_max];
static unsigned requests_sent, requests_seen, replies_sent, replies_seen;
static char payload[tk_message_max];

static size_t some_size(void)
{
    static const size_t sizes[] = {0, 8, 64, 72, 240, 256, 1000, 4000, 65000};
    return sizes[unit_below(&dice, sizeof(sizes) / sizeof(sizes[0]))];
}

static enum tk_status send(struct tk_peer *to, enum tk_message_kind kind, size_t nbytes)
{
    struct tk_message_head head = {.kind = (uint8_t)kind, .category = TK_MEDIUM};
    if (nbytes == 0) {
        head.category = TK_SHORT;
        return tk_verbs_send_short(to, head, NULL, NULL);
    }
    struct tk_outgoing m = {
        .head = &head, .head_size = sizeof(head), .payload = payload, .nbytes = nbytes};
    if (unit_below(&dice, 2))
        return tk_verbs_send(to, &m);
    return tk_verbs_send_medium(to, tk_head_of_medium(kind, head.handler, 0), NULL, payload, nbytes,
                                NULL);
}

/* The device continues by itself while a handler waits for space. */
static void let_own_sends_complete(void)
{
    for (uint32_t r = 0; r < ranks; r++)
        if (r != tk_peers.me) {
            fake_carry(tk_verbs.conns_of[r]->qp);
            fake_ack(tk_verbs.conns_of[r]->qp);
        }
    tk_verbs_reap();
}

static void deliver(struct tk_arrival *arrival)
{
    size_t nbytes = some_size();
    if (arrival->head->kind == TK_REPLY) {
        replies_seen++;
        return;
    }
    requests_seen++;
    if (unit_below(&dice, 100) >= reply_percent)
        return;
    for (int tries = 0; send(arrival->peer, TK_REPLY, nbytes) == TK_BUSY; tries++) {
        if (tries > 10000)
            fail_msg("a reply found no room although our own sends complete");
        let_own_sends_complete();
    }
    replies_sent++;
    arrival->replied = true;
}

static unsigned count_items(const struct tk_pool_item *item)
{
    unsigned n = 0;
    for (; item; item = item->next)
        n++;
    return n;
}

static unsigned pool_count(const struct tk_pool *pool)
{
    return count_items(pool->free);
}

/* Those of full size. */
static unsigned buffers_of(const struct tk_verbs *v)
{
    unsigned n = 0;
    for (const struct tk_slab *slab = v->slabs; slab; slab = slab->next)
        if (slab->buffers[0].sge.length == tk_buffer_size)
            n += (unsigned)(slab->area.size / tk_buffer_stride);
    return n;
}

/* A source belongs to a request or a reply in flight, and each of these has a credit of one of the
 * ends. */
static void check_sources(const struct tk_verbs *v)
{
    unsigned sources = 0;
    for (const struct tk_buffer *b = v->rndv->sources_first; b;
         b = (const struct tk_buffer *)b->item.next)
        sources++;
    assert_true(sources <= 2 * (unsigned)v->credits_pp * (ranks - 1));
    assert_in_range(v->rndv->queue.places, 0, 3);
}

/* Credits that are ours, used or not. */
static int owned(uint32_t me, uint32_t peer)
{
    const struct tk_verbs *theirs = world_verbs(peer);
    const struct tk_loan *loan = world_conn(me, peer)->loan;
    if (loan)
        return loan->borrower.limit - loan->borrower.given;
    return theirs->srq_plan.buffers > 0 ? theirs->srq_plan.base : theirs->credits_pp;
}

/* True between any two steps. */
static void check_conn(uint32_t me, uint32_t peer)
{
    const struct tk_verbs *v = world_verbs(me);
    const struct tk_conn *conn = world_conn(me, peer);
    assert_in_range(conn->credits, 0, v->credits_pp);
    assert_true(conn->credits_to_return >= 0 && conn->credits_to_return <= v->credits_pp);
    assert_true(conn->rx_extra >= 0);
    if (!conn->loan) {
        assert_true(tk_credit_buffers_posted(conn) <= 2 * v->credits_pp + 1);
        assert_true(fake_receives(conn->qp) <= tk_credit_buffers_posted(conn));
    }
    assert_int_equal(fake_sends(conn->qp), v->depth_pp - tk_counter_read(&conn->space));
}

static void check(void)
{
    assert_int_equal(fake_sins(), 0);
    for (uint32_t me = 0; me < ranks; me++) {
        int out = 0;
        for (uint32_t peer = 0; peer < ranks; peer++)
            if (peer != me) {
                check_conn(me, peer);
                out += owned(me, peer) - world_conn(me, peer)->credits;
            }
        assert_int_equal(tk_counter_read(&world_verbs(me)->credits_total),
                         world_verbs(me)->is_total_bound ? totals[me] - out : totals[me]);
        check_sources(world_verbs(me));
    }
}

static void one_step(void)
{
    uint32_t me = unit_below(&dice, ranks), peer = unit_below(&dice, ranks - 1);
    peer += peer >= me;
    if (sleeper < ranks && sleeper != me && unit_below(&dice, 2))
        peer = sleeper;
    switch (unit_below(&dice, 6)) {
    case 0:
    case 1:
        world_be(me);
        requests_sent += send(tk_peer(peer), TK_REQUEST, some_size()) == TK_OK;
        break;
    case 2:
        while (fake_carry(world_conn(me, peer)->qp) && is_shared)
            continue;
        break;
    case 3:
        while (fake_ack(world_conn(me, peer)->qp) && is_shared)
            continue;
        break;
    case 4:
        world_be(me);
        if (me != sleeper)
            tk_verbs_transport()->poll();
        break;
    default:
        world_be(me);
        tk_verbs_reap();
    }
}

static void check_loan(const struct tk_borrower *b, int has)
{
    assert_int_equal(b->owed + b->given + b->is_requesting, 0);
    assert_in_range(has, b->base, b->most);
}

/* True when all has been served. */
static void check_rest(uint32_t me)
{
    world_be(me);
    tk_rndv_reclaim();
    assert_null(tk_verbs.rndv->sources_first);
    const struct tk_verbs *v = world_verbs(me);
    unsigned posted = 0, kept = 0; /* kept: of unsignaled messages */
    for (uint32_t peer = 0; peer < ranks; peer++) {
        if (peer == me)
            continue;
        const struct tk_conn *ours = world_conn(me, peer), *theirs = world_conn(peer, me);
        assert_int_equal(ours->credits + theirs->credits_to_return, owned(me, peer));
        if (ours->loan)
            check_loan(&ours->loan->borrower, owned(me, peer));
        if (theirs->loan)
            assert_int_equal(theirs->loan->account.granted, owned(me, peer));
        assert_true(theirs->credits_to_return <= v->slack);
        assert_false(ours->ack_due);
        assert_int_equal(tk_counter_read(&ours->space) + ours->unsignaled, v->depth_pp);
        assert_true(ours->credits > 0);
        assert_int_equal(tk_counter_read(&ours->rndv_count), 0);
        kept += ours->unsignaled_tx.more_bounces;
        if (ours->loan)
            continue;
        assert_int_equal(fake_receives(ours->qp), tk_credit_buffers_posted(ours));
        posted += (unsigned)tk_credit_buffers_posted(ours);
    }
    if (v->device.srq) {
        const struct tk_srq *srq = v->device.srq;
        assert_int_equal(srq->held, 0);
        posted = (unsigned)(fake_srq_receives(srq->queue) + srq->used);
        assert_int_equal(posted, tk_loan_stock(&v->srq_plan, (int)ranks - 1).buffers);
    }
    assert_true(tk_counter_read(&v->credits_total) > 0);
    assert_int_equal(tk_counter_read(&v->lanes[0].out), 0);
    assert_int_equal(tk_counter_read(&v->pending_work), 0);
    assert_int_equal(count_items(v->lanes[0].free), v->depth_total);
    assert_int_equal(tk_counter_read(&v->rndv_count) + tk_counter_read(&v->rndv_stuck), 0);
    unsigned received = posted + pool_count(&v->rails[0].recv_pool);
    if (v->recv_small) { /* buffers_of() does not count these */
        assert_int_equal(v->rndv->queue.places, (int)tk_verbs_landings(false));
        received = 0;
    }
    assert_int_equal(received + kept + pool_count(&v->bounce_pool) + pool_count(&v->large_pool),
                     buffers_of(v));
}

static void set_shared(char use[40], char count[40])
{
    unsigned least = 2 * (ranks - 1) + 2;
    is_shared = unit_below(&dice, 2);
    is_uneven = unit_below(&dice, 2);
    plain_rank = unit_below(&dice, 3) == 0 ? 1 : world_max;
    snprintf(use, 40, "GASNET_USE_SRQ=%d", is_shared);
    snprintf(count, 40, "GASNET_RBUF_COUNT=%u",
             least + unit_below(&dice, unit_below(&dice, 2) ? 4 : 30));
}

/* In half of the schedules rank 0 alone has few buffers, because such ranks have few requests in
 * flight themselves. */
static void set_device(uint32_t rank)
{
    if (is_uneven && rank > 0)
        tk_settings.rbuf_count = 0;
    fake.attr.max_srq = is_shared && rank != plain_rank ? 16 : 0;
    fake.attr.max_srq_wr = 4096;
}

static void set_limits(void)
{
    char pp[40], slack[40], total[40], depth[40], depth_total[40], bounce[40], use[40], count[40];
    char small[40], large[40];
    unsigned credits = 1 + unit_below(&dice, 5);
    ranks = 2 + unit_below(&dice, 3);
    reply_percent = unit_below(&dice, 3) * 50;
    snprintf(pp, sizeof(pp), "GASNET_AM_CREDITS_PP=%u", credits);
    snprintf(slack, sizeof(slack), "GASNET_AM_CREDITS_SLACK=%u", unit_below(&dice, 6));
    snprintf(total, sizeof(total), "GASNET_AM_CREDITS_TOTAL=%d", (int)unit_below(&dice, 10) - 1);
    snprintf(depth, sizeof(depth), "GASNET_NETWORKDEPTH_PP=%u", 2 + unit_below(&dice, 6));
    snprintf(depth_total, sizeof(depth_total), "GASNET_NETWORKDEPTH_TOTAL=%u",
             unit_below(&dice, 8));
    snprintf(bounce, sizeof(bounce), "GASNET_BBUF_COUNT=%u", unit_below(&dice, 4));
    set_shared(use, count);
    snprintf(small, sizeof(small), "GASNET_RBUF_SIZE=%u", unit_below(&dice, 4) * 1400);
    snprintf(large, sizeof(large), "GASNET_RBUF_LARGE=%u", 1 + unit_below(&dice, 3));
    unit_settings(pp, slack, total, depth, depth_total, bounce, use, count, small, large, NULL);
}

static void run(unsigned seed)
{
    dice = unit_random(seed + 1);
    set_limits();
    fake_reset();
    tk_deliver = deliver;
    requests_sent = requests_seen = replies_sent = replies_seen = 0;
    world_machine = set_device;
    world_open(ranks, 0);
    for (uint32_t me = 0; me < ranks; me++)
        totals[me] = tk_counter_read(&world_verbs(me)->credits_total);
    for (int i = 0; i < (is_shared ? shared_steps : steps); i++) {
        /* Lends credits while all ranks poll, before one of them stops polling. */
        if (i % nap == 0)
            sleeper =
                is_shared && i / nap % 2 ? (is_uneven ? 0 : unit_below(&dice, ranks)) : world_max;
        one_step();
        check();
    }
    world_settle();
    check();
    for (uint32_t me = 0; me < ranks; me++)
        check_rest(me);
    assert_int_equal(requests_seen, requests_sent);
    assert_int_equal(replies_seen, replies_sent);
    world_close();
}

static unsigned seed;

static void no_schedule_breaks_flow_control(void **state)
{
    const char *only = getenv("UNIT_SEED");
    if (only) {
        run(seed = (unsigned)atoi(only));
        return;
    }
    for (seed = 0; seed < schedules; seed++)
        run(seed);
}

static int tell_seed(void **state)
{
    print_message("last schedule: UNIT_SEED=%u\n", seed);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(no_schedule_breaks_flow_control, tell_seed),
};

UNIT_MAIN(tests)
