/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the GASNet-1 tests: a job that was started by gasnet_init(), with the helpers of
 * job.h. Owned by the one client thread. */
#ifndef TESTS_LEGACY_H
#define TESTS_LEGACY_H

#include "gasnet.h"

#include "job.h"

enum { MAX_RANKS = 16, SLOT = 256 * 1024, SEGMENT = MAX_RANKS * SLOT };

/* `offset` bytes into our slot of a rank's segment. */
char *legacy_slot(gasnet_node_t node, size_t offset);

/* Where the slot of `from` lies in our own segment. */
char *legacy_my_slot(gasnet_node_t from);

void legacy_barrier(void);

/* legacy_am.c: its handlers' table, and the tests. */
gasnet_handlerentry_t *legacy_am_table(int *count);
void legacy_am(void);

/* legacy_rma.c */
void legacy_rma(void);

/* legacy_vis.c */
void legacy_vis(void);

#endif
