/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports that are not ready, tables of partition keys, and GIDs that change their rows: what is used
 * of a port, or why it is refused. */
#include "config.h"

#include <string.h>

#include "fake_world.h"
#include "settings/settings.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/device/qp_state.h"
#include "unit.h"

static struct tk_rail rail;
static struct fake_port *port;

static void begin(void)
{
    fake_reset();
    port = &fake.ports[0][1];
}

/* NULL: the port is taken. */
static const char *refusal(const char *setting)
{
    struct ibv_context *context = ibv_open_device(&fake.devices[0]);
    unit_settings(setting, NULL);
    memset(&rail, 0, sizeof(rail));
    const char *why = tk_port_take(&rail, context, 1);
    ibv_close_device(context);
    return why;
}

static void set_keys(const uint16_t *keys, int count)
{
    memcpy(port->pkeys, keys, (size_t)count * sizeof(*keys));
    port->attr.pkey_tbl_len = (uint16_t)count;
}

static void assert_key(const char *setting, int index)
{
    assert_null(refusal(setting));
    assert_int_equal(rail.pkey_index, index);
    assert_int_equal(rail.address.pkey, port->pkeys[index]);
}

static void the_first_key_may_be_behind_empty_entries(void **state)
{
    static const uint16_t keys[] = {0, 0x0010, 0xffff, 0x8010};
    begin();
    set_keys(keys, 4);
    assert_key(NULL, 3); /* the full member of that partition */
    set_keys(keys, 2);
    assert_key(NULL, 1);
    set_keys(keys, 1);
    assert_key(NULL, 0);
}

static void a_missing_key_is_named_beside_those_of_the_port(void **state)
{
    static const uint16_t keys[] = {0xffff, 0, 0x8010, 0x0020};
    begin();
    set_keys(keys, 4);
    assert_key("GASNET_IBV_PKEY=0x20", 3);
    assert_string_equal(refusal("GASNET_IBV_PKEY=0x30"),
                        "is not in the partition of GASNET_IBV_PKEY (0x0030): it has 0xffff, "
                        "0x8010, 0x0020");
}

static void a_port_without_subnet_manager_is_refused_with_the_remedy(void **state)
{
    begin();
    port->attr.state = IBV_PORT_INIT;
    assert_string_equal(refusal(NULL), "is in state Init, not Active: the subnet manager has not "
                                       "finished with it; start one (opensm), or wait for it");
    port->attr.state = IBV_PORT_ARMED;
    unit_assert_says(refusal(NULL), "is in state Armed, not Active: the subnet manager");
    port->attr.state = IBV_PORT_DOWN;
    assert_string_equal(refusal(NULL), "is down");
    fake_make_ethernet(port);
    port->attr.state = IBV_PORT_INIT;
    assert_string_equal(refusal(NULL),
                        "is in state Init, not Active: bring its network interface up");
}

static void lid_0_is_used_where_a_gid_is_meant(void **state)
{
    begin();
    fake_gid(port, IBV_GID_TYPE_IB, "fe80::1");
    port->attr.lid = 0;
    assert_string_equal(refusal(NULL), "is Active with LID 0: no subnet manager gave it one; start "
                                       "one (opensm), or use its GID: "
                                       "GASNET_IBV_GID_INDEX=fake0:1=0");
    assert_null(refusal("GASNET_IBV_GID_INDEX=fake0:1=0"));
    assert_true(rail.address.needs_gid);
    port->attr.flags = IBV_QPF_GRH_REQUIRED; /* a virtual port */
    assert_null(refusal(NULL));
    assert_true(rail.address.needs_gid);
}

/* As when its address is removed and added again. */
static void a_gid_is_found_in_its_new_row(void **state)
{
    struct ibv_ah_attr ah = {0};
    struct tk_path path = {.is_global = true};
    begin();
    fake_make_ethernet(port);
    fake_gid(port, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1");
    fake_gid(port, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
    fake_gid(port, IBV_GID_TYPE_ROCE_V2, "::");
    assert_null(refusal(NULL));
    path.from = rail.address.gids[0];
    rail.context = ibv_open_device(&fake.devices[0]);
    assert_int_equal(tk_route_set(&ah, &rail, &path), 0);
    assert_int_equal(ah.grh.sgid_index, 1);
    struct ibv_gid_entry moved = port->gids[1];
    port->gids[1] = port->gids[2];
    assert_int_equal(tk_route_set(&ah, &rail, &path), tk_gid_lost);
    port->gids[2] = moved;
    assert_int_equal(tk_route_set(&ah, &rail, &path), 0);
    assert_int_equal(ah.grh.sgid_index, 2);
    ibv_close_device(rail.context);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_key_may_be_behind_empty_entries),
    cmocka_unit_test(a_missing_key_is_named_beside_those_of_the_port),
    cmocka_unit_test(a_port_without_subnet_manager_is_refused_with_the_remedy),
    cmocka_unit_test(lid_0_is_used_where_a_gid_is_meant),
    cmocka_unit_test(a_gid_is_found_in_its_new_row),
};

UNIT_MAIN(tests)
