/* SPDX-License-Identifier: BSD-3-Clause */
/* The decisions of flow control, by all kinds of messages and at the counts where they change. */
#include "config.h"

#include "transport/verbs/data/credit_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_request_leaves_credits_to_those_that_wait(void **state)
{
    (void)state;
    assert_false(tk_credit_suffices(0, 0));
    assert_true(tk_credit_suffices(1, 0));
    assert_false(tk_credit_suffices(2, 2));
    assert_true(tk_credit_suffices(3, 2));
}

static void messages_carry_as_many_as_a_byte_counts(void **state)
{
    (void)state;
    for (uint8_t kind = TK_REQUEST; kind <= TK_ACK; kind++) {
        assert_int_equal(tk_credit_carried(kind, 0), 0);
        assert_int_equal(tk_credit_carried(kind, 255), 255);
        assert_int_equal(tk_credit_carried(kind, 256), 255);
    }
    for (uint8_t kind = TK_CONTROL; kind <= TK_RENDEZVOUS; kind++)
        assert_int_equal(tk_credit_carried(kind, 7), 0);
}

static void answers_return_one_credit_more(void **state)
{
    (void)state;
    assert_int_equal(tk_credit_received(TK_REQUEST, 3), 3);
    assert_int_equal(tk_credit_received(TK_REPLY, 3), 4);
    assert_int_equal(tk_credit_received(TK_ACK, 0), 1);
    assert_int_equal(tk_credit_received(TK_CONTROL, 0), 0);
}

/* A batch holds back at most as many as it may, and the slack decides what is left at its end. */
static void an_ack_is_due_beyond_the_slack(void **state)
{
    (void)state;
    assert_true(tk_ack_is_due(1, 0));
    assert_false(tk_ack_is_due(4, 4));
    assert_true(tk_ack_is_due(5, 4));
    assert_true(tk_ack_may_be_left(3, 4));
    assert_false(tk_ack_may_be_left(4, 4));
    assert_false(tk_ack_may_be_left(1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_leaves_credits_to_those_that_wait),
        cmocka_unit_test(messages_carry_as_many_as_a_byte_counts),
        cmocka_unit_test(answers_return_one_credit_more),
        cmocka_unit_test(an_ack_is_due_beyond_the_slack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
