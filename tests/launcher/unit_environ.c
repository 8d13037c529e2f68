/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the launcher's settings: defaults and parser are those of settings.def. */
#include "config.h"

#include "spawner/run/environ.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct tk_setting *row(const char *name)
{
    for (size_t i = 0; i < tk_setting_count; i++)
        if (!strcmp(tk_setting_table[i].name, name))
            return &tk_setting_table[i];
    fail_msg("%s is not in settings.def", name);
    return NULL;
}

static void unset_settings(void)
{
    for (size_t i = 0; i < tk_setting_count; i++)
        unsetenv(tk_setting_table[i].name);
}

static void assert_is_default(const struct tk_setting *s, const struct tk_settings *values)
{
    const void *field = (const char *)values + s->offset;
    switch (s->type) {
    case TK_SETTING_INT:
        assert_true((double)*(const int64_t *)field == s->def);
        break;
    case TK_SETTING_REAL:
        assert_true(*(const double *)field == s->def);
        break;
    case TK_SETTING_BOOL:
        assert_int_equal(*(const bool *)field, s->def != 0);
        break;
    case TK_SETTING_TEXT:
    case TK_SETTING_CHOICE:
        assert_string_equal(*(const char *const *)field, s->text_def);
        break;
    default:
        fail_msg("%s: this test does not know its type", s->name);
    }
}

static void defaults_are_those_of_settings_def(void **state)
{
    static struct tk_settings s;
    struct job job = {0};
    unset_settings();
    memset(&s, 0x5a, sizeof(s));
    assert_true(environ_load(&s));
    for (size_t i = 0; i < tk_setting_count; i++)
        if (tk_setting_table[i].scope == TK_SCOPE_LAUNCHER)
            assert_is_default(&tk_setting_table[i], &s);
    environ_set_limits(&job, &s, false);
    assert_true(job.grace_ms == row("GASNET_KILL_GRACE")->def * 1000);
    assert_true(job.start_ms == row("GASNET_START_TIMEOUT")->def * 1000);
    assert_true(job.reader_ms == row("GASNET_OUTPUT_TIMEOUT")->def * 1000);
    environ_set_limits(&job, &s, true);
    assert_int_equal(job.reader_ms, 0);
}

static void settings_are_read_by_the_librarys_parser(void **state)
{
    static struct tk_settings s;
    struct job job = {0};
    unset_settings();
    setenv("GASNET_KILL_GRACE", " 0.0015 ", 1);
    setenv("GASNET_OUTPUT_TIMEOUT", "7", 1);
    setenv("GASNET_SUPERNODE_MAXSIZE", "3", 1);
    setenv("GASNET_QUIET", "on", 1);
    setenv("GASNET_TMPDIR", "", 1);
    assert_true(environ_load(&s));
    environ_set_limits(&job, &s, true);
    assert_int_equal(job.grace_ms, 2);
    assert_int_equal(job.reader_ms, 7000);
    assert_int_equal(s.supernode_maxsize, 3);
    assert_true(s.quiet);
    assert_false(environ_is_set("GASNET_TMPDIR"));
    unset_settings();
}

static void a_wrong_value_of_the_library_is_refused_too(void **state)
{
    static struct tk_settings s;
    unset_settings();
    setenv("GASNET_SUPERNODE_MAXSIZE", "three", 1);
    assert_false(environ_load(&s));
    assert_int_equal(s.supernode_maxsize, 0);
    unset_settings();
    setenv("GASNET_PHYSMEM_MAX", "abc", 1);
    assert_false(environ_load(&s));
    unset_settings();
    setenv("GASNET_KILL_GRACE", "-1", 1);
    assert_false(environ_load(&s));
    unset_settings();
}

static void the_session_directory_has_three_parents(void **state)
{
    static struct tk_settings s;
    unset_settings();
    assert_true(environ_load(&s));
    unsetenv("TMPDIR");
    assert_string_equal(environ_session_parent(&s), "/tmp");
    setenv("TMPDIR", "/var/tmp", 1);
    assert_string_equal(environ_session_parent(&s), "/var/tmp");
    setenv("GASNET_TMPDIR", "/dev/shm", 1);
    assert_true(environ_load(&s));
    assert_string_equal(environ_session_parent(&s), "/dev/shm");
    unsetenv("TMPDIR");
    unset_settings();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_settings_def),
        cmocka_unit_test(settings_are_read_by_the_librarys_parser),
        cmocka_unit_test(a_wrong_value_of_the_library_is_refused_too),
        cmocka_unit_test(the_session_directory_has_three_parents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
