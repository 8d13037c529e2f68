/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PCI switches in a topology of hwloc. */
#ifndef TRUNKLINE_INFO_SWITCH_H
#define TRUNKLINE_INFO_SWITCH_H

#include <hwloc.h>

/* The bridge above the devices of a switch; NULL: none. */
hwloc_obj_t info_switch_of(hwloc_obj_t device);

#endif
