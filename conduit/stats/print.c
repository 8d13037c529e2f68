/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of counters as plain text and as the body of a manual page; linked into the launcher
 * alone. No state. */
#include "config.h"

#include "stats/table.h"

/* A hyphen must not become a line break. */
static void man_text(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, *text == '-' ? "\\-" : "%c", *text);
}

static void plain_text(FILE *out, const char *text)
{
    fputs(text, out);
}

struct page {
    void (*text)(FILE *out, const char *text);
    const char *before_class, *after_class, *before_row, *after_row, *end;
};

static void print_row(FILE *out, const struct page *page, const struct tk_stats_row *row)
{
    fputs(page->before_row, out);
    page->text(out, row->id);
    fputs(page->after_row, out);
    page->text(out, row->name);
    fputs(", in ", out);
    page->text(out, row->unit);
    fputs(row->is_path ? " by size: " : ": ", out);
    page->text(out, row->sentence);
    fputs(page->end, out);
}

static void print_page(FILE *out, const struct page *page)
{
    for (unsigned i = 0; i < tk_stats_class_count; i++) {
        const struct tk_stats_class *class = &tk_stats_classes[i];
        fprintf(out, "%s%c, ", page->before_class, class->letter);
        page->text(out, class->name);
        fputs(page->after_class, out);
        page->text(out, class->sentence);
        fputs(page->end, out);
        for (unsigned k = 0; k < tk_stats_row_count; k++)
            if (tk_stats_rows[k].letter == class->letter)
                print_row(out, page, &tk_stats_rows[k]);
    }
}

void tk_stats_table_print(FILE *out)
{
    static const struct page plain = {plain_text, "", ": ", "    ", "\n        ", "\n"};
    print_page(out, &plain);
}

void tk_stats_table_print_man(FILE *out)
{
    static const struct page man = {man_text, ".SS ", "\n", ".TP\n.B ", "\n", ".\n"};
    print_page(out, &man);
}
