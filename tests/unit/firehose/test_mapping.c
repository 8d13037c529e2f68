/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mappings as the kernel reports them through both interfaces. Watching a mapping never splits one
 * of another thread: the test makes the other thread's change between our query and our call, right
 * before the call. */
#include "config.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "firehose/firehose_private.h"
#include "unit.h"

enum { page = 4096, pages = 16 };

static void (*meanwhile)(void);
static bool is_old_kernel;

/* In place of the C library's. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *arg = va_arg(list, void *);
    va_end(list);
    if (is_old_kernel && (request >> 8 & 0xff) == 'f') {
        errno = ENOTTY;
        return -1;
    }
    void (*now)(void) = request == UFFDIO_REGISTER ? meanwhile : NULL;
    if (now) {
        meanwhile = NULL;
        now();
    }
    return (int)syscall(SYS_ioctl, fd, request, arg);
}

static char *at; /* pages for this test only, between two that are not accessible */

static void map(int first, int count, int rights)
{
    assert_ptr_not_equal(mmap(at + first * page, (size_t)count * page, rights,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                         MAP_FAILED);
}

/* Far from where the kernel places mappings without a requested address: malloc() or a sanitizer
 * would soon fill a hole there. */
static int make_space(void **state)
{
    at = mmap((void *)0x200000000000, (pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
              -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    at += page;
    munmap(at, pages * page);
    is_old_kernel = false;
    return 0;
}

static int leave_room(void **state)
{
    munmap(at - page, (pages + 2) * page);
    return 0;
}

static void assert_row(int first, int count, int from, int to)
{
    uintptr_t begin = (uintptr_t)at + (uintptr_t)first * page,
              end = begin + (uintptr_t)count * page;
    assert_true(tk_mappings_around(&begin, &end));
    assert_int_equal((int)((begin - (uintptr_t)at) / page), from);
    assert_int_equal((int)((end - (uintptr_t)at) / page), to);
}

static void assert_no_row(int first, int count)
{
    uintptr_t begin = (uintptr_t)at + (uintptr_t)first * page,
              end = begin + (uintptr_t)count * page;
    assert_false(tk_mappings_around(&begin, &end));
}

/* Up to the gap behind, and, where the whole list is read, to the one before. */
static void assert_rows(int gap_before)
{
    assert_row(0, 1, 0, 2);
    assert_row(1, 1, 0, 2);
    assert_row(3, 1, 2, 6);
    assert_row(7, 1, 6 - gap_before, pages);
    assert_row(6, 4, 6 - gap_before, pages);
    assert_no_row(0, 3); /* of two kinds */
    assert_no_row(9, 2); /* ends in a gap */
    assert_no_row(5, 1);
}

static void rows_are_found(void **state)
{
    map(0, 2, PROT_READ | PROT_WRITE);
    map(2, 2, PROT_READ);
    map(6, 4, PROT_READ | PROT_WRITE);
    madvise(at + 6 * page, page, MADV_DONTDUMP); /* of the same rights, but not the same mapping */
    uintptr_t from = (uintptr_t)at, to = from + page;
    tk_mappings_around(&from, &to);
    if (errno != ENOTTY)
        assert_rows(0);
    is_old_kernel = true;
    assert_rows(2);
}

/* ---- watching ---- */

static void open_monitor(void)
{
    unit_settings("GASNET_USE_FIREHOSE=1", NULL);
    if (tk_monitor_open("auto") != TK_OK || tk_monitor_mode() != TK_MONITOR_USERFAULTFD)
        skip();
    tk_monitor_start();
}

static void assert_can_move(int first, int count)
{
    void *to =
        mremap(at + first * page, (size_t)count * page, (size_t)(count + 4) * page, MREMAP_MAYMOVE);
    assert_ptr_not_equal(to, MAP_FAILED);
    munmap(to, (size_t)(count + 4) * page);
}

static void grow_in_place(void)
{
    assert_ptr_equal(mremap(at + 2 * page, 2 * page, 4 * page, 0), at + 2 * page);
}

static void map_behind(void)
{
    map(4, 4, PROT_READ | PROT_WRITE);
}

static void map_across(void)
{
    munmap(at + 8 * page, page);
    map(6, 3, PROT_READ | PROT_WRITE);
}

static void map_across_the_begin(void)
{
    munmap(at, 2 * page);
    map(0, 2, PROT_READ | PROT_WRITE);
}

static const struct {
    void (*meanwhile)(void);
    int first, count; /* pages of the other thread's, afterwards */
} cases[] = {
    {grow_in_place, 2, 4}, {map_behind, 4, 4}, {map_across, 6, 3}, {map_across_the_begin, 0, 2}};

static void watch_while(size_t i, bool old)
{
    map(0, 4, PROT_READ | PROT_WRITE);
    map(8, 4, PROT_READ | PROT_WRITE);
    memset(at, 1, 4 * page);
    is_old_kernel = old;
    meanwhile = cases[i].meanwhile;
    assert_true(tk_monitor_watch((uintptr_t)at + 2 * page, page));
    assert_null(meanwhile);
    assert_can_move(cases[i].first, cases[i].count);
    munmap(at, pages * page);
}

static void what_others_map_meanwhile_stays_whole(void **state)
{
    open_monitor();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        watch_while(i, false);
        watch_while(i, true);
    }
    tk_monitor_close();
}

static void assert_writable_is(bool expected, int first, int count)
{
    for (int old = 0; old < 2; old++) {
        is_old_kernel = old;
        assert_int_equal(tk_mapping_is_writable(at + first * page + 1, (size_t)count * page - 1),
                         expected);
    }
}

static void rights_are_those_of_all_pages(void **state)
{
    map(0, 4, PROT_READ | PROT_WRITE);
    map(4, 2, PROT_READ);
    map(6, 2, PROT_READ | PROT_WRITE);
    map(9, 2, PROT_WRITE);
    assert_writable_is(true, 0, 4);
    assert_writable_is(true, 6, 2);
    assert_writable_is(true, 9, 1);
    assert_writable_is(false, 3, 2);
    assert_writable_is(false, 4, 1);
    assert_writable_is(false, 5, 2);
    assert_writable_is(false, 0, 8);
    assert_writable_is(false, 6, 3); /* the last is not mapped */
    assert_writable_is(false, 8, 2);
    assert_writable_is(false, 12, 1);
    munmap(at, pages * page);
    map(0, 2, PROT_READ | PROT_WRITE);
    map(2, 2, PROT_READ | PROT_WRITE | PROT_EXEC);
    assert_writable_is(true, 0, 4);
    munmap(at, pages * page);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_space, leave_room)

static const struct CMUnitTest tests[] = {
    TEST(rows_are_found),
    TEST(what_others_map_meanwhile_stays_whole),
    TEST(rights_are_those_of_all_pages),
};

UNIT_MAIN(tests)
