/* SPDX-License-Identifier: BSD-3-Clause */
/* The gate between the PMIx server's TCP port and libpmix. libpmix 4.2 reads the first bytes of a
 * connection in its only thread, without a time limit: any process of the host that connects and
 * sends nothing would stop the job. The launcher's executable therefore defines accept(),
 * accept4(), recv(), read() and send() itself; the dynamic linker finds these before libc's.
 *
 * accept() closes at once a connection that another user's process has opened. What else was
 * accepted has a deadline for its first message: after it recv() and read() report end of file
 * instead of blocking. */
#ifndef TRUNKLINE_SPAWNER_GATE_H
#define TRUNKLINE_SPAWNER_GATE_H

#include <stdint.h>

/* From now on connections are judged; before, and in processes that never call this, the functions
 * above do what libc's do. `first_ms` is the time from accept() to the end of the first message.
 * One call, before any other thread exists. */
void gate_close(int64_t first_ms);

#endif
