/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The named barrier of the interface: notify, wait, and a name that all have to agree on. One at a
 * time; it may overlap with any other barrier. In PAR any thread may do each step. */
#ifndef TK_NAMED_H
#define TK_NAMED_H

#include <stdbool.h>

#include "base/status.h"

/* Before any communication. */
void tk_named_open(void);

/* Called after neighbours are connected, before any rank may send. A job of one rank need not call
 * it. */
enum tk_status tk_named_connect(void);

/* Returns false and does nothing if the last barrier has not been waited for. */
bool tk_named_notify(int id, int flags);

/* Whether a barrier was notified and not yet waited for. */
bool tk_named_pending(void);

/* Whether all processes have notified. */
bool tk_named_done(void);
void tk_named_wait(void);

/* Ends a barrier that is done. False: the names differ, among processes or from this name. */
bool tk_named_end(int id, int flags);

/* The name that the last completed barrier agreed on; false if it did not agree on a name. */
bool tk_named_result(int *id);

#endif
