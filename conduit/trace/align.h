/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Times of a rank on the clock of rank 0, by an offset that was measured at the start, and once
 * more at the end: between the two it changes linearly. Until the second is known, lines are
 * written with the first, and with a blank after each time, so that they can be corrected in place.
 * Pure. */
#ifndef TK_TRACE_ALIGN_H
#define TK_TRACE_ALIGN_H

#include "trace/event.h"

struct tk_trace_alignment {
    struct tk_trace_offset start, end;
};

/* Converts a time of this rank's clock. */
uint64_t tk_trace_aligned(const struct tk_trace_alignment *alignment, uint64_t at);

/* The maximum error of that, once the end is known. */
uint64_t tk_trace_error(const struct tk_trace_alignment *alignment);

/* Sets the offset at the end. False: within the measurement error it equals the offset of the
 * start, which remains in use, and lines need no correction. */
bool tk_trace_align_end(struct tk_trace_alignment *alignment, const struct tk_trace_offset *end);

/* Corrects complete lines that were written before the end was known. */
void tk_trace_correct(const struct tk_trace_alignment *alignment, char *bytes, size_t length,
                      bool json);

#endif
