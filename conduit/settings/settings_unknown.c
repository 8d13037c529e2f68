/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unknown GASNET_* names: a misspelt variable would silently have no effect, which costs users
 * days. No state. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"

enum {
    name_max = 64, /* longer than every name of the table */
    near = 4       /* edits up to which a known name is worth suggesting */
};

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Levenshtein distance, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[name_max + 1];
    size_t length = strlen(b);
    if (length > name_max || strlen(a) > name_max)
        return name_max;
    for (size_t j = 0; j <= length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= length; j++) {
            unsigned above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

static bool setting_is_known(const char *name)
{
    if (tk_setting_is_numbered(name))
        return true;
    for (size_t i = 0; i < tk_setting_count; i++)
        if (!strcmp(name, tk_setting_table[i].name))
            return true;
    return false;
}

static const char *nearest_to(const char *name)
{
    const char *best = NULL;
    unsigned least = near + 1;
    for (size_t i = 0; i < tk_setting_count; i++) {
        unsigned edits = distance(name, tk_setting_table[i].name);
        if (edits < least) {
            least = edits;
            best = tk_setting_table[i].name;
        }
    }
    return best;
}

void tk_settings_unknown(char *const *env, void (*report)(const char *name, const char *nearest))
{
    for (; env && *env; env++) {
        const char *equals = strchr(*env, '=');
        if (strncmp(*env, "GASNET_", 7) || !equals)
            continue;
        char *name = strndup(*env, (size_t)(equals - *env));
        if (name && !setting_is_known(name))
            report(name, nearest_to(name));
        free(name);
    }
}

void tk_settings_retired(void (*report)(const char *name, const char *help))
{
    for (size_t i = 0; i < tk_setting_count; i++)
        if (tk_setting_table[i].type == TK_SETTING_RETIRED &&
            !tk_setting_is_default(&tk_setting_table[i]))
            report(tk_setting_table[i].name, tk_setting_table[i].help);
}
