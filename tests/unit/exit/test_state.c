/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state machine of the end of a job: its transitions, and the facts that each of them records.
 * No process ends here. */
#include "config.h"

#include <unistd.h>

#include "exit/state.h"
#include "unit.h"

/* ---- transitions, by name */

enum { code = 7 };

static void leave(struct tk_exit_state *s)
{
    tk_state_leave(s, code);
}

static void fail_now(struct tk_exit_state *s)
{
    tk_state_fail(s, "peer 2 unreachable");
}

static void signalled(struct tk_exit_state *s)
{
    tk_state_end_by_signal(s, 128 + SIGINT, SIGINT);
}

static void to_client(struct tk_exit_state *s)
{
    tk_state_to_client(s, code);
}

static void (*const transitions[])(struct tk_exit_state *) = {
    leave,         fail_now,  signalled,     tk_state_agree, tk_state_part, tk_state_hand_over,
    tk_state_over, to_client, tk_state_abort};
enum { transition_count = sizeof(transitions) / sizeof(transitions[0]), phases = 8 };

/* The drawing of exit.h as a table: the next phase for each transition in each phase, and `-` if it
 * changes nothing. R(unning), L(eaving), A(gree), P(art), H(anded over), O(ver), C(lient), X:
 * abort */
static const char letters[phases + 1] = "RLAPHOCX";
static const char *const drawing[transition_count] = {
    /*             RLAPHOCX */
    /* leave */ "L-------",
    /* fail */ "X-------",
    /* signal */ "X-------",
    /* agree */ "-A------",
    /* part */ "--P-----",
    /* hand over */ "-H------",
    /* over */ "---OO---",
    /* to client */ "-----C--",
    /* abort */ "-XXXXXX-",
};

static void each_transition_leads_where_it_is_drawn(void **unused)
{
    for (int t = 0; t < transition_count; t++)
        for (int from = 0; from < phases; from++) {
            struct tk_exit_state s = {.phase = from};
            char expected = drawing[t][from] == '-' ? letters[from] : drawing[t][from];
            transitions[t](&s);
            if (letters[tk_state_phase(&s)] != expected)
                fail_msg("transition %d from %c leads to %c, not to %c", t, letters[from],
                         letters[tk_state_phase(&s)], expected);
        }
}

/* ---- out of RUNNING */

static void only_the_first_leaves(void **unused)
{
    struct tk_exit_state s = {0};
    assert_true(tk_state_leave(&s, 5));
    assert_true(tk_state_is_leaver(&s));
    assert_false(tk_state_leave(&s, 9));
    assert_false(tk_state_fail(&s, "late"));
    assert_false(tk_state_end_by_signal(&s, 130, SIGINT));
    assert_int_equal(tk_state_code(&s), 5);
    assert_int_equal(s.signal, 0);
    assert_string_equal(s.reason, "");
}

static void a_failure_ends_with_1_and_a_reason_that_fits(void **unused)
{
    struct tk_exit_state s = {0}, t = {0};
    assert_true(tk_state_fail(&s, "peer 2 unreachable"));
    assert_int_equal(tk_state_code(&s), 1);
    assert_string_equal(s.reason, "peer 2 unreachable");
    assert_true(tk_state_fail(&t, "a reason that is much longer than the room there is for it"));
    assert_int_equal(strlen(t.reason), sizeof(t.reason) - 1);
}

/* The handler does no work itself: the helper takes over. */
static void a_signal_is_for_the_helper(void **unused)
{
    struct tk_exit_state s = {0};
    assert_true(tk_state_end_by_signal(&s, 130, SIGINT));
    assert_false(tk_state_is_leaver(&s));
    tk_state_take_over(&s);
    assert_true(tk_state_is_leaver(&s));
    assert_int_equal(tk_state_code(&s), 130);
    assert_int_equal(s.signal, SIGINT);
}

/* ---- codes */

static void the_largest_code_counts(void **unused)
{
    struct tk_exit_state s = {0};
    tk_state_leave(&s, 5);
    tk_state_learn(&s, 3);
    assert_int_equal(tk_state_code(&s), 5);
    tk_state_learn(&s, 9);
    assert_int_equal(tk_state_code(&s), 9);
}

/* Code 0 too: a code that a rank gives afterwards is a consequence of that exit. */
static void the_exit_that_is_answered_gives_the_code(void **unused)
{
    struct tk_exit_state s = {0};
    assert_int_equal(tk_state_code_of_exit(&s, 259), 3);
    assert_true(tk_state_answer(&s, 0));
    assert_false(tk_state_answer(&s, 4));
    assert_int_equal(tk_state_code_of_exit(&s, 12), 0);
}

static void no_exit_is_answered_by_a_rank_that_leaves(void **unused)
{
    struct tk_exit_state s = {0};
    tk_state_leave(&s, 5);
    assert_false(tk_state_answer(&s, 4));
    assert_int_equal(tk_state_code_of_exit(&s, 12), 12);
}

static void ending_late_is_a_failure_unless_the_launcher_knows_the_code(void **unused)
{
    struct tk_exit_state s = {.phase = TK_EXIT_PART}, with_code = {.phase = TK_EXIT_PART};
    atomic_store(&with_code.code, 4);
    assert_int_equal(tk_state_late_code(&with_code), 4);
    assert_int_equal(tk_state_late_code(&s), 1);
    tk_state_code_known(&s);
    assert_int_equal(tk_state_late_code(&s), 0);
    assert_true(tk_state_is_code_known(&s));
    tk_state_over(&s);
    tk_state_to_client(&s, 0); /* whose functions may hang */
    assert_int_equal(tk_state_late_code(&s), 1);
    assert_false(tk_state_is_code_known(&s));
}

static void exit_goes_on_unless_the_code_of_all_is_another(void **unused)
{
    struct tk_exit_state s = {.phase = TK_EXIT_OVER}, t = {.phase = TK_EXIT_OVER};
    atomic_store(&s.code, 9);
    atomic_store(&t.code, 9);
    assert_false(tk_state_exits_with_another(&s));
    tk_state_to_client(&s, 7);
    assert_true(tk_state_exits_with_another(&s));
    tk_state_to_client(&t, 256 + 9);
    assert_false(tk_state_exits_with_another(&t));
}

/* ---- the rest */

static void only_agree_and_part_are_resumed(void **unused)
{
    for (int phase = 0; phase < phases; phase++) {
        const struct tk_exit_state s = {.phase = phase};
        assert_int_equal(tk_state_may_resume(&s), letters[phase] == 'A' || letters[phase] == 'P');
        assert_int_equal(tk_state_is_running(&s), letters[phase] == 'R');
    }
}

static void the_client_is_notified_once(void **unused)
{
    struct tk_exit_state s = {0}, leaving = {0};
    assert_true(tk_state_notify(&s));
    assert_true(tk_state_is_notified(&s));
    assert_false(tk_state_notify(&s));
    tk_state_begin(&leaving, 0, 0, 0);
    assert_false(tk_state_notify(&leaving));
}

static void the_time_runs_from_the_begin(void **unused)
{
    struct tk_exit_state s = {0};
    tk_state_begin(&s, 1000, 100, 5000);
    assert_false(tk_state_is_grace_over(&s, 1099));
    assert_true(tk_state_is_grace_over(&s, 1100));
    assert_int_equal(s.deadline, 6000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_transition_leads_where_it_is_drawn),
    cmocka_unit_test(only_the_first_leaves),
    cmocka_unit_test(a_failure_ends_with_1_and_a_reason_that_fits),
    cmocka_unit_test(a_signal_is_for_the_helper),
    cmocka_unit_test(the_largest_code_counts),
    cmocka_unit_test(the_exit_that_is_answered_gives_the_code),
    cmocka_unit_test(no_exit_is_answered_by_a_rank_that_leaves),
    cmocka_unit_test(ending_late_is_a_failure_unless_the_launcher_knows_the_code),
    cmocka_unit_test(exit_goes_on_unless_the_code_of_all_is_another),
    cmocka_unit_test(only_agree_and_part_are_resumed),
    cmocka_unit_test(the_client_is_notified_once),
    cmocka_unit_test(the_time_runs_from_the_begin),
};

UNIT_MAIN(tests)
