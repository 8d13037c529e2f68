/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which functions of the verbs transport a job uses, for each combination of conditions; and
 * properties of polls in failover groups that no other test checks. */
#include "config.h"

#include "fake_world.h"
#include "transport/transport.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/variants.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

enum {
    FAILOVER = TK_VARIANT_FAILOVER,
    SHARED = TK_VARIANT_SHARED,
    XRC = TK_VARIANT_XRC,
    DEVICES = TK_VARIANT_DEVICES
};

enum posting { PLAIN, LOGGED, OVER_XRC };

static void assert_sends(const struct tk_verbs_variant *v, bool is_logged)
{
    assert_true(v->send_short == (is_logged ? tk_logged_send_short : tk_verbs_send_short));
    assert_true(v->send_small == (is_logged ? tk_logged_send_small : tk_verbs_send_small));
    assert_true(v->send_medium == (is_logged ? tk_logged_send_medium : tk_verbs_send_medium));
    assert_true(v->send_long == (is_logged ? tk_logged_send_long : tk_verbs_send_long));
}

static void assert_rma(const struct tk_verbs_variant *v, enum posting posting)
{
    static const struct tk_verbs_variant expected[] = {
        [PLAIN] = {.put = tk_verbs_put, .put_from = tk_verbs_put_from, .get = tk_verbs_get},
        [LOGGED] = {.put = tk_logged_put, .put_from = tk_logged_put_from, .get = tk_logged_get},
        [OVER_XRC] = {.put = tk_xrc_put, .put_from = tk_xrc_put_from, .get = tk_xrc_get},
    };
    assert_true(v->put == expected[posting].put);
    assert_true(v->put_from == expected[posting].put_from);
    assert_true(v->get == expected[posting].get);
}

static void assert_variant(unsigned conditions, enum posting posting, bool (*poll)(void),
                           bool (*reap)(void))
{
    const struct tk_verbs_variant *v = tk_verbs_variant_of(conditions);
    assert_non_null(v);
    assert_sends(v, posting == LOGGED);
    assert_rma(v, posting);
    assert_true(v->poll == poll);
    assert_true(v->reap == reap);
}

static void each_combination_has_its_functions(void **state)
{
    assert_variant(0, PLAIN, tk_verbs_poll, tk_verbs_reap);
    assert_variant(DEVICES, PLAIN, tk_devices_poll, tk_devices_reap);
    assert_variant(SHARED, PLAIN, tk_shared_poll, tk_verbs_reap);
    assert_variant(SHARED | DEVICES, PLAIN, tk_shared_devices_poll, tk_devices_reap);
    assert_variant(SHARED | XRC, OVER_XRC, tk_shared_poll, tk_verbs_reap);
    assert_variant(SHARED | XRC | DEVICES, OVER_XRC, tk_shared_devices_poll, tk_devices_reap);
    assert_variant(FAILOVER, LOGGED, tk_logged_poll, tk_logged_reap);
    assert_variant(FAILOVER | DEVICES, LOGGED, tk_logged_devices_poll, tk_logged_devices_reap);
    assert_variant(FAILOVER | SHARED, LOGGED, tk_shared_logged_poll, tk_shared_logged_reap);
    assert_variant(FAILOVER | SHARED | DEVICES, LOGGED, tk_shared_logged_devices_poll,
                   tk_shared_logged_devices_reap);
}

/* XRC needs shared queues, and excludes failover. */
static void combinations_that_exclude_each_other_are_refused(void **state)
{
    unsigned refused = 0;
    for (unsigned conditions = 0; conditions < tk_variants; conditions++) {
        bool is_legal = !(conditions & XRC) || (conditions & (SHARED | FAILOVER)) == SHARED;
        assert_int_equal(tk_verbs_variant_of(conditions) != NULL, is_legal);
        refused += !is_legal;
    }
    assert_int_equal(refused, 6);
    assert_null(tk_verbs_variant_of(tk_variants));
}

static void assert_complete(const struct tk_verbs_variant *v)
{
    assert_true(v->send_short && v->send_small && v->send_medium && v->send_long && v->put &&
                v->put_from && v->get && v->poll && v->reap);
}

static void no_variant_lacks_a_function(void **state)
{
    for (unsigned conditions = 0; conditions < tk_variants; conditions++)
        if (tk_verbs_variant_of(conditions))
            assert_complete(tk_verbs_variant_of(conditions));
}

/* ---- the table that a job gets ---- */

static void assert_job_uses(unsigned conditions)
{
    const struct tk_transport *t = tk_verbs_transport();
    const struct tk_verbs_variant *v = tk_verbs_variant_of(conditions);
    assert_int_equal(tk_verbs_conditions(), conditions);
    assert_ptr_equal(tk_peer(1)->transport, t);
    assert_true(t->am.send_short == v->send_short && t->am.send_small == v->send_small);
    assert_true(t->am.send_medium == v->send_medium);
    assert_true(t->rma.put == v->put && t->rma.put_from == v->put_from);
    assert_true(t->am.send_long == v->send_long && t->rma.get == v->get);
    assert_true(t->poll == v->poll && t->reap == v->reap && t->reap_in_handler == v->reap);
    assert_true(t->rma.post == tk_transport_verbs.rma.post &&
                t->am.send == tk_transport_verbs.am.send);
}

struct job {
    int devices;
    const char *qps, *failover;
    unsigned conditions;
};

static void open_job(const struct job *job, bool is_shared)
{
    fake_reset();
    fake.device_count = job->devices;
    fake.attr.max_srq = 4;
    fake.attr.max_srq_wr = 4096;
    unit_settings(job->qps, job->failover, is_shared ? "GASNET_USE_SRQ=1" : "GASNET_USE_SRQ=0",
                  NULL);
    world_open(2, 4096);
}

static void assert_chosen(const struct job *job, bool is_shared)
{
    open_job(job, is_shared);
    assert_job_uses(job->conditions | (is_shared ? SHARED : 0));
    world_close();
}

/* Failover takes two connections, on one device or on two. */
static void a_job_uses_the_variant_of_its_conditions(void **state)
{
    static const struct job jobs[] = {
        {1, "GASNET_NUM_QPS=1", "GASNET_IBV_FAILOVER=1", 0},
        {1, "GASNET_NUM_QPS=2", "GASNET_IBV_FAILOVER=0", 0},
        {1, "GASNET_NUM_QPS=2", "GASNET_IBV_FAILOVER=1", FAILOVER},
        {2, "GASNET_NUM_QPS=2", "GASNET_IBV_FAILOVER=0", DEVICES},
        {2, "GASNET_NUM_QPS=2", "GASNET_IBV_FAILOVER=1", FAILOVER | DEVICES},
    };
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        assert_chosen(&jobs[i], false);
        assert_chosen(&jobs[i], true);
    }
}

/* ---- what only failover does ---- */

static int delivered;

static void deliver(struct tk_arrival *arrival)
{
    delivered++;
    arrival->replied = true;
}

static void send_one(uint32_t to)
{
    struct tk_message_head head = {.kind = TK_REQUEST};
    assert_int_equal(tk_verbs_transport()->am.send_short(tk_peer(to), head, NULL, NULL), TK_OK);
    while (fake_settle())
        continue;
}

/* A handler that waits defers messages while work is pending; no message overtakes them. */
static void assert_deferred_until_polled(void)
{
    tk_deliver = deliver;
    delivered = 0;
    send_one(1);
    world_be(1);
    tk_counter_add(&tk_verbs.pending_work, 1);
    assert_true(tk_verbs_transport()->reap_in_handler());
    tk_counter_add(&tk_verbs.pending_work, -1);
    assert_int_equal(delivered, 0);
    assert_true(tk_verbs_transport()->poll());
    assert_int_equal(delivered, 1);
    world_be(0);
}

static void the_next_poll_hands_up_what_was_deferred(void **state)
{
    for (int devices = 1; devices <= 2; devices++)
        for (int is_shared = 0; is_shared < 2; is_shared++) {
            struct job job = {devices, "GASNET_NUM_QPS=2", "GASNET_IBV_FAILOVER=1", FAILOVER};
            open_job(&job, is_shared);
            assert_deferred_until_polled();
            world_close();
        }
}

/* XRC without shared queues: nothing else in this job is as XRC needs it. */
static void choose_for_xrc(void *unused)
{
    static struct tk_xrc xrc;
    tk_conns.xrc = &xrc;
    tk_verbs_variant_choose(&tk_transport_verbs);
}

static void a_job_without_a_variant_ends(void **state)
{
    fake_reset();
    unit_settings("GASNET_USE_SRQ=0", NULL);
    world_open(2, 0);
    unit_assert_panic(choose_for_xrc, NULL,
                      "no functions for failover 0, shared receive queues 0 and XRC 1 together");
    world_close();
}

/* The plain table serves until the choice is made, and is that of the first row. */
static void the_plain_table_is_the_variant_without_conditions(void **state)
{
    const struct tk_verbs_variant *v = tk_verbs_variant_of(0);
    assert_true(tk_transport_verbs.am.send_short == v->send_short);
    assert_true(tk_transport_verbs.am.send_small == v->send_small);
    assert_true(tk_transport_verbs.am.send_medium == v->send_medium);
    assert_true(tk_transport_verbs.rma.put == v->put && tk_transport_verbs.rma.get == v->get);
    assert_true(tk_transport_verbs.rma.put_from == v->put_from);
    assert_true(tk_transport_verbs.am.send_long == v->send_long);
    assert_true(tk_transport_verbs.poll == v->poll && tk_transport_verbs.reap == v->reap);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_combination_has_its_functions),
    cmocka_unit_test(combinations_that_exclude_each_other_are_refused),
    cmocka_unit_test(no_variant_lacks_a_function),
    cmocka_unit_test(a_job_uses_the_variant_of_its_conditions),
    cmocka_unit_test(the_next_poll_hands_up_what_was_deferred),
    cmocka_unit_test(a_job_without_a_variant_ends),
    cmocka_unit_test(the_plain_table_is_the_variant_without_conditions),
};

UNIT_MAIN(tests)
