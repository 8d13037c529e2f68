/* SPDX-License-Identifier: BSD-3-Clause */
/* Interprets the output of a command that should start a guard on another host. Pure; no lock. */
#ifndef TRUNKLINE_SPAWNER_SSH_TEXT_H
#define TRUNKLINE_SPAWNER_SSH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes why the command failed: the report of our own launcher there if there is one, else the
 * last line that was printed, with a remedy. `text` has `length` bytes; `status` is the wait
 * status; `command` is the command's first word and `launcher` what it should have run. */
void ssh_text_judge(const char *text, size_t length, int status, const char *command,
                    const char *launcher, char *why, size_t size);

/* A line of one of our processes there, without the launcher's name in front of it; NULL: of
 * another program. */
const char *ssh_text_own(const char *line);

#endif
