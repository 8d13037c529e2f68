/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a class of memory kinds provides: one table of functions per vendor. A class opens the
 * vendor's library at run time and is the only place that calls it. No function changes the
 * context or the device that is current in the calling thread. All functions are thread-safe; none
 * waits except where it says so. Those that fail write the cause to `why`. */
#ifndef TK_KIND_CLASS_H
#define TK_KIND_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct tk_kind_device;

/* gex_MK_Class_t, whose values api/kind.c compares with these: gasnet_mk.h would have all sources
 * here compiled once more for the trace twins (conduit/classes.awk). */
enum tk_kind_number { TK_KIND_HOST, TK_KIND_CUDA_UVA, TK_KIND_HIP, TK_KIND_ZE, TK_KIND_NUMBERS };

/* Which device, as in gex_MK_Create_args_t. */
struct tk_kind_args {
    int gex_class;
    int ordinal;                  /* CUDA_UVA, HIP; -1: ZE */
    void *ze_device, *ze_context; /* ZE */
    uint32_t ze_memory_ordinal;
};

/* The cause of a failure: one clause without a newline. */
struct tk_kind_why {
    char text[240];
};

/* The allocation that an address belongs to. */
struct tk_kind_allocation {
    uintptr_t base;
    size_t size;
    uint64_t id; /* another one after the memory was freed and allocated again; 0: unknown */
};

/* What another process of this host needs to map an allocation. CUDA's and HIP's handles have 64
 * bytes; Level Zero's are file descriptors and are not supported. */
struct tk_kind_ipc {
    unsigned char handle[64];
    uint64_t offset; /* of the segment in the allocation */
};

/* A copy in flight. The caller fills in all but the last field and keeps the struct until the copy
 * is over. With more than one row, nbytes is the length of each; a pitch is the distance from the
 * start of a row to the next, at least nbytes and at most tk_kind_pitch_max. */
struct tk_kind_copy {
    uintptr_t to, from;
    size_t nbytes;
    struct tk_kind_device *to_device, *from_device; /* NULL: host memory; not both */
    size_t rows;                                    /* 0, 1: one range without pitches */
    size_t to_pitch, from_pitch;
    void *event; /* of the class */
};

enum { tk_kind_pitch_max = 0x7fffffff /* CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices */ };

/* Filled in by open(). */
struct tk_kind_facts {
    char name[64];
    char pci[16]; /* domain:bus:device.function, as in sysfs; "": unknown */
    unsigned char uuid[16];
    bool has_dmabuf;  /* export_dmabuf() works */
    bool has_ipc;     /* ipc_get() works */
    bool needs_flush; /* a remote write may stay invisible to the device until a read of it
                         through the same HCA */
    bool can_flush;   /* flush() works */
};

struct tk_kind_class {
    const char *name;    /* as in GEX_MK_CLASS_<name> */
    const char *library; /* for messages */
    int gex_class;       /* gex_MK_Class_t */
    /* For tools: writes open()'s arguments for the devices that this process sees, at most `max`.
     * Returns their number; -1: why, and *is_loaded tells whether the library was found. What
     * Level Zero's arguments refer to exists until the process ends. */
    int (*list)(struct tk_kind_args *args, int max, bool *is_loaded, struct tk_kind_why *why);
    /* Opens the library and the device of device->args. device->facts and device->own are to be
     * filled in. */
    enum tk_status (*open)(struct tk_kind_device *device, struct tk_kind_why *why);
    /* No copy is in flight, and what was allocated and mapped is released. */
    void (*close)(struct tk_kind_device *device);
    /* NULL, or bytes of memory that the device has; 0: unknown. */
    size_t (*total)(struct tk_kind_device *device);
    enum tk_status (*alloc)(struct tk_kind_device *device, size_t size, uintptr_t *address,
                            struct tk_kind_why *why);
    void (*free)(struct tk_kind_device *device, uintptr_t address);
    /* TK_FAIL: no memory of this device, or memory that the CPU's page tables map as well (managed
     * memory), which moves while HCAs access it. */
    enum tk_status (*find)(struct tk_kind_device *device, uintptr_t address,
                           struct tk_kind_allocation *allocation, struct tk_kind_why *why);
    /* NULL, or call it before an HCA or another process accesses an allocation of the client. */
    void (*prepare)(struct tk_kind_device *device, uintptr_t address);
    /* Starts a copy; after TK_OK copy_test() is called until it does not return TK_BUSY. After
     * TK_FAIL nothing is in flight. TK_BUSY: the device has no event for it now. */
    enum tk_status (*copy)(struct tk_kind_copy *copy, struct tk_kind_why *why);
    enum tk_status (*copy_test)(struct tk_kind_copy *copy, struct tk_kind_why *why);
    /* A descriptor, to be closed by the caller, of memory that has this range at `offset`. */
    enum tk_status (*export_dmabuf)(struct tk_kind_device *device, uintptr_t address, size_t size,
                                    int *fd, uint64_t *offset, struct tk_kind_why *why);
    /* `address` begins an allocation. */
    enum tk_status (*ipc_get)(struct tk_kind_device *device, uintptr_t address,
                              struct tk_kind_ipc *ipc, struct tk_kind_why *why);
    /* Maps another process's allocation for copies by `device`: *base is its first byte. */
    enum tk_status (*ipc_open)(struct tk_kind_device *device, const struct tk_kind_ipc *ipc,
                               uintptr_t *base, struct tk_kind_why *why);
    void (*ipc_close)(struct tk_kind_device *device, uintptr_t base);
    /* NULL, or makes visible to the device what HCAs wrote before the call, as a read by an HCA
     * does; waits for it. */
    enum tk_status (*flush)(struct tk_kind_device *device, struct tk_kind_why *why);
    /* Host memory that copies read and write: pinning makes them faster and asynchronous. A failure
     * has no consequence but speed. */
    bool (*pin_host)(struct tk_kind_device *device, void *base, size_t size);
    void (*unpin_host)(struct tk_kind_device *device, void *base);
};

extern const struct tk_kind_class tk_kind_cuda, tk_kind_hip, tk_kind_ze;

/* NULL: HOST, an unknown class, or one that configure was told to leave out. */
const struct tk_kind_class *tk_kind_class_of(int gex_class);

/* For list() of the classes whose devices have numbers. Returns how many were written. */
int tk_kind_list_ordinals(int gex_class, int count, struct tk_kind_args *args, int max);

/* Writes the cause. Returns TK_FAIL. */
enum tk_status tk_kind_why(struct tk_kind_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
