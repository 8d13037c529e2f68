/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts what one rank writes to one stream into pieces that may be shown between other ranks'
 * output: whole lines, labelled if wanted. It owns the unfinished line; one thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_LINES_H
#define TRUNKLINE_SPAWNER_LINES_H

#include "spawner/util/byte_queue.h"

#include <stdbool.h>
#include <stdint.h>

/* A line longer than this is passed on in pieces: waiting for its end without a bound would let one
 * rank eat the host's memory. */
enum { LINES_MAX = 1 << 20 };

struct lines {
    struct bytes held; /* an unfinished line */
    uint32_t rank;
    bool label;   /* put "[rank] " before each line */
    bool raw;     /* the only stream: forward everything at once */
    bool in_line; /* the beginning of the current line has been passed on already */
};

/* Takes `count` bytes and appends to `ready` what may be shown now. */
void lines_put(struct lines *l, const void *data, size_t count, struct bytes *ready);

/* The stream has ended: appends the unfinished rest, without adding a newline. */
void lines_end(struct lines *l, struct bytes *ready);

#endif
