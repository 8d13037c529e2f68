/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pattern in lent buffers of debug builds: what is filled, when it counts as unwritten, and the
 * legal patterns. */
#include "config.h"

#include "message/message.h"
#include "unit.h"

static void open_with(const char *initval)
{
    char setting[64];
    snprintf(setting, sizeof(setting), "GASNET_SD_INITVAL=%s", initval);
    unit_settings(setting, "GASNET_SD_INITLEN=20", NULL);
    tk_pattern_open();
}

static void the_begin_is_filled(void **state)
{
    unsigned char buffer[32] = {0};
    open_with("0x1122334455667788");
    tk_pattern_fill(buffer, sizeof(buffer));
    assert_int_equal(buffer[0], 0x88);
    assert_int_equal(buffer[7], 0x11);
    assert_int_equal(buffer[19], 0x55);
    assert_int_equal(buffer[20], 0);
    memset(buffer, 0, sizeof(buffer));
    tk_pattern_fill(buffer, 3);
    assert_int_equal(buffer[2], 0x66);
    assert_int_equal(buffer[3], 0);
}

static void one_byte_written_is_enough(void **state)
{
    unsigned char buffer[32];
    open_with("77");
    for (unsigned i = 0; i < 20; i++) {
        tk_pattern_fill(buffer, sizeof(buffer));
        assert_true(tk_pattern_is_left(buffer, sizeof(buffer)));
        buffer[i] ^= 1;
        assert_false(tk_pattern_is_left(buffer, sizeof(buffer)));
    }
}

/* A few bytes may have that value for good reason. */
static void short_payloads_are_not_judged(void **state)
{
    unsigned char buffer[32];
    open_with("77");
    tk_pattern_fill(buffer, sizeof(buffer));
    assert_false(tk_pattern_is_left(buffer, 7));
    assert_true(tk_pattern_is_left(buffer, 8));
}

static void it_can_be_switched_off(void **state)
{
    unsigned char buffer[32] = {1, 2, 3};
    unit_settings("GASNET_SD_INIT=0", NULL);
    tk_pattern_open();
    tk_pattern_fill(buffer, sizeof(buffer));
    assert_int_equal(buffer[0], 1);
    assert_false(tk_pattern_is_left(buffer, sizeof(buffer)));
}

static void not_a_number_is_a_pattern(void **state)
{
    double number = 0;
    open_with("NAN");
    tk_pattern_fill(&number, sizeof(number));
    assert_true(number != number);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_begin_is_filled),           cmocka_unit_test(one_byte_written_is_enough),
    cmocka_unit_test(short_payloads_are_not_judged), cmocka_unit_test(it_can_be_switched_off),
    cmocka_unit_test(not_a_number_is_a_pattern),
};

UNIT_MAIN(tests)
