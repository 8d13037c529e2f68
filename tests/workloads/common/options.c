/* SPDX-License-Identifier: BSD-3-Clause */
/* See options.h. Owns nothing. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "random.h"

struct parsing {
    const struct wl_program *program;
    void *values;
    char *why;
    size_t size;
};

static bool refuse(const struct parsing *p, const struct wl_option *option, const char *text)
{
    char range[128] = "";
    if (option->type == wl_word) {
        for (const char *const *word = option->words; *word; word++) {
            size_t used = strlen(range);
            snprintf(range + used, sizeof(range) - used, "%s%s", used ? "|" : "one of ", *word);
        }
    } else if (option->type == wl_flag) {
        snprintf(range, sizeof(range), "0 or 1");
    } else {
        snprintf(range, sizeof(range), "%s%s%s from %.15g to %.15g%s%s",
                 option->type == wl_real ? "a number" : "a whole number",
                 option->type == wl_size ? " (K, M, G are understood)" : "",
                 option->rules & wl_power_of_2 ? " and a power of 2" : "", option->least,
                 option->most, option->unit ? " " : "", option->unit ? option->unit : "");
    }
    snprintf(p->why, p->size, "--%s '%s' is not %s", option->name, text, range);
    return false;
}

static bool in_range(const struct wl_option *option, double value)
{
    return value >= option->least && value <= option->most;
}

static bool set_real(const struct parsing *p, const struct wl_option *option, const char *text)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end || !isfinite(value) || !in_range(option, value))
        return refuse(p, option, text);
    *(double *)((char *)p->values + option->offset) = value;
    return true;
}

/* K, M and G behind a size; 0 for anything else that is left. */
static int64_t factor_of(const char *suffix)
{
    static const char letters[] = "KMG";
    if (!*suffix)
        return 1;
    const char *letter = strchr(letters, *suffix);
    return letter && !suffix[1] ? INT64_C(1) << (10 * (letter - letters + 1)) : 0;
}

static bool set_whole(const struct parsing *p, const struct wl_option *option, const char *text)
{
    char *end;
    int64_t value, factor;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    factor = option->type == wl_size ? factor_of(end) : !*end;
    /* strtoll skips blanks, which are never meant as part of a number. */
    if (errno || end == text || factor == 0 || strchr(" \t\n\v\f\r", *text) ||
        __builtin_mul_overflow(number, factor, &value) || !in_range(option, (double)value) ||
        (option->rules & wl_power_of_2 && (value < 1 || value & (value - 1))))
        return refuse(p, option, text);
    *(int64_t *)((char *)p->values + option->offset) = value;
    return true;
}

static bool set_word(const struct parsing *p, const struct wl_option *option, const char *text)
{
    for (int i = 0; option->words[i]; i++)
        if (!strcmp(option->words[i], text)) {
            *(int64_t *)((char *)p->values + option->offset) = i;
            return true;
        }
    return refuse(p, option, text);
}

static bool set(const struct parsing *p, const struct wl_option *option, const char *text)
{
    switch (option->type) {
    case wl_real:
        return set_real(p, option, text);
    case wl_word:
        return set_word(p, option, text);
    case wl_text:
        *(const char **)((char *)p->values + option->offset) = text;
        return true;
    default:
        return set_whole(p, option, text);
    }
}

static const struct wl_option *find(const struct wl_program *program, const char *name,
                                    size_t length)
{
    for (size_t i = 0; i < program->count; i++)
        if (!strncmp(program->options[i].name, name, length) && !program->options[i].name[length])
            return &program->options[i];
    return NULL;
}

/* `--name VALUE`, `--name=VALUE` or, for a flag, `--name`. *i moves to the last word used. */
static bool take(const struct parsing *p, int argc, char **argv, int *i, uint64_t *seen)
{
    char *word = argv[*i], *equals = strchr(word, '=');
    if (strncmp(word, "--", 2) || !word[2]) {
        snprintf(p->why, p->size, "'%s' is not expected: all parameters are --name value", word);
        return false;
    }
    size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
    const struct wl_option *option = find(p->program, word + 2, length);
    if (!option) {
        snprintf(p->why, p->size, "unknown option %.*s (--help lists all)", (int)length + 2, word);
        return false;
    }
    uint64_t bit = UINT64_C(1) << (option - p->program->options);
    if (*seen & bit) {
        snprintf(p->why, p->size, "--%s is given twice", option->name);
        return false;
    }
    *seen |= bit;
    if (equals)
        return set(p, option, equals + 1);
    bool lone = *i + 1 == argc || !strncmp(argv[*i + 1], "--", 2);
    if (option->type == wl_flag && lone)
        return set(p, option, "1");
    if (lone) {
        snprintf(p->why, p->size, "--%s needs a value", option->name);
        return false;
    }
    return set(p, option, argv[++*i]);
}

/* A table that its own defaults contradict is a bug of the program, reported like a bad value. */
static bool set_standards(const struct parsing *p)
{
    for (size_t i = 0; i < p->program->count; i++)
        if (p->program->options[i].standard &&
            !set(p, &p->program->options[i], p->program->options[i].standard))
            return false;
    return true;
}

enum wl_parsed wl_options_parse(const struct wl_program *program, int argc, char **argv,
                                void *values, uint64_t *given, char *why, size_t size)
{
    struct parsing p = {program, values, why, size};
    uint64_t seen = 0;
    why[0] = 0;
    if (program->count > wl_options_max) {
        snprintf(why, size, "more than %d options in the table", wl_options_max);
        return wl_refused;
    }
    if (!set_standards(&p))
        return wl_refused;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help"))
            return wl_help;
        if (!take(&p, argc, argv, &i, &seen))
            return wl_refused;
    }
    if (given)
        *given = seen;
    if (program->relations && !program->relations(values, seen, why, size))
        return wl_refused;
    return wl_run;
}

bool wl_option_given(const struct wl_program *program, uint64_t given, const char *name)
{
    const struct wl_option *option = find(program, name, strlen(name));
    return option && given >> (option - program->options) & 1;
}

bool wl_options_absent(const struct wl_program *program, uint64_t given, const char *const *names,
                       const char *reason, char *why, size_t size)
{
    for (; *names; names++)
        if (wl_option_given(program, given, *names)) {
            snprintf(why, size, "--%s %s", *names, reason);
            return false;
        }
    return true;
}

void wl_option_print(const struct wl_option *option, const void *values, char *text, size_t size)
{
    const char *place = (const char *)values + option->offset;
    if (option->type == wl_real)
        snprintf(text, size, "%.15g", *(const double *)place);
    else if (option->type == wl_word)
        snprintf(text, size, "%s", option->words[*(const int64_t *)place]);
    else if (option->type == wl_text)
        snprintf(text, size, "%s", *(const char *const *)place ? *(const char *const *)place : "");
    else
        snprintf(text, size, "%lld", (long long)*(const int64_t *)place);
}

uint64_t wl_options_hash(const struct wl_program *program, const void *values)
{
    char text[4096];
    uint64_t hash = WL_GOLDEN;
    for (size_t i = 0; i < program->count; i++) {
        if (program->options[i].rules & wl_not_hashed)
            continue;
        wl_option_print(&program->options[i], values, text, sizeof(text));
        for (const char *c = text; *c; c++)
            hash = wl_mix(hash + (unsigned char)*c);
        hash = wl_mix(hash + 256 + i); /* so that "1","23" is not "12","3" */
    }
    return hash;
}

static void help_range(const struct wl_option *option, FILE *file)
{
    if (option->type == wl_word) {
        for (const char *const *word = option->words; *word; word++)
            fprintf(file, "%s%s", word == option->words ? "; " : "|", *word);
    } else if (option->type == wl_flag) {
        fputs("; 0 or 1", file);
    } else if (option->type != wl_text) {
        fprintf(file, "; %.15g..%.15g%s%s%s", option->least, option->most, option->unit ? " " : "",
                option->unit ? option->unit : "",
                option->rules & wl_power_of_2 ? ", a power of 2" : "");
    }
}

void wl_options_help(const struct wl_program *program, void *stream)
{
    FILE *file = stream;
    fprintf(file, "usage: gasnetrun_ibv -n N %s [options]\n%s\n", program->name, program->about);
    for (size_t i = 0; i < program->count; i++) {
        const struct wl_option *option = &program->options[i];
        fprintf(file, "  --%-14s %s (default %s", option->name, option->help,
                option->standard ? option->standard
                                 : (option->type == wl_text ? "none" : "computed"));
        help_range(option, file);
        fputs(")\n", file);
    }
    fputs("Exit status: 0 all checks passed, 1 a check failed or the job broke, 2 bad parameters, "
          "77 no device.\n",
          file);
}
