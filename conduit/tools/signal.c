/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals and their handlers. No state. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/signal_name.h"
#include "gasnet_tools.h"

const char *gasnett_signame_fromval(int sigval)
{
    return tk_signal_text(sigval);
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
