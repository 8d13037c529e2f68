/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the words of ssh; see ssh_text.h. */
#include "config.h"

#include "ssh_text.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* The status of a shell for a program that is missing, and for one that it cannot execute. */
enum { SHELL_NO_EXEC = 126, SHELL_NOT_FOUND = 127 };

enum { LINE_MAX_SHOWN = 300 };

const char *ssh_text_own(const char *line)
{
    static const char name[] = "gasnetrun_ibv: ";
    return strncmp(line, name, sizeof(name) - 1) == 0 ? line + sizeof(name) - 1 : NULL;
}

/* Copies a line, so that nothing in it moves the cursor or breaks ours. */
static void copy_line(char *to, const char *from, size_t length)
{
    size_t n = 0;
    while (length && strchr("\r .", from[length - 1])) /* the end of it, too */
        length--;
    for (; n < length && n < LINE_MAX_SHOWN; n++)
        to[n] = (unsigned char)from[n] < ' ' ? ' ' : from[n];
    to[n] = 0;
}

/* The last line that says something, and the last one of our own launcher. */
static void find_lines(const char *text, size_t length, char *last, char *own)
{
    char line[LINE_MAX_SHOWN + 1];
    const char *end = text + length;

    last[0] = own[0] = 0;
    for (const char *at = text; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = stop ? (size_t)(stop - at) : (size_t)(end - at);
        copy_line(line, at, n);
        if (line[0])
            memcpy(last, line, sizeof(line));
        if (ssh_text_own(line))
            memcpy(own, line, sizeof(line));
        at += n + 1;
    }
}

struct ssh_hint {
    const char *words, *hint;
};

static const char *hint_for(const char *line)
{
    static const struct ssh_hint hints[] = {
        {"Permission denied",
         "; it must be entered without a password (an agent, or a key: ssh-copy-id)"},
        {"Host key verification failed",
         "; its host key must be known and right: look at it once by hand with ssh"},
    };
    for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++)
        if (strstr(line, hints[i].words))
            return hints[i].hint;
    return "";
}

/* The text that a shell prints for a file that does not exist. If a shell runs a binary as a
 * script, it prints the same text about words in that file. */
static bool is_missing(const char *line, const char *launcher)
{
    static const char *const ends[] = {": not found", ": No such file"};
    const char *at = strstr(line, launcher);

    if (!at)
        return !*line;
    at += strlen(launcher);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (!strncmp(at, ends[i], strlen(ends[i])))
            return true;
    return false;
}

static void judge_exit(int code, const char *line, const char *command, const char *launcher,
                       char *why, size_t size)
{
    if (code == SHELL_NOT_FOUND && is_missing(line, launcher))
        snprintf(why, size,
                 "there is no %s on it; install Trunkline there, GASNET_SSH_REMOTE_PATH names its "
                 "directory",
                 launcher);
    else if (code == SHELL_NOT_FOUND || code == SHELL_NO_EXEC)
        snprintf(why, size, "%s cannot be executed there: %s", launcher, line);
    else if (*line)
        snprintf(why, size, "%s%s", line, hint_for(line));
    else
        snprintf(why, size, "%s ended with status %d and without a message", command, code);
}

void ssh_text_judge(const char *text, size_t length, int status, const char *command,
                    const char *launcher, char *why, size_t size)
{
    char last[LINE_MAX_SHOWN + 1], own[LINE_MAX_SHOWN + 1];

    find_lines(text, length, last, own);
    if (own[0])
        snprintf(why, size, "%s", ssh_text_own(own));
    else if (WIFSIGNALED(status))
        snprintf(why, size, "%s was killed by signal %d", command, WTERMSIG(status));
    else
        judge_exit(WEXITSTATUS(status), last, command, launcher, why, size);
}
