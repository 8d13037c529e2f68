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

/* A program's environment need not be UTF-8: other bytes are escaped, as in all our JSON. */
static void quote(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c >= 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    fputc('"', out);
}

bool tk_setting_is_of_launcher(const char *value)
{
    const char *session = tk_getenv("TRUNKLINE_SESSION");
    return session && *session && !strncmp(value, session, strlen(session));
}

static bool is_changed(const struct tk_setting *s, char *value, size_t size)
{
    struct tk_settings defaults;
    char by_default[256];
    if (s->type >= TK_SETTING_IGNORED)
        return false;
    tk_setting_reset(s, &defaults);
    tk_setting_format(s, &defaults, by_default, sizeof(by_default));
    tk_setting_format(s, &tk_settings, value, size);
    return strcmp(value, by_default) != 0 && !tk_setting_is_of_launcher(value);
}

char *tk_settings_changed_json(void)
{
    char *text = NULL, value[256];
    size_t size = 0;
    const char *before = "";
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < tk_setting_count; i++) {
        if (!is_changed(&tk_setting_table[i], value, sizeof(value)))
            continue;
        fputs(before, out);
        quote(out, tk_setting_table[i].name);
        fputc(':', out);
        quote(out, value);
        before = ",";
    }
    fclose(out);
    return text;
}
