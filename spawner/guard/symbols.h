/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of functions, from the symbols of the ELF files that a process has mapped. Only reads.
 * Owns nothing, takes no lock. */
#ifndef TRUNKLINE_SPAWNER_GUARD_SYMBOLS_H
#define TRUNKLINE_SPAWNER_GUARD_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes the function at that address of a process; without symbols file+offset, else "??". */
void symbols_name(pid_t pid, uint64_t address, char *name, size_t size);

#endif
