/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "unit.h"

#include "weak_assert.h"

static const char *search(const struct weak_program *program)
{
    const char *bad = weak_search(program);
    print_message("  %lu states, %lu executions%s%s\n", weak_count.states, weak_count.executions,
                  bad ? ": " : "", bad ? bad : "");
    return bad;
}

void weak_assert_right(const struct weak_program *program)
{
    const char *bad = search(program);
    if (bad) {
        weak_tell();
        fail_msg("%s", bad);
    }
}

void weak_assert_wrong(const struct weak_program *program)
{
    assert_non_null(search(program));
}

void weak_assert_lost(const struct weak_program *program)
{
    const char *bad = search(program);
    assert_non_null(bad);
    assert_string_equal(bad, "nobody can go on");
}
