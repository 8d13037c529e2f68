/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of transfers with device memory. */
#ifndef TK_KIND_OPEN_H
#define TK_KIND_OPEN_H

struct tk_kind_device;

/* Before anything can arrive. */
void tk_kind_rma_open(void);

/* A kind or a segment of this device, which is counted yet, is about to be destroyed: if it is the
 * last one, the device is given back, so that it is closed with it. No copy is in flight. */
void tk_kind_rma_release(struct tk_kind_device *device);

#endif
