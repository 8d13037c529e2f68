/* SPDX-License-Identifier: BSD-3-Clause */
/* See target_memory.h. Owns nothing. */
#include "config.h"

#include <string.h>

#include "target_memory.h"

enum { gap_byte = 0xA5, cell_byte = 0x5A };

static size_t lines(size_t bytes)
{
    return (bytes + rma_line - 1) / rma_line * rma_line;
}

void rma_memory_set(struct rma_memory *g, size_t size)
{
    g->size = size;
    g->stride = lines(size) + rma_line;
    g->source_size = lines(g->source_size);
    /* Twice what is in flight: a cell is written again only when its last write is complete. */
    g->ring = 2 * g->window;
}

static size_t greetings(const struct rma_memory *g)
{
    return lines(g->writers * sizeof(uint64_t));
}

static size_t cells(const struct rma_memory *g)
{
    return greetings(g) + g->sources * g->source_size;
}

static size_t locals(const struct rma_memory *g)
{
    return cells(g) + g->writers * g->ring * g->stride;
}

size_t rma_memory_bytes(const struct rma_memory *g)
{
    return locals(g) + g->threads * g->window * g->stride;
}

size_t rma_at_greeting(const struct rma_memory *g, size_t writer)
{
    (void)g;
    return writer * sizeof(uint64_t);
}

size_t rma_at_source(const struct rma_memory *g, size_t source)
{
    return greetings(g) + source * g->source_size;
}

size_t rma_at_cell(const struct rma_memory *g, size_t writer, uint64_t seq)
{
    return cells(g) + (writer * g->ring + seq % g->ring) * g->stride;
}

size_t rma_at_local(const struct rma_memory *g, size_t thread, size_t slot)
{
    return locals(g) + (thread * g->window + slot) * g->stride;
}

void rma_pattern(const struct rma_memory *g, uint64_t id, size_t offset, void *out, size_t size)
{
    unsigned char *at = out;
    uint64_t base = wl_mix(g->seed ^ wl_mix(id + 1)), word = 0;
    for (size_t x = offset; x < offset + size; x++) {
        if (x == offset || x % 8 == 0)
            word = wl_mix(base + x / 8);
        unsigned char byte = (unsigned char)(word >> 8 * (x % 8));
        *at++ = byte == 0 ? 1 : byte;
    }
}

bool rma_pattern_holds(const struct rma_memory *g, uint64_t id, size_t offset, const void *data,
                       size_t size)
{
    unsigned char expected[256];
    const char *at = data;
    while (size > 0) {
        size_t piece = size < sizeof(expected) ? size : sizeof(expected);
        rma_pattern(g, id, offset, expected, piece);
        if (memcmp(expected, at, piece))
            return false;
        at += piece;
        offset += piece;
        size -= piece;
    }
    return true;
}

bool rma_has_arrived(const char *local, size_t size)
{
    const char *last = local + size - 1;
    if (!__atomic_load_n(last, __ATOMIC_ACQUIRE))
        return false;
    for (const char *end = local + rma_line - 1; end < last; end += rma_line)
        if (!__atomic_load_n(end, __ATOMIC_ACQUIRE))
            return false;
    return true;
}

void rma_memory_fill(const struct rma_memory *g, char *segment, uint64_t id)
{
    memset(segment, 0, greetings(g));
    for (size_t s = 0; s < g->sources; s++)
        rma_pattern(g, id + s, 0, segment + rma_at_source(g, s), g->source_size);
    for (size_t cell = 0; cell < g->writers * g->ring; cell++) {
        char *at = segment + cells(g) + cell * g->stride;
        memset(at, cell_byte, g->size);
        memset(at + g->size, gap_byte, g->stride - g->size);
    }
}

/* The number first, as much of it as fits; the rest follows from writer and number. */
void rma_cell_fill(const struct rma_memory *g, uint64_t writer, uint64_t seq, void *out)
{
    struct wl_random r = wl_random(g->seed ^ wl_mix(writer), seq);
    char *at = out;
    uint64_t word = seq;
    for (size_t left = g->size; left > 0; word = wl_next(&r)) {
        size_t piece = left < sizeof(word) ? left : sizeof(word);
        memcpy(at, &word, piece);
        at += piece;
        left -= piece;
    }
}

static bool cell_holds(const struct rma_memory *g, const char *cell, uint64_t writer, uint64_t seq)
{
    struct wl_random r = wl_random(g->seed ^ wl_mix(writer), seq);
    uint64_t word = seq;
    for (size_t left = g->size; left > 0; word = wl_next(&r)) {
        size_t piece = left < sizeof(word) ? left : sizeof(word);
        if (memcmp(cell, &word, piece))
            return false;
        cell += piece;
        left -= piece;
    }
    return true;
}

static bool untouched(const struct rma_memory *g, const char *cell)
{
    for (size_t i = 0; i < g->size; i++)
        if ((unsigned char)cell[i] != cell_byte)
            return false;
    return true;
}

size_t rma_ring_wrong(const struct rma_memory *g, const char *segment, size_t ring, uint64_t writer,
                      uint64_t last, uint64_t *bad)
{
    size_t wrong = 0;
    for (size_t back = 0; back < g->ring; back++) {
        /* Of the writes that used this cell the last one must be there. */
        uint64_t seq = last + g->ring - back;
        const char *cell = segment + rma_at_cell(g, ring, seq);
        bool written = last > back;
        if (written ? cell_holds(g, cell, writer, last - back) : untouched(g, cell))
            continue;
        wrong++;
        if (bad)
            *bad = written ? last - back : 0;
    }
    return wrong;
}

size_t rma_memory_changed_lines(const struct rma_memory *g, const char *segment, uint64_t id)
{
    size_t hurt = 0;
    for (size_t s = 0; s < g->sources; s++)
        for (size_t x = 0; x < g->source_size; x += rma_line)
            hurt += !rma_pattern_holds(g, id + s, x, segment + rma_at_source(g, s) + x, rma_line);
    for (size_t cell = 0; cell < g->writers * g->ring; cell++) {
        const unsigned char *gap =
            (const unsigned char *)segment + cells(g) + cell * g->stride + g->size;
        bool whole = true;
        for (size_t i = 0; i < g->stride - g->size; i++)
            whole &= gap[i] == gap_byte;
        hurt += !whole;
    }
    return hurt;
}
