/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv --simulate: a job of a given size, as a simulation of events in which the functions
 * of the library and the launcher decide. Starts nothing. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_H
#define TRUNKLINE_SPAWNER_SIMULATE_H

#include "spawner/run/options.h"

#include <stdbool.h>

/* Prints the result. False: a value of the command line or of a setting is wrong, or there is no
 * memory, which was reported. */
bool simulate_run(const struct options *o);

#endif
