/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of exit/ only. */
#ifndef TK_EXIT_PRIVATE_H
#define TK_EXIT_PRIVATE_H

/* Installs the handlers of fatal, terminating and quitting signals. */
void tk_signals_open(void);

/* Runs the client's SIGQUIT handler if there is one. Not from a signal handler. */
void tk_signal_quit(void);

/* For signal handlers: has the job ended by another thread, and returns. */
void tk_exit_by_signal(int code);

/* SIGTERM: how launchers end ranks. They need not be asked to end the job then, and may no longer
 * answer. */
void tk_exit_was_asked_for(void);

#endif
