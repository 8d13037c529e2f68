/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums by two numbers and a name. Grows as it is used. */
#ifndef TRUNKLINE_TRACE_TABLE_H
#define TRUNKLINE_TRACE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct trace_sum {
    uint64_t calls, ns, max, bytes;
    uint64_t own; /* ns without calls inside of these */
};

struct trace_entry {
    uint64_t first, second;
    char *name;
    struct trace_sum sum;
    void *more; /* the caller's, freed with the table */
};

struct trace_table {
    struct trace_entry *entries; /* in the order in which they came */
    uint32_t *slots;             /* 1 + where in `entries`; 0: free */
    size_t count, room, slot_count;
};

/* Finds or adds; valid until the next one. NULL: no memory. */
struct trace_entry *trace_table_entry(struct trace_table *table, uint64_t first, uint64_t second,
                                      const char *name, size_t length);
void trace_table_free(struct trace_table *table);

#endif
