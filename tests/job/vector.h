/* SPDX-License-Identifier: BSD-3-Clause */
/* Random shapes of non-contiguous transfers, and their reference implementation by plain loops
 * over bytes. A shape describes a transfer between two areas of `vector_area` bytes; one thread
 * uses it. */
#ifndef TESTS_VECTOR_H
#define TESTS_VECTOR_H

#include "job.h"

#include "gasnet_vis.h"

enum { vector_area = 48 << 10, vector_entries = 300, vector_levels = 9 };

enum vector_form { VECTOR, INDEXED, STRIDED, FORMS };

/* Offsets into the areas of destination and source; made into addresses by vector_place(). */
struct vector_shape {
    enum vector_form form;
    size_t nbytes;
    /* vector and indexed: ranges of both sides; indexed: of one length each */
    size_t to_count, from_count;
    gex_Memvec_t to[vector_entries], from[vector_entries];
    void *to_list[vector_entries], *from_list[vector_entries];
    size_t to_length, from_length;
    /* strided */
    size_t to_base, from_base;
    ptrdiff_t to_strides[vector_levels], from_strides[vector_levels];
    size_t counts[vector_levels], levels, size;
};

/* Anything that the interface allows: destinations overlap nothing, sources may overlap. */
void vector_random(struct vector_shape *shape, uint64_t *state);

/* The addresses of the lists. */
void vector_place(struct vector_shape *shape, char *to, char *from);

/* Transfers by plain loops, from one area to another. */
void vector_model(const struct vector_shape *shape, char *to, const char *from);

#endif
