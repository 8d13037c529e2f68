/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts of lines and their meaning: numbers and operations. Pure. */
#ifndef TRUNKLINE_TRACE_WORD_H
#define TRUNKLINE_TRACE_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

/* Not terminated; length 0: not given. */
struct trace_word {
    const char *at;
    size_t length;
};

bool trace_op_find(struct trace_word name, struct trace_word letter, enum tk_trace_op *op);
const char *trace_op_name(enum tk_trace_op op);
char trace_op_letter(enum tk_trace_op op);

/* All of the word is a number that fits. */
bool trace_number(struct trace_word word, uint64_t *number);
bool trace_number32(struct trace_word word, uint32_t *number);

/* "12.345" with exactly `digits` behind the point, in units of the last digit. */
bool trace_fraction(struct trace_word word, unsigned digits, uint64_t *number);

bool trace_word_is(struct trace_word word, const char *text);

#endif
