/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of ranks that the exit policy keeps, against a look at all ranks after random events.
 */
#include "config.h"

#include "spawner/head/policy.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define EXITED(code)   ((code) << 8)
#define KILLED(signal) (signal)

static struct policy policy;

enum { random_ranks = 7, random_steps = 60, random_jobs = 3000 };

static unsigned dice(unsigned below)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (unsigned)(state >> 33) % below;
}

static void one_event(int64_t now)
{
    static const int ends[] = {EXITED(0), EXITED(3), KILLED(SIGSEGV), KILLED(SIGKILL)};
    char text[32];
    uint32_t rank = dice(random_ranks + 1); /* one more than there are */
    int length;
    switch (dice(7)) {
    case 0:
        policy_launched(&policy, rank, 100);
        break;
    case 1:
        policy_connected(&policy, rank, now);
        break;
    case 2:
        policy_finalized(&policy, rank);
        break;
    case 3:
        length = snprintf(text, sizeof(text), "peer %u unreachable", dice(random_ranks + 1));
        policy_aborted(&policy, rank, 1, text, (size_t)length, now);
        break;
    case 4:
        policy_aborted(&policy, rank, (int)dice(3), "", 0, now);
        break;
    case 5:
        policy_lost(&policy, rank, dice(3));
        break;
    default:
        policy_exited(&policy, rank, ends[dice(4)], now);
        break;
    }
}

static void look_at_all(void)
{
    uint32_t running = 0, joined = 0, awaited = 0, exited = 0;
    for (uint32_t r = 0; r < policy.ranks; r++) {
        const struct policy_rank *rank = &policy.rank[r];
        bool runs = !rank->exited && !rank->finalized;
        running += runs;
        joined += runs && rank->connected;
        awaited += runs && rank->unreachable && !rank->aborted;
        exited += rank->exited;
    }
    assert_int_equal(policy.running, running);
    assert_int_equal(policy.joined, joined);
    assert_int_equal(policy.awaited, awaited);
    assert_int_equal(policy.exited, exited);
}

/* A rank that ends with 0 and not in order: the cause, if there was none before. */
static void end_with_0(uint32_t rank, int64_t now)
{
    bool others_run = false, others_depend = false;
    const struct policy_rank self = policy.rank[rank];
    for (uint32_t r = 0; r < policy.ranks; r++) {
        const struct policy_rank *other = &policy.rank[r];
        others_run |= r != rank && !other->exited && !other->finalized;
        others_depend |= r != rank && other->connected && !other->exited && !other->finalized;
    }
    bool is_judged = policy.cause == CAUSE_NONE && !self.exited && !self.finalized && !self.aborted;
    policy_exited(&policy, rank, EXITED(0), now);
    if (is_judged)
        assert_int_equal(policy.cause, self.connected ? (others_run ? CAUSE_UNFINISHED : CAUSE_NONE)
                                       : others_depend ? CAUSE_ABSENT
                                                       : CAUSE_NONE);
}

static void counts_of_ranks_are_right_after_any_events(void **state)
{
    (void)state;
    for (int job = 0; job < random_jobs; job++) {
        assert_true(policy_init(&policy, random_ranks, 1000, 0));
        for (int step = 0; step < random_steps; step++) {
            if (dice(8) == 0)
                end_with_0(dice(random_ranks), step);
            else
                one_event(step);
            look_at_all();
        }
        policy_free(&policy);
    }
}

/* Programs that use no PMIx: a look at all ranks for each of them takes minutes. */
static void many_ranks_that_never_join_end_fast(void **state)
{
    enum { many = 500000 };
    (void)state;
    clock_t began = clock();
    assert_true(policy_init(&policy, many, 1000, 0));
    for (uint32_t r = 0; r < many; r++) {
        policy_launched(&policy, r, 100);
        policy_exited(&policy, r, EXITED(0), 5);
        assert_false(policy_must_end(&policy, 5));
        if (clock() - began > 5 * CLOCKS_PER_SEC)
            fail_msg("%u ranks took 5 s", r);
    }
    assert_true(policy_all_gone(&policy));
    policy_free(&policy);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_ranks_are_right_after_any_events),
        cmocka_unit_test(many_ranks_that_never_join_end_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
