/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What each rank gives, at all ranks: one fence, and one rank of each host that asks the launcher's
 * server for what the others gave and shows it to the ranks of its host (board.h), so that N ranks
 * of a host make N questions, not N times N. Collective; one thread at a time. */
#ifndef TK_GATHER_H
#define TK_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Gathers `size` bytes, which may differ among ranks. Calls `poll` as tk_bootstrap_fence() does. */
enum tk_status tk_gather(const char *key, const void *mine, size_t size, void (*poll)(void));

/* What the rank gave to the last one, at a multiple of 8; the caller may write to it. It comes from
 * another process. NULL, which is logged: not even its place makes sense. */
void *tk_gathered(uint32_t rank, size_t *size);

/* It is no longer needed; also done by the next gathering. */
void tk_gather_drop(void);

#endif
