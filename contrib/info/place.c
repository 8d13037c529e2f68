/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where devices are on this host: by hwloc, and how much of an accelerator's memory its BAR covers.
 * Owns a topology, with all bridges, until info_place_drop(). */
#include "config.h"

#include "contrib/info/accelerators.h"
#include "contrib/info/switch.h"

#include <hwloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static hwloc_topology_t host;

hwloc_obj_t info_switch_of(hwloc_obj_t device)
{
    hwloc_obj_t found = NULL;
    for (hwloc_obj_t at = device; at && hwloc_obj_type_is_io(at->type); at = at->parent)
        if (at->type == HWLOC_OBJ_BRIDGE && at->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
            found = at;
    return found;
}

static bool open_host(void)
{
    if (host)
        return true;
    if (hwloc_topology_init(&host) != 0) {
        host = NULL;
        return false;
    }
    if (hwloc_topology_set_io_types_filter(host, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
        hwloc_topology_load(host) == 0)
        return true;
    info_place_drop();
    return false;
}

void info_place_drop(void)
{
    if (host)
        hwloc_topology_destroy(host);
    host = NULL;
}

static hwloc_obj_t port_named(const char *port)
{
    for (hwloc_obj_t at = NULL; (at = hwloc_get_next_osdev(host, at));)
        if (at->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && !strcmp(at->name, port))
            return at;
    return NULL;
}

static hwloc_obj_t socket_of(hwloc_obj_t part)
{
    while (part && part->type != HWLOC_OBJ_PACKAGE)
        part = part->parent;
    return part;
}

/* If hwloc attaches a device to the whole machine, its place is unknown, unless the machine has one
 * socket. */
static enum info_place compare_parts(hwloc_obj_t a, hwloc_obj_t b)
{
    bool is_one_node = hwloc_bitmap_weight(a->nodeset) == 1;
    if (is_one_node && hwloc_bitmap_isequal(a->nodeset, b->nodeset))
        return INFO_PLACE_NODE;
    a = socket_of(a);
    b = socket_of(b);
    if (!a || !b)
        return INFO_PLACE_UNKNOWN;
    return a == b ? INFO_PLACE_SOCKET : INFO_PLACE_OTHER;
}

enum info_place info_place_of(const char *pci, const char *port)
{
    if (!*pci || !open_host())
        return INFO_PLACE_UNKNOWN;
    hwloc_obj_t gpu = hwloc_get_pcidev_by_busidstring(host, pci), hca = port_named(port);
    if (!gpu || !hca)
        return INFO_PLACE_UNKNOWN;
    if (info_switch_of(gpu) && info_switch_of(gpu) == info_switch_of(hca))
        return INFO_PLACE_SWITCH;
    return compare_parts(hwloc_get_non_io_ancestor_obj(host, gpu),
                         hwloc_get_non_io_ancestor_obj(host, hca));
}

/* One line for each BAR: first and last address, flags (IORESOURCE_MEM is 0x200). */
uint64_t info_bar_size(const char *resource)
{
    uint64_t first, last, flags, largest = 0;
    FILE *file = fopen(resource, "re");
    while (file && fscanf(file, "%" SCNx64 "%" SCNx64 "%" SCNx64, &first, &last, &flags) == 3)
        if ((flags & 0x200) && last - first >= largest)
            largest = last - first + 1;
    if (file)
        fclose(file);
    return largest;
}
