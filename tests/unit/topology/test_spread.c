/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which rank of a host gets which ports: on tables of distances, compared with a search of all
 * choices, and on synthetic machines (one-socket.xml, two-sockets.xml, four-switches.xml,
 * eight-and-eight.xml, sub-numa.xml). */
#include "config.h"

#include "settings/settings.h"
#include "topology/locality.h"
#include "topology/spread.h"
#include "unit.h"

enum { ranks_max = 16, ports_max = 8, never = tk_spread_never };

static int distances[ranks_max * ports_max];
static bool taken[ranks_max * ports_max];
static struct tk_spread spread = {.distance = distances, .is_taken = taken};

/* "0 1 0,1": the ports of each rank */
static const char *result(uint32_t wanted)
{
    static char text[512];
    spread.wanted = wanted;
    assert_true(tk_spread(&spread));
    *text = 0;
    for (uint32_t r = 0; r < spread.ranks; r++) {
        const char *before = "";
        strcat(text, r > 0 ? " " : "");
        for (uint32_t p = 0; p < spread.ports; p++)
            if (taken[r * spread.ports + p]) {
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", before, p);
                before = ",";
            }
    }
    return text;
}

static void set_table(uint32_t ranks, uint32_t ports, const int *table)
{
    spread.ranks = ranks;
    spread.ports = ports;
    memcpy(distances, table, ranks * ports * sizeof(*table));
}

#define table(ranks, ports, ...) set_table(ranks, ports, (const int[]){__VA_ARGS__})

static void equally_near_ports_have_as_many_ranks(void **state)
{
    (void)state;
    table(5, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_string_equal(result(1), "0 1 0 1 0");
    table(4, 4, 0, 0, 5, 5, 5, 5, 0, 0, 0, 0, 5, 5, 5, 5, 0, 0);
    assert_string_equal(result(1), "0 2 1 3");
}

/* Rank 0 has a choice, and leaves rank 1 its only port. */
static void ranks_with_a_choice_give_way(void **state)
{
    (void)state;
    table(3, 3, 0, 0, 3, 0, 3, 3, 3, 0, 0);
    assert_string_equal(result(1), "1 0 2");
}

static void near_ports_keep_far_ranks_out(void **state)
{
    (void)state;
    table(4, 2, 0, 5, 0, 5, 0, 5, 5, 0);
    assert_string_equal(result(1), "0 0 0 1");
}

static void a_port_nearest_to_no_rank_is_used_when_near_ones_are_full(void **state)
{
    (void)state;
    table(4, 2, 0, 5, 0, 5, 0, 5, 0, 5);
    assert_string_equal(result(1), "0 0 1 1");
    table(4, 2, 0, 5, 0, 3, 0, 5, 0, 5); /* of the ports near to 0, the one closer to 1 */
    assert_string_equal(result(1), "0 1 0 1");
    table(1, 2, 0, 5);
    assert_string_equal(result(1), "0");
    table(2, 3, 0, 0, 5, 0, 0, 5);
    assert_string_equal(result(1), "0 1");
    table(6, 3, 0, 5, 5, 0, 5, 5, 0, 5, 5, 0, 5, 5, 0, 5, 5, 0, 5, 5);
    assert_string_equal(result(1), "0 0 2 1 2 1");
}

static void several_ports_are_the_nearest_ones(void **state)
{
    (void)state;
    table(2, 4, 0, 0, 5, 5, 5, 5, 0, 0);
    assert_string_equal(result(2), "0,1 2,3");
    assert_string_equal(result(3), "0,1,2 0,2,3");
    assert_string_equal(result(4), "0,1,2,3 0,1,2,3");
    assert_string_equal(result(UINT32_MAX), "0,1,2,3 0,1,2,3");
    table(4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_string_equal(result(2), "0,1 0,1 2,3 2,3");
}

static void a_port_that_a_rank_does_not_have_is_never_taken(void **state)
{
    (void)state;
    table(4, 2, 0, never, 0, never, 0, never, 0, 5);
    assert_string_equal(result(1), "0 0 0 1");
    assert_string_equal(result(2), "0 0 0 0,1");
    table(2, 2, 0, 0, never, never);
    assert_string_equal(result(1), "0 ");
    table(0, 0, 0);
    assert_string_equal(result(1), "");
}

/* ---- Beside a search ---- */

static uint32_t busiest_max(const uint32_t *load)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < spread.ports; p++)
        most = load[p] > most ? load[p] : most;
    return most;
}

static bool is_nearest(uint32_t rank, uint32_t port)
{
    for (uint32_t p = 0; p < spread.ports; p++)
        if (distances[rank * spread.ports + p] < distances[rank * spread.ports + port])
            return false;
    return true;
}

/* Ranks of the busiest port in the best of all choices of nearest ports. */
static uint32_t search(uint32_t rank, uint32_t *load)
{
    uint32_t best = UINT32_MAX;
    if (rank == spread.ranks)
        return busiest_max(load);
    for (uint32_t p = 0; p < spread.ports; p++) {
        if (!is_nearest(rank, p))
            continue;
        load[p]++;
        uint32_t found = search(rank + 1, load);
        load[p]--;
        best = found < best ? found : best;
    }
    return best;
}

static void assert_as_good_as_any(void)
{
    uint32_t load[ports_max] = {0}, best = search(0, load);
    result(1);
    for (uint32_t r = 0; r < spread.ranks; r++)
        for (uint32_t p = 0; p < spread.ports; p++)
            assert_true(!taken[r * spread.ports + p] || is_nearest(r, p));
    for (uint32_t p = 0; p < spread.ports; p++)
        assert_true(tk_spread_load(&spread, p) <= best);
}

/* Each port is near to some rank, so no rank has to go far. */
static void no_choice_of_nearest_ports_is_more_even(void **state)
{
    (void)state;
    srand(4769);
    for (int round = 0; round < 2000; round++) {
        spread.ports = 2 + (uint32_t)rand() % 3;
        spread.ranks = spread.ports + (uint32_t)rand() % 4;
        for (uint32_t i = 0; i < spread.ranks * spread.ports; i++)
            distances[i] = 3 * (rand() % 2);
        for (uint32_t p = 0; p < spread.ports; p++)
            distances[p * spread.ports + p] = 0;
        assert_as_good_as_any();
    }
}

/* ---- Machines ---- */

static void use_machine(const char *file)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof(path), "%s/tests/unit/topology/%s", top ? top : ".", file);
    setenv("HWLOC_XMLFILE", path, 1);
    tk_settings.hwloc_query = "thread";
    tk_locality_drop();
}

/* Each rank on its CPUs, with the HCAs of the machine. */
static void place_ranks(uint32_t ranks, uint32_t ports, const char *const *cpus)
{
    char device[16];
    spread.ranks = ranks;
    spread.ports = ports;
    for (uint32_t r = 0; r < ranks; r++) {
        assert_int_equal(tk_locality_stand(cpus[r]), TK_OK);
        for (uint32_t p = 0; p < ports; p++) {
            snprintf(device, sizeof(device), "mlx5_%u", p);
            distances[r * ports + p] = tk_locality_distance(device);
            assert_true(distances[r * ports + p] < tk_distance_unknown);
        }
    }
    tk_locality_drop();
}

#define on(ranks, ports, ...) place_ranks(ranks, ports, (const char *const[]){__VA_ARGS__})

static void all_ranks_of_one_socket_share_its_hca(void **state)
{
    (void)state;
    use_machine("one-socket.xml");
    on(4, 1, "0", "1", "2", "3");
    assert_string_equal(result(1), "0 0 0 0");
}

static void each_of_two_sockets_has_its_own(void **state)
{
    (void)state;
    use_machine("two-sockets.xml");
    on(4, 2, "0-3", "4-7", "0-3", "4-7");
    assert_string_equal(result(1), "0 1 0 1");
    on(4, 2, "0-7", "0-7", "0-7", "0-7");
    assert_string_equal(result(1), "0 1 0 1");
    on(4, 2, "0-7", "0-3", "4-7", "0-3"); /* an unbound rank takes the least busy port */
    assert_string_equal(result(1), "1 0 1 0");
    on(4, 2, "0", "1", "2", "3"); /* all on the first socket */
    assert_string_equal(result(1), "0 0 1 1");
}

static void hcas_behind_switches_are_spread(void **state)
{
    (void)state;
    use_machine("four-switches.xml");
    on(4, 4, "0", "1", "4", "5");
    assert_string_equal(result(1), "0 1 2 3");
    on(8, 4, "0", "4", "1", "5", "2", "6", "3", "7");
    assert_string_equal(result(1), "0 2 1 3 0 2 1 3");
    assert_string_equal(result(2), "0,1 2,3 0,1 2,3 0,1 2,3 0,1 2,3");
    on(4, 4, "0", "1", "2", "3");
    assert_string_equal(result(1), "0 1 3 2"); /* the others are nearest to no rank */
}

/* Nodes 1, 3, 5 and 7 have two HCAs each; they are equally near to 0, 2, 4 and 6 of their package.
 */
static void each_of_eight_ranks_has_its_own_of_eight(void **state)
{
    (void)state;
    use_machine("eight-and-eight.xml");
    on(8, 8, "0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15");
    result(1);
    for (uint32_t p = 0; p < 8; p++)
        assert_int_equal(tk_spread_load(&spread, p), 1);
    assert_true(taken[1 * 8 + 2] || taken[1 * 8 + 3]);
    assert_true(taken[3 * 8 + 0] || taken[3 * 8 + 1]);
    assert_true(taken[5 * 8 + 6] || taken[5 * 8 + 7]);
    assert_true(taken[7 * 8 + 4] || taken[7 * 8 + 5]);
    on(8, 8, "6-7", "6-7", "2-3", "2-3", "14-15", "14-15", "10-11", "10-11");
    assert_string_equal(result(1), "0 1 2 3 4 5 6 7");
}

static void the_hca_of_another_node_of_the_package_is_nearer(void **state)
{
    (void)state;
    use_machine("sub-numa.xml");
    on(4, 2, "0", "2", "4", "6");
    assert_string_equal(result(1), "0 0 1 1");
    on(2, 2, "2", "3");
    assert_string_equal(result(1), "0 1");
}

static void cpus_that_the_machine_does_not_have_are_refused(void **state)
{
    (void)state;
    use_machine("one-socket.xml");
    assert_int_equal(tk_locality_stand("0-1,3"), TK_OK);
    assert_int_equal(tk_locality_stand("4-7"), TK_FAIL);
    assert_int_equal(tk_locality_stand("x"), TK_FAIL);
    assert_int_equal(tk_locality_stand(""), TK_FAIL);
    tk_locality_drop();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equally_near_ports_have_as_many_ranks),
    cmocka_unit_test(ranks_with_a_choice_give_way),
    cmocka_unit_test(near_ports_keep_far_ranks_out),
    cmocka_unit_test(a_port_nearest_to_no_rank_is_used_when_near_ones_are_full),
    cmocka_unit_test(several_ports_are_the_nearest_ones),
    cmocka_unit_test(a_port_that_a_rank_does_not_have_is_never_taken),
    cmocka_unit_test(no_choice_of_nearest_ports_is_more_even),
    cmocka_unit_test(all_ranks_of_one_socket_share_its_hca),
    cmocka_unit_test(each_of_two_sockets_has_its_own),
    cmocka_unit_test(hcas_behind_switches_are_spread),
    cmocka_unit_test(each_of_eight_ranks_has_its_own_of_eight),
    cmocka_unit_test(the_hca_of_another_node_of_the_package_is_nearer),
    cmocka_unit_test(cpus_that_the_machine_does_not_have_are_refused),
};

UNIT_MAIN(tests)
