/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a workload: one table for each program, which defines the parser, `--help`, the
 * refusals, the parameters of the report and the hash by which ranks check that all have the same
 * options. Independent of jobs: the caller decides which rank prints. */
#ifndef WL_OPTIONS_H
#define WL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wl_option_type {
    wl_whole, /* int64_t */
    wl_real,  /* double */
    wl_size,  /* int64_t; K, M and G are powers of 1024 */
    wl_flag,  /* int64_t, 0 or 1; `--name` alone is 1 */
    wl_word,  /* int64_t: the place in `words` */
    wl_text   /* const char *, NULL when not given; the caller parses it */
};

enum { wl_power_of_2 = 1, wl_not_hashed = 2 };

struct wl_option {
    const char *name; /* without the dashes */
    enum wl_option_type type;
    size_t offset;        /* of the value in the program's struct */
    const char *standard; /* the default, as it would be given; NULL: none, or computed later */
    double least, most;
    const char *unit;         /* of numbers, for people: "s", "bytes" */
    const char *const *words; /* of wl_word, ends with NULL */
    unsigned rules;
    const char *help;
};

struct wl_program {
    const char *name, *about;
    const struct wl_option *options;
    size_t count;
    /* Relations between options, after all are parsed, and defaults that follow from others:
     * returns false with one line in `why`. May be NULL. */
    bool (*relations)(void *values, uint64_t given, char *why, size_t size);
};

enum wl_parsed { wl_run, wl_help, wl_refused };
enum { wl_options_max = 64, wl_why_max = 512 };

/* Fills `values`, defaults first. *given (may be NULL) has a bit for each option that was on the
 * command line, by its place in the table. On wl_refused `why` holds one line, without newline. */
enum wl_parsed wl_options_parse(const struct wl_program *program, int argc, char **argv,
                                void *values, uint64_t *given, char *why, size_t size);

/* Was this option on the command line? */
bool wl_option_given(const struct wl_program *program, uint64_t given, const char *name);

/* False, with one line in `why`, when one of these (the list ends with NULL) was on the command
 * line:
 * "--NAME REASON". */
bool wl_options_absent(const struct wl_program *program, uint64_t given, const char *const *names,
                       const char *reason, char *why, size_t size);

void wl_options_help(const struct wl_program *program, void *file);

/* The value as text; empty when there is none. */
void wl_option_print(const struct wl_option *option, const void *values, char *text, size_t size);

/* Of all values but those with wl_not_hashed. */
uint64_t wl_options_hash(const struct wl_program *program, const void *values);

#endif
