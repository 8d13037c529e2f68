/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clocks of the hosts of a job, measured against that of rank 0 for traces, when the job starts and
 * when all ranks leave. */
#ifndef TK_CLOCKS_H
#define TK_CLOCKS_H

/* Before any communication. */
void tk_clocks_open(void);

/* When all peers can be sent to, and their infos are there; all ranks wait for each other. Nothing
 * is measured on one host, or unless all ranks write traces. */
void tk_clocks_start(void);

#endif
