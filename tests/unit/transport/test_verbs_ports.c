/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Choice of port and GID on synthetic machines: which one is chosen, its recorded attributes, and
 * the message when no port is usable. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include "fake_world.h"
#include "settings/settings.h"
#include "transport/verbs/verbs.h"
#include "topology/locality.h"
#include "unit.h"

static struct tk_rail rail; /* the first */
static struct tk_choice choice;
static uint32_t turn;
static tk_rail_sharer *sharer;

static enum tk_status choose(const char *setting, const char *other)
{
    unit_settings(setting, other, NULL);
    enum tk_status status = tk_rails_choose(&choice, turn, sharer);
    if (status != TK_OK || choice.count > 0)
        return status;
    tk_rails_report_none(choice.unused);
    return TK_FAIL;
}

static void drop_choice(void)
{
    for (uint32_t i = 0; i < choice.count; i++) {
        bool is_last = true;
        for (uint32_t j = i + 1; j < choice.count; j++)
            is_last &= choice.rails[j].context != choice.rails[i].context;
        if (is_last)
            ibv_close_device(choice.rails[i].context);
    }
    free(choice.rails);
    assert_int_equal(fake.contexts, 0);
}

/* "fake0:1 fake1:1" */
static void assert_rails(const char *setting, const char *other, const char *expected)
{
    char text[200] = "";
    assert_int_equal(choose(setting, other), TK_OK);
    for (uint32_t i = 0; i < choice.count; i++) {
        const struct tk_port_address *a = &choice.rails[i].address;
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%u", i ? " " : "",
                 a->device, a->port);
    }
    assert_string_equal(text, expected);
    memcpy(&rail, &choice.rails[0], sizeof(rail));
    drop_choice();
}

static void assert_chooses(const char *setting, const char *device, int port)
{
    char text[64];
    snprintf(text, sizeof(text), "%s:%d", device, port);
    assert_rails(setting, NULL, text);
}

static const char *refusal(const char *setting)
{
    unit_listen();
    enum tk_status status = choose(setting, NULL);
    free(choice.rails);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    assert_int_equal(fake.contexts, 0);
    return said;
}

static void the_first_active_port_is_taken(void **state)
{
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
    fake_reset();
    fake.device_count = 3;
    fake.attr.phys_port_cnt = 2;
    assert_rails("GASNET_IBV_PORTS=fake2:2+fake1", NULL, "fake1:1 fake2:2");
    assert_rails("GASNET_IBV_PORTS=fake2:2+fake1", "GASNET_NUM_QPS=1", "fake1:1");
    assert_chooses("GASNET_IBV_PORTS=fake2:2", "fake2", 2);
    unit_assert_says(rail.why, "GASNET_IBV_PORTS");
}

/* One port of a device unless more are named; in the order of the host, each once. */
static void named_ports_are_all_used(void **state)
{
    fake_reset();
    fake.device_count = 2;
    fake.attr.phys_port_cnt = 2;
    assert_rails("GASNET_IBV_PORTS=fake1+fake0", NULL, "fake0:1 fake1:1");
    assert_rails("GASNET_IBV_PORTS=fake0:2,1", NULL, "fake0:1 fake0:2");
    assert_rails("GASNET_IBV_PORTS=fake0:2+fake0:2+fake9+fake0+fake0:2,2,7", NULL,
                 "fake0:1 fake0:2");
    fake.ports[0][1].attr.state = IBV_PORT_DOWN;
    assert_rails("GASNET_IBV_PORTS=fake0:1,2+fake1:2", NULL, "fake0:2 fake1:2");
    assert_rails("GASNET_IBV_PORTS=fake1:2+fake0", "GASNET_NUM_QPS=7", "fake0:2 fake1:2");
}

static void as_many_ports_as_queue_pairs_are_used(void **state)
{
    fake_reset();
    fake.device_count = 4;
    assert_rails("GASNET_NUM_QPS=2", NULL, "fake0:1 fake1:1");
    unit_assert_says(rail.why, "one of the 4 nearest of 4 usable devices of this host, dealt out");
    turn = 1;
    assert_rails("GASNET_NUM_QPS=2", NULL, "fake2:1 fake3:1");
    assert_rails("GASNET_NUM_QPS=3", NULL, "fake0:1 fake1:1 fake3:1");
    assert_rails("GASNET_NUM_QPS=4", NULL, "fake0:1 fake1:1 fake2:1 fake3:1");
    assert_string_equal(rail.why, "one of all 4 usable ports of this host");
    assert_rails("GASNET_NUM_QPS=9", NULL, "fake0:1 fake1:1 fake2:1 fake3:1");
    turn = 0;
}

/* The near ones first; ranks take different ones of the rest. */
static void the_nearest_of_several_are_taken(void **state)
{
    fake_reset();
    fake.device_count = 4;
    world_distance[0] = world_distance[2] = world_distance[3] = 3;
    assert_rails("GASNET_NUM_QPS=2", NULL, "fake0:1 fake1:1");
    turn = 1;
    assert_rails("GASNET_NUM_QPS=2", NULL, "fake1:1 fake2:1");
    world_distance[3] = 0;
    assert_rails("GASNET_NUM_QPS=2", NULL, "fake1:1 fake3:1");
    assert_string_equal(rail.why, "one of the 2 nearest of 4 usable devices of this host");
    memset(world_distance, 0, sizeof(world_distance));
    turn = 0;
}

/* Three devices: the last beside us, the first in the same package, the second elsewhere. */
static void three_places(void)
{
    fake_reset();
    fake.device_count = 3;
    world_distance[0] = 2;
    world_distance[1] = 5;
    world_distance[2] = 0;
}

static void level_ground(void)
{
    memset(world_distance, 0, sizeof(world_distance));
    turn = 0;
}

static const char *heard_choosing(const char *verbose)
{
    unit_listen();
    assert_int_equal(choose("GASNET_IBV_PORTS=fake1:2+fake1:1+fake0", verbose), TK_OK);
    const char *said = unit_heard();
    drop_choice();
    return said;
}

static void assert_tells_each(const char *said)
{
    assert_int_equal(unit_lines(said), 6);
    unit_assert_says(said, "port fake0:1 is used: one of all 2 usable ports of GASNET_IBV_PORTS");
    unit_assert_says(said, "port fake0:2 is not used: it is not named, and another of its device");
    unit_assert_says(said, "port fake1:1 is used: ");
    unit_assert_says(said, "port fake1:2 is not used: it is down");
    unit_assert_says(said, "port fake2:1 is not used: it is not in GASNET_IBV_PORTS");
    unit_assert_says(said, "port fake2:2 is not used: it is not in GASNET_IBV_PORTS");
}

static void the_choice_is_reported_on_request(void **state)
{
    fake_reset();
    fake.device_count = 3;
    fake.attr.phys_port_cnt = 2;
    fake.ports[1][2].attr.state = IBV_PORT_DOWN;
    assert_string_equal(heard_choosing(NULL), "");
    const char *said = heard_choosing("GASNET_IBV_PORTS_VERBOSE=2");
    assert_tells_each(said);
    turn = 1;
    assert_tells_each(heard_choosing("GASNET_IBV_PORTS_VERBOSE=2"));
    setenv("GASNET_IBV_PORTS_VERBOSE", "1", 1);
    assert_string_equal(heard_choosing(NULL), "");
    turn = 0;
    assert_tells_each(heard_choosing(NULL));
    unsetenv("GASNET_IBV_PORTS_VERBOSE");
    assert_string_equal(heard_choosing(NULL), "");
    assert_string_equal(heard_choosing("GASNET_IBV_PORTS_VERBOSE=0"), "");
}

static void assert_verdict(const char *setting, const char *verdict)
{
    unit_listen();
    setenv("GASNET_IBV_PORTS_VERBOSE", "1", 1);
    enum tk_status status = choose(setting, NULL);
    unsetenv("GASNET_IBV_PORTS_VERBOSE");
    const char *said = unit_heard();
    assert_int_equal(status, TK_OK);
    drop_choice();
    unit_assert_says(said, verdict);
}

/* Also usable ones: each device, wherever it is. */
static void ignored_settings_are_listed_with_the_reason(void **state)
{
    three_places();
    assert_verdict(NULL, "port fake2:1 is used: nearest of 3 usable devices of this host");
    assert_verdict(NULL, "port fake0:1 is not used: it would do, but is not needed: those used are "
                         "nearer");
    assert_verdict("GASNET_NUM_QPS=2", "port fake0:1 is used: ");
    level_ground();
    assert_verdict(NULL, "port fake1:1 is not used: it would do, but is not needed: as near as");
    assert_verdict("GASNET_NUM_QPS=3", "port fake1:1 is used: ");
    fake.failing[FAKE_OPEN_DEVICE].allowed = 2;
    fake.failing[FAKE_OPEN_DEVICE].error = EACCES;
    assert_verdict(NULL, "device fake2 is not used: it can't be opened: Permission denied; this "
                         "user has no permission for /dev/infiniband");
}

/* Once on each host. */
static void a_broken_device_beside_another_is_reported(void **state)
{
    fake_reset();
    fake.device_count = 2;
    fake.failing[FAKE_OPEN_DEVICE].allowed = 1;
    fake.failing[FAKE_OPEN_DEVICE].error = EACCES;
    unit_assert_says(heard_choosing(NULL),
                     "ports that are not used: fake1 can't be opened: Permission denied; this user "
                     "has no permission for /dev/infiniband");
    fake.failing[FAKE_OPEN_DEVICE].allowed = 1;
    assert_string_equal(heard_choosing("GASNET_IBV_PORTS_VERBOSE=0"), "");
    fake.failing[FAKE_OPEN_DEVICE].allowed = 1;
    turn = 1;
    assert_string_equal(heard_choosing(NULL), "");
    turn = 0;
}

/* ---- networks: Ethernet ports with addresses of interfaces that are here ---- */

static struct sockaddr_in addresses[fake_devices_max], masks[fake_devices_max];
static struct ifaddrs interfaces[fake_devices_max];

/* In place of the C library's. */
int getifaddrs(struct ifaddrs **list)
{
    *list = interfaces[0].ifa_addr ? interfaces : NULL;
    return 0;
}

void freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

static void ip(struct sockaddr_in *at, const char *text)
{
    at->sin_family = AF_INET;
    assert_int_equal(inet_pton(AF_INET, text, &at->sin_addr), 1);
}

/* Port 1 of a device is an Ethernet port with this address. */
static void has_address(int device, const char *address, const char *mask)
{
    char mapped[40];
    snprintf(mapped, sizeof(mapped), "::ffff:%s", address);
    fake_make_ethernet(&fake.ports[device][1]);
    fake_gid(&fake.ports[device][1], IBV_GID_TYPE_ROCE_V2, mapped);
    ip(&addresses[device], address);
    ip(&masks[device], mask);
    interfaces[device] = (struct ifaddrs){.ifa_flags = IFF_UP,
                                          .ifa_addr = (struct sockaddr *)&addresses[device],
                                          .ifa_netmask = (struct sockaddr *)&masks[device]};
    if (device > 0)
        interfaces[device - 1].ifa_next = &interfaces[device];
}

/* Networks one by one: those of devices 0 and 2, of 1 and of 3. */
static void four_on_three_networks(void)
{
    fake_reset();
    fake.device_count = 4;
    has_address(0, "10.0.0.1", "255.255.255.0");
    has_address(1, "10.0.1.1", "255.255.255.0");
    has_address(2, "10.0.0.2", "255.255.255.0");
    has_address(3, "10.0.2.1", "255.255.255.0");
}

static void no_networks(void)
{
    memset(interfaces, 0, sizeof(interfaces));
    memset(world_distance, 0, sizeof(world_distance));
    turn = 0;
}

/* Ranks on one network would not reach those on another. */
static void ports_of_one_network_are_dealt_out(void **state)
{
    static const char *const taken[] = {"fake0", "fake2", "fake0"};
    four_on_three_networks();
    for (turn = 0; turn < 3; turn++)
        assert_chooses(NULL, taken[turn], 1);
    turn = 0;
    world_distance[0] = world_distance[2] = 3;
    assert_chooses(NULL, "fake0", 1); /* fake1 is nearer, but on another network */
    world_distance[2] = 1;
    assert_chooses(NULL, "fake2", 1);
    choose("GASNET_IBV_PORTS_VERBOSE=0", NULL);
    unit_assert_says(choice.unused, "fake1:1 is not on the network of the first port");
    drop_choice();
    no_networks();
}

static void a_mask_makes_one_network(void **state)
{
    four_on_three_networks();
    for (int i = 0; i < 4; i++)
        ip(&masks[i], "255.255.0.0");
    turn = 3;
    assert_chooses(NULL, "fake3", 1);
    no_networks();
    turn = 3; /* addresses of no device decide nothing */
    assert_chooses(NULL, "fake3", 1);
    no_networks();
}

/* Rails with the same number must reach each other, so all ranks take the same ports. */
static void more_rails_than_a_network_has_are_the_first(void **state)
{
    four_on_three_networks();
    world_distance[0] = 3;
    for (turn = 0; turn < 2; turn++)
        assert_rails("GASNET_NUM_QPS=3", NULL, "fake0:1 fake1:1 fake2:1");
    assert_rails("GASNET_NUM_QPS=2", NULL, "fake0:1 fake2:1");
    assert_rails("GASNET_IBV_PORTS=fake3+fake1", NULL, "fake1:1 fake3:1");
    no_networks();
}

static void infiniband_networks_differ_by_prefix(void **state)
{
    fake_reset();
    fake.device_count = 2;
    for (int i = 0; i < 2; i++) {
        fake_gid(&fake.ports[i][1], IBV_GID_TYPE_IB, "fe80::1");
        fake.ports[i][1].gids[0].gid.raw[15] = (uint8_t)i;
    }
    turn = 1;
    assert_chooses(NULL, "fake1", 1);
    fake.ports[1][1].gids[0].gid.raw[7] = 1;
    assert_chooses(NULL, "fake0", 1);
    no_networks();
}

static void the_nearest_device_is_taken(void **state)
{
    three_places();
    assert_chooses(NULL, "fake2", 1);
    assert_string_equal(rail.why, "nearest of 3 usable devices of this host");
    fake.ports[2][1].attr.state = IBV_PORT_DOWN;
    assert_chooses(NULL, "fake0", 1);
    assert_chooses("GASNET_IBV_PORTS=fake1", "fake1", 1);
    assert_string_equal(rail.why, "only usable device of GASNET_IBV_PORTS");
    level_ground();
}

static void ranks_share_out_what_is_equally_near(void **state)
{
    static const char *const taken[] = {"fake0", "fake2", "fake0", "fake2", "fake0"};
    three_places();
    world_distance[0] = world_distance[2];
    for (turn = 0; turn < 5; turn++)
        assert_chooses(NULL, taken[turn], 1);
    unit_assert_says(rail.why, "one of the 2 nearest of 3 usable devices of this host");
    level_ground();
}

/* ---- GASNET_IBV_PORTS_TYPE=auto ---- */

static struct tk_rail_claim claimed[fake_devices_max];
static uint32_t claimed_count, claimed_wanted;
static const char *granted; /* devices; NULL: no answer */

static bool share(struct tk_rail_claim *claims, uint32_t count, uint32_t wanted)
{
    assert_in_range(count, 0, fake_devices_max);
    if (claims)
        memcpy(claimed, claims, count * sizeof(*claims));
    claimed_count = count;
    claimed_wanted = wanted;
    for (uint32_t i = 0; granted && i < count; i++)
        claims[i].is_taken = strstr(granted, claims[i].device) != NULL;
    return granted != NULL;
}

static void share_ports(const char *answer)
{
    sharer = share;
    granted = answer;
    claimed_count = claimed_wanted = UINT32_MAX;
}

static void with_auto_the_ranks_of_the_host_share_ports(void **state)
{
    (void)state;
    three_places();
    share_ports("fake2");
    assert_rails("GASNET_IBV_PORTS_TYPE=AUTOmatic", NULL, "fake2:1");
    assert_int_equal(claimed_count, 3);
    assert_int_equal(claimed_wanted, 1);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(claimed[i].distance, world_distance[i]);
    assert_string_equal(rail.why, "nearest of 3 usable ports of this host, shared by "
                                  "GASNET_IBV_PORTS_TYPE=auto");
    share_ports("fake1");
    assert_rails("GASNET_IBV_PORTS_TYPE=auto", NULL, "fake1:1");
    unit_assert_says(rail.why, "nearest to no rank of this host, and nearer ones have as many");
    share_ports("fake0 fake1");
    assert_rails("GASNET_IBV_PORTS_TYPE=auto:2", NULL, "fake0:1 fake1:1");
    assert_int_equal(claimed_wanted, 2);
    share_ports("fake1");
    assert_rails("GASNET_IBV_PORTS_TYPE=auto", "GASNET_IBV_PORTS=fake0+fake1+fake7", "fake1:1");
    assert_int_equal(claimed_count, 2);
    assert_int_equal(claimed_wanted, 1);
    share_ports(NULL); /* without auto it publishes that it takes no part */
    assert_rails("GASNET_IBV_PORTS=fake0", NULL, "fake0:1");
    assert_int_equal(claimed_count, 0);
    sharer = NULL;
    level_ground();
}

static void all_or_too_many_are_all(void **state)
{
    (void)state;
    three_places();
    share_ports("fake0 fake1 fake2");
    assert_rails("GASNET_IBV_PORTS_TYPE=auto:all", NULL, "fake0:1 fake1:1 fake2:1");
    assert_string_equal(rail.why, "one of all 3 usable ports of this host");
    assert_rails("GASNET_IBV_PORTS_TYPE=auto:7", NULL, "fake0:1 fake1:1 fake2:1");
    assert_int_equal(claimed_wanted, 3);
    /* An answer with more ports than wanted is ignored. */
    assert_rails("GASNET_IBV_PORTS_TYPE=auto:all", "GASNET_NUM_QPS=2", "fake0:1 fake2:1");
    assert_int_equal(claimed_wanted, 2);
    sharer = NULL;
    level_ground();
}

static void without_an_answer_ranks_take_turns(void **state)
{
    (void)state;
    three_places();
    world_distance[0] = 0;
    share_ports(NULL);
    assert_rails("GASNET_IBV_PORTS_TYPE=auto", NULL, "fake0:1");
    turn = 1;
    assert_rails("GASNET_IBV_PORTS_TYPE=auto", NULL, "fake2:1");
    sharer = NULL;
    assert_rails("GASNET_IBV_PORTS_TYPE=auto", NULL, "fake2:1");
    assert_rails("GASNET_IBV_PORTS_TYPE=auto:2", NULL, "fake0:1 fake2:1");
    level_ground();
}

/* The first rank of the host waits for all of them. */
static void a_rank_without_a_port_says_so_too(void **state)
{
    (void)state;
    fake_reset();
    fake.device_count = 2;
    fake.ports[0][1].attr.state = fake.ports[1][1].attr.state = IBV_PORT_DOWN;
    share_ports("");
    unit_listen();
    assert_int_equal(choose("GASNET_IBV_PORTS_TYPE=auto", NULL), TK_FAIL);
    unit_heard();
    assert_int_equal(claimed_count, 0);
    fake_reset(); /* a single port needs no agreement */
    share_ports("");
    assert_rails("GASNET_IBV_PORTS_TYPE=auto", NULL, "fake0:1");
    assert_int_equal(claimed_count, UINT32_MAX);
    sharer = NULL;
}

static void numbered_filters_are_ignored_with_auto(void **state)
{
    (void)state;
    three_places();
    setenv("GASNET_IBV_PORTS_0", "fake0", 1);
    share_ports("fake2");
    assert_rails("GASNET_IBV_PORTS_TYPE=auto", NULL, "fake2:1");
    assert_int_equal(claimed_count, 3);
    unsetenv("GASNET_IBV_PORTS_0");
    sharer = NULL;
    level_ground();
}

static void what_hwloc_does_not_know_is_far(void **state)
{
    three_places();
    world_distance[0] = world_distance[2] = tk_distance_unknown;
    assert_chooses(NULL, "fake1", 1);
    world_distance[1] = tk_distance_unknown;
    assert_chooses(NULL, "fake0", 1);
    turn = 1;
    assert_chooses(NULL, "fake1", 1);
    level_ground();
}

/* Querying the machine takes long. */
static void the_machine_is_queried_only_if_needed(void **state)
{
    fake_reset();
    fake.attr.phys_port_cnt = 2;
    world_looks = 0;
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(world_looks, 0);
}

static void assert_obeys(unsigned parts, const char *device)
{
    world_parts = parts;
    assert_chooses("GASNET_IBV_PORTS=fake2", device, 1);
    world_parts = 1;
}

/* The manual's example of a machine with two sockets. */
static void a_bound_rank_obeys_the_filter_of_its_socket(void **state)
{
    three_places();
    setenv("GASNET_IBV_PORTS_0", "fake0", 1);
    setenv("GASNET_IBV_PORTS_1", "fake1", 1);
    assert_obeys(1, "fake0");
    assert_string_equal(rail.why, "only usable device of GASNET_IBV_PORTS_0");
    assert_obeys(2, "fake1");
    assert_obeys(4, "fake2"); /* has none of its own */
    assert_obeys(3, "fake2");
    assert_obeys(0, "fake2");
    assert_obeys(UINT32_MAX, "fake2"); /* the name would be too long */
    unsetenv("GASNET_IBV_PORTS_0");
    assert_obeys(1, "fake2");
    unsetenv("GASNET_IBV_PORTS_1");
    level_ground();
}

static void a_filter_is_reported_by_its_own_name(void **state)
{
    three_places();
    setenv("GASNET_IBV_PORTS_0", "fake9", 1);
    unit_assert_says(refusal(NULL), "fake0:1 is not in GASNET_IBV_PORTS_0, fake1:1 is not");
    unsetenv("GASNET_IBV_PORTS_0");
    level_ground();
}

static void without_devices_the_remedy_is_printed(void **state)
{
    fake_reset();
    fake.device_count = 0;
    unit_assert_says(refusal(NULL), "no RDMA device on this host; load its driver");
}

static void each_port_is_reported_with_its_obstacle(void **state)
{
    fake_reset();
    fake.device_count = 2;
    fake.attr.phys_port_cnt = 2;
    fake.ports[0][1].attr.state = IBV_PORT_DOWN;
    fake.ports[0][2].attr.state = IBV_PORT_DOWN;
    const char *said = refusal("GASNET_IBV_PORTS=fake0");
    unit_assert_says(said, "no usable RDMA port: fake0:1 is down, fake0:2 is down, "
                           "fake1:1 is not in GASNET_IBV_PORTS, fake1:2 is not");
}

static void a_device_that_cannot_be_opened_is_reported(void **state)
{
    fake_reset();
    fake.failing[FAKE_OPEN_DEVICE].allowed = 0;
    fake.failing[FAKE_OPEN_DEVICE].error = EACCES;
    unit_assert_says(
        refusal(NULL),
        "can't be opened: Permission denied; this user has no permission for /dev/infiniband");
    fake.failing[FAKE_OPEN_DEVICE].allowed = 0;
    fake.failing[FAKE_OPEN_DEVICE].error = ENOMEM;
    unit_assert_says(
        refusal(NULL),
        "can't be opened: Cannot allocate memory; look at the limits on address space (ulimit -v)");
    fake.failing[FAKE_OPEN_DEVICE].allowed = 0;
    fake.failing[FAKE_OPEN_DEVICE].error = EMFILE;
    unit_assert_says(
        refusal(NULL),
        "can't be opened: Too many open files; raise the limit on open files (ulimit -n)");
}

static void an_infiniband_port_is_addressed_by_lid(void **state)
{
    fake_reset();
    fake.ports[0][1].attr.lid = 77;
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.address.lid, 77);
    assert_false(rail.address.is_ethernet);
    assert_false(rail.address.needs_gid);
}

static void a_port_with_lid_0_is_addressed_by_gid(void **state)
{
    fake_reset();
    fake_make_ethernet(&fake.ports[0][1]);
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
    assert_chooses(NULL, "fake0", 1);
    assert_true(rail.address.is_ethernet);
    assert_true(rail.address.needs_gid);
    assert_memory_equal(rail.address.gids[0].raw, fake.ports[0][1].gids[0].gid.raw, 16);
}

static void assert_gid(const char *setting, int index)
{
    assert_chooses(setting, "fake0", 1);
    assert_int_equal(rail.address.gids[0].index, index);
    assert_memory_equal(rail.address.gids[0].raw, fake.ports[0][1].gids[index].gid.raw, 16);
}

/* RoCE v2 before v1, then IPv4, global IPv6, connection-local; the first of equals. */
static void the_best_gid_is_taken(void **state)
{
    struct fake_port *port = &fake.ports[0][1];
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

static void an_empty_gid_is_ignored(void **state)
{
    struct fake_port *port = &fake.ports[0][1];
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
    fake_reset();
    assert_mtu(NULL, IBV_MTU_4096);
    assert_mtu("GASNET_MAX_MTU=-1", IBV_MTU_4096);
    assert_mtu("GASNET_MAX_MTU=2048", IBV_MTU_2048);
    assert_mtu("GASNET_MAX_MTU=1024", IBV_MTU_1024);
    assert_mtu("GASNET_MAX_MTU=256", IBV_MTU_256);
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
    fake_reset();
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        fake.ports[0][1].attr.active_speed = ports[i].speed;
        fake.ports[0][1].attr.active_width = ports[i].width;
        assert_chooses(NULL, "fake0", 1);
        assert_int_equal(rail.address.rate_mbps, ports[i].mbps);
    }
}

static void reads_under_way_are_what_both_sides_can_do(void **state)
{
    fake_reset();
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.address.reads, 16);
    assert_int_equal(rail.address.reads_out, 8);
    assert_chooses("GASNET_QP_RD_ATOM=4", "fake0", 1);
    assert_int_equal(rail.address.reads, 4);
    assert_chooses("GASNET_QP_RD_ATOM=99", "fake0", 1);
    assert_int_equal(rail.address.reads, 16);
    fake.attr.max_qp_rd_atom = 1000;
    fake.attr.max_qp_init_rd_atom = 1000;
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.address.reads, 255); /* eight bits in a queue pair's attributes */
    assert_int_equal(rail.address.reads_out, 255);
}

static void the_partition_is_found_by_its_key(void **state)
{
    static const uint16_t keys[] = {0xffff, 0x0010, 0x8010, 0x0020};
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

static bool is_listed;

static const char *listing(const char *setting, const char *ranks)
{
    unit_settings(setting, ranks, NULL);
    unit_listen();
    is_listed = tk_ports_list() == TK_OK;
    return unit_heard();
}

static void ports_are_listed_on_request(void **state)
{
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
    assert_true(is_listed);
}

static void the_gid_of_an_interface_that_is_down_is_not_taken(void **state)
{
    fake_reset();
    has_address(0, "10.0.0.1", "255.255.255.0");
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_ROCE_V2, "fe80::1");
    assert_gid(NULL, 0);
    assert_int_equal(rail.address.gids[0].network_bits, 96 + 24);
    assert_int_equal(rail.address.gids[1].network_bits, 64);
    interfaces[0].ifa_flags = 0;
    assert_gid(NULL, 1);
    assert_gid("GASNET_IBV_GID_INDEX=0", 0); /* the user knows better */
    no_networks();
}

/* Soft-RoCE takes 7 retries for "for ever". */
static void retries_end_on_every_device(void **state)
{
    fake_reset();
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.retry_count, 7);
    assert_false(rail.is_retry_capped);
    fake.attr.vendor_id = 0xffffff;
    assert_chooses(NULL, "fake0", 1);
    assert_int_equal(rail.retry_count, 6);
    assert_true(rail.is_retry_capped);
    assert_chooses("GASNET_QP_RETRY_COUNT=6", "fake0", 1);
    assert_int_equal(rail.retry_count, 6);
    assert_false(rail.is_retry_capped);
    assert_chooses("GASNET_QP_RETRY_COUNT=0", "fake0", 1);
    assert_int_equal(rail.retry_count, 0);
}

static void a_port_that_wants_global_headers_is_addressed_by_gid(void **state)
{
    fake_reset();
    fake.ports[0][1].attr.flags = IBV_QPF_GRH_REQUIRED;
    unit_assert_says(refusal(NULL), "has no usable GID");
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_IB, "fec0::7");
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_IB, "fec0::8");
    assert_chooses(NULL, "fake0", 1);
    assert_true(rail.address.needs_gid);
    assert_false(rail.address.is_ethernet);
    assert_int_equal(rail.address.gid_count, 1);
    assert_gid(NULL, 0);
    assert_gid("GASNET_IBV_GID_INDEX=1", 1);
}

static void a_gid_is_set_for_each_port(void **state)
{
    struct fake_port *port = &fake.ports[0][1];
    fake_reset();
    fake_make_ethernet(port);
    for (int i = 0; i < 4; i++)
        fake_gid(port, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
    assert_gid("GASNET_IBV_GID_INDEX=-1", 0);
    assert_gid("GASNET_IBV_GID_INDEX=fake1:1=2,fake0:1=3,fake0:2=1", 3);
    assert_gid("GASNET_IBV_GID_INDEX=fake0:2=1", 0);
    assert_gid("GASNET_IBV_GID_INDEX=fake:1=2,fake00:1=1", 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_gid_of_an_interface_that_is_down_is_not_taken),
    cmocka_unit_test(retries_end_on_every_device),
    cmocka_unit_test(a_port_that_wants_global_headers_is_addressed_by_gid),
    cmocka_unit_test(a_gid_is_set_for_each_port),
    cmocka_unit_test(the_partition_is_found_by_its_key),
    cmocka_unit_test(ports_are_listed_on_request),
    cmocka_unit_test(the_first_active_port_is_taken),
    cmocka_unit_test(the_filter_overrules_the_order),
    cmocka_unit_test(named_ports_are_all_used),
    cmocka_unit_test(as_many_ports_as_queue_pairs_are_used),
    cmocka_unit_test(the_nearest_of_several_are_taken),
    cmocka_unit_test(the_choice_is_reported_on_request),
    cmocka_unit_test(ignored_settings_are_listed_with_the_reason),
    cmocka_unit_test(a_broken_device_beside_another_is_reported),
    cmocka_unit_test(the_nearest_device_is_taken),
    cmocka_unit_test(ranks_share_out_what_is_equally_near),
    cmocka_unit_test(with_auto_the_ranks_of_the_host_share_ports),
    cmocka_unit_test(all_or_too_many_are_all),
    cmocka_unit_test(without_an_answer_ranks_take_turns),
    cmocka_unit_test(a_rank_without_a_port_says_so_too),
    cmocka_unit_test(numbered_filters_are_ignored_with_auto),
    cmocka_unit_test(what_hwloc_does_not_know_is_far),
    cmocka_unit_test(the_machine_is_queried_only_if_needed),
    cmocka_unit_test(a_bound_rank_obeys_the_filter_of_its_socket),
    cmocka_unit_test(a_filter_is_reported_by_its_own_name),
    cmocka_unit_test(without_devices_the_remedy_is_printed),
    cmocka_unit_test(each_port_is_reported_with_its_obstacle),
    cmocka_unit_test(a_device_that_cannot_be_opened_is_reported),
    cmocka_unit_test(ports_of_one_network_are_dealt_out),
    cmocka_unit_test(a_mask_makes_one_network),
    cmocka_unit_test(more_rails_than_a_network_has_are_the_first),
    cmocka_unit_test(infiniband_networks_differ_by_prefix),
    cmocka_unit_test(an_infiniband_port_is_addressed_by_lid),
    cmocka_unit_test(a_port_with_lid_0_is_addressed_by_gid),
    cmocka_unit_test(the_best_gid_is_taken),
    cmocka_unit_test(an_empty_gid_is_ignored),
    cmocka_unit_test(the_mtu_is_the_active_one_or_what_the_user_allows),
    cmocka_unit_test(the_rate_is_speed_times_lanes),
    cmocka_unit_test(reads_under_way_are_what_both_sides_can_do),
};

UNIT_MAIN(tests)
