/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See locality.h. Owns one hwloc topology while it is needed. The thread's CPUs are read from the
 * kernel, not from hwloc, which does not report bindings for topologies read from a file
 * (HWLOC_XMLFILE, for tests and for containers that hide the machine). No lock. */
#include "config.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "settings/settings.h"
#include "topology/locality.h"

static hwloc_topology_t machine;
static hwloc_bitmap_t ours; /* CPUs of this thread that exist in the topology */

/* Linux binds threads, not processes: a process counts as bound like its first thread. */
static pid_t locality_thread(void)
{
    return !strcmp(tk_settings.hwloc_query, "process") ? getpid() : 0;
}

/* If the set does not fit there are more CPUs than cpu_set_t has; then this thread counts as
 * unbound. */
static void locality_find_cpus(void)
{
    cpu_set_t set;
    const hwloc_const_bitmap_t all = hwloc_topology_get_topology_cpuset(machine);
    if (sched_getaffinity(locality_thread(), sizeof(set), &set) != 0 ||
        hwloc_cpuset_from_glibc_sched_affinity(machine, ours, &set, sizeof(set)) != 0)
        hwloc_bitmap_copy(ours, all);
    hwloc_bitmap_and(ours, ours, all);
    if (hwloc_bitmap_iszero(ours))
        hwloc_bitmap_copy(ours, all);
}

static bool locality_load(void)
{
    return hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
           hwloc_topology_load(machine) == 0;
}

static bool open_machine(void)
{
    if (machine)
        return true;
    ours = hwloc_bitmap_alloc();
    if (!ours || hwloc_topology_init(&machine) != 0) {
        machine = NULL;
        tk_locality_drop();
        return false;
    }
    if (!locality_load()) {
        tk_log_error("hwloc can't read the topology of this machine; devices are "
                     "chosen as if all were equally near");
        tk_locality_drop();
        return false;
    }
    locality_find_cpus();
    return true;
}

enum tk_status tk_locality_stand(const char *cpus)
{
    if (!open_machine() || hwloc_bitmap_list_sscanf(ours, cpus) != 0)
        return TK_FAIL;
    hwloc_bitmap_and(ours, ours, hwloc_topology_get_topology_cpuset(machine));
    return hwloc_bitmap_iszero(ours) ? TK_FAIL : TK_OK;
}

void tk_locality_drop(void)
{
    if (machine)
        hwloc_topology_destroy(machine);
    hwloc_bitmap_free(ours);
    machine = NULL;
    ours = NULL;
}

/* The smallest part of the machine with CPUs of its own that the device is attached to. */
static hwloc_obj_t locality_place_of(const char *device)
{
    hwloc_obj_t at = NULL;
    while ((at = hwloc_get_next_osdev(machine, at)))
        if (at->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && !strcmp(at->name, device))
            return hwloc_get_non_io_ancestor_obj(machine, at);
    return NULL;
}

int tk_locality_distance(const char *device)
{
    if (!open_machine())
        return tk_distance_unknown;
    hwloc_obj_t place = locality_place_of(device);
    if (!place)
        return tk_distance_unknown;
    if (hwloc_bitmap_isincluded(ours, place->cpuset))
        return 0;
    int levels = 0;
    for (hwloc_obj_t at = place; at && !hwloc_bitmap_isincluded(ours, at->cpuset); at = at->parent)
        levels++;
    /* A device near half of our CPUs is better than a device near none, wherever the other half
     * are. */
    return 2 * levels + !hwloc_bitmap_intersects(ours, place->cpuset);
}

enum tk_status tk_locality_indices(const char *type, uint32_t *at, uint32_t most, uint32_t *count)
{
    hwloc_obj_type_t kind;
    *count = 0;
    if (hwloc_type_sscanf(type, &kind, NULL, 0) != 0 || hwloc_obj_type_is_io(kind))
        return TK_FAIL;
    if (!open_machine())
        return TK_OK;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(machine, kind, o));)
        if (o->cpuset && hwloc_bitmap_intersects(ours, o->cpuset) && *count < most)
            at[(*count)++] = o->logical_index;
    return TK_OK;
}
