/* SPDX-License-Identifier: BSD-3-Clause */
/* The network over which softhca reaches the other hosts of a job: the one on which their guards
 * called back, because it is known to work. Start of the job only; no lock. */
#ifndef TRUNKLINE_SPAWNER_NETWORK_H
#define TRUNKLINE_SPAWNER_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

/* The IPv4 network "a.b.c.d/n" of this end of a connected socket; false where it is on the loopback
 * interface, speaks IPv6 or is no network socket. */
bool network_of_socket(int fd, char *text, size_t size);

#endif
