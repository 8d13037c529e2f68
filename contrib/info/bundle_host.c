/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sections of a bundle that describe the host: versions, limits, the environment without
 * secrets, topology, messages of the kernel. No state. */
#include "config.h"

#include "contrib/info/bundle.h"
#include "contrib/info/info.h"
#include "settings/settings.h"

#include <hwloc.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/resource.h>

/* ---- Versions and limits ---- */

/* The file name of a library has its release: libibverbs.so.1.14.44.0 belongs to rdma-core 44. */
static void print_library(const char *name)
{
    char line[PATH_MAX + 128], real[PATH_MAX] = "";
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !*real && fgets(line, sizeof(line), maps)) {
        const char *file = strstr(line, name) ? strchr(line, '/') : NULL;
        line[strcspn(line, "\n")] = 0;
        if (file && !realpath(file, real))
            snprintf(real, sizeof(real), "%.*s", PATH_MAX - 1, file);
    }
    if (maps)
        fclose(maps);
    bundle_fact(name, "%s", *real ? real : "not loaded");
}

static void print_os(void)
{
    static const char key[] = "PRETTY_NAME=";
    char line[256] = "";
    FILE *file = fopen("/etc/os-release", "re");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, key, strlen(key)))
            bundle_fact("distribution", "%.*s", (int)strcspn(line + strlen(key), "\n"),
                        line + strlen(key));
    if (file)
        fclose(file);
}

static void print_limit(const char *key, int which)
{
    struct rlimit limit;
    char text[2][32] = {"unlimited", "unlimited"};
    if (getrlimit((__rlimit_resource_t)which, &limit))
        return;
    if (limit.rlim_cur != RLIM_INFINITY)
        snprintf(text[0], sizeof(text[0]), "%" PRIu64, (uint64_t)limit.rlim_cur);
    if (limit.rlim_max != RLIM_INFINITY)
        snprintf(text[1], sizeof(text[1]), "%" PRIu64, (uint64_t)limit.rlim_max);
    bundle_fact(key, "%s %s", text[0], text[1]);
}

static void print_file(const char *key, const char *path)
{
    char line[512];
    if (info_read_line(path, line, sizeof(line)))
        bundle_fact(key, "%s", line);
}

/* cgroup v2: the group of a process is in the line that begins with "0::". */
static void print_cgroup(void)
{
    static const char *const names[] = {"memory.max", "memory.high", "memory.current",
                                        "pids.max",   "cpu.max",     "rdma.max"};
    char line[512] = "", path[768];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && strncmp(line, "0::", 3) != 0 && fgets(line, sizeof(line), file))
        ;
    if (file)
        fclose(file);
    if (strncmp(line, "0::", 3) != 0)
        return;
    line[strcspn(line, "\n")] = 0;
    bundle_fact("cgroup", "%s", line + 3);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", line + 3, names[i]);
        print_file(names[i], path);
    }
}

void bundle_host(void)
{
    bundle_section("library", NULL);
    info_build();
    print_os();
    print_library("libibverbs.so");
    print_library("librdmacm.so");
    bundle_fact("hwloc", "0x%x, built with 0x%x", hwloc_get_api_version(), HWLOC_API_VERSION);
    bundle_section("limits", NULL);
    info_limits();
    print_limit("RLIMIT_MEMLOCK", RLIMIT_MEMLOCK);
    print_limit("RLIMIT_NOFILE", RLIMIT_NOFILE);
    print_limit("RLIMIT_NPROC", RLIMIT_NPROC);
    print_limit("RLIMIT_AS", RLIMIT_AS);
    print_cgroup();
}

/* ---- The environment ---- */

/* Variables that affect the library, libibverbs and its providers, hwloc and PMIx. */
static bool is_of_interest(const char *entry)
{
    static const char *const prefixes[] = {"GASNET",  "GEX_",   "TRUNKLINE_", "SOFTHCA_",
                                           "SOFTGPU", "IBV_",   "RDMAV_",     "MLX4_",
                                           "MLX5_",   "HWLOC_", "PMIX_MCA_",  "LD_"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (!strncmp(entry, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

void bundle_environment(void)
{
    bundle_section("environment", NULL);
    for (char *const *entry = environ; *entry; entry++) {
        char name[128];
        size_t length = strcspn(*entry, "=");
        if (!is_of_interest(*entry) || length >= sizeof(name) || (*entry)[length] != '=')
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
        bundle_fact(name, "%s", bundle_is_secret(name) ? "(hidden)" : *entry + length + 1);
    }
    bundle_section("settings", NULL);
    info_settings(false);
}

/* ---- Topology ---- */

static hwloc_topology_t load_machine(void)
{
    hwloc_topology_t machine;
    if (hwloc_topology_init(&machine))
        return NULL;
    if (hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
        hwloc_topology_load(machine) == 0)
        return machine;
    hwloc_topology_destroy(machine);
    return NULL;
}

static void print_place(hwloc_topology_t machine, hwloc_obj_t device)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(machine, device);
    hwloc_obj_t parent = device->parent;
    char *cpus = NULL, *nodes = NULL, bus[32] = "none", key[64];
    hwloc_bitmap_list_asprintf(&cpus, near->cpuset);
    hwloc_bitmap_list_asprintf(&nodes, near->nodeset);
    if (parent && parent->type == HWLOC_OBJ_PCI_DEVICE)
        snprintf(bus, sizeof(bus), "%04x:%02x:%02x.%x", parent->attr->pcidev.domain,
                 parent->attr->pcidev.bus, parent->attr->pcidev.dev, parent->attr->pcidev.func);
    snprintf(key, sizeof(key), "device %.48s", device->name);
    bundle_fact(key, "PCI %s, CPUs %s, NUMA nodes %s", bus, cpus ? cpus : "?", nodes ? nodes : "?");
    free(cpus);
    free(nodes);
}

void bundle_topology(void)
{
    static const struct {
        const char *key;
        hwloc_obj_type_t type;
    } kinds[] = {{"packages", HWLOC_OBJ_PACKAGE},
                 {"NUMA nodes", HWLOC_OBJ_NUMANODE},
                 {"cores", HWLOC_OBJ_CORE},
                 {"CPUs", HWLOC_OBJ_PU}};
    hwloc_topology_t machine = load_machine();
    bundle_section("topology", NULL);
    if (!machine) {
        bundle_fact("error", "hwloc finds no topology");
        return;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        bundle_fact(kinds[i].key, "%d", hwloc_get_nbobjs_by_type(machine, kinds[i].type));
    for (hwloc_obj_t at = NULL; (at = hwloc_get_next_osdev(machine, at));)
        if (at->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
            print_place(machine, at);
    hwloc_topology_destroy(machine);
}

/* ---- Messages of the kernel ---- */

enum { kernel_bytes = 1 << 20, kernel_lines = 50, log_read_all = 3 /* syslog(2) */ };

static bool is_of_rdma(const char *line)
{
    static const char *const words[] = {"mlx",  "infiniband", "ib_",   "rdma",  "RDMA",  "rxe",
                                        "siw",  "iwarp",      "RoCE",  "qedr",  "hns",   "bnxt_re",
                                        "efa ", "hfi1",       "erdma", "mana_", "mana:", "uverb"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

static void print_messages(char *text)
{
    const char *last[kernel_lines];
    unsigned count = 0;
    for (char *line; (line = strsep(&text, "\n"));)
        if (is_of_rdma(line))
            last[count++ % kernel_lines] = line;
    for (unsigned i = count > kernel_lines ? count - kernel_lines : 0; i < count; i++)
        bundle_fact("line", "%s", last[i % kernel_lines]);
}

void bundle_kernel(void)
{
    char *text = calloc(1, kernel_bytes + 1);
    bundle_section("kernel", NULL);
    if (text && klogctl(log_read_all, text, kernel_bytes) >= 0)
        print_messages(text);
    else
        bundle_fact("error", "messages can't be read: %m (dmesg as root shows them)");
    free(text);
}
