/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Distributes a blob of each rank to all ranks: after one fence, one rank of each host asks the
 * launcher's server for the blobs of all and shares them with the ranks of its host (board.h), so
 * that N ranks of a host cause N requests, not N times N. Collective; one thread at a time. */
#ifndef TK_GATHER_H
#define TK_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Gathers `size` bytes, which may differ among ranks. Calls `poll` as tk_bootstrap_fence() does. */
enum tk_status tk_gather(const char *key, const void *mine, size_t size, void (*poll)(void));

/* The rank's blob of the last gathering, at a multiple of 8; the caller may write to it. It comes
 * from another process. NULL if its offset is invalid, which is logged. */
void *tk_gathered(uint32_t rank, size_t *size);

/* Frees the last gathering; the next one does that too. */
void tk_gather_drop(void);

#endif
