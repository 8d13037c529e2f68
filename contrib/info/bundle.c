/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trunkline_info --bundle: one file with all that is needed to understand a first run that failed
 * on a machine which the reader can't reach. Owns the list of ports to test. */
#include "config.h"

#include "contrib/info/bundle.h"
#include "contrib/info/info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, ports_max = 64, name_max = 64, seconds_usual = 30, seconds_max = 3600 };

static struct port {
    char device[name_max];
    int number;
    bool is_active;
} ports[ports_max];
static unsigned port_count;

static void add_ports(struct ibv_context *context)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    if (ibv_query_device(context, &attr))
        return;
    for (int number = 1; number <= attr.phys_port_cnt && port_count < ports_max; number++) {
        if (ibv_query_port(context, (uint8_t)number, &port))
            continue;
        struct port *new = &ports[port_count++];
        snprintf(new->device, sizeof(new->device), "%s", ibv_get_device_name(context->device));
        new->number = number;
        new->is_active = port.state == IBV_PORT_ACTIVE;
    }
}

static void write_device(struct ibv_device *device)
{
    struct ibv_context *context = ibv_open_device(device);
    if (!context) {
        bundle_section("device", ibv_get_device_name(device));
        bundle_fact("error", "ibv_open_device: %s", strerror(errno));
        return;
    }
    bundle_device(context);
    add_ports(context);
    ibv_close_device(context);
}

static void write_devices(void)
{
    int count = 0;
    struct ibv_device **list =
        tk_verbs_library_open() == TK_OK ? ibv_get_device_list(&count) : NULL;
    for (int i = 0; list && i < count; i++)
        write_device(list[i]);
    if (list)
        ibv_free_device_list(list);
}

/* Chooses ports by the rules of a job, and prints the reasons as --devices does. */
static void write_choice(void)
{
    bundle_section("choice", NULL);
    info_devices();
}

static void write_findings(void)
{
    bundle_section("findings", NULL);
    info_print_findings();
}

static bool run_test(const struct port *port, unsigned seconds)
{
    char object[name_max + 16] = "shared-memory";
    if (port)
        snprintf(object, sizeof(object), "%.*s:%d", name_max - 1, port->device, port->number);
    bundle_section("test", object);
    if (port && !port->is_active) {
        bundle_fact("result", "not tested");
        bundle_fact("reason", "the port is not active");
        return true;
    }
    return bundle_test(port ? port->device : NULL, port ? port->number : 0, seconds);
}

static unsigned run_tests(unsigned seconds)
{
    unsigned failures = !run_test(NULL, seconds);
    for (unsigned i = 0; i < port_count; i++)
        failures += !run_test(&ports[i], seconds);
    return failures;
}

static bool read_seconds(const char *text, unsigned *seconds)
{
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : seconds_usual;
    *seconds = (unsigned)value;
    if (!text || (*text && !*end && value >= 1 && value <= seconds_max))
        return true;
    fprintf(stderr, "trunkline_info: --seconds %s: not a number from 1 to %d\n", text, seconds_max);
    return false;
}

int info_bundle(const struct info_bundle *wanted)
{
    unsigned seconds;
    if (!read_seconds(wanted->seconds, &seconds))
        return EXIT_USAGE;
    if (!bundle_open(wanted->file, wanted->keeps_host))
        return 1;
    info_in_bundle();
    bundle_environment(); /* reads the settings that choose ports */
    write_choice();
    bundle_host();
    bundle_topology();
    write_devices();
    write_findings();
    bundle_kernel();
    unsigned failures = run_tests(seconds);
    if (!bundle_close())
        return 1;
    if (failures > 0)
        fprintf(stderr, "trunkline_info: %u of %u tests failed (sections [test ...])\n", failures,
                port_count + 1);
    return failures > 0;
}
