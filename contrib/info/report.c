/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How sections, facts and findings are printed. Owns the list of findings. */
#include "config.h"

#include "contrib/info/bundle.h"
#include "contrib/info/info.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { findings_max = 256, text_max = 1000, name_width = 24 };

static const char *const grades[] = {
    [INFO_GOOD] = "ok", [INFO_ADVICE] = "advice", [INFO_WRONG] = "WRONG"};

static struct {
    enum info_grade grade;
    char *text;
} list[findings_max];
static unsigned count, by_grade[sizeof(grades) / sizeof(grades[0])];
static bool only_findings, in_bundle, is_first = true;

void info_only_findings(void)
{
    only_findings = true;
}

void info_in_bundle(void)
{
    in_bundle = true;
}

void info_section(const char *title)
{
    if (only_findings || in_bundle)
        return;
    printf("%s%s\n", is_first ? "" : "\n", title);
    is_first = false;
}

void info_fact(const char *name, const char *format, ...)
{
    va_list arguments;
    char text[text_max];
    if (only_findings)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (in_bundle)
        bundle_fact(*name ? name : "more", "%s", text);
    else
        printf("  %-*s %s\n", name_width, name, text);
}

void info_finding(enum info_grade grade, const char *format, ...)
{
    char text[text_max];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    by_grade[grade]++;
    if (only_findings) {
        printf("%-6s  %s\n", grades[grade], text);
    } else if (grade != INFO_GOOD && count < findings_max) {
        list[count].grade = grade;
        list[count++].text = strdup(text);
    }
}

void info_print_findings(void)
{
    if (count > 0)
        info_section("What to look at (trunkline_info --check)");
    for (unsigned i = 0; i < count; i++) {
        if (in_bundle)
            bundle_fact(grades[list[i].grade], "%s", list[i].text ? list[i].text : "");
        else
            printf("  %-6s  %s\n", grades[list[i].grade], list[i].text ? list[i].text : "");
        free(list[i].text);
    }
    count = 0;
}

unsigned info_findings(enum info_grade grade)
{
    return by_grade[grade];
}

bool info_read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool is_read = file && fgets(line, (int)size, file);
    if (file)
        fclose(file);
    if (is_read)
        line[strcspn(line, "\n")] = 0;
    return is_read;
}
