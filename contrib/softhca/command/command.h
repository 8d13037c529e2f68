/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the subcommands of softhca: options, and conversations with the members of a fabric.
 * Owns nothing that outlives the command, which is one thread. */
#ifndef SHCA_COMMAND_H
#define SHCA_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "contrib/softhca/support/registry_name.h"

enum {
    EXIT_FAILED = 1, /* the request was understood, but could not be fulfilled */
    EXIT_USAGE = 2,  /* the command line is wrong */
};

struct subcommand {
    const char *name;
    const char *help;
    int (*run)(const struct subcommand *self, int argc, char **argv);
};
extern const struct subcommand subcommand_run, subcommand_list, subcommand_link, subcommand_fault,
    subcommand_plug, subcommand_gid, subcommand_fatal, subcommand_topology;

/* One line on stderr; returns status, for "return report_error(...)". */
int log_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- options (options.c) ---- */
struct option_spec {
    const char *name;                /* without the dashes */
    const char **value;              /* takes a value, or */
    bool *flag;                      /* takes none, or */
    bool (*each)(const char *value); /* is called with a value each time it is given */
};

/* Reads the options of a subcommand; argv[0] is its name. Words that are not options are moved to
 * the front; *operands gets them, the result is their number. With first_ends, options end at the
 * first such word. Negative: exit with status -1 - result (0 after --help). */
int options_read(const struct subcommand *c, const struct option_spec *options, bool first_ends,
                 int argc, char **argv, char ***operands);
/* Reads a whole number; false: a line was printed. */
bool option_number(const char *option, const char *text, long low, long high, long *out);

/* ---- members (members.c) ---- */
struct member {
    struct shca_name name;
    char *reply; /* NULL: none (yet) */
    bool gone;   /* has ended meanwhile */
    bool asked;
    bool silent; /* did not answer in time; not waited for again */
};

struct members {
    struct member *at;
    size_t n, room;
};

/* Selects members. */
struct scope {
    const char *fabric; /* as the user names it; NULL: SOFTHCA_FABRIC or "default" */
    const char *uid, *pid;
    bool all; /* every fabric of this user; for root, of every user */
    unsigned uid_number, pid_number;
};

/* The options of that selection, for an option_spec table. */
#define SCOPE_OPTIONS(scope)                                                                       \
    {"fabric", &(scope).fabric, NULL, NULL},                                                       \
    {                                                                                              \
        "user", &(scope).uid, NULL, NULL                                                           \
    }
/* Checks the options; 0 or EXIT_USAGE. */
int scope_check(struct scope *s);

/* Adds the current members that are not yet in m. */
int members_find(const struct scope *s, struct members *m);
/* Sends the request to all that have not had it; waits for the replies, at most a second. */
void members_ask(struct members *m, const char *request);
void members_free(struct members *m);
/* Reports that there is no such process; returns EXIT_FAILED. */
int members_none(const struct scope *s);
/* Names the members that did not answer; returns their number. */
size_t members_silent(const struct members *m);

/* Sends a request to every member, also to those that join meanwhile, and prints errors. Returns
 * the exit status; *obeyed counts the members that executed it. */
int members_send(const struct scope *s, const char *request, struct members *m, size_t *obeyed);

#endif
