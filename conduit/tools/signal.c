/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals by name and their handlers. No state. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gasnet_tools.h"
#include "tools/tools.h"

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

const char *gasnett_signame_fromval(int sigval)
{
    for (int i = 0; i < signal_count; i++)
        if (signals[i].number == sigval)
            return signals[i].name;
    return NULL;
}

int tk_tools_signal_number(const char *text)
{
    if (isdigit((unsigned char)*text)) {
        int number = atoi(text);
        return gasnett_signame_fromval(number) ? number : 0;
    }
    for (int i = 0; i < signal_count; i++)
        if (!strcasecmp(text, signals[i].name) || !strcasecmp(text, signals[i].name + prefix))
            return signals[i].number;
    return 0;
}

gasnett_sighandlerfn_t gasnett_reghandler(int sigtocatch, gasnett_sighandlerfn_t fp)
{
    struct sigaction before, now = {.sa_handler = fp, .sa_flags = SA_RESTART};
    sigemptyset(&now.sa_mask);
    if (sigaction(sigtocatch, &now, &before) != 0)
        gasnett_fatalerror_nopos("no handler can be installed for signal %d: %s", sigtocatch,
                                 strerror(errno));
    return before.sa_handler;
}
