/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plain memory of weak_memory.h: which thread wrote and read it when, and whether an access is
 * ordered after those of other threads. Races are errors, so the value is always defined and the
 * memory itself holds it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "weak_private.h"

enum { cells_max = 64 };

/* When it was last written, and last read by each. */
struct cell {
    const char *at;
    size_t size;
    int writer;
    uint8_t written, read[weak_threads_max];
};

static struct cell cells[cells_max];
static unsigned cells_used;

void forget_cells(void)
{
    cells_used = 0;
}

uint64_t mix_cells(uint64_t hash)
{
    for (unsigned c = 0; c < cells_used; c++)
        hash = mix_bytes(mix(hash, cells[c].written), cells[c].read, sizeof(cells[c].read));
    return hash;
}

void weak_share(const void *memory, size_t size, size_t unit)
{
    for (size_t i = 0; i < size; i += unit) {
        if (cells_used == cells_max)
            abort();
        cells[cells_used++] =
            (struct cell){.at = (const char *)memory + i, .size = unit, .writer = nobody};
    }
}

static void access_cells(const void *memory, size_t size, bool writes)
{
    const char *from = memory, *end = from + size;
    if (running == nobody)
        return;
    const struct view *mine = &fibers[running].view;
    for (unsigned c = 0; c < cells_used; c++) {
        struct cell *cell = &cells[c];
        if (end <= cell->at || cell->at + cell->size <= from)
            continue;
        if (cell->writer != nobody && cell->written > mine->clock[cell->writer])
            weak_fail(writes ? "two write the same memory at the same time"
                             : "memory is read that may not be written yet");
        for (int i = 0; writes && i < threads; i++)
            if (cell->read[i] > mine->clock[i])
                weak_fail("memory is written that somebody may still read");
        if (writes) {
            cell->writer = running;
            cell->written = mine->clock[running];
        } else {
            cell->read[running] = mine->clock[running];
        }
    }
}

void weak_look(const void *memory, size_t size)
{
    access_cells(memory, size, false);
}

void weak_touch(const void *memory, size_t size)
{
    access_cells(memory, size, true);
}

void weak_copy(void *to, const void *from, size_t n)
{
    weak_look(from, n);
    weak_touch(to, n);
    if (n)
        memcpy(to, from, n);
}
