/* SPDX-License-Identifier: BSD-3-Clause */
/* A guard that ssh has started on this host: the hidden mode `gasnetrun_ibv --guard ADDRESSES:PORT
 * HOST`. It reads the secret of the job from standard input, calls back, and becomes a guard like
 * any other. One thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_REMOTE_H
#define TRUNKLINE_SPAWNER_REMOTE_H

#include <stdbool.h>

/* `has_port` looks for an active RDMA port; it is called once the connection is there. Returns an
 * exit status when the guard could not begin, after a line on standard error. */
int remote_run(const char *addresses, const char *host, bool (*has_port)(void));

#endif
