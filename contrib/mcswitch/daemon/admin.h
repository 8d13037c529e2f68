/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The administrator's socket: a Unix socket of mode 0600, lines in, text out. Owns the socket and
 * its few connections. */
#ifndef MCD_ADMIN_H
#define MCD_ADMIN_H

#include "daemon/loop.h"

#include <stdint.h>

/* Replaces what a switch that was killed left at the path; refuses the path of one that lives.
 * False with a sentence on standard error. */
bool mcd_admin_open(const char *path);
void mcd_admin_close(void);
void mcd_admin_tick(uint64_t now);

/* What the command line does with the socket of a running switch: sends a line, prints the answer.
 * The exit status. */
int mcd_admin_ask(const char *path, const char *line);

#endif
