/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv --plan: the resources of a job of a given size, by the library's own allocation
 * functions (conduit/start/plan.h). */
#ifndef TRUNKLINE_SPAWNER_PLAN_H
#define TRUNKLINE_SPAWNER_PLAN_H

#include "options.h"

#include <stdbool.h>

/* Prints the table. False: a value of the command line or of a setting is wrong, which was
 * reported. */
bool plan_print(const struct options *o);

#endif
