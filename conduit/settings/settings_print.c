/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of settings as text for people; linked into the launcher too, so it needs nothing but
 * the table. */
#include "config.h"

#include <string.h>

#include "settings/settings.h"

enum { line_width = 110 };

static void print_default(FILE *out, const struct tk_setting *s)
{
    switch (s->type) {
    case TK_SETTING_TEXT:
        fprintf(out, "default %s", s->text_def[0] ? s->text_def : "(empty)");
        break;
    case TK_SETTING_CHOICE:
        fprintf(out, "default %s; one of %s", s->text_def, s->words);
        break;
    case TK_SETTING_BOOL:
        fprintf(out, "default %d; 0 or 1", (int)s->def);
        break;
    case TK_SETTING_TOOLS:
    case TK_SETTING_SWITCH:
        fprintf(out, "default %s%s; read by the tools when needed",
                s->text_def[0] ? s->text_def : "(empty)",
                s->type == TK_SETTING_SWITCH ? "; 0 or 1" : "");
        break;
    case TK_SETTING_IGNORED:
        break;
    case TK_SETTING_SIZE:
        fprintf(out, "default %.15g; %.15g..%.15g B", s->def, s->min, s->max);
        if (strcmp(s->unit, "B") != 0)
            fprintf(out, "; in %s without a suffix", s->unit);
        break;
    default:
        fprintf(out, "default %.15g; %.15g..%.15g %s", s->def, s->min, s->max, s->unit);
        break;
    }
}

static const char *scope_text(const struct tk_setting *s)
{
    if (s->scope == TK_SCOPE_JOB)
        return "; equal on all ranks";
    return s->scope == TK_SCOPE_LAUNCHER ? "; read by the launcher" : "";
}

static void print_setting(FILE *out, const struct tk_setting *s)
{
    fprintf(out, "%s\n    (", s->name);
    print_default(out, s);
    fprintf(out, "%s)\n    %s\n", scope_text(s), s->help);
}

/* Those that one reason covers follow each other in the table. Returns the first of the others. */
static size_t print_ignored(FILE *out, size_t i)
{
    const char *help = tk_setting_table[i].help;
    int column = fprintf(out, "%s", tk_setting_table[i].name);
    for (i++; i < tk_setting_count && !strcmp(tk_setting_table[i].help, help); i++) {
        const char *name = tk_setting_table[i].name;
        if (column + 2 + (int)strlen(name) > line_width)
            column = fprintf(out, ",\n%s", name) - 2;
        else
            column += fprintf(out, ", %s", name);
    }
    fprintf(out, "\n    (accepted, no effect)\n    %s\n", help);
    return i;
}

void tk_settings_print(FILE *out)
{
    for (size_t i = 0; i < tk_setting_count;) {
        if (tk_setting_table[i].type == TK_SETTING_IGNORED)
            i = print_ignored(out, i);
        else
            print_setting(out, &tk_setting_table[i++]);
    }
}
