/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of signals, for settings and for the tools. */
#ifndef TK_SIGNAL_NAME_H
#define TK_SIGNAL_NAME_H

/* NULL if there is no such signal, or it has no name. */
const char *tk_signal_text(int number);

/* The number of "SIGSEGV", "SEGV" or "11"; 0 if there is no such signal. */
int tk_signal_number(const char *text);

#endif
