/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The values in force as text, and the text of those on which all ranks must agree. Owns nothing.
 * No lock. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"

void tk_setting_format(const struct tk_setting *s, const struct tk_settings *values, char *out,
                       size_t size)
{
    const void *field = (const char *)values + s->offset;
    switch (s->type) {
    case TK_SETTING_INT:
        snprintf(out, size, "%lld", (long long)*(const int64_t *)field);
        break;
    case TK_SETTING_REAL:
        snprintf(out, size, "%g", *(const double *)field);
        break;
    case TK_SETTING_SIZE:
        snprintf(out, size, "%llu%s", (unsigned long long)*(const uint64_t *)field,
                 strcmp(s->unit, "B") ? "B" : ""); /* in a form that can be parsed again */
        break;
    case TK_SETTING_BOOL:
        snprintf(out, size, "%d", *(const bool *)field);
        break;
    case TK_SETTING_TEXT:
    case TK_SETTING_CHOICE:
        snprintf(out, size, "%s", *(const char *const *)field);
        break;
    case TK_SETTING_SWITCH:
        snprintf(out, size, "%s", s->text_def);
        break;
    case TK_SETTING_IGNORED:
    case TK_SETTING_RETIRED:
    case TK_SETTING_TOOLS:
        snprintf(out, size, "%s", "");
        break;
    }
}

char *tk_settings_job_text(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    /* Not a setting, but ranks must agree on it too: buffers and rings have this size. */
    fprintf(out, "--with-ibv-max-medium=%d\n", TK_MAX_MEDIUM);
    for (size_t i = 0; i < tk_setting_count; i++) {
        char value[256];
        if (tk_setting_table[i].scope != TK_SCOPE_JOB)
            continue;
        tk_setting_format(&tk_setting_table[i], &tk_settings, value, sizeof(value));
        fprintf(out, "%s=%s\n", tk_setting_table[i].name, value);
    }
    fclose(out);
    return text;
}

/* FNV-1a, 64 bits: only has to detect accidental differences. */
uint64_t tk_settings_job_hash(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    char *text = tk_settings_job_text();
    for (const char *at = text; at && *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    free(text);
    return hash;
}
