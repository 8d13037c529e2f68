/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal as messages name it; see signal_text.h. */
#include "config.h"

#include "signal_text.h"

#include "common/signal_name.h"

#include <stdio.h>
#include <string.h>

void signal_text(int signal, bool has_core, char *text, size_t size)
{
    const char *name = tk_signal_text(signal);
    snprintf(text, size, "%d (%s%s%s%s)", signal, name ? name : "", name ? ": " : "",
             strsignal(signal), has_core ? ", core dumped" : "");
}
