/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by unit tests: capturing the library's messages, child processes that may die, settings by
 * name, and a generator of schedules. Include after config.h; brings cmocka with it. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* From unit_listen() on, standard error goes to a file; unit_heard() ends that and returns what was
 * written, valid until the next call. Nothing may fail in between: cmocka's words would be lost. */
void unit_listen(void);
const char *unit_heard(void);

/* Runs fn(arg) in a child, which is killed after `seconds`, and returns its wait status. What it
 * wrote to standard error is in *said (may be NULL), valid until the next call. */
int unit_child(void (*fn)(void *), void *arg, const char **said);

/* Did the child run to its end without an error of the library? */
void unit_assert_exit(void (*fn)(void *), void *arg, int code);

/* The same, but the test is skipped when the child exits with unit_cannot: something is missing
 * here that the child needs. */
enum { unit_cannot = 77 };
void unit_assert_exit_or_skip(void (*fn)(void *), void *arg, int code);

/* From now on this system call fails with EPERM, in a child. */
void unit_forbid(long number);

/* The library's internal error: one line with `text` in it, then abort(). */
void unit_assert_panic(void (*fn)(void *), void *arg, const char *text);

/* All settings at their defaults, then "NAME=value" for each further argument up to NULL. */
void unit_settings(const char *first, ...);

/* Fails unless `text` holds `part`. */
void unit_assert_says(const char *text, const char *part);

/* Lines in a text. */
unsigned unit_lines(const char *text);

/* xorshift64*: the same schedule for the same seed, on every machine. 0 <= result < limit */
struct unit_random {
    uint64_t state;
};
struct unit_random unit_random(uint64_t seed);
unsigned unit_below(struct unit_random *r, unsigned limit);

/* Runs the group; the whole program is ended by a signal when it takes longer than any healthy run
 * under valgrind. */
#define UNIT_MAIN(tests)                                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        unit_deadline();                                                                           \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }
void unit_deadline(void);

#endif
