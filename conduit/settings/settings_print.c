/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of settings as plain text and as the body of a manual page; linked into the launcher
 * too, so it needs nothing but the table. */
#include "config.h"

#include <string.h>

#include "settings/settings.h"

enum { line_width = 110 };

/* Format of a page: text() may have to escape what the page's language would interpret. */
struct page {
    void (*group)(FILE *out, const char *title);
    void (*text)(FILE *out, const char *text);
    const char *before_name, *after_name, *indent, *after_facts, *after_help;
};

/* The groups and rows of settings.def in their order; titles of groups begin with '='. */
static const char *const order[] = {
#define TK_GROUP(title)                                        "=" title,
#define TK_INT(field, name, def, min, max, unit, scope, help)  name,
#define TK_REAL(field, name, def, min, max, unit, scope, help) name,
#define TK_SIZE(field, name, def, min, max, unit, scope, help) name,
#define TK_BOOL(field, name, def, scope, help)                 name,
#define TK_TEXT(field, name, def, scope, help)                 name,
#define TK_FORM(field, name, def, form, scope, help)           name,
#define TK_CHOICE(field, name, def, words, scope, help)        name,
#define TK_ONE_OF(field, name, def, words, unit, scope, help)  name,
#define TK_IGNORED(name, help)                                 name,
#define TK_RETIRED(name, help)                                 name,
#define TK_TOOLS(name, def, form, help)                        name,
#define TK_SWITCH(name, def, help)                             name,
#include "settings/settings.def"
};

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
    case TK_SETTING_RETIRED:
        break;
    case TK_SETTING_SIZE:
        fprintf(out, "default %.15g; %.15g..%.15g B", s->def, s->min, s->max);
        if (strcmp(s->unit, "B") != 0)
            fprintf(out, "; in %s without a suffix", s->unit);
        break;
    default:
        if (s->words)
            fprintf(out, "default %.15g; one of %s %s", s->def, s->words, s->unit);
        else
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

static void print_setting(FILE *out, const struct page *page, const struct tk_setting *s)
{
    char facts[512] = "";
    FILE *text = fmemopen(facts, sizeof(facts), "w");

    if (text) {
        print_default(text, s);
        fputs(scope_text(s), text);
        fclose(text);
    }
    fprintf(out, "%s%s%s%s(", page->before_name, s->name, page->after_name, page->indent);
    page->text(out, facts);
    fprintf(out, ")%s%s", page->after_facts, page->indent);
    page->text(out, s->help);
    fputs(page->after_help, out);
}

/* Consecutive rows with the same reason are printed as one. Returns the row after them. */
static size_t print_ignored(FILE *out, const struct page *page, size_t i)
{
    const char *help = tk_setting_table[i].help;
    int column = fprintf(out, "%s%s", page->before_name, tk_setting_table[i].name);
    for (i++; i < tk_setting_count && !strcmp(tk_setting_table[i].help, help); i++) {
        const char *name = tk_setting_table[i].name;
        if (!*page->before_name && column + 2 + (int)strlen(name) > line_width)
            column = fprintf(out, ",\n%s", name) - 2;
        else
            column += fprintf(out, ", %s", name);
    }
    fprintf(out, "%s%s(accepted, no effect)%s%s", page->after_name, page->indent, page->after_facts,
            page->indent);
    page->text(out, help);
    fputs(page->after_help, out);
    return i;
}

static void print_page(FILE *out, const struct page *page)
{
    size_t row = 0;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if (order[i][0] == '=')
            page->group(out, order[i] + 1);
        else if (row == tk_setting_count || strcmp(order[i], tk_setting_table[row].name) != 0)
            continue; /* printed with the row before it */
        else if (tk_setting_table[row].type == TK_SETTING_IGNORED ||
                 tk_setting_table[row].type == TK_SETTING_RETIRED)
            row = print_ignored(out, page, row);
        else
            print_setting(out, page, &tk_setting_table[row++]);
    }
}

static void plain_group(FILE *out, const char *title)
{
    fprintf(out, "%s%s\n\n", title == order[0] + 1 ? "" : "\n", title);
}

static void plain_text(FILE *out, const char *text)
{
    fputs(text, out);
}

void tk_settings_print(FILE *out)
{
    static const struct page plain = {plain_group, plain_text, "", "\n", "    ", "\n", "\n"};
    print_page(out, &plain);
}

static void man_group(FILE *out, const char *title)
{
    fprintf(out, ".SS %s\n", title);
}

/* A hyphen of an option or a number must not become a line break, and a backslash begins an escape.
 */
static void man_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else
            fputc(*text, out);
    }
}

void tk_settings_print_man(FILE *out)
{
    static const struct page man = {man_group, man_text, ".TP\n.B ", "\n", "", "\n.br\n", "\n"};
    print_page(out, &man);
}
