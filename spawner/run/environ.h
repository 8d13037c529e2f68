/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of the launcher and of what it starts. Works on the process's own environment,
 * before any other process or thread exists; no lock. */
#ifndef TRUNKLINE_SPAWNER_ENVIRON_H
#define TRUNKLINE_SPAWNER_ENVIRON_H

#include <stdbool.h>
#include <stdint.h>

#include "settings/settings.h"

/* Removes what another PMIx server left for its own ranks (PMIX_*, but not the parameters
 * PMIX_MCA_*). */
void environ_forget_pmix(void);

/* Applies the rule of all settings (blanks around a value do not count, an empty value is none) to
 * this process's environment and reads those that the launcher obeys, by the library's own parser;
 * *out has the defaults of the others. Prints what is wrong and returns false. */
bool environ_load(struct tk_settings *out);

/* Seconds to ms, rounded up. */
uint32_t environ_ms(double seconds);

/* True when a setting of type truth is set to something that means yes. */
bool environ_is_yes(const char *name);

#endif
