/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of exit/ only. */
#ifndef TK_EXIT_PRIVATE_H
#define TK_EXIT_PRIVATE_H

#include <signal.h>

#include "base/mode.h"

/* Installs the handlers of fatal, terminating and quitting signals. */
void tk_signals_open(void);

/* Runs the client's SIGQUIT handler if there is one. Not from a signal handler. */
void tk_signal_quit(void);

/* This thread runs a client's SIGQUIT handler because another signal came: whatever it holds, an
 * exit must leave to the helper. */
extern TK_PER_THREAD volatile sig_atomic_t tk_in_signal;

/* For signal handlers: has the job ended by another thread, and returns. */
void tk_exit_by_signal(int code);

/* SIGTERM: how launchers end ranks. They need not be asked to end the job then, and may no longer
 * answer. */
void tk_exit_was_asked_for(void);

#endif
