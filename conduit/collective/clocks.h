/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clocks of the hosts of a job, measured against rank 0's clock for traces, when the job starts and
 * when all ranks leave. */
#ifndef TK_CLOCKS_H
#define TK_CLOCKS_H

/* Before any communication. */
void tk_clocks_open(void);

/* Called when messages can be sent to all peers and their infos have arrived; all ranks wait for
 * each other. Measures only on several hosts and if all ranks write traces. */
void tk_clocks_start(void);

#endif
