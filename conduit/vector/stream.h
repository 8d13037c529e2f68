/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One side of a non-contiguous transfer as a stream of bytes: lists of ranges (vector), lists of
 * equal ranges (indexed) and boxes of elements (strided) are read in the same way, so that the two
 * sides of a transfer may be divided differently. Adjacent ranges are one run. Pure: no device, no
 * job, no lock; a stream belongs to one thread at a time. Does not own lists: the interface
 * requires clients to keep them until the operation is complete. */
#ifndef TK_VECTOR_STREAM_H
#define TK_VECTOR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

enum tk_stream_form { TK_STREAM_VECTOR, TK_STREAM_INDEXED, TK_STREAM_STRIDED };

/* Dimensions that need no allocation; clients seldom have more. */
enum { tk_levels_inline = 4 };

struct tk_level {
    size_t count;
    ptrdiff_t stride;
    size_t at; /* index of the next chunk */
};

struct tk_stream {
    char *at;         /* the rest of the current run */
    size_t left;      /* its bytes */
    char *next;       /* strided: the next chunk */
    const void *list; /* vector, indexed: the next entry */
    size_t chunks;    /* entries or chunks that follow the current run */
    size_t chunk;     /* bytes of each; vector: not used */
    unsigned levels;  /* strided */
    enum tk_stream_form form;
    struct tk_level *level; /* `few`, or allocated */
    struct tk_level few[tk_levels_inline];
};

void tk_stream_vector(struct tk_stream *s, size_t count, const gex_Memvec_t *list);
void tk_stream_indexed(struct tk_stream *s, size_t count, void *const *list, size_t length);
void tk_stream_close(struct tk_stream *s);

/* A second stream over the bytes that `from` has left. */
void tk_stream_copy(struct tk_stream *to, const struct tk_stream *from);

/* The number of bytes that the stream has left. */
size_t tk_stream_bytes(const struct tk_stream *s);

/* Calls see(context, address, nbytes) for the rest of the current run and for the smallest range
 * around everything after it. Stops and returns false if see() does. */
bool tk_stream_ranges(const struct tk_stream *s, bool (*see)(void *, const char *, size_t),
                      void *context);

/* Ensures that s->left is greater than zero; false at the end. */
bool tk_stream_fill(struct tk_stream *s);

/* Adds to the current run the ranges that follow it in memory, until it has `wanted` bytes. */
void tk_stream_extend(struct tk_stream *s, size_t wanted);

/* At most s->left. */
static inline void tk_stream_skip(struct tk_stream *s, size_t nbytes)
{
    s->at += nbytes;
    s->left -= nbytes;
}

/* Skips nbytes; the stream must have that many. */
void tk_stream_drop(struct tk_stream *s, size_t nbytes);

/* Strided, between runs: takes chunks that differ only in the innermost index, at most `most`, and
 * returns their number and where they begin. 0: there is no such row. / */
size_t tk_stream_row(struct tk_stream *s, size_t most, char **first, ptrdiff_t *stride);

/* The next piece that is contiguous on both sides, at most `most` bytes; false at the end of
 * either. On return both streams are positioned after it. */
struct tk_piece {
    char *a, *b;
    size_t nbytes;
};
bool tk_streams_next(struct tk_stream *a, struct tk_stream *b, size_t most, struct tk_piece *piece);

/* ---- strided: both sides at once ---- */

/* Elements of `size` bytes; dimension 0 is the innermost. */
struct tk_box_level {
    size_t count;
    ptrdiff_t to, from; /* strides of the destination and of the source */
};

struct tk_box {
    char *to, *from;
    size_t size, levels;
    struct tk_box_level *level; /* `few`, or allocated */
    struct tk_box_level few[tk_levels_inline];
};

struct tk_strided {
    void *to;
    const ptrdiff_t *to_strides;
    void *from;
    const ptrdiff_t *from_strides;
    size_t size;
    const size_t *counts;
    size_t levels;
};

/* The same transfer in normalised form: dimensions of one element are dropped, the others ordered
 * by the strides of the destination, which become positive; dimensions that are contiguous on both
 * sides make larger elements or longer rows. Elements may move in any order, because destinations
 * do not overlap anything. False: there is nothing to move, and the box needs no close. */
bool tk_box_open(struct tk_box *box, const struct tk_strided *what);
void tk_box_close(struct tk_box *box);

/* A side of a box, each with its own coalescing. The box may be closed afterwards. */
void tk_stream_box(struct tk_stream *s, const struct tk_box *box, bool is_to);

/* The form sent in messages: a stream over `chunks` chunks of a box, from the current position of
 * another stream. */
void tk_stream_restore(struct tk_stream *s, char *next, size_t chunk, size_t chunks,
                       unsigned levels, const struct tk_level *level);

#endif
