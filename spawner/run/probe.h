/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes for a usable RDMA port. */
#ifndef TRUNKLINE_SPAWNER_PROBE_H
#define TRUNKLINE_SPAWNER_PROBE_H

#include <stdbool.h>

/* True when a port in state ACTIVE is within reach of libibverbs. The probe runs in a child process
 * with a deadline and without standard files, because drivers have been seen to print and to hang.
 */
bool probe_active_port(void);

/* The same from sysfs, in microseconds: no driver is opened. */
bool probe_sysfs_active_port(void);

/* True when softhca is preloaded before libibverbs, or replaces it, in this process: the user
 * started the launcher on it. */
bool probe_is_software(void);

#endif
