/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard: one process per host that starts the PMIx server and the ranks, reaps them, and makes
 * sure that nothing of the job outlives it, not even when the launcher is killed with SIGKILL. It
 * is the sub-reaper of the job's processes and owns the session directory. One thread, no libpmix,
 * no lock. */
#ifndef TRUNKLINE_SPAWNER_GUARD_H
#define TRUNKLINE_SPAWNER_GUARD_H

#include <stdbool.h>

/* Runs the guard of a host in this process, which has no other task. `control` and `output` are its
 * sockets to the head, or to the guard above; the end of `control` means that those are gone. The
 * description of the job arrives on them. Never returns. */
void guard_run(int control, int output) __attribute__((noreturn));

/* guard_run() on another host. The end of `lifeline` means that the head, or the connection to it,
 * is gone. `has_port`: an active RDMA port is here. The name of the session directory, once it may
 * exist, is copied to `session`, which has SESSION_PATH_MAX bytes. */
void guard_run_remote(int control, int output, int lifeline, bool has_port, char *session)
    __attribute__((noreturn));

#endif
