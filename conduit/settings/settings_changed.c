/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The settings that differ from their defaults, as JSON for statistics and reports. Owns nothing.
 * No lock. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "settings/settings.h"

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
