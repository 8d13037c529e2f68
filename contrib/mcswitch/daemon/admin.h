/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The administrator's socket: a Unix socket of mode 0600 that reads lines and answers with text.
 * Owns the socket and its few connections. */
#ifndef MCD_ADMIN_H
#define MCD_ADMIN_H

#include "daemon/loop.h"

#include <stdint.h>

/* Opens the socket. Replaces that of a killed switch, but not that of a live one. False: failed,
 * with a message on standard error. */
bool mcd_admin_open(const char *path);
void mcd_admin_close(void);
void mcd_admin_tick(uint64_t now);

/* For the command line: sends a line to the socket of a running switch and prints the answer.
 * Returns the exit status. */
int mcd_admin_ask(const char *path, const char *line);

#endif
