/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses the options of a subcommand: long ones only, "--name value" or "--name=value". Owns
 * nothing. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static int give_up(int status)
{
    return -1 - status;
}

static const struct option_spec *options_find(const struct option_spec *o, const char *name,
                                              size_t n)
{
    while (o->name && (strlen(o->name) != n || memcmp(o->name, name, n) != 0))
        o++;
    return o->name ? o : NULL;
}

/* One option at argv[*at]; 0, or the status to exit with. */
static int options_take(const struct subcommand *c, const struct option_spec *options, int argc,
                        char **argv, int *at)
{
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    const struct option_spec *o = n > 2 ? options_find(options, word + 2, n - 2) : NULL;
    const char *value = equals ? equals + 1 : NULL;

    if (!o || word[1] != '-')
        return log_error(EXIT_USAGE, "%s: there is no option '%.*s'; see softhca %s --help",
                         c->name, (int)n, word, c->name);
    if (o->flag) {
        if (value)
            return log_error(EXIT_USAGE, "%s: --%s takes no value", c->name, o->name);
        *o->flag = true;
        return 0;
    }
    if (!value && *at + 1 >= argc)
        return log_error(EXIT_USAGE, "%s: --%s needs a value; see softhca %s --help", c->name,
                         o->name, c->name);
    if (!value)
        value = argv[++*at];
    if (o->each)
        return o->each(value) ? 0 : EXIT_USAGE;
    *o->value = value;
    return 0;
}

int options_read(const struct subcommand *c, const struct option_spec *options, bool first_ends,
                 int argc, char **argv, char ***operands)
{
    bool ended = false;
    int n = 0;

    *operands = argv;
    for (int i = 1; i < argc; i++) {
        int status;

        if (ended || argv[i][0] != '-' || argv[i][1] == 0) {
            ended = ended || first_ends;
            argv[n++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            ended = true;
            continue;
        }
        if (strcmp(argv[i], "--help") == 0) {
            fputs(c->help, stdout);
            return give_up(0);
        }
        status = options_take(c, options, argc, argv, &i);
        if (status != 0)
            return give_up(status);
    }
    argv[n] = NULL;
    return n;
}

bool option_number(const char *option, const char *text, long low, long high, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno == 0 && *text && *end == 0 && *out >= low && *out <= high)
        return true;
    log_error(0, "%s %s: not a number from %ld to %ld", option, text, low, high);
    return false;
}
