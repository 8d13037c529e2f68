/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of the launcher and of what it starts. Works on the process's own environment,
 * before any other process or thread exists; no lock. */
#ifndef TRUNKLINE_SPAWNER_ENVIRON_H
#define TRUNKLINE_SPAWNER_ENVIRON_H

#include <stdbool.h>
#include <stdint.h>

#include "spawner/util/job.h"
#include "settings/settings.h"

/* Removes variables that another PMIx server set for its own ranks (PMIX_*, but not the parameters
 * PMIX_MCA_*). */
void environ_forget_pmix(void);

/* Applies the rule of all settings (blanks around a value do not count, an empty value is none) to
 * this process's environment and reads all of it by the library's own parser; unset settings get
 * their defaults of settings.def. Prints errors, including those in settings that only ranks use,
 * and returns false: then no rank is started. */
bool environ_load(struct tk_settings *out);

/* Whether the user gave this setting a value; valid after environ_load(). */
bool environ_is_set(const char *name);

/* That value; NULL: there is none. */
const char *environ_value(const char *name);

/* Fills the time limits of a job. A reader at a terminal may take any time over a page,
 * and can end the job by ^C: the limit for readers counts there only if the user has set it. */
void environ_set_limits(struct job *job, const struct tk_settings *s, bool is_terminal);

/* Whether a variable, as NAME=value, is one that goes to other hosts: settings, the names in
 * `exported` (-E; may be NULL), libpmix's parameters, and the variables that load softhca. */
bool environ_travels(const char *entry, const char *exported);

/* This process's variables that go there, in an array of its own, NULL-terminated; NULL without
 * memory. */
char **environ_select(const char *exported);

/* The parent of the session directory. */
const char *environ_session_parent(const struct tk_settings *s);

#endif
