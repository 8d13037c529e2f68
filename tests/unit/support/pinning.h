/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device that pins memory as hardware does, without any: a region's pages are spliced into a
 * pipe, which keeps those pages even when their addresses are unmapped. The pipe holds the bytes
 * that the device would send. Thread-safe except for pinning_fails. */
#ifndef PINNING_H
#define PINNING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "firehose/firehose.h"

struct pinning {
    atomic_int pins, unpins; /* calls that succeeded */
    atomic_int sources;      /* calls for regions that are only read */
    int explained;
    size_t explained_size;
    int explained_error;
    int fails_from; /* pins from this many regions on fail; 0: none does */
    int fails_with;
};

extern struct pinning pinning;

/* Opens the cache over it, with the settings in force. */
enum tk_status pinning_open(void);
enum tk_status pinning_open_paged(void); /* as if it paged on demand */

/* The device's view of an address that the region covers. */
void pinning_read(const struct tk_pinned *region, const void *address, void *to, size_t nbytes);

#endif
