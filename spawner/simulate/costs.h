/* SPDX-License-Identifier: BSD-3-Clause */
/* What things cost in a simulation: costs.def. Pure, but for reading the file. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_COSTS_H
#define TRUNKLINE_SPAWNER_SIMULATE_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_costs {
#define SIM_COST(field, name, value, unit, sentence) uint64_t field;
#include "costs.def"
#undef SIM_COST
};

void sim_costs_default(struct sim_costs *costs);

/* Lines "name value unit # comment". False: one is wrong, or there is no such file; one sentence in
 * `why`. */
bool sim_costs_read(struct sim_costs *costs, const char *file, char *why, size_t size);

/* Prints all of them in the form of the file. */
void sim_costs_print(const struct sim_costs *costs);

#endif
