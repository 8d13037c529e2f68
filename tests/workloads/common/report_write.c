/* SPDX-License-Identifier: BSD-3-Clause */
/* A report as text, JSON and CSV; see report.h. Owns nothing. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report_private.h"

static const char *const section_names[wl_sections] = {"params", "env", "summary", "verify"};

static const char *status_of(const struct wl_run *run)
{
    return run->failed ? "FAIL" : "PASS";
}

/* A line for each interval where ranks are listed; else only the file has them. */
static void print_intervals(const struct wl_run *run, FILE *file)
{
    for (size_t i = 0; i < run->interval_count; i++) {
        const struct wl_interval *interval = &run->intervals[i];
        if (!interval->role_count)
            continue;
        fprintf(file, "interval %.3f s  %.4f Mops", interval->at_s, interval->mops);
        for (size_t role = 0; role < interval->role_count; role++) {
            fprintf(file, "  %s", interval->roles[role].name);
            for (size_t rank = 0; rank < interval->roles[role].count; rank++)
                fprintf(file, " %.4f", interval->roles[role].mops[rank]);
        }
        fputc('\n', file);
    }
}

static void print_run(const struct wl_run *run, FILE *file)
{
    for (int section = 0; section < wl_sections; section++)
        for (size_t i = 0; i < run->count; i++) {
            const struct wl_entry *entry = &run->entries[i];
            bool empty = entry->quoted && !*entry->value;
            if ((int)entry->section == section && !empty)
                fprintf(file, "%-8s %-28s %s\n", section_names[section], entry->key, entry->value);
        }
    print_intervals(run, file);
    fprintf(file, "%s\n", status_of(run));
}

void wl_report_print(const struct wl_report *r, FILE *file)
{
    for (size_t i = 0; i < r->count; i++) {
        fprintf(file, "%s %s%s\n", r->workload, r->version, i ? ", next run" : "");
        print_run(&r->runs[i], file);
    }
}

static const char *value_of(const struct wl_run *run, const char *key)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->entries[i].section == wl_summary && !strcmp(run->entries[i].key, key))
            return run->entries[i].value;
    return "-";
}

static int width_of(const struct wl_report *r, const char *key)
{
    size_t width = strlen(key);
    for (size_t i = 0; i < r->count; i++) {
        size_t length = strlen(value_of(&r->runs[i], key));
        width = length > width ? length : width;
    }
    return (int)width;
}

void wl_report_print_table(const struct wl_report *r, const char *const *columns, FILE *file)
{
    for (size_t c = 0; columns[c]; c++)
        fprintf(file, "%*s  ", width_of(r, columns[c]), columns[c]);
    fputs("verify\n", file);
    for (size_t i = 0; i < r->count; i++) {
        for (size_t c = 0; columns[c]; c++)
            fprintf(file, "%*s  ", width_of(r, columns[c]), value_of(&r->runs[i], columns[c]));
        fprintf(file, "%s\n", status_of(&r->runs[i]));
    }
}

static void json_string(const char *text, FILE *file)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(file, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, file);
    }
    fputc('"', file);
}

static void json_section(const struct wl_run *run, int section, FILE *file)
{
    const char *comma = "";
    fprintf(file, "  \"%s\": {", section_names[section]);
    for (size_t i = 0; i < run->count; i++) {
        const struct wl_entry *entry = &run->entries[i];
        if ((int)entry->section != section)
            continue;
        fprintf(file, "%s\n    ", comma);
        json_string(entry->key, file);
        fputs(": ", file);
        if (entry->quoted)
            json_string(entry->value, file);
        else
            fputs(entry->value, file);
        comma = ",";
    }
    fputs("\n  },\n", file);
}

static void json_interval(const struct wl_interval *interval, bool more, FILE *file)
{
    fprintf(file, "%s\n    {\"at_s\": %.3f, \"rate_mops\": %.6g", more ? "," : "", interval->at_s,
            interval->mops);
    for (size_t role = 0; role < interval->role_count; role++) {
        fprintf(file, ", \"%s\": [", interval->roles[role].name);
        for (size_t rank = 0; rank < interval->roles[role].count; rank++)
            fprintf(file, "%s%.6g", rank ? ", " : "", interval->roles[role].mops[rank]);
        fputc(']', file);
    }
    fputc('}', file);
}

static void json_run(const struct wl_report *r, const struct wl_run *run, FILE *file)
{
    fputs("{\n  \"workload\": ", file);
    json_string(r->workload, file);
    fputs(",\n  \"version\": ", file);
    json_string(r->version, file);
    fputs(",\n", file);
    json_section(run, wl_params, file);
    json_section(run, wl_env, file);
    fputs("  \"intervals\": [", file);
    for (size_t i = 0; i < run->interval_count; i++)
        json_interval(&run->intervals[i], i > 0, file);
    fputs("\n  ],\n", file);
    json_section(run, wl_summary, file);
    json_section(run, wl_verify, file);
    fprintf(file, "  \"status\": \"%s\"\n}", status_of(run));
}

static bool closed(FILE *file, const char *path, char *why, size_t size)
{
    bool bad = ferror(file);
    if (fclose(file) == 0 && !bad)
        return true;
    snprintf(why, size, "%s can't be written: %s", path, strerror(errno));
    return false;
}

static FILE *opened(const char *path, const char *mode, char *why, size_t size)
{
    FILE *file = fopen(path, mode);
    if (!file)
        snprintf(why, size, "%s can't be opened: %s", path, strerror(errno));
    return file;
}

/* One run is an object, several are a list of them. */
bool wl_report_write_json(const struct wl_report *r, const char *path, char *why, size_t size)
{
    FILE *file = opened(path, "w", why, size);
    if (!file)
        return false;
    fputs(r->count > 1 ? "[" : "", file);
    for (size_t i = 0; i < r->count; i++) {
        fputs(i ? ",\n" : "", file);
        json_run(r, &r->runs[i], file);
    }
    fputs(r->count > 1 ? "]\n" : "\n", file);
    return closed(file, path, why, size);
}

static void csv_text(const char *text, FILE *file)
{
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++)
        fprintf(file, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', file);
}

/* Sections in a fixed order, not the one in which they were filled. */
static void csv_line(const struct wl_report *r, const struct wl_run *run, bool header, FILE *file)
{
    csv_text(header ? "workload" : r->workload, file);
    fputc(',', file);
    csv_text(header ? "version" : r->version, file);
    for (int section = 0; section < wl_sections; section++)
        for (size_t i = 0; i < run->count; i++) {
            const struct wl_entry *entry = &run->entries[i];
            if ((int)entry->section != section)
                continue;
            fputc(',', file);
            if (header)
                fprintf(file, "%s_%s", section_names[section], entry->key);
            else
                csv_text(entry->value, file);
        }
    fprintf(file, ",%s\n", header ? "status" : status_of(run));
}

/* The header as text; the caller frees it. */
static char *header_of(const struct wl_report *r, const struct wl_run *run)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        abort();
    csv_line(r, run, true, file);
    fclose(file);
    return text;
}

/* Only a regular file can have an old header; /dev/full yields endless zeros. */
static bool is_regular(FILE *file)
{
    struct stat status;
    return fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode);
}

/* An old file must have been made by the same program: rows below another header would lie. */
static bool header_fits(FILE *file, const char *header, const char *path, char *why, size_t size)
{
    char *line = NULL;
    size_t room = 0;
    rewind(file);
    ssize_t length = is_regular(file) ? getline(&line, &room, file) : -1;
    bool fits = length < 0 || !strcmp(line, header);
    free(line);
    if (!fits) {
        snprintf(why, size, "%s has another header: it was not written by this program", path);
        return false;
    }
    fseek(file, 0, SEEK_END);
    if (length < 0)
        fputs(header, file);
    return true;
}

bool wl_report_write_csv(const struct wl_report *r, const char *path, char *why, size_t size)
{
    FILE *file = opened(path, "a+", why, size);
    if (!file)
        return false;
    char *header = header_of(r, &r->runs[0]);
    bool fits = header_fits(file, header, path, why, size);
    for (size_t i = 0; fits && i < r->count; i++) {
        char *other = header_of(r, &r->runs[i]);
        fits = !strcmp(other, header);
        if (fits)
            csv_line(r, &r->runs[i], false, file);
        else
            snprintf(why, size, "%s: run %zu has other keys than the first", path, i + 1);
        free(other);
    }
    free(header);
    return closed(file, path, why, size) && fits;
}
