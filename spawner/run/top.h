/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv --top: asks the launcher of a running job for the counters of its ranks each
 * second, and prints them. */
#ifndef TRUNKLINE_SPAWNER_TOP_H
#define TRUNKLINE_SPAWNER_TOP_H

#include "options.h"

/* Returns the exit status. */
int top_run(const struct options *options);

#endif
