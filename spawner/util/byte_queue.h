/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of bytes: append at the end, consume at the front, contiguous in memory. It owns its
 * memory and takes no lock; one thread at a time. Running out of memory ends the process with one
 * message: every user is a process of the launcher, and its parent cleans up after it. */
#ifndef TRUNKLINE_SPAWNER_BYTE_QUEUE_H
#define TRUNKLINE_SPAWNER_BYTE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *memory;
    size_t start;    /* first byte not yet consumed */
    size_t length;   /* bytes queued */
    size_t capacity; /* size of memory */
};

/* Makes sure `count` bytes can be written at the returned place; bytes_commit() then queues them.
 */
uint8_t *bytes_reserve(struct bytes *b, size_t count);
void bytes_commit(struct bytes *b, size_t count);

void bytes_append(struct bytes *b, const void *data, size_t count);
void bytes_consume(struct bytes *b, size_t count);
void bytes_free(struct bytes *b);

static inline const uint8_t *bytes_front(const struct bytes *b)
{
    return b->memory ? b->memory + b->start : NULL;
}

#endif
