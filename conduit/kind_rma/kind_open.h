/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of transfers with device memory. */
#ifndef TK_KIND_OPEN_H
#define TK_KIND_OPEN_H

/* Before anything can arrive, and at the end. */
void tk_kind_rma_open(void);
void tk_kind_rma_close(void);

#endif
