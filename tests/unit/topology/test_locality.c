/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The distance of devices, on a synthetic machine: two packages of two NUMA nodes of two cores,
 * eight CPUs; softhca0 beside the first node, softhca1 beside the third, softhca2 on the second
 * package (two-packages.xml, made by softhca topology); and a node of Summit (summit.xml). The
 * process is bound to CPUs that this host may not have, so the system call that returns its CPUs is
 * replaced. / */
#include "config.h"

#include <sched.h>
#include <unistd.h>

#include "settings/settings.h"
#include "topology/locality.h"
#include "unit.h"

static cpu_set_t cpus, cpus_of_process;

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    assert_true(size <= sizeof(cpus));
    memcpy(set, pid == getpid() ? &cpus_of_process : &cpus, size);
    return 0;
}

static void use_machine(const char *file)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof(path), "%s/tests/unit/topology/%s", top ? top : ".", file);
    setenv("HWLOC_XMLFILE", path, 1);
    tk_locality_drop();
}

static void bind_to_cpus(int first, int last)
{
    CPU_ZERO(&cpus);
    for (int i = first; i <= last; i++)
        CPU_SET((size_t)i, &cpus);
    tk_settings.hwloc_query = "thread";
    tk_locality_drop();
}

static void a_device_beside_us_is_at_distance_0(void **state)
{
    bind_to_cpus(0, 0);
    assert_int_equal(tk_locality_distance("softhca0"), 0);
    bind_to_cpus(0, 1);
    assert_int_equal(tk_locality_distance("softhca0"), 0);
    bind_to_cpus(5, 6);
    assert_int_equal(tk_locality_distance("softhca2"), 0);
}

static void the_first_thread_counts_on_request(void **state)
{
    (void)state;
    CPU_ZERO(&cpus_of_process);
    CPU_SET(5, &cpus_of_process);
    bind_to_cpus(0, 0);
    tk_settings.hwloc_query = "process";
    assert_int_equal(tk_locality_distance("softhca2"), 0);
    assert_true(tk_locality_distance("softhca0") > 0);
    bind_to_cpus(0, 0);
    assert_int_equal(tk_locality_distance("softhca0"), 0);
}

static void nearer_parts_of_the_machine_are_nearer(void **state)
{
    bind_to_cpus(2, 3); /* the other node of the first package */
    int same_package = tk_locality_distance("softhca0"),
        other_package = tk_locality_distance("softhca1");
    assert_true(same_package > 0);
    assert_true(other_package > same_package);
    assert_true(other_package < tk_distance_unknown);
}

static void some_of_our_cpus_beside_it_is_nearer_than_none(void **state)
{
    bind_to_cpus(0, 4);
    assert_true(tk_locality_distance("softhca0") > 0);
    int partly = tk_locality_distance("softhca1");
    bind_to_cpus(0, 3);
    assert_true(partly < tk_locality_distance("softhca1"));
}

static void an_unbound_rank_is_equally_near_to_all(void **state)
{
    bind_to_cpus(0, 7);
    assert_int_equal(tk_locality_distance("softhca0"), tk_locality_distance("softhca1"));
    bind_to_cpus(100, 101); /* CPUs that the synthetic machine does not have */
    assert_int_equal(tk_locality_distance("softhca0"), tk_locality_distance("softhca1"));
}

static void a_device_that_hwloc_does_not_know_is_farthest(void **state)
{
    bind_to_cpus(0, 0);
    assert_int_equal(tk_locality_distance("softhca7"), tk_distance_unknown);
    assert_int_equal(tk_locality_distance("eth0"), tk_distance_unknown);
}

/* As bits */
static int parts(const char *type)
{
    uint32_t at[16], count;
    int bits = 0;
    assert_int_equal(tk_locality_indices(type, at, 16, &count), TK_OK);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(i == 0 || at[i] > at[i - 1]);
        bits |= 1 << at[i];
    }
    return bits;
}

static void a_bound_thread_is_in_one_part(void **state)
{
    bind_to_cpus(5, 5);
    assert_int_equal(parts("Socket"), 1 << 1);
    assert_int_equal(parts("Package"), 1 << 1);
    assert_int_equal(parts("NUMANode"), 1 << 2);
    assert_int_equal(parts("Core"), 1 << 5);
    bind_to_cpus(0, 3);
    assert_int_equal(parts("Socket"), 1);
    assert_int_equal(parts("NUMANode"), 3);
    bind_to_cpus(0, 7);
    assert_int_equal(parts("Socket"), 3);
    assert_int_equal(parts("L3Cache"), 0);
}

static void types_that_are_none_are_refused(void **state)
{
    static const char *const names[] = {"", "Rack", "OSDev", "PCI", "1"};
    bind_to_cpus(0, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint32_t at, count;
        assert_int_equal(tk_locality_indices(names[i], &at, 1, &count), TK_FAIL);
    }
}

/* A start without hwloc checks the name against our own list. */
static void names_are_judged_as_hwloc_does(void **state)
{
    static const char *const names[] = {
        "Machine",  "machine0", "Package",  "pa",    "Socket",  "SOCKET", "Socket0",
        "NUMANode", "numa",     "Node",     "no",    "Die",     "Group",  "Group0",
        "group12",  "Core",     "co",       "PU",    "L1",      "L1d",    "L1i",
        "L1iCache", "L2Cache",  "l2cache",  "L3",    "L3Cache", "L3u",    "L5",
        "",         "Rack",     "Shelf",    "OSDev", "PCI",     "Bridge", "1",
        "L0",       "L9",       "Nonsense", "os",    "p",       "Coresx", "L2x"};
    char why[tk_setting_why_max];
    bind_to_cpus(0, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint32_t at, count;
        bool is_known = tk_locality_indices(names[i], &at, 1, &count) == TK_OK;
        if (tk_form_is(TK_FORM_PART, names[i], why, sizeof(why)) != is_known)
            fail_msg("'%s': hwloc %s it", names[i], is_known ? "knows" : "does not know");
    }
}

/* The manual's example: two HCAs at each of two sockets of 22 cores. */
static void a_rank_of_summit_finds_the_hcas_of_its_socket(void **state)
{
    use_machine("summit.xml");
    bind_to_cpus(0, 87);
    assert_int_equal(parts("Socket"), 1);
    assert_int_equal(tk_locality_distance("mlx5_0"), 0);
    assert_int_equal(tk_locality_distance("mlx5_1"), 0);
    assert_true(tk_locality_distance("mlx5_2") > 0);
    assert_int_equal(tk_locality_distance("mlx5_2"), tk_locality_distance("mlx5_3"));
    bind_to_cpus(100, 103);
    assert_int_equal(parts("Socket"), 1 << 1);
    assert_int_equal(tk_locality_distance("mlx5_3"), 0);
    bind_to_cpus(0, 175);
    assert_int_equal(parts("Socket"), 3);
    use_machine("two-packages.xml");
}

/* hwloc then reads the real machine, which has no such devices. */
static void a_file_that_is_not_a_machine_is_ignored(void **state)
{
    use_machine("test_locality.c");
    bind_to_cpus(0, 0);
    assert_int_equal(tk_locality_distance("softhca7"), tk_distance_unknown);
    use_machine("two-packages.xml");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_device_beside_us_is_at_distance_0),
    cmocka_unit_test(the_first_thread_counts_on_request),
    cmocka_unit_test(nearer_parts_of_the_machine_are_nearer),
    cmocka_unit_test(some_of_our_cpus_beside_it_is_nearer_than_none),
    cmocka_unit_test(an_unbound_rank_is_equally_near_to_all),
    cmocka_unit_test(a_device_that_hwloc_does_not_know_is_farthest),
    cmocka_unit_test(a_bound_thread_is_in_one_part),
    cmocka_unit_test(types_that_are_none_are_refused),
    cmocka_unit_test(names_are_judged_as_hwloc_does),
    cmocka_unit_test(a_rank_of_summit_finds_the_hcas_of_its_socket),
    cmocka_unit_test(a_file_that_is_not_a_machine_is_ignored),
};

int main(void)
{
    use_machine("two-packages.xml");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
