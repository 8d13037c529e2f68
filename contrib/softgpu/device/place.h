/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What devices are called and where they are: no state. */
#ifndef SGPU_PLACE_H
#define SGPU_PLACE_H

#include <stdio.h>
#include <string.h>

enum { SGPU_PCI_DOMAIN = 0, SGPU_PCI_BUS = 0x41, SGPU_PCI_SLOT = 0 };

static inline void sgpu_device_name(char *out, size_t n, int device)
{
    snprintf(out, n, "softgpu%d", device);
}

static inline void sgpu_device_pci(char *out, size_t n, int device)
{
    snprintf(out, n, "%04x:%02x:%02x.0", SGPU_PCI_DOMAIN, SGPU_PCI_BUS + device, SGPU_PCI_SLOT);
}

/* The same in all processes, because IPC between them requires it */
static inline void sgpu_device_uuid(void *out, int device)
{
    memset(out, 0, 16);
    memcpy(out, "softgpu", 7);
    ((char *)out)[15] = (char)device;
}

#endif
