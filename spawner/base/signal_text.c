/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal as messages name it; see signal_text.h. */
#include "config.h"

#include "signal_text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *signal_name(int signal)
{
    static const struct {
        int number;
        const char *name;
    } known[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
                 {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
                 {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
                 {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
                 {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].number == signal)
            return known[i].name;
    return NULL;
}

void signal_text(int signal, bool has_core, char *text, size_t size)
{
    const char *name = signal_name(signal);
    snprintf(text, size, "%d (%s%s%s%s)", signal, name ? name : "", name ? ": " : "",
             strsignal(signal), has_core ? ", core dumped" : "");
}
