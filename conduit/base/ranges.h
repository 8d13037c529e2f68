/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that this library mapped, by address: a SIGBUS handler says by it whether the library's
 * memory is what is missing, and which. Looking up takes no lock and is async-signal-safe; adding
 * and dropping take one. */
#ifndef TK_RANGES_H
#define TK_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tk_range {
    const void *base;
    size_t size;
    const char *what; /* a string constant */
    int64_t rank;     /* whose it is; -1: this process's */
    int fd;           /* open on the file that is mapped; -1: none is */
};

/* Without memory for its entry a range is not known; nothing else depends on it. */
void tk_range_add(const struct tk_range *range);

/* The one that begins there, if any. */
void tk_range_drop(const void *base);

bool tk_range_of(const void *address, struct tk_range *range);

#endif
