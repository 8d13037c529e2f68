/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations that a client started and did not sync, for debug builds: each operation that became
 * an event, and each counter of implicit operations, with the call that began it. Other builds
 * never call it. Under a lock of its own. */
#ifndef TK_UNSYNCED_H
#define TK_UNSYNCED_H

#include <stdbool.h>

struct tk_op;

/* The client's current call has taken `op`. A freed operation is no longer open, so freeing needs
 * no call. */
void tk_unsynced_taken(struct tk_op *op);

/* The first: one more implicit operation is counted in `op`. The second: all of them have been
 * synced. */
void tk_unsynced_implicit(struct tk_op *op);
void tk_unsynced_synced(struct tk_op *op);

/* Prints a line for events and one for implicit operations, if there are any. */
void tk_unsynced_report(void);

#endif
