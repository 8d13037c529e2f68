/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices of each vendor as a program uses them beside the library: each loads the vendor's
 * library as the library does. */
#ifndef KINDS_DEVICES_H
#define KINDS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

#include "gasnet_mk.h"

struct kinds_device {
    const struct kinds_vendor *vendor;
    int number;
    void *context; /* CUDA, Level Zero */
    void *device;  /* Level Zero */
};

struct kinds_vendor {
    const char *name;
    /* Opens the first device, or the last one; other devices are not touched. */
    void (*open)(struct kinds_device *device, bool is_last);
    void (*describe)(const struct kinds_device *device, gex_MK_Create_args_t *args);
    char *(*alloc)(const struct kinds_device *device, size_t size);
    void (*free)(const struct kinds_device *device, char *memory);
    void (*write)(const struct kinds_device *device, char *to, const void *from, size_t size);
    void (*read)(const struct kinds_device *device, void *to, const char *from, size_t size);
    /* The calling thread's current context or device. */
    uintptr_t (*current)(void);
    void (*close)(const struct kinds_device *device);
    /* After all are closed, this process must hold no device. */
    void (*check_idle)(void);
};

/* "cuda", "hip" or "ze" */
const struct kinds_vendor *kinds_vendor(const char *name, size_t length);

#endif
