/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal as messages name it. Owns nothing, takes no lock. */
#ifndef TRUNKLINE_SPAWNER_SIGNAL_TEXT_H
#define TRUNKLINE_SPAWNER_SIGNAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes "11 (SIGSEGV: Segmentation fault)", with `has_core` "11 (SIGSEGV: Segmentation fault, core
 * dumped)". */
void signal_text(int signal, bool has_core, char *text, size_t size);

#endif
