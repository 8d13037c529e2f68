/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of files, kept as strings. Pure. */
#ifndef TRUNKLINE_REPORT_WORD_COPY_H
#define TRUNKLINE_REPORT_WORD_COPY_H

#include "contrib/trace/word.h"

/* Copies without control characters, and cuts. */
void report_word_copy(char *to, size_t size, struct trace_word word);

#endif
