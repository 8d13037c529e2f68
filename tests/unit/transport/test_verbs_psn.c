/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First packet sequence numbers: both ends of a connection have the same ones, also after it was
 * reopened. Without the job's secret they do not follow from those of another job, connection or
 * direction. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fake_world.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/psn.h"
#include "transport/verbs/conn/siphash.h"
#include "unit.h"

enum { ranks = 3, conns = 2, psn_mask = 0xffffff, flows_max = ranks * ranks * conns };

/* Of each direction of each connection of a job. */
struct numbers {
    uint32_t count, psn[flows_max];
};

static const struct tk_conn *conn_to(uint32_t rank, uint32_t peer, uint32_t number)
{
    return world_verbs(rank)->conns_of[peer] + number;
}

static void open_job(void)
{
    fake_reset();
    fake.device_count = 2;
    unit_settings("GASNET_NUM_QPS=2", NULL);
    world_open(ranks, 4096);
}

/* Fails the test if the other end expects another one. */
static struct numbers numbers_of_job(void)
{
    struct numbers n = {0};
    open_job();
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < ranks; b++)
            for (uint32_t k = 0; a != b && k < conns; k++) {
                uint32_t psn = fake_attr(conn_to(a, b, k)->qp, IBV_QPS_RTS)->sq_psn;
                assert_int_equal(psn & ~psn_mask, 0);
                assert_int_equal(fake_attr(conn_to(b, a, k)->qp, IBV_QPS_RTR)->rq_psn, psn);
                n.psn[n.count++] = psn;
            }
    world_close();
    return n;
}

/* The published vector of 16 bytes: key and text are 0, 1, 2 and so on. */
static void siphash_has_the_published_value(void **state)
{
    uint8_t count[tk_siphash_key_size];
    for (uint8_t i = 0; i < sizeof(count); i++)
        count[i] = i;
    assert_true(tk_siphash(count, count) == UINT64_C(0x3f2acc7f57c29bdb));
}

static int in_order(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return one < other ? -1 : one > other;
}

/* Counts numbers that occur twice. By chance one pair of these numbers is equal in 100000 runs, and
 * three numbers never. */
static unsigned doubles(uint32_t *psn, size_t count)
{
    unsigned equal = 0;
    qsort(psn, count, sizeof(*psn), in_order);
    for (size_t i = 1; i < count; i++)
        equal += psn[i] == psn[i - 1];
    return equal;
}

static void directions_connections_and_jobs_have_numbers_of_their_own(void **state)
{
    struct numbers one = numbers_of_job(), other = numbers_of_job();
    uint32_t all[2 * flows_max];
    assert_int_equal(one.count, ranks * (ranks - 1) * conns);
    assert_int_equal(one.count, other.count);
    memcpy(all, one.psn, one.count * sizeof(all[0]));
    memcpy(all + one.count, other.psn, one.count * sizeof(all[0]));
    assert_in_range(doubles(all, 2 * one.count), 0, 1);
}

/* Neither the difference of two directions nor that of two connections is the same in all jobs. */
static void a_number_says_nothing_about_another(void **state)
{
    struct numbers one = numbers_of_job(), other = numbers_of_job();
    unsigned same = 0;
    for (uint32_t i = 1; i < one.count; i++)
        same +=
            ((one.psn[i] - one.psn[0]) & psn_mask) == ((other.psn[i] - other.psn[0]) & psn_mask);
    assert_in_range(same, 0, 1);
}

static void be_rank(uint32_t rank, uint8_t secret)
{
    memset(&tk_verbs, 0, sizeof(tk_verbs));
    memset(tk_conns.secret, secret, sizeof(tk_conns.secret));
    tk_peers.me = rank;
}

static struct tk_psn_pair number_at(uint32_t rank, uint8_t secret, enum tk_psn_kind kind,
                                    uint32_t peer, uint32_t incarnation)
{
    be_rank(rank, secret);
    return tk_psn_of_conn(kind, peer, 1, incarnation);
}

static void both_ends_agree_in_every_incarnation(void **state)
{
    for (uint32_t i = 0; i < 100; i++)
        for (int kind = TK_PSN_MESSAGES; kind <= TK_PSN_ATOMICS; kind++) {
            struct tk_psn_pair a = number_at(3, 'x', kind, 7, i), b = number_at(7, 'x', kind, 3, i);
            assert_int_equal(a.mine, b.theirs);
            assert_int_equal(a.theirs, b.mine);
            assert_int_not_equal(a.mine, a.theirs);
        }
    struct tk_psn_pair self = number_at(3, 'x', TK_PSN_ATOMICS, 3, 0);
    assert_int_equal(self.mine, self.theirs);
}

/* A packet that is still in flight counts neither as expected nor as just behind. */
static void incarnations_are_far_apart(void **state)
{
    enum { incarnations = 8, apart = 1 << 19 };
    for (uint32_t i = 0; i < incarnations; i++)
        for (uint32_t j = 0; j < i; j++) {
            uint32_t a = number_at(0, 'x', TK_PSN_MESSAGES, 1, i).mine;
            uint32_t b = number_at(0, 'x', TK_PSN_MESSAGES, 1, j).mine;
            assert_in_range((a - b) & psn_mask, apart, psn_mask - apart);
        }
}

static void the_secret_decides(void **state)
{
    struct tk_psn_pair one = number_at(0, 'x', TK_PSN_MESSAGES, 1, 0);
    struct tk_psn_pair other = number_at(0, 'y', TK_PSN_MESSAGES, 1, 0);
    struct tk_psn_pair atomics = number_at(0, 'x', TK_PSN_ATOMICS, 1, 0);
    assert_int_not_equal(one.mine, other.mine);
    assert_int_not_equal(one.theirs, other.theirs);
    assert_int_not_equal(one.mine, atomics.mine);
    be_rank(0, 'x');
    uint32_t xrc = tk_psn_of_xrc(0, 1, 1);
    assert_int_not_equal(xrc, one.mine);
    assert_int_not_equal(xrc, tk_psn_of_xrc(1, 0, 1));
    be_rank(5, 'x'); /* the target's end */
    assert_int_equal(xrc, tk_psn_of_xrc(0, 1, 1));
    be_rank(5, 'y');
    assert_int_not_equal(xrc, tk_psn_of_xrc(0, 1, 1));
}

static void random_numbers_differ(void **state)
{
    uint32_t psn[8];
    for (size_t i = 0; i < sizeof(psn) / sizeof(psn[0]); i++) {
        assert_true(tk_psn_random(&psn[i]));
        assert_int_equal(psn[i] & ~psn_mask, 0);
    }
    assert_in_range(doubles(psn, sizeof(psn) / sizeof(psn[0])), 0, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(directions_connections_and_jobs_have_numbers_of_their_own),
    cmocka_unit_test(a_number_says_nothing_about_another),
    cmocka_unit_test(both_ends_agree_in_every_incarnation),
    cmocka_unit_test(incarnations_are_far_apart),
    cmocka_unit_test(siphash_has_the_published_value),
    cmocka_unit_test(the_secret_decides),
    cmocka_unit_test(random_numbers_differ),
};

UNIT_MAIN(tests)
