/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices with memory of their own, as the rooms above see them. A device is opened with its first
 * kind and closed when its last kind and its last segment are gone: kinds may be destroyed before
 * or after their segments. Owns the list of open devices, under one lock. */
#ifndef TK_KIND_H
#define TK_KIND_H

#include "kind/kind_class.h"

struct tk_kind_device {
    const struct tk_kind_class *class;
    struct tk_kind_facts facts;
    struct tk_kind_args args;
    unsigned use; /* kinds, segments, and what kind_rma/ holds; under the lock of the list */
    void *own;    /* of the class */
    struct tk_kind_device *next;
};

/* Memory of a device as a segment. */
struct tk_kind_memory {
    struct tk_kind_device *device;
    uintptr_t base;
    size_t size;
    struct tk_kind_allocation allocation; /* that holds it */
    uint32_t serial;             /* of the allocation: changes if it is freed and made again */
    struct tk_kind_memory *next; /* in the list of memory.c */
    bool is_ours;                /* allocated by the library */
    bool has_ipc;
    struct tk_kind_ipc ipc;
};

/* Returns the device for these arguments, takes a reference, and opens the device if necessary. The
 * class must exist. NULL: failed, see `why`. */
struct tk_kind_device *tk_kind_device_get(const struct tk_kind_args *args, struct tk_kind_why *why);
void tk_kind_device_hold(struct tk_kind_device *device);
void tk_kind_device_put(struct tk_kind_device *device);
/* How often it is counted. */
unsigned tk_kind_device_uses(const struct tk_kind_device *device);

/* Returns an open device of this class that can map a neighbour's memory: preferably the one
 * with this UUID, else any. NULL: none is open. Takes no reference: valid as long as the
 * caller's kinds. */
struct tk_kind_device *tk_kind_device_like(int gex_class, const unsigned char *uuid);

/* address 0: the library allocates, and `size` may grow to the device's allocation granularity.
 * TK_FAIL: see `why`; *is_argument: the caller's arguments are wrong, otherwise resources are
 * missing. */
enum tk_status tk_kind_memory_open(struct tk_kind_memory *memory, struct tk_kind_device *device,
                                   uintptr_t address, size_t size, bool *is_argument,
                                   struct tk_kind_why *why);
void tk_kind_memory_close(struct tk_kind_memory *memory);

/* Whether the segment's memory still belongs to the allocation that it was created from. False: see
 * `why`. */
bool tk_kind_memory_is_valid(const struct tk_kind_memory *memory, struct tk_kind_why *why);

/* How messages name a device: class, number, name and PCI place, for `size` characters at `text`.
 */
const char *tk_kind_device_text(const struct tk_kind_device *device, char *text, size_t size);

#endif
