/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of transfers with device memory. */
#ifndef TK_KIND_OPEN_H
#define TK_KIND_OPEN_H

struct tk_kind_device;

/* Before anything can arrive. */
void tk_kind_rma_open(void);

/* As tk_kind_device_put() for a kind or a segment that is destroyed. With the last of them goes
 * what is held here, so that the device is closed. Check and drop are one step: of two threads that
 * destroy the last two, one closes it. No copy is in flight. */
void tk_kind_rma_put(struct tk_kind_device *device);

#endif
