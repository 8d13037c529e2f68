/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The checked heap, whichever one the library was configured with: this program brings it along.
 * Each misuse ends the program with the places of the block and of the discovery. */
#include "config.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gasnet_tools.h"
#include "unit.h"

static void blocks_are_counted(void **state)
{
    gasnett_heapstats_t before, during, after;
    assert_int_equal(gasnett_getheapstats(&before), 0);
    char *a = gasnett_debug_malloc(100), *b = gasnett_debug_calloc(10, 20);
    assert_int_equal((uintptr_t)a % 16, 0);
    assert_int_equal(b[199], 0);
    assert_int_equal(gasnett_debug_memcheck(a), 100);
    gasnett_getheapstats(&during);
    assert_int_equal(during.live_bytes - before.live_bytes, 300);
    assert_int_equal(during.live_objects - before.live_objects, 2);
    gasnett_debug_free(a);
    gasnett_debug_free(b);
    gasnett_getheapstats(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.freed_objects - before.freed_objects, 2);
    assert_true(after.live_bytes_max >= during.live_bytes);
}

static void contents_move_with_realloc(void **state)
{
    char *text = gasnett_debug_strndup("hello, world", 5);
    assert_string_equal(text, "hello");
    text = gasnett_debug_realloc(text, 10000);
    assert_string_equal(text, "hello");
    text = gasnett_debug_realloc(text, 3);
    assert_memory_equal(text, "hel", 3);
    gasnett_debug_free(text);
    text = gasnett_debug_realloc(NULL, 8);
    assert_int_equal(gasnett_debug_memcheck(text), 8);
    gasnett_debug_free(text);
}

static void dies(void (*fn)(void *), void *arg, const char *why)
{
    const char *said;
    int status = unit_child(fn, arg, &said);
    assert_true(WIFSIGNALED(status));
    unit_assert_says(said, why);
    unit_assert_says(said, "test_heap.c:");
    unit_assert_says(said, "found at ");
}

static void overrun(void *arg)
{
    char *block = gasnett_debug_malloc(13);
    block[13] = 1;
    gasnett_debug_free(arg ? block : NULL);
    gasnett_debug_memcheck_all();
}

static void underrun(void *arg)
{
    char *block = gasnett_debug_malloc(13);
    (void)arg;
    block[-1] = 1;
    gasnett_debug_free(block);
}

/* Kept, so that the inspected block still exists. */
static void free_twice(void *arg)
{
    (void)arg;
    setenv("GASNET_MALLOC_LEAKALL", "1", 1);
    char *block = gasnett_debug_malloc(13);
    gasnett_debug_free(block);
    gasnett_debug_free(block);
}

static void write_after_free(void *arg)
{
    (void)arg;
    setenv("GASNET_MALLOC_SCANFREED", "1", 1);
    char *block = gasnett_debug_malloc(13);
    gasnett_debug_free(block);
    block[4] = 1;
    gasnett_debug_memcheck_all();
}

static void find_early(void *arg)
{
    (void)arg;
    setenv("GASNET_MALLOC_EXTRACHECK", "1", 1);
    char *block = gasnett_debug_malloc(13);
    block[13] = 1;
    gasnett_debug_free(gasnett_debug_malloc(1));
}

static void find_in_turn(void *arg)
{
    (void)arg;
    gasnett_debug_malloc(1);
    char *block = gasnett_debug_malloc(13);
    gasnett_debug_malloc(1);
    block[13] = 1;
    for (int i = 0; i < 8; i++)
        gasnett_debug_memcheck_one();
}

static void misuse_is_found(void **state)
{
    dies(overrun, "free", "was written to behind its end");
    dies(overrun, NULL, "was written to behind its end");
    dies(underrun, NULL, "was written to before its start");
    dies(free_twice, NULL, "was freed before");
    dies(write_after_free, NULL, "was written to after it had been freed");
    dies(find_early, NULL, "was written to behind its end");
    dies(find_in_turn, NULL, "was written to behind its end");
}

static void fill(void *arg)
{
    (void)arg;
    setenv("GASNET_MALLOC_INIT", "1", 1);
    setenv("GASNET_MALLOC_INITVAL", "0x1122334455667788", 1);
    setenv("GASNET_MALLOC_CLOBBER", "1", 1);
    setenv("GASNET_MALLOC_CLOBBERVAL", "0x5a5a5a5a5a5a5a5a", 1);
    setenv("GASNET_MALLOC_LEAKALL", "1", 1);
    unsigned char *block = gasnett_debug_malloc(9);
    int good = block[0] == 0x88 && block[7] == 0x11 && block[8] == 0x88;
    gasnett_debug_free(block);
    exit(good && block[0] == 0x5a && block[8] == 0x5a ? 0 : 1);
}

static void new_and_old_blocks_are_filled_on_request(void **state)
{
    unit_assert_exit(fill, NULL, 0);
}

static void ask_for_too_much(void *arg)
{
    gasnett_debug_free(gasnett_debug_calloc((size_t)(uintptr_t)arg, (size_t)(uintptr_t)arg));
}

static void out_of_memory_ends_the_program(void **state)
{
    const char *said;
    assert_true(WIFSIGNALED(unit_child(ask_for_too_much, (void *)(SIZE_MAX / 3), &said)));
    unit_assert_says(said, "out of memory for ");
}

static void report(void *arg)
{
    (void)arg;
    setenv("GASNET_MALLOCFILE", "-", 1);
    if (!gasnett_debug_malloc(77))
        exit(1);
    exit(0);
}

static void what_was_left_is_reported_at_exit(void **state)
{
    const char *said;
    assert_int_equal(unit_child(report, NULL, &said), 0);
    unit_assert_says(said, "heap: ");
    unit_assert_says(said, "  77 bytes from ");
    unit_assert_says(said, "test_heap.c:");
}

static void only_ranks_of_the_list_report(void **state)
{
    (void)state;
    const char *said;
    setenv("GASNET_MALLOCNODES", "1,3-5", 1); /* this is rank 0 */
    assert_int_equal(unit_child(report, NULL, &said), 0);
    assert_null(strstr(said, "heap: "));
    static const char *const with_us[] = {"0", "*", "", "0-2"};
    for (size_t i = 0; i < sizeof(with_us) / sizeof(with_us[0]); i++) {
        setenv("GASNET_MALLOCNODES", with_us[i], 1);
        assert_int_equal(unit_child(report, NULL, &said), 0);
        unit_assert_says(said, "heap: ");
    }
    unsetenv("GASNET_MALLOCNODES");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(misuse_is_found),
    cmocka_unit_test(new_and_old_blocks_are_filled_on_request),
    cmocka_unit_test(out_of_memory_ends_the_program),
    cmocka_unit_test(what_was_left_is_reported_at_exit),
    cmocka_unit_test(only_ranks_of_the_list_report),
    cmocka_unit_test(blocks_are_counted),
    cmocka_unit_test(contents_move_with_realloc),
};
UNIT_MAIN(tests)
