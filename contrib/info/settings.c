/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The settings that a job started in this environment would have, and the origin of each. Owns the
 * flag that one was refused. */
#include "config.h"

#include "contrib/info/info.h"
#include "settings/settings.h"

#include <stdio.h>

static bool has_effect(const struct tk_setting *s)
{
    return s->type != TK_SETTING_IGNORED && s->type != TK_SETTING_RETIRED;
}

static bool is_of_tools(const struct tk_setting *s)
{
    return s->type == TK_SETTING_TOOLS || s->type == TK_SETTING_SWITCH;
}

static void print_setting(const struct tk_setting *s)
{
    char value[512];
    bool is_default = tk_setting_is_default(s);
    if (is_of_tools(s) && !is_default)
        snprintf(value, sizeof(value), "%s", tk_getenv(s->name));
    else
        tk_setting_format(s, &tk_settings, value, sizeof(value));
    info_fact(s->name, "%s  (%s)", value[0] ? value : "(empty)",
              is_default ? "default of this build" : "environment");
}

static void unknown_finding(const char *name, const char *nearest)
{
    info_finding(INFO_ADVICE, "%s is not a setting of this library%s%s%s", name,
                 nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static void find_useless(void)
{
    for (size_t i = 0; i < tk_setting_count; i++) {
        const struct tk_setting *s = &tk_setting_table[i];
        if (!has_effect(s) && !tk_setting_is_default(s))
            info_finding(INFO_ADVICE, "%s is set and has no effect: %s", s->name, s->help);
    }
    tk_settings_unknown(tk_environment(), unknown_finding);
}

static bool is_refused;

bool info_read_settings(void)
{
    tk_environment_open();
    is_refused = tk_settings_load(tk_environment()) != TK_OK;
    return !is_refused;
}

bool info_refused_settings(void)
{
    return is_refused;
}

void info_settings(bool all)
{
    bool is_good = info_read_settings();
    unsigned printed = 0;
    info_section(all ? "Settings" : "Settings of this environment (--settings: all)");
    for (size_t i = 0; i < tk_setting_count; i++) {
        const struct tk_setting *s = &tk_setting_table[i];
        if (!has_effect(s) || (!all && tk_setting_is_default(s)))
            continue;
        print_setting(s);
        printed++;
    }
    if (printed == 0)
        info_fact("none", "all settings have their defaults");
    if (is_good)
        info_finding(INFO_GOOD, "the settings of this environment are valid");
    else
        info_finding(INFO_WRONG, "a setting has a value that is not legal (see the line above): "
                                 "every job of this environment would end at its start");
    find_useless();
}
