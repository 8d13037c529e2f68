/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a bundle is written, and what of its values is hidden: values of variables whose names look
 * like those of keys or passwords, the name and home directory of the user, the names of this host.
 * Owns the file. */
#include "config.h"

#include "contrib/info/bundle.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { value_max = 1024, hidden_max = 32, name_max = 256, secret_least = 4 };

static FILE *to;
static const char *path;
static struct {
    char text[name_max];
    const char *instead;
} hidden[hidden_max];
static unsigned hidden_count;

static void hide(const char *text, size_t length, const char *instead)
{
    if (length < 2 || length >= name_max || hidden_count == hidden_max)
        return;
    memcpy(hidden[hidden_count].text, text, length);
    hidden[hidden_count++].instead = instead;
}

/* The name "root" reveals nothing, and its home "/" would match everywhere. */
static void hide_user(void)
{
    const struct passwd *user = geteuid() != 0 ? getpwuid(geteuid()) : NULL;
    if (!user)
        return;
    hide(user->pw_dir, strlen(user->pw_dir), "(home)");
    hide(user->pw_name, strlen(user->pw_name), "(user)");
}

/* "localhost" names every host. The full name is hidden first, because the short one is a prefix of
 * it. */
static void hide_host(void)
{
    struct utsname host;
    if (uname(&host) || !strncmp(host.nodename, "localhost", strlen("localhost")))
        return;
    size_t length = strlen(host.nodename), part = strcspn(host.nodename, ".");
    hide(host.nodename, length, "(host)");
    if (part < length)
        hide(host.nodename, part, "(host)");
}

/* A name next to letters or digits is part of another word. */
static bool is_whole(const char *value, const char *at, size_t length)
{
    return (at == value || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[length]);
}

static void replace_word(char value[value_max], const char *word, const char *instead)
{
    size_t length = strlen(word), by = strlen(instead);
    for (char *at = value; (at = strstr(at, word));) {
        size_t rest = strlen(at + length) + 1;
        if (!is_whole(value, at, length) || (size_t)(at - value) + by + rest > value_max) {
            at += length;
            continue;
        }
        memmove(at + by, at + length, rest);
        memcpy(at, instead, by);
        at += by;
    }
}

/* A P_Key is not secret: it is the number of a partition, which ports list anyway. */
bool bundle_is_secret(const char *name)
{
    static const char *const words[] = {"KEY",  "TOKEN", "SECRET", "PASS",
                                        "CRED", "AUTH",  "COOKIE", "PRIVATE"};
    char upper[128];
    size_t length = strnlen(name, sizeof(upper) - 1);
    for (size_t i = 0; i <= length; i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    upper[length] = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(upper, words[i]) && !strstr(upper, "PKEY"))
            return true;
    return false;
}

/* Messages of jobs and printed settings may quote them. A short value would match unrelated
 * words. */
static void hide_secrets(void)
{
    for (char *const *entry = environ; *entry; entry++) {
        char name[name_max];
        size_t length = strcspn(*entry, "=");
        if (length >= sizeof(name) || (*entry)[length] != '=')
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
        if (bundle_is_secret(name) && strlen(*entry + length + 1) >= secret_least)
            hide(*entry + length + 1, strlen(*entry + length + 1), "(hidden)");
    }
}

static int complain(void)
{
    return fprintf(stderr, "trunkline_info: cannot write %s: %s\n", path ? path : "standard output",
                   errno ? strerror(errno) : "the end of it is lost");
}

bool bundle_open(const char *file, bool keeps_host)
{
    path = file;
    to = file ? fopen(file, "we") : stdout;
    if (!to) {
        complain();
        return false;
    }
    hide_secrets();
    hide_user();
    if (!keeps_host)
        hide_host();
    fputs("trunkline-bundle 1\n", to);
    return true;
}

void bundle_section(const char *name, const char *object)
{
    fprintf(to, "\n[%s%s%s]\n", name, object ? " " : "", object ? object : "");
}

void bundle_fact(const char *key, const char *format, ...)
{
    char value[value_max];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof(value), format, arguments);
    va_end(arguments);
    for (unsigned i = 0; i < hidden_count; i++)
        replace_word(value, hidden[i].text, hidden[i].instead);
    for (char *at = value; *at; at++)
        if (iscntrl((unsigned char)*at))
            *at = ' ';
    fprintf(to, "%s = %s\n", key, value);
}

bool bundle_close(void)
{
    fputs("\n[end]\n", to);
    errno = 0;
    bool is_good = fflush(to) == 0 && !ferror(to);
    if (to != stdout)
        is_good &= fclose(to) == 0;
    if (!is_good)
        complain();
    return is_good;
}
