/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Distributes a blob of each rank to all ranks. One rank of each host, the lowest, packs the blobs
 * of its host into one; after one fence it asks the launcher's server for those of all hosts and
 * shares them with the ranks of its host (board.h). So a host of L ranks in a job of H hosts causes
 * L + H requests, not L times the ranks of the job. On one host nothing is packed, and the lowest
 * rank asks for the blob of each. Collective; one thread at a time. */
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

/* When all ranks have what was gathered under the key, after a barrier of all: fences of data move
 * all that was ever put, the one at exit too, so the data are replaced by none. Not collective. */
void tk_gather_withdraw(const char *key);

/* A fence after the first gathering, once. On one host it needs no server: a PMIx fence costs a
 * rank 0.1 ms of CPU, two switches to libpmix's thread and back. */
enum tk_status tk_gather_meet(void);

/* Frees the last gathering; the next one does that too. */
void tk_gather_drop(void);

#endif
