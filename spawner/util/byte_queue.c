/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of bytes; see byte_queue.h. Owns the memory of each queue, takes no lock. */
#include "config.h"

#include "byte_queue.h"
#include "log.h"

#include <stdlib.h>
#include <string.h>

static void bytes_grow(struct bytes *b, size_t wanted)
{
    size_t capacity = b->capacity ? b->capacity : 4096;
    while (capacity < wanted)
        capacity *= 2;
    uint8_t *memory = realloc(b->memory, capacity);
    if (!memory) {
        log_error("out of memory for a buffer of %zu bytes", capacity);
        exit(EXIT_RUNTIME);
    }
    b->memory = memory;
    b->capacity = capacity;
}

uint8_t *bytes_reserve(struct bytes *b, size_t count)
{
    if (b->start + b->length + count > b->capacity) {
        if (b->start) {
            memmove(b->memory, b->memory + b->start, b->length);
            b->start = 0;
        }
        if (b->length + count > b->capacity)
            bytes_grow(b, b->length + count);
    }
    return b->memory + b->start + b->length;
}

void bytes_commit(struct bytes *b, size_t count)
{
    b->length += count;
}

void bytes_append(struct bytes *b, const void *data, size_t count)
{
    if (!count)
        return;
    memcpy(bytes_reserve(b, count), data, count);
    bytes_commit(b, count);
}

void bytes_consume(struct bytes *b, size_t count)
{
    b->start += count;
    b->length -= count;
    if (!b->length)
        b->start = 0;
}

void bytes_free(struct bytes *b)
{
    free(b->memory);
    *b = (struct bytes){0};
}
