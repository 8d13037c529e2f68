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

/* After neighbours are connected, before anybody may send. A job of one need not. */
enum tk_status tk_named_connect(void);

/* False, and nothing done, when the last one has not been waited for. */
bool tk_named_notify(int id, int flags);

/* Whether there is one that was notified and not yet waited for. */
bool tk_named_pending(void);

/* Whether all processes have notified. */
bool tk_named_done(void);
void tk_named_wait(void);

/* Ends one that is done: false when names differ, among processes or from this one. */
bool tk_named_end(int id, int flags);

/* What the last one that ended agreed on: false when it was no name. */
bool tk_named_result(int *id);

#endif
