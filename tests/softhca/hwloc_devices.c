/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints each OpenFabrics device that hwloc knows and the CPUs beside it. For tests of the files
 * that "softhca topology" makes: hwloc is asked as a program would ask. */
#include <hwloc.h>
#include <stdio.h>

int main(void)
{
    hwloc_topology_t t;
    hwloc_obj_t o = NULL;

    if (hwloc_topology_init(&t) != 0 ||
        hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        hwloc_topology_load(t) != 0)
        return 1;
    while ((o = hwloc_get_next_osdev(t, o))) {
        char cpus[256];

        if (o->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS)
            continue;
        hwloc_bitmap_list_snprintf(cpus, sizeof cpus, hwloc_get_non_io_ancestor_obj(t, o)->cpuset);
        printf("%s %s\n", o->name, cpus);
    }
    hwloc_topology_destroy(t);
    return 0;
}
