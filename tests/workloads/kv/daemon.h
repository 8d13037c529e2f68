/* SPDX-License-Identifier: BSD-3-Clause */
/* A foreign server as a child of this process: started at an address of its own, ended by its pid,
 * and killed by the kernel if this process dies. One at a time in a process. */
#ifndef KV_DAEMON_H
#define KV_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kv_address_max = 108 }; /* what fits into a sockaddr_un */

/* Is the program there? */
bool kv_daemon_installed(const char *name);

/* Starts memcached or redis (`name`) with space for `memory` bytes, on a Unix socket or a port of
 * the loopback. `address` becomes a path or "port N". False with one line in `why`. */
bool kv_daemon_start(const char *name, bool loopback, uint64_t memory, char *address, char *why,
                     size_t size);

/* A connection to such an address, waiting until it listens; -1 after `timeout_ms`, or when the
 * child of this process has ended before. Close-on-exec. */
int kv_daemon_connect(const char *address, int64_t timeout_ms);

/* The socket's name, when everybody is connected; nothing of it may outlive the processes. */
void kv_daemon_forget_name(void);

/* CPU time of the child in nanoseconds. */
uint64_t kv_daemon_cpu(void);

void kv_daemon_stop(void);

#endif
