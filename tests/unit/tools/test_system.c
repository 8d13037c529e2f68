/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The host, the process and its limits, and the small utilities. */
#include "config.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gasnet_tools.h"
#include "unit.h"

static void the_host_is_described(void **state)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    assert_string_equal(gasnett_gethostname(), host);
    unit_assert_says(gasnett_exe_name(), "test_system");
    assert_true(gasnett_cpu_count() >= 1);
    assert_true(gasnett_getPhysMemSz(1) > 1 << 20);
    assert_int_equal(gasnett_isLittleEndian(), __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    assert_int_equal(GASNETT_PAGESIZE, sysconf(_SC_PAGESIZE));
    assert_int_equal(GASNETT_PAGESIZE, 1 << GASNETT_PAGESHIFT);
}

static void the_release_is_reported(void **state)
{
    assert_string_equal(gasnett_release_version_str(), "2025.8.0");
    assert_int_equal(gasnett_release_version(), UINT64_C(2025080000));
    assert_non_null(gasnett_performance_warning_str());
    unit_assert_says(GASNETT_CONFIG_STRING, "RELEASE=2025.8.0,SPEC=1.20,");
}

static void bind(void *arg)
{
    cpu_set_t before, now;
    int count;
    (void)arg;
    sched_getaffinity(0, sizeof(before), &before);
    count = CPU_COUNT(&before);
    for (int rank = 0; rank < 2 * count; rank++) {
        if (gasnett_set_affinity(rank) != 0)
            exit(1);
        sched_getaffinity(0, sizeof(now), &now);
        if (CPU_COUNT(&now) != 1)
            exit(2);
        CPU_AND(&now, &now, &before);
        if (CPU_COUNT(&now) != 1)
            exit(3);
    }
    exit(gasnett_set_affinity(-1) ? 0 : 4);
}

static void affinity_keeps_to_what_is_allowed(void **state)
{
    unit_assert_exit(bind, NULL, 0);
}

static rlim_t open_files(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

static void raise_limit(void *unused)
{
    struct rlimit limit = {.rlim_cur = 32, .rlim_max = 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    setenv("GASNET_MAXIMIZE_RLIMIT_NOFILE", "0", 1);
    if (gasnett_maximize_rlimit(RLIMIT_NOFILE, "RLIMIT_NOFILE") != 0 || open_files() != 32)
        exit(1);
    if (gasnett_maximize_rlimits() != 0 || open_files() != 32)
        exit(2);
    unsetenv("GASNET_MAXIMIZE_RLIMIT_NOFILE");
    if (gasnett_maximize_rlimit(RLIMIT_NOFILE, "RLIMIT_NOFILE") == 0 || open_files() != 64)
        exit(3);
    setrlimit(RLIMIT_NOFILE, &limit);
    exit(gasnett_maximize_rlimits() && open_files() == 64 ? 0 : 4);
}

static void limits_are_raised_by_default(void **state)
{
    unit_assert_exit(raise_limit, NULL, 0);
}

static void a_checksum_is_the_same_for_ever(void **state)
{
    assert_true(gasnett_checksum("", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(gasnett_checksum("foobar", 6) == UINT64_C(0x85944171f73967e8));
    assert_true(gasnett_checksum("foobar", 6) != gasnett_checksum("foobra", 6));
}

static size_t zeros_of(const unsigned char *p, size_t n)
{
    size_t zeros = 0;
    for (size_t i = 0; i < n; i++)
        zeros += p[i] == 0;
    return zeros;
}

static void zero_bytes_are_counted(void **state)
{
    static const unsigned char values[] = {0, 0, 1, 0x7f, 0x80, 0x81, 0xff};
    struct unit_random r = unit_random(3);
    for (int i = 0; i < 2000; i++) {
        unsigned char from[40], to[40] = {0};
        uint64_t word;
        size_t at = unit_below(&r, 8), n = unit_below(&r, 32);
        for (size_t k = 0; k < sizeof(from); k++)
            from[k] = values[unit_below(&r, sizeof(values))];
        memcpy(&word, from, sizeof(word));
        assert_int_equal(gasnett_count0s(from + at, n), zeros_of(from + at, n));
        assert_int_equal(gasnett_count0s_copy(to, from + at, n), zeros_of(from + at, n));
        assert_memory_equal(to, from + at, n);
        assert_int_equal(gasnett_count0s_uint64_t(word), zeros_of(from, 8));
        assert_int_equal(gasnett_count0s_uint32_t((uint32_t)word),
                         zeros_of(from + 4 * !gasnett_isLittleEndian(), 4));
        assert_int_equal(gasnett_count0s_uintptr_t((uintptr_t)word), zeros_of(from, 8));
    }
}

static uint64_t load(const void *src, size_t nbytes)
{
    GASNETT_VALUE_RETURN(src, nbytes);
}

static void small_values_go_to_memory_and_back(void **state)
{
    for (size_t n = 1; n <= 8; n++) {
        unsigned char cell[10];
        uint64_t value = UINT64_C(0x1122334455667788), mask = n == 8 ? ~0ull : (1ull << 8 * n) - 1;
        memset(cell, 0xee, sizeof(cell));
        GASNETT_VALUE_ASSIGN(cell + 1, value, n);
        assert_true(load(cell + 1, n) == (value & mask));
        assert_int_equal(cell[0], 0xee);
        assert_int_equal(cell[1 + n], 0xee);
    }
}

static void words_are_halved_and_joined(void **state)
{
    uint64_t word = UINT64_C(0xfedcba9876543210);
    assert_true(GASNETI_HIWORD(word) == 0xfedcba98 && GASNETI_LOWORD(word) == 0x76543210);
    assert_true(GASNETI_MAKEWORD(GASNETI_HIWORD(word), GASNETI_LOWORD(word)) == word);
    assert_true(GASNETI_MAKEWORD((int32_t)-1, (int32_t)-1) == ~(uint64_t)0);
}

static void negative_characters_are_no_trap(void **state)
{
    for (int c = -128; c < 128; c++) {
        char plain = (char)c;
        (void)gasnett_isalpha(plain);
        (void)gasnett_toupper(plain);
        assert_int_equal(!gasnett_isascii(plain), c < 0);
    }
}

static void use_the_heap(void *unused)
{
    gasnett_heapstats_t stats;
    char *text = gasnett_debug_strdup("hello");
    text = gasnett_debug_realloc(text, 4000);
    int *zeros = gasnett_debug_calloc(10, sizeof(int));
    gasnett_debug_memcheck_all();
    gasnett_debug_memcheck_one();
    int bad = strcmp(text, "hello") != 0 || zeros[9] != 0;
    gasnett_debug_free(text);
    gasnett_debug_free(zeros);
    gasnett_debug_free(NULL);
    gasnett_getheapstats(&stats);
    exit(bad);
}

static void the_heap_is_there_in_every_library(void **state)
{
    unit_assert_exit(use_the_heap, NULL, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_host_is_described),
    cmocka_unit_test(the_release_is_reported),
    cmocka_unit_test(affinity_keeps_to_what_is_allowed),
    cmocka_unit_test(limits_are_raised_by_default),
    cmocka_unit_test(a_checksum_is_the_same_for_ever),
    cmocka_unit_test(zero_bytes_are_counted),
    cmocka_unit_test(small_values_go_to_memory_and_back),
    cmocka_unit_test(words_are_halved_and_joined),
    cmocka_unit_test(negative_characters_are_no_trap),
    cmocka_unit_test(the_heap_is_there_in_every_library),
};
UNIT_MAIN(tests)
