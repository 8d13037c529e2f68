/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv --simulate: a job of a given size, as a simulation of events in which the functions
 * of the library and the launcher decide. Starts nothing. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_H
#define TRUNKLINE_SPAWNER_SIMULATE_H

#include "spawner/run/options.h"

/* Prints the result. Returns the status of the launcher, not 0 if something failed, which was
 * reported. */
int simulate_run(const struct options *o);

#endif
