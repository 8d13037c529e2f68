/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The values in force: defaults, then the environment. Owns tk_settings and the copies of texts in
 * it. No lock: start-up is single-threaded and nothing is written later. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "settings/settings.h"

struct tk_settings tk_settings;

bool tk_setting_is_default(const struct tk_setting *s)
{
    size_t length = 0;
    const char *value = tk_getenv(s->name);
    if (value)
        tk_setting_trim(value, &length);
    return length == 0;
}

static void log_refusal(const char *line)
{
    tk_log_error("%s", line);
}

enum tk_status tk_settings_load(char *const *env)
{
    return tk_settings_parse(env, &tk_settings, log_refusal);
}

bool tk_setting_is_of_launcher(const char *value)
{
    const char *session = tk_getenv("TRUNKLINE_SESSION");
    return session && *session && !strncmp(value, session, strlen(session));
}
