/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that this library mapped, by address: lets a SIGBUS handler report whether the library's
 * memory is missing, and which. Lookup takes no lock and is async-signal-safe; adding and dropping
 * take one. */
#ifndef TK_RANGES_H
#define TK_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tk_range {
    const void *base;
    size_t size;
    const char *what; /* a string constant */
    int64_t rank;     /* its owner; -1: this process */
    int fd;           /* descriptor of the mapped file; -1: none */
};

/* If there is no memory for the entry the range stays unknown; nothing else depends on it. */
void tk_range_add(const struct tk_range *range);

/* Drops the range that begins there, if any. */
void tk_range_drop(const void *base);

bool tk_range_of(const void *address, struct tk_range *range);

#endif
