/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A fake device of its own class; the CPU sees its memory only by `view`. `gpu` sets how long its
 * copies take and which of them fail. One thread, except for the counting of users. */
#ifndef PAPER_DEVICE_H
#define PAPER_DEVICE_H

#include "kind/kind.h"
#include "peer/peer.h"

enum { size = 1 << 20, piece = 32768, slots = 2, endpoint = 1, host_endpoint = 2 };

struct paper_gpu {
    unsigned looks; /* until a copy is over */
    unsigned busy, fails;
    unsigned in_flight, copies, held, flushes;
    bool fails_flush;
    bool no_bytes;    /* copies move no bytes: addresses may be outside of the device */
    bool only_counts; /* puts move no bytes either */
    size_t copied, posted;
    uintptr_t lowest;                                   /* written by a copy */
    unsigned char pieces[(1ull << 32) / piece / 8 + 1]; /* by the place that they were put to */
    const char *expected;                               /* at device_at + 1, by a flush */
};

extern struct paper_gpu gpu;
extern char *device_at, *view; /* the device's address, and the same bytes for the CPU */
extern struct tk_kind_device device;
extern struct tk_kind_memory memory; /* all of it */
extern const struct tk_bound_kind kind;

bool is_on_device(uintptr_t at);

/* Where the CPU sees an address of `device`; NULL: of host memory. The address must belong to
 * `device`. */
char *seen(uintptr_t at, const struct tk_kind_device *device);

#endif
