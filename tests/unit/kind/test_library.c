/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Libraries that are opened at run time, with that of mathematics as an example. */
#include "config.h"

#include <dlfcn.h>

#include "kind/library.h"
#include "unit.h"

static void *cosine, *nothing;
static struct tk_kind_why why;
static const struct tk_kind_symbol symbols[] = {{"cos", &cosine, false},
                                                {"tk_no_such_function", &nothing, true}};

static int set_up(void **state)
{
    cosine = NULL;
    nothing = &why;
    why.text[0] = 0;
    return 0;
}

static void the_first_library_that_is_there_is_taken(void **state)
{
    static const char *const files[] = {"libtk-none.so.9", "libm.so.6", "libtk-none.so.8", NULL};
    assert_int_equal(tk_kind_library_load(files, symbols, 2, &why), 1);
    assert_non_null(cosine);
    assert_null(nothing);
}

/* The program may be linked with an older version than the newest that is installed. */
static void a_library_that_is_loaded_comes_before_others(void **state)
{
    static const char *const files[] = {"libresolv.so.2", "libc.so.6", NULL};
    static const struct tk_kind_symbol any[] = {{"tk_no_such_function", &nothing, true}};
    assert_null(dlopen(files[0], RTLD_NOW | RTLD_NOLOAD));
    assert_int_equal(tk_kind_library_load(files, any, 1, &why), 1);
    assert_null(dlopen(files[0], RTLD_NOW | RTLD_NOLOAD));
}

/* The first is the one that a user should install. */
static void a_library_that_is_not_there_is_named(void **state)
{
    static const char *const files[] = {"libtk-none.so.9", "libtk-none.so.8", NULL};
    assert_int_equal(tk_kind_library_load(files, symbols, 2, &why), TK_KIND_LIBRARY_ABSENT);
    unit_assert_says(why.text, "libtk-none.so.9 can't be loaded: libtk-none.so.9: ");
    assert_null(cosine);
}

static void a_function_that_is_needed_must_be_there(void **state)
{
    static const char *const files[] = {"libm.so.6", NULL};
    static const struct tk_kind_symbol needed[] = {{"tk_no_such_function", &nothing, false}};
    assert_int_equal(tk_kind_library_load(files, needed, 1, &why), TK_KIND_LIBRARY_OLD);
    unit_assert_says(why.text, "libm.so.6 has no function tk_no_such_function()");
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

static const struct CMUnitTest tests[] = {
    TEST(the_first_library_that_is_there_is_taken),
    TEST(a_library_that_is_loaded_comes_before_others),
    TEST(a_library_that_is_not_there_is_named),
    TEST(a_function_that_is_needed_must_be_there),
};

UNIT_MAIN(tests)
