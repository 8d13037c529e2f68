/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Choice of port and GID on machines made of paper: which one is taken, what is learnt of it, and
 * what a user is told when none will do. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>

#include "fake_world.h"
#include "settings/settings.h"
#include "unit.h"

static struct tk_rail rail;

static enum tk_status choose(const char *setting)
{
    unit_settings(setting, NULL);
    memset(&rail, 0, sizeof(rail));
    return tk_port_choose(&rail);
}

static void assert_chooses(const char *setting, const char *device, int port)
{
    assert_int_equal(choose(setting), TK_OK);
    assert_string_equal(rail.address.device, device);
    assert_int_equal(rail.address.port, port);
    assert_int_equal(fake.contexts, 1);
    ibv_close_device(rail.context);
}

static const char *refusal(const char *setting)
{
    unit_listen();
    enum tk_status status = choose(setting);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    assert_int_equal(fake.contexts, 0);
    return said;
}

static void the_first_active_port_is_taken(void **state)
{
    (void)state;
    fake_reset();
    assert_chooses(NULL, "fake0", 1);
    fake.device_count = 3;
    fake.attr.phys_port_cnt = 2;
    fake.ports[0][1].attr.state = IBV_PORT_DOWN;
    assert_chooses(NULL, "fake0", 2);
    fake.ports[0][2].attr.state = IBV_PORT_INIT;
    assert_chooses(NULL, "fake1", 1);
}

static void the_filter_overrules_the_order(void **state)
{
    (void)state;
    fake_reset();
    fake.device_count = 3;
    fake.attr.phys_port_cnt = 2;
    assert_chooses("GASNET_IBV_PORTS=fake2:2+fake1", "fake1", 1);
    assert_chooses("GASNET_IBV_PORTS=fake2:2", "fake2", 2);
    unit_assert_says(rail.why, "GASNET_IBV_PORTS");
}

static void without_devices_the_remedy_is_told(void **state)
{
    (void)state;
    fake_reset();
    fake.device_count = 0;
    unit_assert_says(refusal(NULL), "no RDMA device on this host; load its driver");
}

static void each_port_is_told_with_what_stood_in_the_way(void **state)
{
    (void)state;
    fake_reset();
    fake.device_count = 2;
    fake.attr.phys_port_cnt = 2;
    fake.ports[0][1].attr.state = IBV_PORT_DOWN;
    fake.ports[0][2].attr.state = IBV_PORT_DOWN;
    const char *said = refusal("GASNET_IBV_PORTS=fake0");
    unit_assert_says(said, "no usable RDMA port: fake0:1 is down, fake0:2 is down, "
                           "fake1:1 is not in GASNET_IBV_PORTS, fake1:2 is not");
}

static void a_device_that_cannot_be_opened_is_told(void **state)
{
    (void)state;
    fake_reset();
    fake.failing[FAKE_OPEN_DEVICE].allowed = 0;
    fake.failing[FAKE_OPEN_DEVICE].error = EACCES;
    unit_assert_says(refusal(NULL), "can't be opened (permission");
}

static void a_bad_filter_is_refused_before_devices_are_touched(void **state)
{
    (void)state;
    fake_reset();
    unit_assert_says(refusal("GASNET_IBV_PORTS=fake0:"), "'fake0:' is not device");
}

static void an_infiniband_port_is_addressed_by_lid(void **state)
{
    (void)state;
    fake_reset();
    fake.ports[0][1].attr.lid = 77;
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.address.lid, 77);
    assert_false(rail.address.is_ethernet);
    assert_false(tk_address_needs_gid(&rail.address));
}

static void a_port_with_lid_0_is_addressed_by_gid(void **state)
{
    (void)state;
    fake_reset();
    fake_make_ethernet(&fake.ports[0][1]);
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
    assert_chooses(NULL, "fake0", 1);
    assert_true(rail.address.is_ethernet);
    assert_true(tk_address_needs_gid(&rail.address));
    assert_memory_equal(rail.address.gid, fake.ports[0][1].gids[0].gid.raw, 16);
}

static void assert_gid(const char *setting, int index)
{
    assert_chooses(setting, "fake0", 1);
    assert_int_equal(rail.gid_index, index);
    assert_memory_equal(rail.address.gid, fake.ports[0][1].gids[index].gid.raw, 16);
}

/* RoCE v2 before v1, then IPv4, global IPv6, link-local; the first of equals. */
static void the_best_gid_is_taken(void **state)
{
    struct fake_port *port = &fake.ports[0][1];
    (void)state;
    fake_reset();
    fake_make_ethernet(port);
    fake_gid(port, IBV_GID_TYPE_ROCE_V1, "fe80::1");
    assert_gid(NULL, 0);
    fake_gid(port, IBV_GID_TYPE_ROCE_V1, "2001:db8::1");
    assert_gid(NULL, 1);
    fake_gid(port, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1");
    assert_gid(NULL, 2);
    fake_gid(port, IBV_GID_TYPE_ROCE_V2, "fe80::1");
    assert_gid(NULL, 3);
    fake_gid(port, IBV_GID_TYPE_ROCE_V2, "fd00::1");
    assert_gid(NULL, 4);
    fake_gid(port, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
    assert_gid(NULL, 5);
    fake_gid(port, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.2");
    assert_gid(NULL, 5);
    assert_gid("GASNET_IBV_GID_INDEX=1", 1);
}

static void an_empty_gid_is_none(void **state)
{
    struct fake_port *port = &fake.ports[0][1];
    (void)state;
    fake_reset();
    fake_make_ethernet(port);
    unit_assert_says(refusal(NULL), "has no usable GID (GASNET_IBV_GID_INDEX chooses one)");
    fake_gid(port, IBV_GID_TYPE_ROCE_V2, "::");
    unit_assert_says(refusal(NULL), "has no usable GID");
    fake_gid(port, IBV_GID_TYPE_ROCE_V1, "fe80::1");
    assert_gid(NULL, 1);
    unit_assert_says(refusal("GASNET_IBV_GID_INDEX=0"), "has no usable GID");
    unit_assert_says(refusal("GASNET_IBV_GID_INDEX=7"), "has no usable GID");
}

static void assert_mtu(const char *setting, enum ibv_mtu mtu)
{
    assert_chooses(setting, "fake0", 1);
    assert_int_equal(rail.address.mtu, mtu);
}

static void the_mtu_is_the_active_one_or_what_the_user_allows(void **state)
{
    (void)state;
    fake_reset();
    assert_mtu(NULL, IBV_MTU_4096);
    assert_mtu("GASNET_MAX_MTU=-1", IBV_MTU_4096);
    assert_mtu("GASNET_MAX_MTU=2048", IBV_MTU_2048);
    assert_mtu("GASNET_MAX_MTU=1500", IBV_MTU_1024);
    assert_mtu("GASNET_MAX_MTU=1", IBV_MTU_256);
    fake.ports[0][1].attr.active_mtu = IBV_MTU_1024;
    assert_mtu("GASNET_MAX_MTU=4096", IBV_MTU_1024);
}

/* active_speed and active_width as IBA 14.2.5.6 codes them. */
static void the_rate_is_speed_times_lanes(void **state)
{
    static const struct {
        uint8_t speed, width;
        uint32_t mbps;
    } ports[] = {{1, 1, 2500},     {4, 2, 40000},   {16, 2, 56000},
                 {32, 2, 100000},  {64, 2, 200000}, {128, 2, 400000},
                 {64, 16, 100000}, {32, 8, 300000}, {32, 4, 200000}};
    (void)state;
    fake_reset();
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        fake.ports[0][1].attr.active_speed = ports[i].speed;
        fake.ports[0][1].attr.active_width = ports[i].width;
        assert_chooses(NULL, "fake0", 1);
        assert_int_equal(rail.rate_mbps, ports[i].mbps);
    }
}

static void reads_under_way_are_what_both_sides_can_do(void **state)
{
    (void)state;
    fake_reset();
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.address.reads, 16);
    assert_int_equal(rail.reads_out, 8);
    assert_chooses("GASNET_QP_RD_ATOM=4", "fake0", 1);
    assert_int_equal(rail.address.reads, 4);
    assert_chooses("GASNET_QP_RD_ATOM=99", "fake0", 1);
    assert_int_equal(rail.address.reads, 16);
    fake.attr.max_qp_rd_atom = 1000;
    fake.attr.max_qp_init_rd_atom = 1000;
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.address.reads, 255); /* eight bits in a queue pair's attributes */
    assert_int_equal(rail.reads_out, 255);
}

static void the_partition_is_found_by_its_key(void **state)
{
    static const uint16_t keys[] = {0xffff, 0x0010, 0x8010, 0x0020};
    (void)state;
    fake_reset();
    memcpy(fake.ports[0][1].pkeys, keys, sizeof(keys));
    fake.ports[0][1].attr.pkey_tbl_len = 4;
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.pkey_index, 0);
    assert_chooses("GASNET_IBV_PKEY=0x7fff", "fake0", 1);
    assert_int_equal(rail.pkey_index, 0);
    assert_chooses("GASNET_IBV_PKEY=0x10", "fake0", 1);
    assert_int_equal(rail.pkey_index, 2); /* full member */
    assert_chooses("GASNET_IBV_PKEY=32800", "fake0", 1);
    assert_int_equal(rail.pkey_index, 3); /* 0x8020: the key's own membership is of no importance */
    unit_assert_says(refusal("GASNET_IBV_PKEY=0x30"),
                     "no usable RDMA port: fake0:1 is not in the partition of GASNET_IBV_PKEY");
}

static const char *listing(const char *setting, const char *ranks)
{
    unit_settings(setting, ranks, NULL);
    unit_listen();
    tk_ports_list();
    return unit_heard();
}

static void ports_are_listed_on_request(void **state)
{
    (void)state;
    fake_reset();
    fake.device_count = 2;
    fake.attr.phys_port_cnt = 2;
    fake.ports[1][2].attr.state = IBV_PORT_DOWN;
    assert_string_equal(listing("GASNET_IBV_LIST_PORTS=0", NULL), "");
    assert_string_equal(listing("GASNET_IBV_LIST_PORTS=1", "GASNET_IBV_LIST_PORTS_NODES=1-9"), "");
    assert_int_equal(
        unit_lines(listing("GASNET_IBV_LIST_PORTS=1", "GASNET_IBV_LIST_PORTS_NODES=*")), 4);
    const char *said = listing("GASNET_IBV_LIST_PORTS=1", "GASNET_IBV_LIST_PORTS_NODES=7,0");
    assert_int_equal(unit_lines(said), 4);
    unit_assert_says(said, "port fake0:1 is active: InfiniBand");
    unit_assert_says(said, "port fake1:2 is down: ");
    assert_int_equal(fake.contexts, 0);
    fake.device_count = 0;
    unit_assert_says(listing("GASNET_IBV_LIST_PORTS=1", NULL), "there is no RDMA device");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_partition_is_found_by_its_key),
    cmocka_unit_test(ports_are_listed_on_request),
    cmocka_unit_test(the_first_active_port_is_taken),
    cmocka_unit_test(the_filter_overrules_the_order),
    cmocka_unit_test(without_devices_the_remedy_is_told),
    cmocka_unit_test(each_port_is_told_with_what_stood_in_the_way),
    cmocka_unit_test(a_device_that_cannot_be_opened_is_told),
    cmocka_unit_test(a_bad_filter_is_refused_before_devices_are_touched),
    cmocka_unit_test(an_infiniband_port_is_addressed_by_lid),
    cmocka_unit_test(a_port_with_lid_0_is_addressed_by_gid),
    cmocka_unit_test(the_best_gid_is_taken),
    cmocka_unit_test(an_empty_gid_is_none),
    cmocka_unit_test(the_mtu_is_the_active_one_or_what_the_user_allows),
    cmocka_unit_test(the_rate_is_speed_times_lanes),
    cmocka_unit_test(reads_under_way_are_what_both_sides_can_do),
};

UNIT_MAIN(tests)
