/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks that a rank of this host shows itself, where gdb is missing or may not attach: each of its
 * threads is sent a signal, on which the library appends the addresses of its calls to a file
 * (conduit/exit/stack.c). The only effect on the rank is that a sleep may end early. One thread, no
 * lock. */
#ifndef TRUNKLINE_SPAWNER_GUARD_STACKS_H
#define TRUNKLINE_SPAWNER_GUARD_STACKS_H

#include "base/rank_slot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Asks all threads that can answer. Returns their number; 0: the reason is in `why`. `state`: the
 * process state, a letter of /proc. */
unsigned stacks_ask(const char *session, uint32_t rank, const struct tk_rank_slot *slot, char state,
                    char *why, size_t size);

/* Formats the stacks that have arrived so far, as gdb would print them. Returns whether all of
 * `asked` have answered. */
bool stacks_read(const char *session, uint32_t rank, pid_t pid, unsigned asked, char *text,
                 size_t size);

/* Nothing more is read. */
void stacks_end(const char *session, uint32_t rank);

#endif
