/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory: the meaning of GASNET_MAX_SEGSIZE, and the properties of areas: whole pages, shared,
 * zero, bounded, and freed on close. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ranges.h"
#include "memory/memory.h"
#include "topology/topology.h"
#include "unit.h"

#define MB UINT64_C(1048576)
#define GB (1024 * MB)

/* The kernel's, unless a test has it fail. */
static unsigned interruptions;
static int populate_error;

int fallocate(int fd, int mode, off_t offset, off_t size)
{
    if (interruptions > 0) {
        interruptions--;
        errno = EINTR;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, size);
}

int madvise(void *at, size_t size, int advice)
{
    if (populate_error && advice == 23 /* MADV_POPULATE_WRITE */) {
        errno = populate_error;
        return -1;
    }
    return (int)syscall(SYS_madvise, at, size, advice);
}

static uint64_t limit_in(const char *text, struct tk_segment_bounds room)
{
    uint64_t limit = 0;
    if (tk_segment_limit(text, &room, &limit) != TK_OK)
        fail_msg("GASNET_MAX_SEGSIZE=%s was refused", text);
    return limit;
}

static uint64_t limit_of(const char *text, uint64_t host, unsigned ranks)
{
    return limit_in(text, (struct tk_segment_bounds){host, UINT64_MAX, UINT64_MAX, ranks});
}

static uint64_t limit_with_left(const char *text, uint64_t left, unsigned ranks)
{
    return limit_in(text, (struct tk_segment_bounds){8 * GB, left, UINT64_MAX, ranks});
}

static uint64_t limit_pinned(const char *text, uint64_t left, uint64_t pinnable, unsigned ranks)
{
    return limit_in(text, (struct tk_segment_bounds){8 * GB, left, pinnable, ranks});
}

static void a_size_is_per_process(void **state)
{
    assert_int_equal(limit_of("512M", 8 * GB, 4), 512 * MB);
    assert_int_equal(limit_of("2GB/P", 8 * GB, 4), 2 * GB);
    assert_int_equal(limit_of("1.5GiB/p", 8 * GB, 64), GB + GB / 2);
    assert_int_equal(limit_of("8192B", 8 * GB, 4), 8192);
}

static void a_number_above_one_is_bytes(void **state)
{
    assert_int_equal(limit_of("1048576", 8 * GB, 1), MB);
}

static void a_fraction_is_of_the_hosts_memory(void **state)
{
    assert_int_equal(limit_of("0.5", 8 * GB, 1), 4 * GB);
    assert_int_equal(limit_of("0.25/P", 8 * GB, 4), 2 * GB);
    assert_int_equal(limit_of("1/P", 8 * GB, 4), 8 * GB);
    assert_int_equal(limit_of("1", 8 * GB, 4), 8 * GB);
}

static void one_byte_is_not_the_whole_host(void **state)
{
    assert_int_equal(limit_of("1B", 8 * GB, 4), tk_page_size());
}

/* The manual: /H includes what the library needs itself, /P does not. */
static void a_hosts_share_is_divided_among_its_ranks(void **state)
{
    uint64_t one = limit_of("0.5/H", 8 * GB, 1), four = limit_of("0.5/H", 8 * GB, 4);
    assert_true(one < 4 * GB && one > 3 * GB);
    assert_true(four < GB && four > GB / 2);
    assert_int_equal(limit_of("4G/h", 8 * GB, 4), four);
}

static void the_default_leaves_space(void **state)
{
    assert_true(4 * limit_of("0.85/H", 8 * GB, 4) < 8 * GB * 85 / 100);
}

/* The default promises that all of it may be touched. */
static void a_share_is_one_of_what_others_left(void **state)
{
    assert_int_equal(limit_with_left("0.85/H", 2 * GB, 4), GB / 2 - 64 * MB);
    assert_int_equal(limit_with_left("0.85/H", 100 * MB, 4),
                     (25 * MB - 25 * MB / 4) & ~UINT64_C(4095));
    assert_int_equal(limit_with_left("0.85/H", 8 * GB, 4), limit_of("0.85/H", 8 * GB, 4));
    assert_int_equal(limit_with_left("0.85/H", 0, 4), tk_page_size());
}

/* A limit set by the client is not guaranteed by the library, except for a tenth of it. */
static void a_size_is_had_while_all_ranks_can_touch_a_tenth(void **state)
{
    static const uint64_t left[] = {64 * MB, GB, 3 * GB, 8 * GB};
    assert_int_equal(limit_with_left("2G", GB, 2), 2 * GB);
    assert_int_equal(limit_with_left("2G/P", GB, 4), 2 * GB);
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        for (unsigned ranks = 1; ranks < 300; ranks = 2 * ranks + 1)
            assert_true(limit_with_left("8G", left[i], ranks) / 10 * ranks < left[i]);
}

static void what_a_device_pins_obeys_physmem_max_and_is_there(void **state)
{
    static const char *const texts[] = {"0.85/H", "8G", "1/P"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(limit_pinned(texts[i], 8 * GB, 2 * GB, 2), GB - 64 * MB);
        assert_int_equal(limit_pinned(texts[i], GB, 2 * GB, 2), GB / 2 - 64 * MB);
    }
    assert_int_equal(limit_pinned("100M", 8 * GB, 2 * GB, 2), 100 * MB);
}

static void a_limit_is_never_above_the_host_or_below_a_page(void **state)
{
    assert_int_equal(limit_of("16G", 8 * GB, 1), 8 * GB);
    assert_int_equal(limit_of("1T/H", 8 * GB, 2), 8 * GB);
    assert_int_equal(limit_of("4K/H", 8 * GB, 64), tk_page_size());
    assert_int_equal(limit_of("5B", 8 * GB, 1), tk_page_size());
}

static void a_limit_is_whole_pages(void **state)
{
    static const char *const texts[] = {"1000000", "0.333", "0.1/H", "123457B/P"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(limit_of(texts[i], 8 * GB + 12345, 3) % tk_page_size(), 0);
}

#define ONES "11111111111111111111111111111111111111111111111111111111111111111111111"

static void other_texts_are_refused_with_the_grammar(void **state)
{
    static const char longer_than_any_number[] = ONES "/P";
    static const char *const bad[] = {"",
                                      "/H",
                                      "0",
                                      "-1",
                                      "0.0/H",
                                      "1G/X",
                                      "1G/",
                                      "1G/PH",
                                      "1Q",
                                      "nan",
                                      "inf/P",
                                      "1G /P ",
                                      "1e300",
                                      "half",
                                      "99999999999999999999T",
                                      longer_than_any_number};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t limit;
        unit_listen();
        const struct tk_segment_bounds room = {8 * GB, 8 * GB, UINT64_MAX, 1};
        enum tk_status status = tk_segment_limit(bad[i], &room, &limit);
        const char *said = unit_heard();
        if (status == TK_OK)
            fail_msg("'%s' was taken for %llu bytes", bad[i], (unsigned long long)limit);
        unit_assert_says(said, "GASNET_MAX_SEGSIZE='");
        unit_assert_says(said, "is not a size (as 512M, 2GB) or a fraction");
        assert_int_equal(unit_lines(said), 1);
    }
}

static void an_area_is_whole_pages_of_zeroes(void **state)
{
    struct tk_area area;
    assert_int_equal(tk_area_open(&area, "test", 1, true), TK_OK);
    assert_int_equal(area.size, tk_page_size());
    for (size_t i = 0; i < area.size; i++)
        assert_int_equal(((char *)area.base)[i], 0);
    tk_area_close(&area);
    assert_int_equal(tk_area_open(&area, "test", tk_page_size() + 1, false), TK_OK);
    assert_int_equal(area.size, 2 * tk_page_size());
    tk_area_close(&area);
}

static void an_area_is_seen_through_its_descriptor(void **state)
{
    struct tk_area area;
    char byte = 0;
    assert_int_equal(tk_area_open(&area, "test", 100, true), TK_OK);
    ((char *)area.base)[99] = 'x';
    assert_int_equal(pread(area.fd, &byte, 1, 99), 1);
    assert_int_equal(byte, 'x');
    tk_area_close(&area);
}

/* A program that the client starts must not keep the segment alive. */
static void an_areas_descriptor_is_not_inherited(void **state)
{
    struct tk_area area;
    assert_int_equal(tk_area_open(&area, "test", 1, false), TK_OK);
    assert_true(fcntl(area.fd, F_GETFD) & FD_CLOEXEC);
    tk_area_close(&area);
}

static void a_reserved_area_has_its_pages(void **state)
{
    struct tk_area reserved, lazy;
    struct stat s;
    assert_int_equal(tk_area_open(&reserved, "test", MB, true), TK_OK);
    assert_int_equal(tk_area_open(&lazy, "test", MB, false), TK_OK);
    assert_int_equal(fstat(reserved.fd, &s), 0);
    assert_int_equal((uint64_t)s.st_blocks * 512, MB);
    assert_int_equal(fstat(lazy.fd, &s), 0);
    assert_int_equal(s.st_blocks, 0);
    tk_area_close(&reserved);
    tk_area_close(&lazy);
}

/* The caller measured plenty of memory, or little; in the latter case the area measures again. */
static void an_area_after_a_measurement_has_its_pages(void **state)
{
    static const uint64_t left[] = {1000 * MB, 1};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        struct tk_area area;
        assert_int_equal(tk_area_open_measured(&area, "test", MB, left[i]), TK_OK);
        assert_int_equal(tk_area_present(&area), MB);
        tk_area_close(&area);
    }
}

/* With plenty of memory pages are allocated when touched; otherwise a lack is detected at once. */
static void an_area_by_need_has_pages_if_memory_is_scarce(void **state)
{
    static const uint64_t left[] = {1000 * MB, 20 * MB, 1};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        struct tk_area area;
        assert_int_equal(tk_area_open_by_need(&area, "test", MB, left[i]), TK_OK);
        assert_int_equal(tk_area_present(&area), i == 0 ? 0 : MB);
        ((char *)area.base)[MB / 2] = 1;
        assert_int_equal(tk_area_present(&area), i == 0 ? tk_page_size() : MB);
        tk_area_close(&area);
    }
}

static void what_an_area_grows_by_has_no_pages(void **state)
{
    struct tk_area area;
    struct stat s;
    assert_int_equal(tk_area_open(&area, "test", MB, true), TK_OK);
    assert_int_equal(tk_area_grow(&area, "test", 64 * MB), TK_OK);
    assert_int_equal(fstat(area.fd, &s), 0);
    assert_int_equal(s.st_size, 65 * MB);
    assert_int_equal((uint64_t)s.st_blocks * 512, MB);
    unit_listen();
    enum tk_status status = tk_area_grow(&area, "test", (size_t)1 << 63);
    unit_assert_says(unit_heard(), "no memory for test ");
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(area.fd, -1);
}

/* Several threads' pieces, an end within a piece, and a start within a page. */
static void populating_makes_all_present_and_changes_nothing(void **state)
{
    struct tk_area area;
    tk_topology.cpus = 4;
    assert_int_equal(tk_area_open(&area, "test", 100 * MB + 4096, false), TK_OK);
    memset(area.base, 'x', 5000);
    int error = tk_populate((char *)area.base + 5000, area.size - 5000);
    if (error == EINVAL)
        skip(); /* Linux before 5.14 */
    assert_int_equal(error, 0);
    assert_int_equal(tk_area_present(&area), area.size);
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(((char *)area.base)[i], i < 5000 ? 'x' : 0);
    tk_area_close(&area);
}

static void a_large_area_is_reserved_whole(void **state)
{
    struct tk_area area;
    assert_int_equal(tk_area_open(&area, "test", 200 * MB, true), TK_OK);
    assert_int_equal(tk_area_present(&area), area.size);
    tk_area_close(&area);
}

/* The lookup of a SIGBUS handler. */
static void areas_are_known_by_address_while_they_are_open(void **state)
{
    struct tk_area first, second;
    struct tk_range range;
    assert_int_equal(tk_area_open(&first, "first", 1, false), TK_OK);
    assert_int_equal(tk_area_open(&second, "second", 1, false), TK_OK);
    char *at = first.base, *other = second.base;
    assert_true(tk_range_of(at + first.size - 1, &range));
    assert_string_equal(range.what, "first");
    assert_int_equal(range.rank, -1);
    tk_area_close(&first);
    assert_false(tk_range_of(at, &range));
    assert_true(tk_range_of(other, &range));
    assert_string_equal(range.what, "second");
    tk_area_close(&second);
    assert_false(tk_range_of(other, &range));
}

static void closing_leaves_nothing_and_may_be_repeated(void **state)
{
    struct tk_area area;
    unsigned char resident;
    assert_int_equal(tk_area_open(&area, "test", 1, false), TK_OK);
    void *base = area.base;
    int fd = area.fd;
    tk_area_close(&area);
    assert_int_equal(mincore(base, 1, &resident), -1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_null(area.base);
    assert_int_equal(area.size, 0);
    tk_area_close(&area);
}

static void impossible_requests_are_refused_with_the_limit(void **state)
{
    struct tk_area area;
    unit_listen();
    enum tk_status status = tk_area_open(&area, "segment", (size_t)1 << 62, false);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, "no memory for segment (4611686018427387904 bytes): ");
    unit_assert_says(said, "this host's processes may use ");
    assert_int_equal(unit_lines(said), 1);
    assert_int_equal(area.fd, -1);
    assert_null(area.base);
}

static void a_signal_does_not_stop_a_reservation(void **state)
{
    struct tk_area area;
    interruptions = 3;
    assert_int_equal(tk_area_open(&area, "segment", 5 * MB, true), TK_OK);
    assert_int_equal(interruptions, 0);
    assert_true(tk_area_present(&area) >= area.size);
    tk_area_close(&area);
}

static void the_call_that_failed_is_named(void **state)
{
    struct tk_area area;
    populate_error = EFAULT;
    unit_listen();
    enum tk_status status = tk_area_open(&area, "segment", 64 * MB, true);
    const char *said = unit_heard();
    populate_error = 0;
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, ": madvise(MADV_POPULATE_WRITE): Bad address; ");
    assert_int_equal(unit_lines(said), 1);
}

/* Reserving it would make the kernel kill some process of this host, so it is checked first. */
static void more_than_is_free_is_refused_before_it_is_reserved(void **state)
{
    struct tk_area area;
    unit_listen();
    size_t size = tk_host_memory() + tk_page_size();
    enum tk_status status = tk_area_open(&area, "segment", size, true);
    enum tk_status measured = tk_area_open_measured(&area, "segment", size, size);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(measured, TK_FAIL);
    unit_assert_says(said, " leaves ");
    unit_assert_says(said, "ask for less");
    assert_int_equal(unit_lines(said), 2);
}

/* Internals of a fixed size must not eat the whole share of many ranks. */
static void many_ranks_keep_most_of_their_share(void **state)
{
    assert_true(limit_of("0.85/H", 8 * GB, 256) > 8 * GB / 256 / 2);
}

static void holding_is_exact_at_both_ends(void **state)
{
    static char bytes[64];
    const struct tk_area area = {.base = bytes + 16, .size = 32};
    assert_true(tk_area_holds(&area, bytes + 16, 32));
    assert_true(tk_area_holds(&area, bytes + 47, 1));
    assert_true(tk_area_holds(&area, bytes + 16, 0));
    assert_false(tk_area_holds(&area, bytes + 15, 1));
    assert_false(tk_area_holds(&area, bytes + 16, 33));
    assert_false(tk_area_holds(&area, bytes + 48, 1));
    assert_false(tk_area_holds(&area, bytes + 20, SIZE_MAX));
    assert_false(tk_area_holds(&area, NULL, 1));
}

static void nothing_is_held_before_attach(void **state)
{
    int here = 0;
    assert_false(tk_area_holds(&tk_segment_area, &here, sizeof(here)));
    assert_false(tk_area_holds(&tk_segment_area, NULL, 0));
}

static void the_hosts_memory_is_at_most_what_is_installed(void **state)
{
    uint64_t installed = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(tk_host_memory() > 16 * MB);
    assert_true(tk_host_memory() <= installed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_size_is_per_process),
    cmocka_unit_test(a_number_above_one_is_bytes),
    cmocka_unit_test(a_fraction_is_of_the_hosts_memory),
    cmocka_unit_test(one_byte_is_not_the_whole_host),
    cmocka_unit_test(a_hosts_share_is_divided_among_its_ranks),
    cmocka_unit_test(the_default_leaves_space),
    cmocka_unit_test(a_share_is_one_of_what_others_left),
    cmocka_unit_test(a_size_is_had_while_all_ranks_can_touch_a_tenth),
    cmocka_unit_test(what_a_device_pins_obeys_physmem_max_and_is_there),
    cmocka_unit_test(a_limit_is_never_above_the_host_or_below_a_page),
    cmocka_unit_test(a_limit_is_whole_pages),
    cmocka_unit_test(other_texts_are_refused_with_the_grammar),
    cmocka_unit_test(an_area_is_whole_pages_of_zeroes),
    cmocka_unit_test(an_area_is_seen_through_its_descriptor),
    cmocka_unit_test(an_areas_descriptor_is_not_inherited),
    cmocka_unit_test(a_reserved_area_has_its_pages),
    cmocka_unit_test(an_area_after_a_measurement_has_its_pages),
    cmocka_unit_test(an_area_by_need_has_pages_if_memory_is_scarce),
    cmocka_unit_test(what_an_area_grows_by_has_no_pages),
    cmocka_unit_test(populating_makes_all_present_and_changes_nothing),
    cmocka_unit_test(a_large_area_is_reserved_whole),
    cmocka_unit_test(areas_are_known_by_address_while_they_are_open),
    cmocka_unit_test(closing_leaves_nothing_and_may_be_repeated),
    cmocka_unit_test(impossible_requests_are_refused_with_the_limit),
    cmocka_unit_test(a_signal_does_not_stop_a_reservation),
    cmocka_unit_test(the_call_that_failed_is_named),
    cmocka_unit_test(more_than_is_free_is_refused_before_it_is_reserved),
    cmocka_unit_test(many_ranks_keep_most_of_their_share),
    cmocka_unit_test(holding_is_exact_at_both_ends),
    cmocka_unit_test(nothing_is_held_before_attach),
    cmocka_unit_test(the_hosts_memory_is_at_most_what_is_installed),
};

UNIT_MAIN(tests)
