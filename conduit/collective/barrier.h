/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Barriers over all processes of the job; any number may be in progress. Thread-safe in PAR, but
 * all processes must start them in the same order, as the interface requires. */
#ifndef TK_BARRIER_H
#define TK_BARRIER_H

#include "base/status.h"
#include "op/op.h"

/* Before any communication. */
void tk_barrier_open(void);

/* Called after neighbours are connected, before any rank may send. A job of one rank need not call
 * it. */
enum tk_status tk_barrier_connect(void);

/* op->pending counts the barrier until all processes have started theirs. */
void tk_barrier_start(struct tk_op *op);

#endif
