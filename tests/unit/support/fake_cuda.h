/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A driver of CUDA for tests: two devices, a stack of contexts as each thread has one, allocations
 * side by side. It has no memory: addresses are numbers. It stands where kind/library.c would open
 * libcuda.so.1. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "unit.h"

enum { heap = 0x40000000, devices = 2, no_device = 100 /* CUDA_ERROR_NO_DEVICE */ };

struct allocation {
    uintptr_t base;
    size_t size;
    int device, id;
    unsigned type, is_managed;
};

struct fake_cuda {
    bool is_missing;     /* the library */
    const char *absent;  /* this function is not in it */
    const char *failing; /* this one fails with `code` */
    int code, count, ordering, flush_options, flushes, has_dmabuf, no_uva;
    bool no_ranges; /* pointers have no attributes of ranges */
    uintptr_t stack[8];
    int depth, capture_mode;
    int retained[devices], streams, events, opened, pinned;
    struct allocation at[8];
    int allocations, ids;
    bool is_slow;     /* copies are in flight until this is false */
    uintptr_t synced; /* SYNC_MEMOPS was set there */
    struct {
        const char *by;
        unsigned long long to, from;
        size_t size, rows, to_pitch, from_pitch;
        unsigned calls;
    } copied;
};
extern struct fake_cuda fake_cuda;

/* Memory of the client: where it is. */
uintptr_t fake_cuda_allocate(size_t size, int device);

#endif
