/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which ports the ranks of a host would get with GASNET_IBV_PORTS_TYPE=auto: by the functions with
 * which a job chooses, on this host or on one that an hwloc file describes. Owns the data about
 * that machine. */
#include "config.h"

#include "base/bits.h"
#include "common/number.h"
#include "contrib/info/info.h"
#include "contrib/info/switch.h"
#include "settings/settings.h"
#include "topology/locality.h"
#include "topology/spread.h"
#include "transport/verbs/verbs.h"

#include <hwloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, ranks_max = 4096, ports_max = 64, text_max = 400 };

static hwloc_topology_t machine;
static hwloc_obj_t ports[ports_max];
static struct tk_spread spread;
static char **cpus; /* of each rank, as a list */

static int refuse(const char *format, const char *word)
{
    fprintf(stderr, "trunkline_info: ");
    fprintf(stderr, format, word);
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

/* ---- The machine ---- */

static int load(const char *file)
{
    if (file)
        setenv("HWLOC_XMLFILE", file, 1); /* for topology/locality.c */
    if (hwloc_topology_init(&machine) == 0 &&
        (!file || hwloc_topology_set_xml(machine, file) == 0) &&
        hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
        hwloc_topology_load(machine) == 0)
        return 0;
    return refuse("%s: hwloc finds no topology there (lstopo FILE.xml writes one)",
                  file ? file : "this host");
}

/* In hwloc's order, which is the bus order; one port for each device. */
static int find_ports(void)
{
    for (hwloc_obj_t at = NULL; (at = hwloc_get_next_osdev(machine, at));)
        if (at->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && spread.ports < ports_max &&
            tk_port_filter_admits(tk_settings.ibv_ports, at->name, 1))
            ports[spread.ports++] = at;
    if (spread.ports > 0)
        return 0;
    return refuse("%s", *tk_settings.ibv_ports
                            ? "the machine has none of the RDMA devices of GASNET_IBV_PORTS"
                            : "the machine has no RDMA device (hwloc calls them OpenFabrics)");
}

/* ---- Where ranks are ---- */

/* "core", "socket" or "numa": ranks in blocks over these; each core has one. */
static int bind_to_parts(const char *word, hwloc_obj_type_t type)
{
    uint32_t count = (uint32_t)hwloc_get_nbobjs_by_type(machine, type);
    if (count == 0 || (type == HWLOC_OBJ_CORE && spread.ranks > count))
        return refuse("--bind %s: the machine has fewer of these than there are ranks", word);
    for (uint32_t r = 0; r < spread.ranks; r++) {
        uint32_t index =
            type == HWLOC_OBJ_CORE ? r : (uint32_t)((uint64_t)r * count / spread.ranks);
        hwloc_obj_t part = hwloc_get_obj_by_type(machine, type, index);
        if (!part || hwloc_bitmap_list_asprintf(&cpus[r], part->cpuset) < 0)
            return refuse("--bind %s: out of memory", word);
    }
    return 0;
}

/* "0-3:4-7": CPUs of rank 0, of rank 1; further ranks start again at the first. */
static int bind_to_lists(const char *lists)
{
    const char *at = lists;
    for (uint32_t r = 0; r < spread.ranks; r++) {
        size_t length = strcspn(at, ":");
        cpus[r] = strndup(at, length);
        at += length + (at[length] == ':');
        if (!*at)
            at = lists;
    }
    return 0;
}

static int bind_ranks(const char *word)
{
    if (!strcmp(word, "core"))
        return bind_to_parts(word, HWLOC_OBJ_CORE);
    if (!strcmp(word, "socket"))
        return bind_to_parts(word, HWLOC_OBJ_PACKAGE);
    if (!strcmp(word, "numa"))
        return bind_to_parts(word, HWLOC_OBJ_NUMANODE);
    if (strcmp(word, "none") != 0)
        return bind_to_lists(word);
    for (uint32_t r = 0; r < spread.ranks; r++)
        if (hwloc_bitmap_list_asprintf(&cpus[r], hwloc_topology_get_topology_cpuset(machine)) < 0)
            return refuse("--bind %s: out of memory", word);
    return 0;
}

static int measure(int *distances)
{
    for (uint32_t r = 0; r < spread.ranks; r++) {
        if (!cpus[r] || tk_locality_stand(cpus[r]) != TK_OK)
            return refuse("--bind: '%s' is not none, core, socket, numa or a list as 0-3:4-7 of "
                          "CPUs that the machine has",
                          cpus[r] ? cpus[r] : "");
        for (uint32_t p = 0; p < spread.ports; p++)
            distances[r * spread.ports + p] = tk_locality_distance(ports[p]->name);
    }
    tk_locality_drop();
    return 0;
}

/* ---- Output ---- */

static void print_machine(void)
{
    info_fact("machine", "%d packages, %d NUMA nodes, %d cores, %d CPUs, %u RDMA devices",
              hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PACKAGE),
              hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE),
              hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE),
              hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU), spread.ports);
}

static bool is_near(uint32_t rank, uint32_t port)
{
    const int *row = &spread.distance[rank * spread.ports];
    uint32_t nearer = 0;
    for (uint32_t p = 0; p < spread.ports; p++)
        nearer += row[p] < row[port];
    return nearer < spread.wanted;
}

static void print_rank(uint32_t rank)
{
    char name[32], text[text_max] = "";
    size_t length = 0;
    snprintf(name, sizeof(name), "rank %u", rank);
    for (uint32_t p = 0; p < spread.ports; p++)
        if (spread.is_taken[rank * spread.ports + p] && length < sizeof(text))
            length +=
                (size_t)snprintf(text + length, sizeof(text) - length, "%s%s%s", length ? ", " : "",
                                 ports[p]->name, is_near(rank, p) ? "" : " (not near)");
    info_fact(name, "%s; on CPUs %s", text, cpus[rank]);
}

static bool is_gpu(hwloc_obj_t device)
{
    return device->attr->osdev.type == HWLOC_OBJ_OSDEV_GPU ||
           device->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC;
}

static void print_port(uint32_t port)
{
    char text[text_max] = "", *near = NULL;
    size_t length = 0;
    hwloc_obj_t beside = hwloc_get_non_io_ancestor_obj(machine, ports[port]);
    uint32_t load = tk_spread_load(&spread, port);
    for (hwloc_obj_t at = NULL; (at = hwloc_get_next_osdev(machine, at));)
        if (is_gpu(at) && info_switch_of(at) && info_switch_of(at) == info_switch_of(ports[port]) &&
            length < sizeof(text))
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
                                       length ? ", " : "; behind one switch with ", at->name);
    if (hwloc_bitmap_list_asprintf(&near, beside->cpuset) < 0)
        near = NULL;
    info_fact(ports[port]->name, "%u rank%s; near to CPUs %s%s", load, load == 1 ? "" : "s",
              near ? near : "?", text);
    free(near);
}

/* ---- */

static bool read_number(const char *text, unsigned long max, uint32_t *number)
{
    uint64_t value;
    if (!tk_number_digits(text, 1, max, &value))
        return false;
    *number = (uint32_t)value;
    return true;
}

/* As a job of this environment would, unless --rails says otherwise. */
static int read_rails(const char *rails)
{
    spread.wanted = 1;
    tk_parse_auto(tk_settings.ibv_ports_type, &spread.wanted);
    if (tk_settings.num_qps > 0)
        spread.wanted = (uint32_t)tk_min(spread.wanted, (size_t)tk_settings.num_qps);
    if (rails && !strcmp(rails, "all"))
        spread.wanted = ports_max;
    else if (rails && !read_number(rails, ports_max, &spread.wanted))
        return refuse("--rails %s: neither all nor a number from 1 to 64", rails);
    return 0;
}

static int spread_ranks(const char *bind)
{
    int *distances = calloc((size_t)spread.ranks * spread.ports, sizeof(*distances));
    spread.distance = distances;
    spread.is_taken = calloc((size_t)spread.ranks * spread.ports, sizeof(*spread.is_taken));
    cpus = calloc(spread.ranks, sizeof(*cpus));
    if (!distances || !spread.is_taken || !cpus)
        return refuse("%s", "out of memory for the distances of all ranks");
    int status = bind_ranks(bind);
    if (status == 0)
        status = measure(distances);
    if (status == 0 && !tk_spread(&spread))
        status = refuse("%s", "out of memory for the spread of ranks");
    return status;
}

static void forget(void)
{
    for (uint32_t r = 0; cpus && r < spread.ranks; r++)
        free(cpus[r]);
    free(cpus);
    free((void *)spread.distance);
    free(spread.is_taken);
    hwloc_topology_destroy(machine);
}

int info_topology(const struct info_topology *wanted)
{
    if (!info_read_settings())
        return EXIT_USAGE;
    if (!wanted->ranks || !read_number(wanted->ranks, ranks_max, &spread.ranks))
        return refuse("--topology needs --ranks N, the ranks of a host: 1 to 4096, not '%s'",
                      wanted->ranks ? wanted->ranks : "");
    int status = read_rails(wanted->rails);
    if (status == 0)
        status = load(wanted->file);
    if (status == 0)
        status = find_ports();
    if (status == 0)
        status = spread_ranks(wanted->bind ? wanted->bind : "none");
    if (status == 0) {
        info_section(wanted->file ? wanted->file : "This host");
        print_machine();
        info_section("Ranks with GASNET_IBV_PORTS_TYPE=auto");
        for (uint32_t r = 0; r < spread.ranks; r++)
            print_rank(r);
        info_section("RDMA devices");
        for (uint32_t p = 0; p < spread.ports; p++)
            print_port(p);
    }
    if (machine)
        forget();
    return status;
}
