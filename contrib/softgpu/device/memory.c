/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which addresses are memory of a device or pinned host memory. Owns the table of ranges, which is
 * sorted by address, and the reservations. Addresses of freed memory stay reserved for a while, so
 * that a stale pointer faults and is not taken for newer memory. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "contrib/softgpu/device/device.h"

static struct sgpu_memory **table;
static size_t table_count, table_capacity;

/* ---- reservations ---- */

enum { OLD_RANGES = 256 };
static struct {
    uint64_t address, length;
} old[OLD_RANGES];
static unsigned old_next;

/* Reserves more than needed, and unmaps what lies outside the aligned boundaries. */
uint64_t sgpu_reserve(uint64_t length, uint64_t alignment)
{
    void *p = mmap(NULL, length + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    uint64_t raw = (uint64_t)(uintptr_t)p, begin = (raw + alignment - 1) & -alignment;

    if (p == MAP_FAILED)
        return 0;
    if (begin > raw)
        munmap(p, begin - raw);
    if (raw + alignment > begin)
        munmap((void *)(uintptr_t)(begin + length), raw + alignment - begin);
    return begin;
}

void sgpu_unreserve(uint64_t address, uint64_t length)
{
    unsigned at = old_next++ % OLD_RANGES;

    if (old[at].length > 0)
        munmap((void *)(uintptr_t)old[at].address, old[at].length);
    old[at].address = address;
    old[at].length = length;
}

/* ---- the table ---- */

bool sgpu_memory_on_device(const struct sgpu_memory *m)
{
    return m->storage != NULL;
}

/* The number of ranges that begin at or below the address */
static size_t table_position(uint64_t address)
{
    size_t low = 0, high = table_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sgpu_memory *sgpu_memory_add(const struct sgpu_memory *range)
{
    struct sgpu_memory *m = malloc(sizeof *m);
    size_t at = table_position(range->address);

    if (m && table_count == table_capacity) {
        size_t capacity = table_capacity * 2 + 64;
        struct sgpu_memory **wider = realloc(table, capacity * sizeof(struct sgpu_memory *));

        if (!wider) {
            free(m);
            return NULL;
        }
        table = wider;
        table_capacity = capacity;
    }
    if (!m)
        return NULL;
    *m = *range;
    m->refs = 1;
    m->id = sgpu_next_id();
    memmove(table + at + 1, table + at, (table_count - at) * sizeof(struct sgpu_memory *));
    table[at] = m;
    table_count++;
    return m;
}

void sgpu_memory_remove(struct sgpu_memory *m)
{
    size_t at = table_position(m->address) - 1;

    memmove(table + at, table + at + 1, (table_count - at - 1) * sizeof(struct sgpu_memory *));
    table_count--;
    sgpu_memory_put(m);
}

void sgpu_memory_put(struct sgpu_memory *m)
{
    if (--m->refs > 0)
        return;
    if (m->storage)
        sgpu_storage_put(m->storage);
    free(m);
}

struct sgpu_memory *sgpu_memory_find(uint64_t address)
{
    size_t n = table_position(address);
    struct sgpu_memory *m = n > 0 ? table[n - 1] : NULL;

    return m && address - m->address < m->size ? m : NULL;
}

bool sgpu_memory_holds(const struct sgpu_memory *m, uint64_t address, uint64_t length)
{
    uint64_t offset = address - m->address;

    return offset <= m->size && length <= m->size - offset;
}

bool sgpu_memory_overlaps(uint64_t address, uint64_t length)
{
    size_t n = table_position(address + length - 1);

    return n > 0 && table[n - 1]->address + table[n - 1]->size > address;
}

bool sgpu_memory_was_freed(uint64_t address)
{
    for (unsigned i = 0; i < OLD_RANGES; i++)
        if (address - old[i].address < old[i].length)
            return true;
    return false;
}

struct sgpu_memory *sgpu_memory_next(const struct sgpu_memory *m)
{
    size_t at = m ? table_position(m->address) : 0;

    return at < table_count ? table[at] : NULL;
}
