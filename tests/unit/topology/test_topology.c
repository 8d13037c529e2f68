/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The host map, from peer infos as other ranks would send them, and the contents of our own peer
 * info. */
#include "config.h"

#include <time.h>
#include <unistd.h>

#include "topology/topology.h"
#include "unit.h"

enum { ranks_max = 1024 };

static struct tk_host_info infos[ranks_max];

static const struct tk_host_info *info_of(uint32_t rank)
{
    return &infos[rank];
}

static const struct tk_host_info *many_hosts;
static uint32_t many_count;

static const struct tk_host_info *info_of_many(uint32_t rank)
{
    return &many_hosts[rank % many_count];
}

/* From `infos`. */
static void build_of(uint32_t me, uint32_t size)
{
    static uint32_t map[2 * ranks_max];
    free(tk_topology.local_ranks);
    assert_int_equal(tk_topology_map_bytes(size), 2 * size * sizeof(*map));
    assert_int_equal(tk_topology_map(map, size, info_of), TK_OK);
    assert_int_equal(tk_topology_build(me, size, map), TK_OK);
}

/* host_of[r] is a letter for each rank: "abab" is two hosts, interleaved. */
static void build(const char *hosts, uint32_t me)
{
    for (size_t r = 0; hosts[r]; r++)
        snprintf(infos[r].id, sizeof(infos[r].id), "boot-id host-%c", hosts[r]);
    build_of(me, (uint32_t)strlen(hosts));
}

static void one_rank_is_one_host(void **state)
{
    build("a", 0);
    assert_int_equal(tk_topology.hosts, 1);
    assert_int_equal(tk_topology.local_size, 1);
    assert_int_equal(tk_topology.local_rank, 0);
    assert_int_equal(tk_topology.my_host, 0);
    assert_int_equal(tk_topology.local_ranks[0], 0);
}

static void interleaved_ranks_find_their_neighbours(void **state)
{
    build("abcabcab", 4);
    assert_int_equal(tk_topology.hosts, 3);
    assert_int_equal(tk_topology.my_host, 1);
    assert_int_equal(tk_topology.local_size, 3);
    assert_int_equal(tk_topology.local_rank, 1);
    static const uint32_t locals[] = {1, 4, 7}, hosts[] = {0, 1, 2, 0, 1, 2, 0, 1};
    assert_memory_equal(tk_topology.local_ranks, locals, sizeof(locals));
    assert_memory_equal(tk_topology.host_of, hosts, sizeof(hosts));
}

/* Ranks dealt out in turns to many hosts: comparing each rank's host with all of them would take
 * 10 s of CPU time, not a tenth of one. */
static void many_hosts_take_no_longer_than_few(void **state)
{
    enum { hosts = 20000, size = 20 * hosts };
    static struct tk_host_info many[hosts];
    static uint32_t map[2 * size];
    struct timespec from, to;
    for (uint32_t h = 0; h < hosts; h++)
        snprintf(many[h].id, sizeof(many[h].id), "0123-boot-id host-%u", h);
    many_hosts = many;
    many_count = hosts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    assert_int_equal(tk_topology_map(map, size, info_of_many), TK_OK);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    for (uint32_t r = 0; r < size; r++)
        assert_int_equal(map[r], r % hosts);
    assert_true(to.tv_sec - from.tv_sec < 3);
}

static void hosts_are_numbered_by_their_lowest_rank(void **state)
{
    build("zzyzx", 2);
    assert_int_equal(tk_topology.hosts, 3);
    assert_int_equal(tk_topology.my_host, 1);
    assert_int_equal(tk_topology.host_of[4], 2);
    assert_int_equal(tk_topology.local_size, 1);
}

static void a_host_for_each_rank_works_too(void **state)
{
    for (unsigned r = 0; r < ranks_max; r++)
        snprintf(infos[r].id, sizeof(infos[r].id), "host-%u", r);
    build_of(1000, ranks_max);
    assert_int_equal(tk_topology.hosts, ranks_max);
    assert_int_equal(tk_topology.my_host, 1000);
    assert_int_equal(tk_topology.local_size, 1);
}

/* Containers of one machine share its boot id; cloned machines share names. */
static void hosts_differ_when_any_part_of_their_ids_does(void **state)
{
    strcpy(infos[0].id, "boot-1 node");
    strcpy(infos[1].id, "boot-2 node");
    strcpy(infos[2].id, "boot-1 node2");
    build_of(0, 3);
    assert_int_equal(tk_topology.hosts, 3);
}

static void more_ranks_than_cpus_is_oversubscribed(void **state)
{
    char hosts[ranks_max + 1];
    build("ab", 0);
    assert_true(tk_topology.cpus >= 1);
    assert_false(tk_topology.oversubscribed);
    if (tk_topology.cpus >= ranks_max)
        skip();
    unsigned cpus = tk_topology.cpus;
    memset(hosts, 'a', sizeof(hosts));
    hosts[cpus] = 0;
    build(hosts, 0);
    assert_false(tk_topology.oversubscribed);
    hosts[cpus] = 'a';
    hosts[cpus + 1] = 0;
    build(hosts, 0);
    assert_true(tk_topology.oversubscribed);
}

static struct tk_host_info describe(const char *setting)
{
    struct tk_host_info info;
    memset(&info, 'x', sizeof(info));
    unit_settings(setting, NULL);
    assert_int_equal(tk_topology_describe(&info), TK_OK);
    return info;
}

static void host_detect_decides_what_makes_a_host(void **state)
{
    char name[tk_host_name_max] = "", id[32];
    gethostname(name, sizeof(name) - 1);
    struct tk_host_info info = describe("GASNET_HOST_DETECT=hostname");
    assert_string_equal(info.id, name);
    info = describe("GASNET_HOST_DETECT=gethostid");
    snprintf(id, sizeof(id), "%lx", (unsigned long)gethostid());
    assert_string_equal(info.id, id);
    info = describe("GASNET_HOST_DETECT=conduit");
    assert_string_equal(info.name, name);
    assert_true(strlen(info.id) > 36); /* boot id, blank, name */
    unit_assert_says(info.id, name);
}

/* Two virtual hosts of one machine are two hosts, whatever GASNET_HOST_DETECT is, and share its
 * CPUs and memory. */
static void virtual_hosts_are_hosts(void **state)
{
    static const char *const detect[] = {"GASNET_HOST_DETECT=conduit",
                                         "GASNET_HOST_DETECT=hostname",
                                         "GASNET_HOST_DETECT=gethostid"};
    for (size_t i = 0; i < sizeof(detect) / sizeof(*detect); i++) {
        struct tk_host_info real = describe(detect[i]);
        setenv("TRUNKLINE_HOST", "n1", 1);
        struct tk_host_info info = describe(detect[i]);
        unsetenv("TRUNKLINE_HOST");
        assert_string_equal(info.name, "n1");
        unit_assert_says(info.id, "n1");
        assert_string_not_equal(info.id, real.id);
    }
    setenv("TRUNKLINE_HOST", "n1", 1);
    build("aab", 0);
    unsetenv("TRUNKLINE_HOST");
    assert_int_equal(tk_machine_ranks(), 3);
    assert_int_equal(tk_topology.oversubscribed, 3 > tk_topology.cpus);
    build("aab", 0);
    assert_int_equal(tk_machine_ranks(), 2);
}

/* Up to 15 ranks of a CPU count as one. */
static void a_crowd_is_counted_by_cpus(void **state)
{
    static const struct {
        unsigned ranks, cpus, crowd;
    } cases[] = {{1, 1, 1},  {15, 1, 1},    {16, 1, 2},   {256, 2, 16},
                 {31, 2, 1}, {1024, 2, 64}, {1024, 0, 1}, {64, 128, 1}};
    build("aab", 0);
    struct tk_topology before = tk_topology;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tk_topology.on_machine = cases[i].ranks;
        tk_topology.cpus = cases[i].cpus;
        assert_int_equal(tk_machine_crowd(), cases[i].crowd);
    }
    tk_topology = before;
}

/* These records are compared and hashed as bytes elsewhere; stack contents must not leave the
 * process. */
static void a_card_has_no_stray_bytes(void **state)
{
    struct tk_host_info info = describe(NULL);
    for (size_t i = strlen(info.name); i < sizeof(info.name); i++)
        assert_int_equal(info.name[i], 0);
    for (size_t i = strlen(info.id); i < sizeof(info.id); i++)
        assert_int_equal(info.id[i], 0);
}

/* ---- neighbourhoods */

/* nbrhds[r] is a digit for each rank. */
static void cut(const char *setting, const char *hosts, uint32_t me, const char *nbrhds)
{
    uint32_t size = 0, index = 0, most = 0;
    unit_settings(setting, NULL);
    build(hosts, me);
    for (uint32_t r = 0; hosts[r]; r++) {
        uint32_t expected = (uint32_t)(nbrhds[r] - '0');
        assert_int_equal(tk_topology.nbrhd_of[r], expected);
        most = expected > most ? expected : most;
        if (nbrhds[r] != nbrhds[me])
            continue;
        index = r == me ? size : index;
        assert_int_equal(tk_topology.nbrhd_ranks[size++], r);
    }
    assert_int_equal(tk_topology.nbrhds, most + 1);
    assert_int_equal(tk_topology.my_nbrhd, nbrhds[me] - '0');
    assert_int_equal(tk_topology.nbrhd_size, size);
    assert_int_equal(tk_topology.nbrhd_rank, index);
}

static void a_host_is_cut_in_order_of_ranks(void **state)
{
    cut(NULL, "aaaaa", 3, "00000");
    cut("GASNET_SUPERNODE_MAXSIZE=1", "aaaaa", 3, "01234");
    cut("GASNET_SUPERNODE_MAXSIZE=2", "aaaaa", 0, "00112");
    cut("GASNET_SUPERNODE_MAXSIZE=2", "aaaaa", 3, "00112");
    cut("GASNET_SUPERNODE_MAXSIZE=2", "aaaaa", 4, "00112");
    cut("GASNET_SUPERNODE_MAXSIZE=4", "aaaaa", 4, "00001");
    cut("GASNET_SUPERNODE_MAXSIZE=5", "aaaaa", 4, "00000");
    cut("GASNET_SUPERNODE_MAXSIZE=65535", "aaaaa", 4, "00000");
}

/* Each host by itself, however its ranks lie among others; numbers go by the lowest rank. */
static void hosts_are_cut_each_by_itself(void **state)
{
    cut(NULL, "ababab", 3, "010101");
    cut("GASNET_SUPERNODE_MAXSIZE=2", "ababab", 4, "010123");
    cut("GASNET_SUPERNODE_MAXSIZE=2", "aababb", 5, "001213");
    cut("GASNET_SUPERNODE_MAXSIZE=3", "abbbba", 0, "011120");
    cut("GASNET_SUPERNODE_MAXSIZE=1", "abab", 2, "0123");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_host_is_cut_in_order_of_ranks),
    cmocka_unit_test(hosts_are_cut_each_by_itself),
    cmocka_unit_test(one_rank_is_one_host),
    cmocka_unit_test(interleaved_ranks_find_their_neighbours),
    cmocka_unit_test(many_hosts_take_no_longer_than_few),
    cmocka_unit_test(hosts_are_numbered_by_their_lowest_rank),
    cmocka_unit_test(a_host_for_each_rank_works_too),
    cmocka_unit_test(hosts_differ_when_any_part_of_their_ids_does),
    cmocka_unit_test(more_ranks_than_cpus_is_oversubscribed),
    cmocka_unit_test(host_detect_decides_what_makes_a_host),
    cmocka_unit_test(virtual_hosts_are_hosts),
    cmocka_unit_test(a_crowd_is_counted_by_cpus),
    cmocka_unit_test(a_card_has_no_stray_bytes),
};

UNIT_MAIN(tests)
