/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the user whose process has connected to us over TCP on this host: the kernel knows the
 * owner of the other end's socket. Owns nothing, takes no lock. */
#ifndef TRUNKLINE_SPAWNER_OWNER_H
#define TRUNKLINE_SPAWNER_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user that owns the socket at the other end of the TCP socket `fd`. True is a proof: the
 * connection was established, at both ends, when the answer was found. False when it cannot be
 * found out: the peer is on another host, has closed or reset the connection, or the kernel has
 * neither socket diagnosis nor /proc/net. */
bool owner_of_peer(int fd, uid_t *uid);

/* The second of the two methods, by /proc/net/tcp and tcp6; for tests. */
bool owner_by_proc(int fd, uid_t *uid);

/* Whether this host shows who owns a connection: tried with one of our own. Also true where that
 * can't be tried, without a loopback interface. */
bool owner_is_shown(void);

#endif
