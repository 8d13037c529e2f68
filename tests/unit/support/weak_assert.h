/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Assertions about a search (weak_memory.h). Each prints the number of states. Include after
 * unit.h. */
#ifndef WEAK_ASSERT_H
#define WEAK_ASSERT_H

#include "weak_memory.h"

/* All executions are correct; else prints the first wrong one. */
void weak_assert_right(const struct weak_program *program);

/* Some execution is wrong. */
void weak_assert_wrong(const struct weak_program *program);

/* Some execution leaves a thread asleep for ever. */
void weak_assert_lost(const struct weak_program *program);

#endif
