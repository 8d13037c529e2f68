/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A summary as tables, to standard output. */
#ifndef TRUNKLINE_TRACE_PRINT_H
#define TRUNKLINE_TRACE_PRINT_H

#include "contrib/trace/summary.h"

/* At most `top` ranks, pairs and lines; 0: all. False: no memory. */
bool trace_print(const struct trace_summary *summary, size_t top);

/* The same for programs. */
void trace_print_json(const struct trace_summary *summary);

#endif
