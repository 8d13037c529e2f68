/* SPDX-License-Identifier: BSD-3-Clause */
/* The gate between the PMIx server's TCP port and libpmix. libpmix 4.2 reads the first bytes of a
 * connection in its only thread, without a time limit: any process of the host that connects and
 * sends nothing would stop the job. The launcher's executable therefore defines accept(),
 * accept4(), recv(), read() and send() itself; the dynamic linker finds these before libc's.
 *
 * accept() closes a connection at once unless it is shown to belong to a process of our user; an
 * owner that is unknown, or has ended already, counts as another user. Every other connection has a
 * deadline for its first message. The gate reads this message itself and gives it to libpmix if
 * that will accept it (handshake.h); otherwise, and after the deadline, recv() and read() report
 * end of file. */
#ifndef TRUNKLINE_SPAWNER_GATE_H
#define TRUNKLINE_SPAWNER_GATE_H

#include "handshake.h"

#include <stdbool.h>
#include <stdint.h>

/* From now on the gate checks connections; before, and in processes that never call this, the
 * functions above do what libc's do. `first_ms` is the time from accept() to the end of the first
 * message. One call, before any other thread exists. False: no memory. */
bool gate_close(int64_t first_ms);

/* Sets the rules for admitting connections; before this call the gate admits none. `rules` and its
 * strings stay the caller's and must not change any more. */
void gate_open(const struct handshake_rules *rules);

#endif
