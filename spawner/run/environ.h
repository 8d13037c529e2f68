/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of the launcher and of what it starts. Works on the process's own environment,
 * before any other process or thread exists; no lock. */
#ifndef TRUNKLINE_SPAWNER_ENVIRON_H
#define TRUNKLINE_SPAWNER_ENVIRON_H

#include <stdbool.h>
#include <stdint.h>

/* Removes what another PMIx server left for its own ranks (PMIX_*, but not the parameters
 * PMIX_MCA_*). */
void environ_forget_pmix(void);

/* A number of seconds from the environment, in ms. Prints what is wrong and returns false. */
bool environ_seconds(const char *name, uint32_t fallback, uint32_t most, uint32_t *ms);

/* True when the variable is set to something that means yes. */
bool environ_is_yes(const char *name);

/* Is it unset, empty, or a yes or no as the library spells them? Prints what is wrong. */
bool environ_is_truth(const char *name);

#endif
