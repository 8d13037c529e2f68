/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Non-contiguous copies between memory that this process can address: a neighbour's segment, its
 * own, a message. Pure; no lock. The caller provides memory barriers. */
#ifndef TK_VECTOR_COPY_H
#define TK_VECTOR_COPY_H

#include "vector/stream.h"

void tk_copy_box(const struct tk_box *box);

/* Copies from one stream to another until either ends. The offsets are added to the addresses of
 * the streams. */
void tk_copy_streams(struct tk_stream *to, uintptr_t to_offset, struct tk_stream *from,
                     uintptr_t from_offset);

/* Copies the next nbytes of a stream to or from contiguous memory. The stream must have that many.
 */
void tk_copy_gather(char *to, struct tk_stream *from, size_t nbytes);
void tk_copy_scatter(struct tk_stream *to, const char *from, size_t nbytes);

#endif
