/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which GIDs two ports choose: the rules on tables of GIDs of real machines. Both ends make each
 * choice, and must agree. No device. */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "peer/peer.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"
#include "unit.h"

enum { rows_max = 20, ib = IBV_GID_TYPE_IB, v1 = IBV_GID_TYPE_ROCE_V1, v2 = IBV_GID_TYPE_ROCE_V2 };

struct row {
    int type;
    const char *gid;
    uint8_t bits;
    bool is_down;
};

/* An mlx5 port with an address and a VLAN, in the order of Linux */
static const struct row mlx5[] = {{v1, "fe80::1", 64, 0},
                                  {v2, "fe80::1", 64, 0},
                                  {v1, "::ffff:192.168.7.1", 120, 0},
                                  {v2, "::ffff:192.168.7.1", 120, 0},
                                  {v1, "::ffff:10.4.0.1", 112, 0},
                                  {v2, "::ffff:10.4.0.1", 112, 0},
                                  {0, NULL, 0, 0}};
/* Soft-RoCE of Linux 6.1, with the address of the VLAN only */
static const struct row rxe[] = {
    {v2, "fe80::4003:71ff:fe63:5557", 64, 0}, {v2, "::ffff:10.4.0.9", 112, 0}, {0, NULL, 0, 0}};

static unsigned offer(const struct row *table, struct tk_gid *offered)
{
    struct tk_gid_row rows[rows_max];
    unsigned count = 0;
    memset(rows, 0, sizeof(rows));
    for (; table[count].gid; count++) {
        struct tk_gid *gid = &rows[count].gid;
        assert_int_equal(inet_pton(AF_INET6, table[count].gid, gid->raw), 1);
        gid->type = (uint8_t)table[count].type;
        gid->network_bits = table[count].bits;
        gid->index = (uint16_t)count;
        rows[count].is_down = table[count].is_down;
    }
    return tk_gids_offer(rows, count, offered);
}

static struct tk_port_address port(const struct row *table)
{
    struct tk_port_address address = {.needs_gid = 1, .mtu = 5, .reads = 16, .reads_out = 16};
    address.gid_count = (uint8_t)offer(table, address.gids);
    return address;
}

/* Indices that are offered, in order. */
static void assert_offers(const struct row *table, const char *expected)
{
    struct tk_gid offered[tk_gids_max];
    char text[100] = "";
    unsigned count = offer(table, offered);
    for (unsigned i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? " " : "",
                 offered[i].index);
    assert_string_equal(text, expected);
}

/* Both ends, each in both places; -1: they do not reach each other. */
static void assert_pair(const struct row *one, const struct row *other, int mine, int theirs)
{
    const struct tk_port_address a = port(one), b = port(other);
    for (int is_first = 0; is_first < 2; is_first++) {
        struct tk_path here, there;
        bool reached = tk_path_find(&here, &a, &b, is_first);
        assert_int_equal(tk_path_find(&there, &b, &a, !is_first), reached);
        assert_int_equal(reached, mine >= 0);
        assert_true(!reached || (tk_gid_kinds(&a) & tk_gid_kinds(&b)) != 0);
        if (!reached)
            continue;
        assert_int_equal(here.from.index, mine);
        assert_int_equal(here.to.index, theirs);
        assert_memory_equal(&here.from, &there.to, sizeof(here.from));
        assert_memory_equal(&here.to, &there.from, sizeof(here.to));
    }
}

static void the_best_are_offered_first(void **state)
{
    assert_offers(mlx5, "3 5 1 2 4 0");
    assert_offers(rxe, "1 0");
    const struct row none[] = {{v2, "::", 64, 0}, {0, NULL, 0, 0}};
    assert_offers(none, "");
}

static void what_is_down_is_not_offered(void **state)
{
    const struct row table[] = {{v2, "::ffff:10.0.0.1", 120, 1},
                                {v1, "::ffff:10.0.0.1", 120, 1},
                                {v2, "fe80::1", 64, 0},
                                {0, NULL, 0, 0}};
    assert_offers(table, "2");
}

/* An omitted GID reaches no port that the offered ones do not reach. */
static void one_of_each_network_is_offered(void **state)
{
    const struct row table[] = {{v2, "::ffff:10.0.0.1", 120, 0},
                                {v2, "::ffff:10.0.0.2", 120, 0},
                                {v1, "::ffff:10.0.0.1", 120, 0},
                                {v2, "::ffff:10.0.1.1", 120, 0},
                                {v2, "fe80::1", 64, 0},
                                {v2, "fe80::2", 64, 0},
                                {0, NULL, 0, 0}};
    assert_offers(table, "0 3 4 2");
}

static void no_more_than_fit_are_offered_and_the_best_of_them(void **state)
{
    struct row table[rows_max] = {{v1, "fe80::1", 64, 0}};
    static char names[12][24];
    for (int i = 0; i < 12; i++) {
        snprintf(names[i], sizeof(names[i]), "%s%d.0.1", i < 6 ? "2001:db8:" : "::ffff:10.", i);
        if (i < 6)
            snprintf(names[i], sizeof(names[i]), "2001:db8:%d::1", i);
        table[i + 1] = (struct row){v2, names[i], i < 6 ? 64 : 112, 0};
    }
    assert_offers(table, "7 8 9 10 11 12 1 2");
}

static void hosts_of_one_kind_take_the_best(void **state)
{
    assert_pair(mlx5, mlx5, 3, 3);
    assert_pair(rxe, rxe, 1, 1);
}

/* The address of the port itself is no worse, but the VLAN's is on the subnet of the peer. */
static void the_peers_subnet_is_preferred(void **state)
{
    assert_pair(mlx5, rxe, 5, 1);
}

static void both_ends_take_one_type(void **state)
{
    const struct row old[] = {
        {v1, "fe80::2", 64, 0}, {v1, "::ffff:192.168.7.2", 120, 0}, {0, NULL, 0, 0}};
    const struct row fresh[] = {
        {v2, "fe80::3", 64, 0}, {v2, "::ffff:192.168.7.3", 120, 0}, {0, NULL, 0, 0}};
    assert_pair(mlx5, old, 2, 1);
    assert_pair(mlx5, fresh, 3, 1);
    assert_pair(old, fresh, -1, -1);
}

static void both_ends_take_one_family(void **state)
{
    const struct row ip6[] = {{v2, "fe80::2", 64, 0}, {v2, "2001:db8::2", 64, 0}, {0, NULL, 0, 0}};
    const struct row both[] = {{v2, "::ffff:10.0.0.1", 120, 0},
                               {v2, "2001:db8::1", 64, 0},
                               {v2, "fe80::1", 64, 0},
                               {0, NULL, 0, 0}};
    const struct row ip4[] = {{v2, "::ffff:10.0.0.9", 120, 0}, {0, NULL, 0, 0}};
    assert_pair(both, ip6, 1, 1);
    assert_pair(both, ip4, 0, 0);
    assert_pair(ip6, ip4, -1, -1);
    assert_pair(mlx5, ip6, 1, 0); /* link-local at last */
}

static void routers_are_crossed_rather_than_link_local_used(void **state)
{
    const struct row far[] = {
        {v2, "fe80::2", 64, 0}, {v2, "::ffff:172.16.0.1", 120, 0}, {0, NULL, 0, 0}};
    const struct row both[] = {
        {v2, "::ffff:192.168.9.1", 120, 0}, {v2, "2001:db8::1", 64, 0}, {0, NULL, 0, 0}};
    const struct row near[] = {
        {v2, "::ffff:192.168.8.1", 120, 0}, {v2, "2001:db8::2", 64, 0}, {0, NULL, 0, 0}};
    assert_pair(far, mlx5, 1, 3);
    assert_pair(both, near, 1, 1); /* IPv6 of one subnet, before IPv4 over a router */
}

/* No router passes RoCE v1 on. */
static void version_1_stays_in_its_network(void **state)
{
    const struct row one[] = {
        {v1, "fe80::1", 64, 0}, {v1, "::ffff:10.0.0.1", 120, 0}, {0, NULL, 0, 0}};
    const struct row near[] = {
        {v1, "fe80::2", 64, 0}, {v1, "::ffff:10.0.0.2", 120, 0}, {0, NULL, 0, 0}};
    const struct row far[] = {
        {v1, "fe80::3", 64, 0}, {v1, "::ffff:10.0.1.1", 120, 0}, {0, NULL, 0, 0}};
    const struct row alone[] = {{v1, "::ffff:10.0.0.4", 120, 0}, {0, NULL, 0, 0}};
    const struct row apart[] = {{v1, "::ffff:10.0.1.4", 120, 0}, {0, NULL, 0, 0}};
    assert_pair(one, near, 1, 1);
    assert_pair(one, far, 0, 0);
    assert_pair(one, alone, 1, 0);
    assert_pair(alone, apart, -1, -1);
    const struct tk_port_address any = port(one), bound = port(alone);
    assert_false(tk_gids_stay_in_network(&any));
    assert_true(tk_gids_stay_in_network(&bound));
}

/* Containers on one card, each with an interface of its own: other entries of the table are empty.
 * IPv6 addresses only, as bnxt's in some clusters */
static void entries_in_other_places_are_found(void **state)
{
    const struct row one[] = {{v1, "::", 64, 0},
                              {v2, "::", 64, 0},
                              {v1, "::ffff:172.20.1.1", 112, 0},
                              {v2, "::ffff:172.20.1.1", 112, 0},
                              {0, NULL, 0, 0}};
    const struct row other[] = {{v1, "::", 64, 0},
                                {v1, "::ffff:172.20.1.2", 112, 0},
                                {v2, "::ffff:172.20.1.2", 112, 0},
                                {0, NULL, 0, 0}};
    const struct row ip6[] = {{v1, "fe80::9", 64, 0},
                              {v2, "fe80::9", 64, 0},
                              {v1, "fd93:16d3:59b6::9", 64, 0},
                              {v2, "fd93:16d3:59b6::9", 64, 0},
                              {0, NULL, 0, 0}};
    assert_pair(one, other, 3, 2);
    assert_pair(ip6, ip6, 3, 3);
    assert_pair(one, ip6, -1, -1);
}

/* Among equally good pairs both ends choose the same one: the order of the addresses decides. */
static void ends_agree_where_nothing_decides(void **state)
{
    const struct row one[] = {{v2, "::ffff:10.0.0.1", 120, 0},
                              {v2, "::ffff:10.0.1.1", 120, 0},
                              {v2, "::ffff:10.0.2.1", 120, 0},
                              {0, NULL, 0, 0}};
    const struct row other[] = {{v2, "::ffff:10.0.2.2", 120, 0},
                                {v2, "::ffff:10.0.1.2", 120, 0},
                                {v2, "::ffff:10.0.0.2", 120, 0},
                                {0, NULL, 0, 0}};
    const struct tk_port_address a = port(one), b = port(other);
    struct tk_path here, there;
    assert_true(tk_path_find(&here, &a, &b, true));
    assert_true(tk_path_find(&there, &b, &a, false));
    assert_memory_equal(&here.from, &there.to, sizeof(here.from));
    assert_memory_equal(&here.to, &there.from, sizeof(here.to));
}

static struct tk_port_address hca(uint16_t lid, const char *gid, bool needs_gid)
{
    const struct row table[] = {{ib, gid, 64, 0}, {0, NULL, 0, 0}};
    struct tk_port_address address = port(table);
    address.lid = lid;
    address.needs_gid = needs_gid;
    return address;
}

static void infiniband_goes_by_lid_within_a_subnet(void **state)
{
    const struct tk_port_address one = hca(3, "fe80::1", false), two = hca(4, "fe80::2", false);
    const struct tk_port_address far = hca(4, "fec0:1::2", false);
    const struct tk_port_address bare = hca(0, "fe80::3", true);
    struct tk_path path;
    assert_true(tk_path_find(&path, &one, &two, true));
    assert_false(path.is_global);
    assert_int_equal(path.lid, 4);
    assert_true(tk_path_find(&path, &one, &far, true));
    assert_true(path.is_global);
    assert_memory_equal(path.to.raw, far.gids[0].raw, 16);
    assert_true(tk_path_find(&path, &one, &bare, true));
    assert_true(path.is_global);
    assert_true(tk_path_find(&path, &bare, &one, false));
    assert_true(path.is_global);
}

static void a_path_does_what_both_ends_can(void **state)
{
    struct tk_port_address one = hca(3, "fe80::1", false), two = hca(4, "fe80::2", false);
    struct tk_path path;
    one.mtu = IBV_MTU_2048;
    two.mtu = IBV_MTU_1024;
    one.reads = 4;
    one.reads_out = 8;
    two.reads = 16;
    two.reads_out = 2;
    assert_true(tk_path_find(&path, &one, &two, true));
    assert_int_equal(path.mtu, IBV_MTU_1024);
    assert_int_equal(path.reads_in, 2);
    assert_int_equal(path.reads_out, 8);
    assert_true(tk_path_find(&path, &two, &one, false));
    assert_int_equal(path.mtu, IBV_MTU_1024);
    assert_int_equal(path.reads_in, 8);
    assert_int_equal(path.reads_out, 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_best_are_offered_first),
    cmocka_unit_test(what_is_down_is_not_offered),
    cmocka_unit_test(one_of_each_network_is_offered),
    cmocka_unit_test(no_more_than_fit_are_offered_and_the_best_of_them),
    cmocka_unit_test(hosts_of_one_kind_take_the_best),
    cmocka_unit_test(the_peers_subnet_is_preferred),
    cmocka_unit_test(both_ends_take_one_type),
    cmocka_unit_test(both_ends_take_one_family),
    cmocka_unit_test(routers_are_crossed_rather_than_link_local_used),
    cmocka_unit_test(version_1_stays_in_its_network),
    cmocka_unit_test(entries_in_other_places_are_found),
    cmocka_unit_test(ends_agree_where_nothing_decides),
    cmocka_unit_test(infiniband_goes_by_lid_within_a_subnet),
    cmocka_unit_test(a_path_does_what_both_ends_can),
};

UNIT_MAIN(tests)
