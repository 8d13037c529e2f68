/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The values in force as text, and the text of those on which all ranks must agree. Owns nothing.
 * No lock. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"

enum { text_max = 256 };

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
        char value[text_max];
        if (tk_setting_table[i].scope != TK_SCOPE_JOB)
            continue;
        tk_setting_format(&tk_setting_table[i], &tk_settings, value, sizeof(value));
        fprintf(out, "%s=%s\n", tk_setting_table[i].name, value);
    }
    fclose(out);
    return text;
}

/* FNV-1a, 64 bits: only has to detect accidental differences. */
static uint64_t hash_add(uint64_t hash, const void *bytes, size_t size)
{
    for (const unsigned char *at = bytes; size > 0; at++, size--)
        hash = (hash ^ *at) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_add(hash_add(hash, text, strnlen(text, text_max - 1)), "", 1);
}

/* Two values have the same hash if they have the same text. Each rank hashes all of them at its
 * start, and few are formatted for it. */
static uint64_t hash_setting(uint64_t hash, const struct tk_setting *s)
{
    const void *field = (const char *)&tk_settings + s->offset;
    char text[text_max];
    switch (s->type) {
    case TK_SETTING_INT:
    case TK_SETTING_SIZE:
        return hash_add(hash, field, sizeof(uint64_t));
    case TK_SETTING_BOOL:
        return hash_add(hash, field, sizeof(bool));
    case TK_SETTING_TEXT:
    case TK_SETTING_CHOICE:
        return hash_text(hash, *(const char *const *)field);
    default:
        tk_setting_format(s, &tk_settings, text, sizeof(text));
        return hash_text(hash, text);
    }
}

uint64_t tk_settings_job_hash(void)
{
    const int medium = TK_MAX_MEDIUM;
    uint64_t hash = hash_add(0xcbf29ce484222325u, &medium, sizeof(medium));
    for (size_t i = 0; i < tk_setting_count; i++)
        if (tk_setting_table[i].scope == TK_SCOPE_JOB)
            hash = hash_setting(hash, &tk_setting_table[i]);
    return hash;
}
