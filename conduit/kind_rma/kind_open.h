/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of transfers with device memory. */
#ifndef TK_KIND_OPEN_H
#define TK_KIND_OPEN_H

struct tk_kind_device;

/* Before anything can arrive. */
void tk_kind_rma_open(void);

/* Like tk_kind_device_put(), for a kind or a segment that is being destroyed. The last one also
 * releases what this layer holds, so that the device is closed. Check and release are one step: if
 * two threads destroy the last two, exactly one closes the device. No copy is in flight. */
void tk_kind_rma_put(struct tk_kind_device *device);

#endif
