/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of settings as text for people; linked into the launcher too, so it needs nothing but
 * the table. */
#include "config.h"

#include <string.h>

#include "settings/settings.h"

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
        fprintf(out, "default %s; read by the tools when needed",
                s->text_def[0] ? s->text_def : "(empty)");
        break;
    case TK_SETTING_IGNORED:
        fprintf(out, "accepted, no effect");
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

void tk_settings_print(FILE *out)
{
    for (size_t i = 0; i < tk_setting_count; i++) {
        const struct tk_setting *s = &tk_setting_table[i];
        fprintf(out, "%s\n    (", s->name);
        print_default(out, s);
        fprintf(out, "%s)\n    %s\n", scope_text(s), s->help);
    }
}
