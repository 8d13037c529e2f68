/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much the cache may pin by the settings of the manual, on a host of 64 GiB whose device has a
 * million regions and whose ranks are four. */
#include "config.h"

#include "firehose/firehose_private.h"
#include "unit.h"

static const uint64_t gib = UINT64_C(1) << 30, mib = 1 << 20;

static struct tk_firehose_limits limits;

static bool lends;

static enum tk_status find(const char *first, const char *second)
{
    unit_settings(first, second, NULL);
    return tk_firehose_find_limits(&limits, 64 * gib, 1 << 20, 4, lends);
}

static void two_thirds_of_the_host_are_shared_by_its_ranks(void **state)
{
    assert_int_equal(find(NULL, NULL), TK_OK);
    assert_int_equal(limits.bytes / mib, 64 * 1024 * 2 / 3 / 4);
    assert_true(limits.counts_static);
    assert_int_equal(limits.granule, 128 << 10);
    assert_int_equal(limits.regions, 16384);
}

static void physmem_max_is_a_size_or_a_fraction(void **state)
{
    static const struct {
        const char *text;
        uint64_t mib;
    } good[] = {{"GASNET_PHYSMEM_MAX=8G", 2048},   {"GASNET_PHYSMEM_MAX=0.5", 8192},
                {"GASNET_PHYSMEM_MAX=5/8", 10240}, {"GASNET_PHYSMEM_MAX=1T", 262144},
                {"GASNET_PHYSMEM_MAX=512MB", 128}, {"GASNET_PHYSMEM_MAX=4194304", 1},
                {"GASNET_PHYSMEM_MAX=0", 0},       {"GASNET_PHYSMEM_MAX=", 10922}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(find(good[i].text, NULL), TK_OK);
        assert_int_equal(limits.bytes / mib, good[i].mib);
    }
}

static void regions_are_a_number_or_a_fraction_of_the_devices(void **state)
{
    assert_int_equal(find("GASNET_PINNED_REGIONS_MAX=4000", NULL), TK_OK);
    assert_int_equal(limits.regions, 1000);
    assert_int_equal(find("GASNET_PINNED_REGIONS_MAX=1/64", NULL), TK_OK);
    assert_int_equal(limits.regions, (1 << 20) / 64 / 4);
    assert_int_equal(find("GASNET_PINNED_REGIONS_MAX=0.5", "GASNET_FIREHOSE_MAXVICTIM_R=77"),
                     TK_OK);
    assert_int_equal(limits.regions, 77);
}

/* "M assumed if no suffix is given", for this size and the next. */
static void the_victim_pools_size_goes_before_physmem_max(void **state)
{
    assert_int_equal(find("GASNET_FIREHOSE_MAXVICTIM_M=100", "GASNET_PHYSMEM_MAX=1G"), TK_OK);
    assert_int_equal(limits.bytes, 100 * mib);
    assert_false(limits.counts_static);
    assert_int_equal(limits.regions, 1600); /* halves of granules; more would be of no use */
}

static void a_region_is_as_large_as_asked_for(void **state)
{
    assert_int_equal(find("GASNET_FIREHOSE_MAXREGION_SIZE=2", NULL), TK_OK);
    assert_int_equal(limits.granule, 2 * mib);
    assert_int_equal(find("GASNET_FIREHOSE_MAXREGION_SIZE=300K", NULL), TK_OK);
    assert_int_equal(limits.granule, 256 << 10);
    assert_int_equal(find("GASNET_FIREHOSE_MAXREGION_SIZE=100B", NULL), TK_OK);
    assert_int_equal(limits.granule, 4096);
    assert_int_equal(find("GASNET_FIREHOSE_MAXREGION_SIZE=0", NULL), TK_OK);
    assert_int_equal(limits.granule, mib); /* 16384 of them are 10922 MiB */
}

/* Three quarters for other ranks, or the rest if one of the two settings is given. */
static void what_others_may_have_is_shared_out(void **state)
{
    lends = true;
    assert_int_equal(find("GASNET_PHYSMEM_MAX=8G", NULL), TK_OK);
    assert_int_equal(limits.bytes / mib, 2048);
    assert_int_equal(limits.exported, 2048 * 8 * 3 / 4);
    assert_true(limits.counts_static);
    assert_int_equal(find("GASNET_PHYSMEM_MAX=8G", "GASNET_FIREHOSE_M=512"), TK_OK);
    assert_int_equal(limits.exported, 512 * 8);
    assert_int_equal(limits.bytes / mib, 2048);
    assert_int_equal(find("GASNET_PHYSMEM_MAX=8G", "GASNET_FIREHOSE_MAXVICTIM_M=1500"), TK_OK);
    assert_int_equal(limits.exported, 548 * 8);
    assert_int_equal(find("GASNET_FIREHOSE_M=64", "GASNET_FIREHOSE_MAXVICTIM_M=32"), TK_OK);
    assert_int_equal(limits.bytes, 96 * mib);
    assert_int_equal(limits.exported, 64 * 8);
    assert_false(limits.counts_static);
    assert_int_equal(find("GASNET_FIREHOSE_R=100", "GASNET_FIREHOSE_MAXVICTIM_R=50"), TK_OK);
    assert_int_equal(limits.exported, 100);
    assert_int_equal(limits.regions, 150);
    lends = false;
}

static const char *warning_of(const char *first, const char *second)
{
    assert_int_equal(find(first, second), TK_OK);
    unit_listen();
    tk_firehose_warn_of_limits(&limits);
    return unit_heard();
}

/* "Since enlarging the total pool risks exhausting resources, [...] doing so will result in a
 * warning." 10922 MiB are there, and 16384 regions. */
static void enlarging_the_pool_gives_a_warning(void **state)
{
    static const char memory[] = "GASNET_FIREHOSE_M and GASNET_FIREHOSE_MAXVICTIM_M add up to ",
                      regions[] = "GASNET_FIREHOSE_R and GASNET_FIREHOSE_MAXVICTIM_R add up to ";
    assert_string_equal(warning_of(NULL, NULL), "");
    assert_string_equal(warning_of("GASNET_FIREHOSE_MAXVICTIM_M=10922", NULL), "");
    unit_assert_says(warning_of("GASNET_FIREHOSE_MAXVICTIM_M=10923", NULL), memory);
    lends = true;
    assert_string_equal(warning_of("GASNET_FIREHOSE_MAXVICTIM_M=10922", NULL), "");
    assert_string_equal(warning_of("GASNET_FIREHOSE_M=10000", "GASNET_FIREHOSE_MAXVICTIM_M=922"),
                        "");
    unit_assert_says(warning_of("GASNET_FIREHOSE_M=10000", "GASNET_FIREHOSE_MAXVICTIM_M=923"),
                     memory);
    unit_assert_says(warning_of("GASNET_FIREHOSE_M=10923", NULL), memory);
    assert_string_equal(warning_of("GASNET_FIREHOSE_R=16000", "GASNET_FIREHOSE_MAXVICTIM_R=384"),
                        "");
    unit_assert_says(warning_of("GASNET_FIREHOSE_R=16000", "GASNET_FIREHOSE_MAXVICTIM_R=385"),
                     regions);
    lends = false;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_thirds_of_the_host_are_shared_by_its_ranks),
    cmocka_unit_test(physmem_max_is_a_size_or_a_fraction),
    cmocka_unit_test(regions_are_a_number_or_a_fraction_of_the_devices),
    cmocka_unit_test(the_victim_pools_size_goes_before_physmem_max),
    cmocka_unit_test(a_region_is_as_large_as_asked_for),
    cmocka_unit_test(what_others_may_have_is_shared_out),
    cmocka_unit_test(enlarging_the_pool_gives_a_warning),
};

UNIT_MAIN(tests)
