/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the recorder and the writer of a trace. */
#ifndef TK_TRACE_PRIVATE_H
#define TK_TRACE_PRIVATE_H

#include "trace/ring.h"
#include "trace/trace.h"

/* All rings, newest first; none is ever freed. */
extern TK_HIDDEN struct tk_trace_ring *_Atomic tk_trace_rings;

/* Not 0: a ring is half full. The writer sleeps on it, and clears it. */
extern TK_HIDDEN _Atomic uint32_t tk_trace_bell;

/* The recorder's part of tk_trace_open(). False: there is no memory. */
bool tk_trace_recorder_open(const struct tk_trace_plan *plan);

/* Classes as of tk_stats_mask_parse(). */
void tk_trace_mask_start(uint32_t classes);

/* The recorder's part of tk_trace_close(). */
void tk_trace_recorder_close(void);

#endif
