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

/* The values of gex_MK_Class_t; api/kind.c checks that they match. Including gasnet_mk.h here would
 * make conduit/classes.awk compile all these sources again for the trace twins. */
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
    uint64_t id; /* changes when the memory is freed and allocated again; 0: unknown */
};

/* What another process on this host needs to map an allocation. CUDA's and HIP's handles have 64
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
     * Returns their number, or -1 with `why`; *is_loaded then says whether the library was found.
     * Objects that Level Zero's arguments refer to exist until the process ends. */
    int (*list)(struct tk_kind_args *args, int max, bool *is_loaded, struct tk_kind_why *why);
    /* Opens the library and the device of device->args, and fills in device->facts and
     * device->own. */
    enum tk_status (*open)(struct tk_kind_device *device, struct tk_kind_why *why);
    /* Called when no copy is in flight and all allocations and mappings have been released. */
    void (*close)(struct tk_kind_device *device);
    /* NULL, or returns the size of the device's memory in bytes; 0: unknown. */
    size_t (*total)(struct tk_kind_device *device);
    enum tk_status (*alloc)(struct tk_kind_device *device, size_t size, uintptr_t *address,
                            struct tk_kind_why *why);
    void (*free)(struct tk_kind_device *device, uintptr_t address);
    /* TK_FAIL: not memory of this device, or memory that the CPU's page tables map as well (managed
     * memory), which moves while HCAs access it. */
    enum tk_status (*find)(struct tk_kind_device *device, uintptr_t address,
                           struct tk_kind_allocation *allocation, struct tk_kind_why *why);
    /* NULL, or must be called before an HCA or another process accesses an allocation of the
     * client. */
    void (*prepare)(struct tk_kind_device *device, uintptr_t address);
    /* Starts a copy; after TK_OK copy_test() is called until it does not return TK_BUSY. After
     * TK_FAIL nothing is in flight. TK_BUSY: the device has no event for it now. */
    enum tk_status (*copy)(struct tk_kind_copy *copy, struct tk_kind_why *why);
    enum tk_status (*copy_test)(struct tk_kind_copy *copy, struct tk_kind_why *why);
    /* Returns a descriptor of memory that has this range at `offset`; the caller closes it. */
    enum tk_status (*export_dmabuf)(struct tk_kind_device *device, uintptr_t address, size_t size,
                                    int *fd, uint64_t *offset, struct tk_kind_why *why);
    /* `address` begins an allocation. */
    enum tk_status (*ipc_get)(struct tk_kind_device *device, uintptr_t address,
                              struct tk_kind_ipc *ipc, struct tk_kind_why *why);
    /* Maps another process's allocation for copies by `device`: *base is its first byte. */
    enum tk_status (*ipc_open)(struct tk_kind_device *device, const struct tk_kind_ipc *ipc,
                               uintptr_t *base, struct tk_kind_why *why);
    void (*ipc_close)(struct tk_kind_device *device, uintptr_t base);
    /* NULL, or makes writes by HCAs before the call visible to the device, as a read by an HCA
     * does; returns when they are visible. */
    enum tk_status (*flush)(struct tk_kind_device *device, struct tk_kind_why *why);
    /* Pins host memory that copies read and write: copies become faster and asynchronous. A failure
     * costs only speed. */
    bool (*pin_host)(struct tk_kind_device *device, void *base, size_t size);
    void (*unpin_host)(struct tk_kind_device *device, void *base);
};

extern const struct tk_kind_class tk_kind_cuda, tk_kind_hip, tk_kind_ze;

/* NULL: HOST, an unknown class, or a class that configure left out. */
const struct tk_kind_class *tk_kind_class_of(int gex_class);

/* For list() of the classes whose devices have numbers. Returns how many were written. */
int tk_kind_list_ordinals(int gex_class, int count, struct tk_kind_args *args, int max);

/* Writes the cause. Returns TK_FAIL. */
enum tk_status tk_kind_why(struct tk_kind_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
