/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Times of a rank on the clock of rank 0, by an offset that was measured at the start, and once
 * more at the end: between them it changes evenly. Until the end is known lines are written with
 * the first, and with a blank behind each time, so that they can be corrected where they are.
 * Pure. */
#ifndef TK_TRACE_ALIGN_H
#define TK_TRACE_ALIGN_H

#include "trace/event.h"

struct tk_trace_alignment {
    struct tk_trace_offset start, end;
};

/* A time of this rank's clock. */
uint64_t tk_trace_aligned(const struct tk_trace_alignment *alignment, uint64_t at);

/* How wrong that is at most, once the end is known. */
uint64_t tk_trace_error(const struct tk_trace_alignment *alignment);

/* Takes the offset at the end. False: it is no other than that of the start as far as both were
 * measured, which is used on, and lines stay as they are. */
bool tk_trace_align_end(struct tk_trace_alignment *alignment, const struct tk_trace_offset *end);

/* Corrects whole lines that were written when the end was not known. */
void tk_trace_correct(const struct tk_trace_alignment *alignment, char *bytes, size_t length,
                      bool json);

#endif
