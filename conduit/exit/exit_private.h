/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of exit/ only. */
#ifndef TK_EXIT_PRIVATE_H
#define TK_EXIT_PRIVATE_H

#include <signal.h>
#include <stdbool.h>

#include "base/mode.h"

/* Installs the handlers of fatal, terminating and quitting signals. */
void tk_signals_open(void);

/* Runs the client's SIGQUIT handler if there is one, once. Not from a signal handler. */
void tk_signal_quit(void);

/* This thread runs a client's SIGQUIT handler because another signal came. */
extern TK_PER_THREAD volatile sig_atomic_t tk_in_signal;

/* 1 while tk_signal_quit() runs a client's handler on this thread: a signal handler on the stack,
 * but nothing was interrupted that holds anything. */
extern TK_PER_THREAD unsigned tk_quit_is_raised;

/* True in a signal handler, also one of the client's: the interrupted code may hold any lock, so
 * an exit must be left to the helper. Async-signal-safe; takes microseconds. */
bool tk_is_interrupted(void);

/* The client needs no notice of the end by SIGQUIT any more: it wanted the end, or it has had one.
 */
extern volatile sig_atomic_t tk_quit_is_done;

/* For our own signal handlers: has the job ended by another thread, and returns. */
void tk_exit_by_signal(int code);

/* SIGTERM: how launchers end ranks. They need not be asked to end the job then, and may no longer
 * answer. */
void tk_exit_was_asked_for(void);

#endif
