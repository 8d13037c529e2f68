/* SPDX-License-Identifier: BSD-3-Clause */
/* How many ranks each host gets. Ranks are numbered in blocks by host, in the order of the list.
 * Pure: owns nothing, no lock. */
#ifndef TRUNKLINE_SPAWNER_LAYOUT_H
#define TRUNKLINE_SPAWNER_LAYOUT_H

#include "host_list.h"

/* Fills counts[i] for each host of the list, which is not empty; 0: the host is not used. `wanted`
 * is the number of hosts to use (-N), 0: chosen by these rules: a list without numbers   ranks
 * are spread evenly over all hosts, or the first `wanted` a list with numbers      hosts are filled
 * up in order; with `wanted` the ranks are spread evenly over the first hosts, but no host gets
 * more than its number False: they do not fit, and why. */
bool layout_make(const struct host_list *list, uint32_t ranks, uint32_t wanted, uint32_t *counts,
                 char *why, size_t size);

#endif
