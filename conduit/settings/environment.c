/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The environment of the job: first what this process was started with, which the spawner gave to
 * all ranks, then what the client has added since. Owns a copy of the former, made once at
 * start-up; no lock. Later changes of names that the client added are visible, as with getenv(). */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"

extern char **environ;

/* NAME=value, each terminated by 0; an empty one ends the block. */
static char *environment_given;
/* The same for those whose values have escapes, decoded; NULL: none. */
static char *environment_decoded;
static char **environment_merged;

static char *read_all(FILE *file, size_t *length)
{
    char *text = NULL;
    size_t size;
    char piece[4096];
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t n; (n = fread(piece, 1, sizeof(piece), file)) > 0;)
        fwrite(piece, 1, n, out);
    fwrite("", 1, 1, out);
    if (fclose(out) != 0)
        return NULL;
    *length = size;
    return text;
}

static bool is_setting(const char *entry)
{
    return tk_setting_in(entry) ||
           (!strncmp(entry, "GASNET_IBV_PORTS_", 17) && strchr(entry, '=')); /* and a number */
}

/* Removes the blanks around values of settings, for all code that reads them by name. */
static void trim_values(char *block)
{
    char *to = block, *next;
    for (char *at = block; *at; at = next) {
        size_t front = strcspn(at, "="), length;
        next = at + strlen(at) + 1;
        if (!is_setting(at)) {
            memmove(to, at, (size_t)(next - at));
            to += next - at;
            continue;
        }
        const char *value = tk_setting_trim(at + front + 1, &length);
        memmove(to, at, front + 1);
        memmove(to + front + 1, value, length);
        to += front + 1 + length;
        *to++ = 0;
    }
    *to = 0;
}

/* /proc/self/environ is the only record of the initial environment: setenv() changes the array that
 * main() got. */
void tk_environment_open(void)
{
    size_t length = 0;
    FILE *file = fopen("/proc/self/environ", "re");
    if (!file || environment_given)
        return;
    environment_given = read_all(file, &length);
    fclose(file);
    if (environment_given)
        trim_values(environment_given);
}

/* The character that stands for %XX at `at`; 0: there is no escape, or it would end the value. */
static char escaped_char(const char *at)
{
    if (at[0] != '%' || !isxdigit((unsigned char)at[1]) || !isxdigit((unsigned char)at[2]))
        return 0;
    const char digits[] = {at[1], at[2], 0};
    return (char)strtol(digits, NULL, 16);
}

static bool has_escape(const char *entry)
{
    for (const char *at = strchr(entry, '%'); at; at = strchr(at + 1, '%'))
        if (escaped_char(at))
            return true;
    return false;
}

static char *decode_entry(const char *entry, char *to)
{
    const char *value = entry + strcspn(entry, "=");
    memcpy(to, entry, (size_t)(value - entry));
    to += value - entry;
    for (const char *at = value; *at; at++) {
        char c = escaped_char(at);
        *to++ = c ? c : *at;
        at += c ? 2 : 0;
    }
    *to++ = 0;
    return to;
}

void tk_environment_decode(void)
{
    size_t size = 1;
    for (const char *at = environment_given; at && *at; at += strlen(at) + 1)
        size += has_escape(at) ? strlen(at) + 1 : 0;
    if (size == 1 || environment_decoded || !(environment_decoded = malloc(size)))
        return;
    char *to = environment_decoded;
    for (const char *at = environment_given; *at; at += strlen(at) + 1)
        if (has_escape(at))
            to = decode_entry(at, to);
    *to = 0;
}

static const char *value_among(const char *block, const char *name)
{
    const char *value = NULL;
    for (; block && *block && !value; block += strlen(block) + 1)
        value = tk_value_in(block, name);
    return value;
}

const char *tk_getenv_decoded(const char *name)
{
    const char *value = value_among(environment_decoded, name);
    return value ? value : tk_getenv(name);
}

const char *tk_getenv(const char *name)
{
    const char *value = value_among(environment_given, name);
    if (value)
        return value;
    for (char **at = environ; at && *at; at++)
        if ((value = tk_value_in(*at, name)))
            return value;
    return NULL;
}

static bool has_name_of(const char *entry, const char *other)
{
    while (*other && *other != '=' && *entry == *other)
        entry++, other++;
    return *entry == '=' && (*other == '=' || !*other);
}

/* Most values are the same, too, and libc compares them faster. */
static bool is_name_of(const char *entry, const char *other)
{
    return !strcmp(entry, other) || has_name_of(entry, other);
}

/* Usually the process still has its initial variables in the same order: then *next is the one. */
static bool was_given(const char *entry, const char **next)
{
    if (!*next || !**next || !is_name_of(*next, entry))
        for (*next = environment_given; *next && **next && !has_name_of(*next, entry);)
            *next += strlen(*next) + 1;
    if (!*next || !**next)
        return false;
    *next += strlen(*next) + 1;
    return true;
}

static size_t environment_fill(char **to)
{
    const char *next = environment_given;
    size_t count = 0;
    for (char *at = environment_given; at && *at; at += strlen(at) + 1, count++)
        if (to)
            to[count] = at;
    for (char **at = environ; at && *at; at++) {
        if (was_given(*at, &next))
            continue;
        if (to)
            to[count] = *at;
        count++;
    }
    return count;
}

char *const *tk_environment(void)
{
    free(environment_merged);
    environment_merged = calloc(1, tk_environment_bytes(environment_fill(NULL)));
    if (!environment_merged)
        return environ;
    environment_fill(environment_merged);
    return environment_merged;
}
