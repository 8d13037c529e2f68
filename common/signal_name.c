/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals by name. Constant data, no lock; async-signal-safe. */
#include "config.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>

#include "common/signal_name.h"

#define SIGNAL(name)                                                                               \
    {                                                                                              \
        name, #name                                                                                \
    }
static const struct {
    int number;
    const char *name;
} signals[] = {
    SIGNAL(SIGABRT),   SIGNAL(SIGALRM), SIGNAL(SIGBUS),  SIGNAL(SIGCHLD),  SIGNAL(SIGCONT),
    SIGNAL(SIGFPE),    SIGNAL(SIGHUP),  SIGNAL(SIGILL),  SIGNAL(SIGINT),   SIGNAL(SIGIO),
    SIGNAL(SIGKILL),   SIGNAL(SIGPIPE), SIGNAL(SIGPROF), SIGNAL(SIGPWR),   SIGNAL(SIGQUIT),
    SIGNAL(SIGSEGV),   SIGNAL(SIGSTOP), SIGNAL(SIGSYS),  SIGNAL(SIGTERM),  SIGNAL(SIGTRAP),
    SIGNAL(SIGTSTP),   SIGNAL(SIGTTIN), SIGNAL(SIGTTOU), SIGNAL(SIGURG),   SIGNAL(SIGUSR1),
    SIGNAL(SIGUSR2),   SIGNAL(SIGXCPU), SIGNAL(SIGXFSZ), SIGNAL(SIGWINCH), SIGNAL(SIGVTALRM),
    SIGNAL(SIGSTKFLT),
};
#undef SIGNAL

enum { signal_count = sizeof(signals) / sizeof(signals[0]), prefix = 3 /* "SIG" */ };

const char *tk_signal_text(int number)
{
    for (int i = 0; i < signal_count; i++)
        if (signals[i].number == number)
            return signals[i].name;
    return NULL;
}

int tk_signal_number(const char *text)
{
    if (isdigit((unsigned char)*text)) {
        int number = atoi(text);
        return tk_signal_text(number) ? number : 0;
    }
    for (int i = 0; i < signal_count; i++)
        if (!strcasecmp(text, signals[i].name) || !strcasecmp(text, signals[i].name + prefix))
            return signals[i].number;
    return 0;
}
