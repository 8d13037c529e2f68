/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The corner cases in each mode of the core, over both versions of IP. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cases.h"

static struct rig r;

static void run(const struct mcsw_case *c, struct rig_options o)
{
    o.near_wrap = c->o.near_wrap;
    o.vlan = c->o.vlan;
    rig_open(&r, &o);
    c->run(&r);
    if (r.failures)
        fprintf(stderr, "case %u (%s) in mode %d, aggregate %d\n", c->number, c->row, o.mode,
                o.aggregate);
    rig_close(&r);
    assert_int_equal(r.failures, 0);
    assert_int_equal(r.violations, 0);
}

static void run_all(struct rig_options o)
{
    /* Cases 40 to 44 are made of IPv4's bytes. */
    for (unsigned i = 0; i < cases_of_order; i++)
        run(&cases_order[i], o);
    for (unsigned i = 0; i < cases_of_control; i++)
        run(&cases_control[i], o);
    for (unsigned i = 0; i < cases_of_frame; i++)
        if (!o.v6 || cases_frame[i].number == 45)
            run(&cases_frame[i], o);
}

static void fast_exact(void **state)
{
    run_all((struct rig_options){0});
}

static void fast_scan(void **state)
{
    run_all((struct rig_options){.aggregate = MCSW_SCAN});
}

static void strict_scan(void **state)
{
    run_all((struct rig_options){.mode = MCSW_STRICT, .aggregate = MCSW_SCAN});
}

static void of_ipv6(void **state)
{
    run_all((struct rig_options){.v6 = true});
    run_all((struct rig_options){.v6 = true, .mode = MCSW_STRICT});
}

static void icrc_believed(void **state)
{
    run(&cases_frame[1], (struct rig_options){.believe_icrc = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_exact),    cmocka_unit_test(fast_scan),
        cmocka_unit_test(strict_scan),   cmocka_unit_test(of_ipv6),
        cmocka_unit_test(icrc_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
