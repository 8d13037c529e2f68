/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unknown GASNET_* names: a misspelt variable would silently have no effect, which costs users
 * days. No state. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"

enum { name_max = 64 /* longer than every name of the table */ };

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* The number of insertions, removals, replacements and swaps of neighbouring characters that turn
 * `a` into `b`; only the two previous rows of the table are needed. */
static unsigned distance(const char *a, const char *b)
{
    unsigned rows[3][name_max + 1];
    size_t length = strlen(b), height = strlen(a);
    if (length > name_max || height > name_max)
        return name_max;
    for (size_t i = 0; i <= height; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= length; j++) {
            if (i == 0) {
                row[j] = (unsigned)j;
                continue;
            }
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return rows[height % 3][length];
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

/* A suggestion should be a misspelling of the same word: shorter names may differ less. */
static unsigned slips_max(const char *word)
{
    return 1 + (unsigned)strlen(word) / 6;
}

static bool has_effect(const struct tk_setting *s)
{
    return s->type != TK_SETTING_IGNORED && s->type != TK_SETTING_RETIRED;
}

static const char *nearest_to(const char *name)
{
    const size_t prefix = strlen("GASNET_");
    const char *best = NULL;
    unsigned least = slips_max(name + prefix) + 1;
    for (size_t i = 0; i < tk_setting_count; i++) {
        const struct tk_setting *s = &tk_setting_table[i];
        unsigned slips = distance(name + prefix, s->name + prefix);
        if (slips < least && has_effect(s)) {
            least = slips;
            best = s->name;
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
