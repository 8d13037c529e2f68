/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which GASNET_IBV_PORTS_<n> a rank reads, by GASNET_IBV_PORTS_TYPE: the sockets that it may run
 * on, its rank, or an operation on these (README of GASNet-EX, topology-aware variables). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_verbs.h"
#include "fake_world.h"
#include "settings/settings.h"
#include "transport/verbs/device/ports.h"
#include "unit.h"

enum { host_rank = 7, job_rank = 12 };

static const char *other_setting;

static const char *variable(const char *type, unsigned sockets)
{
    static struct tk_port_family family;
    char setting[64];
    snprintf(setting, sizeof(setting), "GASNET_IBV_PORTS_TYPE=%s", type);
    unit_settings(setting, other_setting, NULL);
    world_parts = sockets;
    tk_peers.me = job_rank;
    assert_int_equal(tk_port_family_find(&family, host_rank), TK_OK);
    return family.name;
}

/* If this numbered variable is set alone, it is read; without it no numbered one is read. */
static void assert_reads(const char *type, unsigned sockets, const char *name)
{
    setenv("GASNET_IBV_PORTS_9", "mlx5_9", 1);
    assert_string_equal(variable(type, sockets), "GASNET_IBV_PORTS");
    setenv(name, "mlx5_1", 1);
    assert_string_equal(variable(type, sockets), name);
    unsetenv(name);
    unsetenv("GASNET_IBV_PORTS_9");
}

static void sockets_are_joined_ascending(void **state)
{
    (void)state;
    assert_reads("Socket", 1 << 2, "GASNET_IBV_PORTS_2");
    assert_reads("Socket", 3, "GASNET_IBV_PORTS_0_1");
    assert_reads("Socket", 0x90, "GASNET_IBV_PORTS_4_7");
}

static void ranks_are_numbers_too(void **state)
{
    (void)state;
    assert_reads("HRank", 0, "GASNET_IBV_PORTS_7");
    assert_reads("jrank", 0, "GASNET_IBV_PORTS_12");
    assert_reads("NRANK", 0, "GASNET_IBV_PORTS_7");
    other_setting = "GASNET_SUPERNODE_MAXSIZE=4";
    assert_reads("NRank", 0, "GASNET_IBV_PORTS_3");
    other_setting = NULL;
}

static void an_operation_comes_before_the_name(void **state)
{
    (void)state;
    assert_reads("HRank % 4", 0, "GASNET_IBV_PORTS_3");
    assert_reads("JRank/0x5", 0, "GASNET_IBV_PORTS_2");
    assert_reads("Socket/2", 0x13, "GASNET_IBV_PORTS_0_2");
    assert_reads("Socket % 3", 0xc, "GASNET_IBV_PORTS_0_2");
    assert_reads("Socket / 010", UINT32_MAX, "GASNET_IBV_PORTS_0_1_2_3");
}

/* 19 numbers fit; a truncated longer name would be another rank's. */
static void a_name_is_whole_or_none(void **state)
{
    char name[64] = "GASNET_IBV_PORTS";
    (void)state;
    for (int i = 0; i < 19; i++)
        sprintf(name + strlen(name), "_%d", i);
    setenv(name, "mlx5_0", 1);
    assert_string_equal(variable("Socket", (1u << 19) - 1), name);
    assert_string_equal(variable("Socket", UINT32_MAX), "GASNET_IBV_PORTS");
    unsetenv(name);
}

static void without_a_name_there_is_the_plain_variable(void **state)
{
    (void)state;
    setenv("GASNET_IBV_PORTS_0", "mlx5_0", 1);
    assert_string_equal(variable("None", 1), "GASNET_IBV_PORTS");
    assert_string_equal(variable("Socket", 0), "GASNET_IBV_PORTS");
    setenv("GASNET_IBV_PORTS_0", "", 1);
    assert_string_equal(variable("Socket", 1), "GASNET_IBV_PORTS");
    unsetenv("GASNET_IBV_PORTS_0");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sockets_are_joined_ascending),
    cmocka_unit_test(ranks_are_numbers_too),
    cmocka_unit_test(an_operation_comes_before_the_name),
    cmocka_unit_test(a_name_is_whole_or_none),
    cmocka_unit_test(without_a_name_there_is_the_plain_variable),
};

int main(void)
{
    unit_deadline();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
