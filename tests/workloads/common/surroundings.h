/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a workload: a figure without it is meaningless. */
#ifndef WL_SURROUNDINGS_H
#define WL_SURROUNDINGS_H

#include <stdbool.h>
#include <stddef.h>

/* CPUs that this process may use. */
int wl_cpus(void);

void wl_host_name(char *text, size_t size);

/* Names of the RDMA devices that this process sees, with commas between; "none". */
void wl_provider(char *text, size_t size);

/* Active ports of all of them. */
int wl_ports(void);

/* True when any of the devices is software. */
bool wl_software_rdma(void);

#endif
